"""What the checks of host adapters stand on: a host, a stage to act on its document, a server; and small words.

Standard library and `faceplate_client` only, as the checks themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from faceplate_client import wire
from faceplate_client.actions import apply
from faceplate_client.errors import ClientError
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, Host, Placed, Progress
from faceplate_client.job_record import Recipe
from faceplate_client.outcome import BatchOutcome, ClipOutcome, Manner
from faceplate_client.result_folder import file_of
from faceplate_client.slots import FrameHeader
from faceplate_client.task import Servers, Session, run

E = TypeVar("E", bound=ClientError)

START = 11
"""Timeline frame of the clips that the checks make."""


class Stage(Protocol):
    """What the checks do to a document as an artist would. An adapter's tests bring one."""

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        """An image sequence on the timeline, selected; returns its `Clip.id`."""
        ...

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        """A clip that shows each source frame twice, selected; "" where this host's tests cannot make one."""
        ...

    def select(self, clip_ids: list[str]) -> None:
        """Select these clips and no others."""
        ...

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        """Cut so many frames off either end; what stays does not move."""
        ...

    def delete(self, clip_id: str) -> None:
        """Delete a clip."""
        ...

    def snapshot(self) -> Any:
        """Everything of the document that an artist could see, comparable with ==."""
        ...

    def undo(self) -> str:
        """One undo; the name of the step, "" where the host does not tell."""
        ...

    def shown_file(self, frame: int) -> str:
        """The file that the document shows at a timeline frame, "" for none."""
        ...

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        """Make the clip one that has pixels and no file: RGBA float, bottom row first, of its size. False: cannot."""
        ...

    def picture(self) -> tuple[FrameHeader, bytes] | None:
        """What `show_pixels` showed last."""
        ...


@dataclass
class Bench:
    """A host with an empty document, a real server, and something to work on.

    Attributes:
        host: the adapter.
        stage: of its tests.
        servers: a running server; `start` is False.
        restartable: whether the server may be killed and started again by `servers.command`.
        plate: pattern of a sequence that this check may change; frames `media` of `size`, ACEScg.
        media: its frames, six at least.
        size: (width, height), px.
        identity: an identity file without a consent record.
        reference: pattern of what `faceplate apply` made of the same plate and identity.
        folder: empty, for anything.
    """

    host: Host
    stage: Stage
    servers: Servers
    restartable: bool
    plate: str
    media: Span
    size: tuple[int, int]
    identity: str
    reference: str
    folder: Path

    @property
    def recipe(self) -> Recipe:
        """One identity on the main face."""
        return Recipe((wire.Assignment(self.identity),))

    @property
    def features(self) -> frozenset[Feature]:
        """Of the host."""
        return self.host.about().features

    def clip(self, name: str = "plate", *, used: Span | None = None, start: int = START) -> Clip:
        """A clip of the plate on the timeline, selected."""
        clip_id = self.stage.add_clip(name, self.plate, self.media, used or self.media, start, self.size)
        return self.host.clip(clip_id)

    def run(self, action: Callable[[Session], Any], host: Any = None) -> Any:
        """Run an action on this thread."""
        return run(host or self.host, self.servers, action)

    def apply(self, *clips: Clip, **options: Any) -> BatchOutcome:
        """Apply the recipe."""
        recipe = options.pop("recipe", self.recipe)
        host = options.pop("host", None)
        manner = Manner(folder=self.folder, **options)
        outcome: BatchOutcome = self.run(lambda session: apply(session, clips, recipe, manner), host)
        return outcome


class Watched:
    """A host whose `show` calls back first, and may ask the action to stop."""

    def __init__(self, host: Host, on_show: Callable[[Progress], bool]) -> None:
        self._host = host
        self._on_show = on_show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def show(self, progress: Progress | None) -> bool:
        going = self._host.show(progress)
        return going if progress is None else self._on_show(progress) and going


def one(outcome: BatchOutcome) -> ClipOutcome:
    """The only clip's outcome; what was wrong with it is said."""
    (ended,) = outcome.clips
    assert ended.error is None, f"{type(ended.error).__name__}: {ended.error}"
    return ended


def placed_of(ended: ClipOutcome) -> Placed:
    """The result in the document."""
    assert ended.state == "done"
    assert ended.placed is not None
    return ended.placed


def refused(kind: type[E], act: Callable[[], Any]) -> E:
    """The error that a call has to raise."""
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def files(pattern: str, frames: Span) -> dict[int, bytes]:
    """The bytes of each frame's file."""
    return {frame: file_of(pattern, frame).read_bytes() for frame in frames}


def times(pattern: str, frames: Span) -> dict[int, int]:
    """When each frame's file was written."""
    return {frame: file_of(pattern, frame).stat().st_mtime_ns for frame in frames}
