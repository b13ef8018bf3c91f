"""What an artist should look at first, and numbers as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..job import FrameState
from .values import IdentityLine, JobReport

_SOFT_FROM = 1.25
"""A face this much wider in the plate than in the photos is worth a word."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at.

    Attributes:
        level: "bad" needs a decision, "warn" a look, "info" is good to know.
        text: one sentence.
        frames: where, as `frame_ranges` writes it, or "".
    """

    level: Literal["bad", "warn", "info"]
    text: str
    frames: str = ""


def frame_ranges(frames: Sequence[int], limit: int = 40) -> str:
    """Rising frame numbers as "1001-1004, 1010"; after `limit` ranges the rest is counted."""
    runs: list[list[int]] = []
    for frame in frames:
        if runs and frame == runs[-1][1] + 1:
            runs[-1][1] = frame
        else:
            runs.append([frame, frame])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:limit]]
    rest = sum(last - first + 1 for first, last in runs[limit:])
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def findings(report: JobReport) -> tuple[Finding, ...]:
    """All there is to say, the gravest first."""
    found = [*_frame_findings(report), *_people_findings(report)]
    for model in report.models:
        if report.commercial and not model.commercial:
            found.append(Finding("bad", f"The licence of {model.id} ({model.licence}) does not allow paid work."))
    for line in report.colours:
        if line.assumed:
            found.append(
                Finding("warn", f"The colour space of the {line.what} was assumed: {line.space}. {line.note}".strip())
            )
    found.extend(Finding("info", note) for note in report.notes)
    rank = {"bad": 0, "warn": 1, "info": 2}
    return tuple(sorted(found, key=lambda finding: rank[finding.level]))


def _frame_findings(report: JobReport) -> list[Finding]:
    kinds: tuple[tuple[Sequence[int], Literal["bad", "warn", "info"], str], ...] = (
        (report.frames_in(FrameState.FAILED), "bad", "failed and was not written|failed and were not written"),
        (report.frames_in(FrameState.SKIPPED), "bad", "was skipped and has no output|were skipped and have no output"),
        (report.frames_in(FrameState.HELD), "warn", "holds its neighbour's picture|hold their neighbour's picture"),
        (report.weak, "warn", "has a weak face|have a weak face"),
        (report.filled, "warn", "has a face filled between two others|have a face filled between two others"),
        (report.frames_in(FrameState.NO_FACE), "info", "has no face and is the plate|have no face and are the plate"),
    )
    found = []
    for frames, level, words in kinds:
        if frames:
            one, _, many = words.partition("|")
            text = f"{_count(len(frames), 'frame')} {one if len(frames) == 1 else many}."
            found.append(Finding(level, text, frame_ranges(frames)))
    return found


def _people_findings(report: JobReport) -> list[Finding]:
    found = [Finding("warn", f"{p.name}: {p.consent}.") for p in report.identities if not p.consent_valid]
    for person in report.identities:
        widest = widest_face(report, person)
        if widest > _SOFT_FROM * person.detail_px:
            text = f"{person.name}'s face is up to {widest:.0f} px wide; the photos show {person.detail_px:.0f} px"
            found.append(Finding("warn", f"{text}, so it may look soft."))
    return found


def widest_face(report: JobReport, person: IdentityLine) -> float:
    """Width in px of the largest face that became this person, 0 where there is none."""
    widths = (face.width_px for row in report.rows for face in row.faces if face.identity == person.name)
    return max(widths, default=0.0)


def duration(seconds: float) -> str:
    """Seconds as "0.42 s", "12 s", "3 min 05 s", "2 h 07 min"."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def settings_lines(settings: Mapping[str, Sequence[Sequence[float]]]) -> tuple[tuple[str, str], ...]:
    """(name, value) of every setting that was given: a number, or keys as "1001: 0, 1010: 1"."""
    return tuple(
        (name, f"{keys[0][1]:g}" if len(keys) == 1 else ", ".join(f"{frame:g}: {value:g}" for frame, value in keys))
        for name, keys in settings.items()
    )
