"""Small shots and results for tests that need no server: real EXR files, a stage, a host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faceplate_client import slate
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, PlaceMode, Result, Tag
from faceplate_client.result_folder import file_of
from faceplate_resolve.host import Choices, ResolveHost
from tests.hosts.resolve.fake.application import Resolve
from tests.hosts.resolve.fake.world import World
from tests.hosts.resolve.stage import ResolveStage

SIZE = (64, 48)
MEDIA = Span(1001, 1012)
USED = Span(1003, 1008)
START = 86450


def write(pattern: str, frames: Span, interop: str = "lin_ap1_scene") -> str:
    """EXR files, striped."""
    Path(pattern).parent.mkdir(parents=True, exist_ok=True)
    for frame in frames:
        slate.write_exr(file_of(pattern, frame), *SIZE, f"frame {frame}", interop=interop)
    return pattern


@dataclass
class Shot:
    """A clip on a timeline that starts at 01:00:00:00, and a result for it."""

    resolve: Resolve
    stage: ResolveStage
    host: ResolveHost
    clip: Clip
    result: Result
    folder: Path

    @property
    def item(self) -> Any:
        return self.stage.item(self.clip.id)

    def snapshot(self) -> Any:
        return self.stage.snapshot()


def shot(
    folder: Path,
    *,
    handles: int = 2,
    choices: Choices | None = None,
    version: tuple[int, ...] = (21, 0, 4),
    **more: Any,
) -> Shot:
    """Make one; `more` goes to the world (its attributes) or the project's settings."""
    names = {name for name in World.__dataclass_fields__ if name in more}
    world = World(version=version, **{name: more.pop(name) for name in names})
    resolve = Resolve(world, start=86400, **more)
    stage = ResolveStage(resolve)
    plate = write(str(folder / "plates" / "sh010.####.exr"), MEDIA)
    clip_id = stage.add_clip("sh010", plate, MEDIA, USED, START, SIZE)
    host = ResolveHost(resolve, choices)
    clip = host.clip(clip_id)
    files = USED.widened(handles, MEDIA)
    result = Result(
        pattern=write(str(folder / "out" / "v001" / "sh010.v001.####.exr"), files),
        files=files,
        used=USED,
        start=START,
        mode=PlaceMode.TAKE,
        colour_space="ACEScg",
        interop_id="lin_ap1_scene",
        pixel_aspect=1.0,
        fps=24.0,
        covers_clip=True,
        name="sh010.v001",
        tag=Tag("fp-1", str(folder / "out" / "v001" / "sh010.v001.record.json")),
    )
    return Shot(resolve, stage, host, clip, result, folder)


def above(one: Shot) -> Result:
    """Its result for the track above."""
    return replace(one.result, mode=PlaceMode.ABOVE)
