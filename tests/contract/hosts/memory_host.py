"""A host in memory: a timeline of clips on tracks with mutes and results, undo, bakes that copy files, pictures.

Standard library only, as the checks are. Rules that adapters have to keep are asserted here: one thread, no call of
what `about` does not offer.
"""

from __future__ import annotations

import copy
import shutil
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faceplate_client.errors import BakeFailed, ClipGone, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import (
    Clip,
    Feature,
    HostAbout,
    Placed,
    PlaceMode,
    Progress,
    Project,
    Result,
    Scope,
)
from faceplate_client.result_folder import file_of
from faceplate_client.slots import FrameHeader, FrameType

ALL = frozenset(Feature)


@dataclass
class Item:
    """A clip on the timeline.

    Attributes:
        clip: what it is.
        channel: track, 1 is lowest.
        muted: not seen.
        selected: by the artist.
        marked: for batches.
        slow: how often each source frame is shown, of a retimed clip.
    """

    clip: Clip
    channel: int
    muted: bool = False
    selected: bool = False
    marked: bool = False
    slow: int = 1


@dataclass
class ResultItem:
    """A placed result, with what `remove` needs."""

    placed: Placed
    result: Result
    channel: int
    was_muted: bool
    loads: int = 1


@dataclass
class Document:
    """All that is saved, and that undo brings back."""

    items: dict[str, Item] = field(default_factory=dict)
    results: dict[str, ResultItem] = field(default_factory=dict)
    count: int = 0


class MemoryHost:
    """See `faceplate_client.host.Host`.

    Args:
        folder: where results go.
        features: what it can do.
        working_space: of its bakes and pixels.
    """

    def __init__(self, folder: Path, features: frozenset[Feature] = ALL, working_space: str = "ACEScg") -> None:
        self.folder = folder
        self.features = features
        self.working_space = working_space
        self.document = Document()
        self.undo_stack: list[tuple[str, Document]] = []
        self.progress: list[Progress] = []
        self.keep_going = True
        self.pixels: dict[str, bytes] = {}
        self.picture: tuple[FrameHeader, bytes] | None = None
        self._thread = threading.get_ident()

    def _called(self, feature: Feature | None = None) -> None:
        assert threading.get_ident() == self._thread, "the host was touched off its own thread"
        assert feature is None or feature in self.features, f"{feature} is not offered"

    def about(self) -> HostAbout:
        self._called()
        return HostAbout("memory", "1.0", self.features, (PlaceMode.ABOVE, PlaceMode.TAKE))

    def project(self) -> Project:
        self._called()
        return Project("memory-project", "Test film", self.folder, Span(1, 250), 24.0, self.working_space)

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        self._called()
        chosen = [
            item
            for item in self.document.items.values()
            if scope is Scope.ALL
            or (item.selected and scope is Scope.SELECTED)
            or (item.marked and scope is Scope.MARKED)
        ]
        chosen.sort(key=lambda item: (item.clip.start, item.channel, item.clip.view))
        return tuple(item.clip for item in chosen)

    def clip(self, clip_id: str, view: str = "") -> Clip:
        self._called()
        item = self.document.items.get(clip_id)
        if item is None or item.clip.view != view:
            raise ClipGone(f"there is no clip {clip_id!r}")
        return item.clip

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        self._called(Feature.BAKE)
        before = copy.deepcopy(self.document)
        for other in self.document.items.values():
            other.muted = other.clip.id != clip.id
        try:
            item = self.document.items[clip.id]
            for frame in frames:
                self._called()
                shown = clip.used.first + (frame - clip.start) // item.slow
                source = file_of(self.sources[clip.id], shown)
                if not source.exists():
                    raise BakeFailed(f"{source} is not there")
                shutil.copyfile(source, file_of(pattern, frame))
                yield frame
        finally:
            self.document = before

    @property
    def sources(self) -> dict[str, str]:
        """Pattern of each clip, of those too whose `source` the protocol does not tell."""
        return {name: item.clip.source for name, item in self.document.items.items()}

    def place(self, clip: Clip, result: Result) -> Placed:
        self._called()
        if result.mode not in self.about().places:
            raise PlaceFailed(f"cannot place as {result.mode.value}")
        for frame in result.files:
            assert file_of(result.pattern, frame).is_file(), f"placed without file {frame}"
        assert result.used.meet(result.files) == result.used
        item = self.document.items[clip.id]
        timeline = Span(result.start, result.start + len(result.used) - 1)
        same = (result.tag.job, clip.id, clip.view)
        results = self.document.results.values()
        standing = next((o for o in results if (o.placed.tag.job, o.placed.clip_id, o.placed.view) == same), None)
        if standing is None:
            self.document.count += 1
            name, channel, was_muted = f"result-{self.document.count}", item.channel + 1, item.muted
        else:
            name, channel, was_muted = standing.placed.id, standing.channel, standing.was_muted
        placed = Placed(name, clip.id, clip.view, result.tag, result.pattern, timeline)
        self.document.results[name] = ResultItem(placed, result, channel, was_muted)
        if result.covers_clip:
            item.muted = True
        return placed

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        self._called()
        return tuple(one.placed for one in self.document.results.values() if job is None or one.placed.tag.job == job)

    def reload(self, placed: Placed) -> None:
        self._called()
        self._item_of(placed).loads += 1

    def remove(self, placed: Placed) -> None:
        self._called()
        one = self._item_of(placed)
        del self.document.results[placed.id]
        item = self.document.items.get(placed.clip_id)
        if item is not None:
            item.muted = one.was_muted

    def _item_of(self, placed: Placed) -> ResultItem:
        if placed.id not in self.document.results:
            raise PlaceFailed(f"there is no result {placed.id!r}")
        return self.document.results[placed.id]

    def layout(self, clip: Clip) -> FrameHeader:
        self._called(Feature.PIXELS_IN)
        width, height = clip.size
        return FrameHeader(width, height, dtype=FrameType.FLOAT, colour_space=self.working_space, bottom_up=True)

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        self._called(Feature.PIXELS_IN)
        into[:] = self.pixels[clip.id]

    def result_layout(self, clip: Clip) -> FrameHeader:
        self._called(Feature.PIXELS_OUT)
        return FrameHeader(64, 48, dtype=FrameType.FLOAT, colour_space=self.working_space, bottom_up=True)

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        self._called(Feature.PIXELS_OUT)
        assert pixels.readonly
        assert pixels.nbytes == header.nbytes
        self.picture = header, bytes(pixels)

    @contextmanager
    def undo_step(self, name: str) -> Iterator[None]:
        self._called()
        if Feature.UNDO in self.features:
            self.undo_stack.append((name, copy.deepcopy(self.document)))
        yield

    def show(self, progress: Progress | None) -> bool:
        self._called()
        if progress is not None:
            self.progress.append(progress)
        return self.keep_going


class MemoryStage:
    """What the checks do to the document as an artist would; see `checks.Stage`."""

    def __init__(self, host: MemoryHost) -> None:
        self.host = host

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        clip_id = f"id of {name}"
        clip = Clip(clip_id, name, start, used, media, pattern, size=size, colour_space=None)
        channel = 1 + len(self.host.document.items)
        self.host.document.items[clip_id] = Item(clip, channel, selected=True)
        return clip_id

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        used = Span(media.first, media.first + length - 1)
        clip_id = f"id of {name}"
        clip = Clip(clip_id, name, start, used, media, pattern, "retimed", size)
        self.host.document.items[clip_id] = Item(clip, 1, selected=True, slow=2)
        return clip_id

    def select(self, clip_ids: list[str]) -> None:
        for clip_id, item in self.host.document.items.items():
            item.selected = clip_id in clip_ids

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        item = self.host.document.items[clip_id]
        used = Span(item.clip.used.first + head, item.clip.used.last - tail)
        item.clip = replace(item.clip, used=used, start=item.clip.start + head)

    def delete(self, clip_id: str) -> None:
        del self.host.document.items[clip_id]

    def snapshot(self) -> Any:
        kept = copy.deepcopy(self.host.document)
        kept.count = 0
        return kept

    def undo(self) -> str:
        name, self.host.document = self.host.undo_stack.pop()
        return name

    def shown_file(self, frame: int) -> str:
        best: tuple[int, str] = (0, "")
        for item in self.host.document.items.values():
            if not item.muted and frame in item.clip.timeline:
                best = max(best, (item.channel, str(file_of(item.clip.source, item.clip.times.to_source(frame)))))
        for one in self.host.document.results.values():
            if frame in one.placed.timeline:
                number = one.result.used.first + frame - one.result.start
                best = max(best, (one.channel, str(file_of(one.result.pattern, number))))
        return best[1]

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        item = self.host.document.items[clip_id]
        item.clip = replace(item.clip, source="", media=None, has_pixels=True)
        self.host.pixels[clip_id] = pixels
        return True

    def picture(self) -> tuple[FrameHeader, bytes] | None:
        return self.host.picture
