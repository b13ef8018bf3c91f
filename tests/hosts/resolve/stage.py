"""What an artist would do in the made-up Resolve; see `tests.contract.hosts.bench.Stage`. Standard library alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from faceplate_client.frame_maths import Span
from faceplate_client.slot_header import FrameHeader

from .fake.application import Resolve, snapshot
from .fake.media import PoolItem
from .fake.timeline import TimelineItem


def row(pattern: str, media: Span) -> str:
    """A sequence as Resolve names it."""
    signs = re.search("#+", pattern)
    assert signs is not None
    width = len(signs[0])
    return pattern.replace(signs[0], f"[{media.first:0{width}d}-{media.last:0{width}d}]")


class ResolveStage:
    """Acts on the first timeline of the project."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.world = resolve.world

    @property
    def timeline(self) -> Any:
        return self.resolve.project._timelines[0]

    def item(self, clip_id: str) -> TimelineItem:
        found = [one for one in self.timeline.items() if one._id == clip_id.partition(":")[2]]
        item: TimelineItem = found[0]
        return item

    def media(self, name: str, pattern: str, media: Span, size: tuple[int, int], **more: str) -> PoolItem:
        made = PoolItem(
            self.world,
            name,
            row(pattern, media) if "#" in pattern else pattern,
            media.first if "#" in pattern else 0,
            len(media),
            "24.0",
            Resolution=f"{size[0]}x{size[1]}",
            **more,
        )
        self.resolve.project._pool._root._clips.append(made)
        return made

    def put(self, name: str, media: PoolItem | None, start: int, duration: int, left: int, **more: Any) -> TimelineItem:
        track = more.pop("track", 1)
        item = TimelineItem(self.world, name, media, start, duration, left, **more)
        return self.timeline.put(item, track)  # type: ignore[no-any-return]

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        made = self.media(name, pattern, media, size)
        item = self.put(name, made, start, len(used), used.first - media.first)
        self.select([f"item:{item._id}"])
        return f"item:{item._id}"

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        made = self.media(name, pattern, media, size)
        item = self.put(name, made, start, length, 0, speed=0.5)
        self.select([f"item:{item._id}"])
        return f"item:{item._id}"

    def select(self, clip_ids: list[str]) -> None:
        self.timeline._selected_clips = [self.item(clip_id) for clip_id in clip_ids]

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        self.item(clip_id).trim(head, tail)

    def delete(self, clip_id: str) -> None:
        for track in self.timeline._tracks:
            track.items = [one for one in track.items if one._id != clip_id.partition(":")[2]]

    def snapshot(self) -> Any:
        return snapshot(self.resolve.project)

    def undo(self) -> str:
        return ""

    def shown_file(self, frame: int) -> str:
        best = ""
        for track in self.timeline._tracks:
            for item in track.items:
                if track.enabled and item._enabled and item._media is not None and item._start <= frame < item.end:
                    best = str(item._media.file_of(item.source_offset(frame)))
        return best

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        return False

    def picture(self) -> tuple[FrameHeader, bytes] | None:
        return None


def leftovers(folder: Path) -> list[str]:
    """Files and folders that a render should not leave behind."""
    return sorted(str(path) for path in folder.rglob(".render-*")) + [
        name for name in os.listdir(folder) if name.startswith(".")
    ]
