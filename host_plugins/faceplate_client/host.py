"""What a host application can do for the actions: one Protocol, and the small values that go through it.

An adapter (`faceplate_blender/host.py`, ...) is the only file of its plug-in that touches the application. It holds no
job, talks to no server and knows no result folder: `actions.py` does that, once for all hosts. Rules for adapters:

- Every method is called on the thread that the application wants its interface to be called on (`task.py` sees to
  that), one call at a time. No method waits for the server.
- `about()` says what the application can do here. Nobody tries a feature to find out; a method of a feature that is not
  in `about().features` is never called.
- What a method says it did, it has read back. What cannot be done raises a `HostError` that names call, clip and next
  step. Foreign exceptions do not leave the adapter.
- Frame numbers of a source are those of its files ("plate.1001.exr" is 1001); a movie's first frame is 1; a lone
  picture is frame 1 unless its name has a number. All spans include both ends, whatever the application's own calls do.
- Pixel windows have y down and the origin top left, as in EXR; rows in memory may be bottom-up if the header says so.
"""

from __future__ import annotations

import enum
from collections.abc import Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .errors import BadClip
from .frame_maths import Span, TimeMap
from .slot_header import FrameHeader


class Feature(enum.Enum):
    """What an application may be able to do."""

    BAKE = "bake"
    """Render one clip by itself to scene-linear EXR files: `bake`."""
    PIXELS_IN = "pixels in"
    """Give the pixels of the current frame of a clip or node: `layout`, `read_pixels`."""
    PIXELS_OUT = "pixels out"
    """Show pixels from memory as the result of a clip or node: `result_layout`, `show_pixels`."""
    PLACE_AGAIN = "place again"
    """`place` changes a result of the same job that stands already, so that what an artist did to it stays. Without it,
    one that has to stand elsewhere is removed and placed anew."""
    UNDO = "undo"
    """Take back everything within one `undo_step` with one undo."""


class Scope(enum.Enum):
    """Which clips are meant."""

    SELECTED = "selected"
    MARKED = "marked"
    """Those with the application's mark for batches: a clip colour, a marker, a Faceplate group in the script."""
    ALL = "all"


class PlaceMode(enum.Enum):
    """How a result comes into the timeline or graph."""

    ABOVE = "above"
    """A strip or clip on a free track above; the original is muted where the result covers all of it."""
    TAKE = "take"
    """Another take of the same timeline item, selected; the original stays in the take selector."""
    NODE = "node"
    """A node that reads the files, switched in behind the original."""


@dataclass(frozen=True)
class HostAbout:
    """Who the application is.

    Attributes:
        kind: "blender", "nuke", "resolve".
        version: of the application, e.g. "4.5.15".
        features: what it can do here: edition, version and mode (terminal, headless) considered.
        places: ways to place a result, the preferred one first.
        note: what the artist should know of limits, e.g. "the free edition has no scripting"; "" for nothing.
    """

    kind: str
    version: str
    features: frozenset[Feature]
    places: tuple[PlaceMode, ...]
    note: str = ""

    @property
    def name(self) -> str:
        """For the server's log and the job record: "blender 4.5.15"."""
        return f"{self.kind} {self.version}"


@dataclass(frozen=True)
class Project:
    """The open document: Blender's scene, Nuke's script, Resolve's timeline.

    Attributes:
        id: names the document among others of this host, stable over saving; a path or the host's own id.
        name: for people and for folder names.
        folder: where results go when the artist has chosen nothing: absolute, not made yet.
        frames: timeline frames that a render of the document covers.
        fps: timeline frames a second.
        working_space: scene-linear space of the application's own pixels and of its bakes: a name, alias or interop id
            that the server's colour configuration knows, e.g. "lin_rec709_scene", "ACEScg".
    """

    id: str
    name: str
    folder: Path
    frames: Span
    fps: float
    working_space: str


@dataclass(frozen=True)
class Clip:
    """A clip of the timeline, a strip, or a node; one view of it where there are several.

    Attributes:
        id: names it within the project; `Host.clip` finds it again, also after saving and loading.
        name: for people and for file names.
        start: timeline frame of its first visible frame.
        used: source frames that are visible, from in to out. Of a `processed` clip as many as it has on the timeline.
        media: source frames that the files have: what handles may be taken from. None where there is no file.
        source: absolute path of a movie or picture, or a pattern "/shots/a/plate.####.exr"; "" where there is no file.
        processed: why the file's frames are not what the timeline shows ("retimed", "nested timeline", "colour
            modifier"); "" where they are. Such a clip, and one without a file, is baked first.
        size: (width, height) of the source, px; (0, 0) where unknown.
        colour_space: that the host reads the file in, as the server's configuration knows it; None to let the file say.
        pixel_aspect: width / height of one pixel.
        fps: of the source.
        view: of stereo ("left", "right"); "" for none.
        has_pixels: whether `read_pixels` can give its current frame, where the host has PIXELS_IN.
        own_format: whether a result has to be encoded as the source is, since nothing in the document would say
            otherwise: a movie for a movie (.mov), DPX for DPX. Else it is scene-linear EXR.

    Raises:
        BadClip: values that contradict each other.
    """

    id: str
    name: str
    start: int
    used: Span
    media: Span | None = None
    source: str = ""
    processed: str = ""
    size: tuple[int, int] = (0, 0)
    colour_space: str | None = None
    pixel_aspect: float = 1.0
    fps: float = 24.0
    view: str = ""
    has_pixels: bool = False
    own_format: bool = False

    def __post_init__(self) -> None:
        if bool(self.source) != (self.media is not None):
            raise BadClip(f"clip {self.name!r}: a source and the frames that it has go together")
        if self.media is not None and not self.processed and self.used.meet(self.media) != self.used:
            raise BadClip(
                f"clip {self.name!r} shows frames that its source does not have",
                expected=str(self.media),
                found=str(self.used),
                hint="trim the clip to its source, or relink the source",
            )

    @property
    def times(self) -> TimeMap:
        """Between timeline and source frames; of no meaning for a `processed` clip."""
        return TimeMap(self.start, self.used)

    @property
    def timeline(self) -> Span:
        """Timeline frames that the clip covers."""
        return self.times.timeline

    @property
    def needs_bake(self) -> bool:
        """Whether the server cannot read what the timeline shows from a file."""
        return bool(self.processed) or not self.source

    @property
    def head_handles(self) -> int:
        """Frames of the source before the first visible one."""
        return 0 if self.media is None or self.needs_bake else self.used.first - self.media.first

    @property
    def tail_handles(self) -> int:
        """Frames of the source after the last visible one."""
        return 0 if self.media is None or self.needs_bake else self.media.last - self.used.last


@dataclass(frozen=True)
class Tag:
    """What a placed result carries in the document (custom property, marker data, knob), as text.

    Attributes:
        job: id of the job; results and records are found by it.
        record: absolute path of the job record.
    """

    job: str
    record: str


@dataclass(frozen=True)
class Result:
    """Files to be placed.

    Attributes:
        pattern: absolute, with "####"; of a clip with `own_format` maybe a movie, whose first frame is `files.first`.
        files: frames that are on disk, handles included; every one of them exists.
        used: those that are to be visible.
        start: timeline frame of `used.first`.
        mode: how to place them.
        colour_space: scene-linear space of the files, as the server calls it; the host sets its own name for it
            explicitly and refuses to place where it has none.
        interop_id: the same as a colorInteropID ("lin_rec709_scene"), "" where it has none.
        pixel_aspect: width / height of one pixel.
        fps: of the source.
        covers_clip: whether `used` shows all of the clip, so that the original may be muted.
        name: for the strip, clip or node.
        tag: to be stored in the document.
    """

    pattern: str
    files: Span
    used: Span
    start: int
    mode: PlaceMode
    colour_space: str
    interop_id: str
    pixel_aspect: float
    fps: float
    covers_clip: bool
    name: str
    tag: Tag


@dataclass(frozen=True)
class Placed:
    """A result that stands in the document.

    Attributes:
        id: names the strip, take or node within the project.
        clip_id: of the original; "" where that is gone.
        view: of the original.
        tag: as it was placed.
        pattern: of its files.
        timeline: frames that it covers now; an artist may have trimmed or moved it.
    """

    id: str
    clip_id: str
    view: str
    tag: Tag
    pattern: str
    timeline: Span


@dataclass(frozen=True)
class Progress:
    """How far an action is.

    Attributes:
        step: "start server", "bake", "analyse", "swap", "place", "remove", ...
        done: frames of the step.
        total: frames of the step, 0 where unknown.
        clip: name of the clip at work.
        number: of that clip, from 1.
        of: clips in all.
        remaining_s: of the step, None while unknown.
        failed: frames that failed so far, all clips together.
    """

    step: str
    done: int = 0
    total: int = 0
    clip: str = ""
    number: int = 1
    of: int = 1
    remaining_s: float | None = None
    failed: int = 0

    @property
    def text(self) -> str:
        """One line for a status bar."""
        words = [f"Faceplate: {self.step}"]
        if self.total:
            words.append(f"{self.done} of {self.total}")
        if self.clip:
            words.append(self.clip if self.of == 1 else f"{self.clip} ({self.number} of {self.of})")
        if self.remaining_s is not None:
            minutes, seconds = divmod(round(self.remaining_s), 60)
            words.append(f"{minutes}:{seconds:02d} left")
        if self.failed:
            words.append(f"{self.failed} failed")
        return ", ".join(words)


class Host(Protocol):
    """An application with an open document. See the head of this file for the rules."""

    def about(self) -> HostAbout:
        """Who the application is; cheap, the same for the life of the process."""
        ...

    def project(self) -> Project:
        """The open document.

        Raises:
            HostError: none is open, or its working space is not known.
        """
        ...

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        """Clips in timeline order, lower tracks first, then views. Results that Faceplate placed are none of them.

        Items that have no picture of their own to work on (sound, titles, adjustment clips) are left out.
        """
        ...

    def clip(self, clip_id: str, view: str = "") -> Clip:
        """The clip as it is now.

        Raises:
            ClipGone: it is not there any more.
        """
        ...

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        """Render the clip alone over timeline `frames` into EXR files in `Project.working_space`, file number =
        timeline frame, half or float, full resolution whatever proxies are on; nothing else of the timeline shows.

        Yields the number of each frame when its file is whole, so that others may be served and Esc be seen between
        frames. When the generator ends, fails or is closed, the document is as it was before. Feature BAKE.

        Raises:
            BakeFailed: a frame could not be rendered.
        """
        ...

    def place(self, clip: Clip, result: Result) -> Placed:
        """Put the files into the timeline or graph, tagged; what was changed of the original is stored with the
        result in the document, so that `remove` can restore it in another session.

        Raises:
            PlaceFailed: it cannot be placed; the document is as it was.
        """
        ...

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        """Results in the document, of one job or of all."""
        ...

    def reload(self, placed: Placed) -> None:
        """The files of a result were written anew: show the new ones."""
        ...

    def remove(self, placed: Placed) -> None:
        """Take the result out and restore the original exactly as it was before `place`. Files stay.

        Raises:
            PlaceFailed: it cannot be removed.
        """
        ...

    def layout(self, clip: Clip) -> FrameHeader:
        """What `read_pixels` would give now: size, channels, type, row order, colour space. Feature PIXELS_IN."""
        ...

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        """Copy the clip's current frame into `into`, of `layout(clip).nbytes` bytes, writable. Feature PIXELS_IN."""
        ...

    def result_layout(self, clip: Clip) -> FrameHeader:
        """The form in which `show_pixels` takes a result: channels, type, row order, colour space ("" leaves the
        plate's). Its size is the clip's, where that is known, else what a slate is drawn in. Feature PIXELS_OUT.
        """
        ...

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        """Show a result in memory: `pixels` is read-only, as `header` says, not valid after the call. PIXELS_OUT."""
        ...

    def undo_step(self, name: str) -> AbstractContextManager[None]:
        """All within becomes one step of the application's undo, where it has Feature UNDO; else does nothing."""
        ...

    def show(self, progress: Progress | None) -> bool:
        """Show how far the action is, None when it has ended.

        Returns:
            False where the artist asks to stop.
        """
        ...
