"""Draws the summary of many shots as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .html import environment


@dataclass(frozen=True, slots=True)
class ShotLine:
    """One shot of a batch.

    Attributes:
        name: for people.
        state: "waiting", "running", "done", "failed" or "cancelled".
        plate: pattern.
        output: likewise.
        pictures: (what, JPEG or PNG bytes) from the middle of the shot.
        frame: number of the frame that the pictures show, None where there are none.
        frames: how many there are.
        drops: (state, number) of frames that are not simply done.
        seconds: of the last attempt.
        attempts: how often it was begun.
        said: what is wrong or worth knowing, one sentence each.
        checked: how many frames the check looked at; 0 for none.
        report: address of the shot's own page, relative to this one; "" where there is none.
        runner: who did it.
    """

    name: str
    state: str
    plate: str
    output: str
    pictures: Sequence[tuple[str, bytes]]
    frame: int | None
    frames: int
    drops: Sequence[tuple[str, int]]
    seconds: float
    attempts: int
    said: Sequence[str]
    checked: int
    report: str
    runner: str


@dataclass(frozen=True, slots=True)
class BatchPage:
    """What the summary tells.

    Attributes:
        queue: its path.
        written: ISO time.
        shots: in the order of the queue.
        pictures_left_out: shots without pictures because there are so many.
    """

    queue: str
    written: str
    shots: Sequence[ShotLine]
    pictures_left_out: int = 0

    def count(self, state: str) -> int:
        """Shots in a state."""
        return sum(shot.state == state for shot in self.shots)


STATES = ("done", "failed", "cancelled", "running", "waiting")


def render_batch(page: BatchPage) -> str:
    """The summary as a self-contained HTML document; text that is no Unicode shows as escapes."""
    html = (
        environment()
        .get_template("batch.html.j2")
        .render(
            page=page,
            states=[(state, page.count(state)) for state in STATES],
            bad=[(index, shot) for index, shot in enumerate(page.shots) if shot.state == "failed"],
            frames=sum(shot.frames for shot in page.shots),
            drops=sum(number for shot in page.shots for word, number in shot.drops if word != "no face"),
            seconds=sum(shot.seconds for shot in page.shots),
        )
    )
    return html.encode("utf-8", errors="backslashreplace").decode("utf-8")
