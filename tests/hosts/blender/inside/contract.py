"""The contract suite of host adapters, run inside Blender on the sources of the add-on."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

import bpy
import scenes

from faceplate_blender.host import BlenderHost
from faceplate_client.connection import Place
from faceplate_client.frame_maths import Span
from faceplate_client.result_folder import file_of
from faceplate_client.task import Servers
from tests.contract.hosts.checks import CHECKS, Bench, skips

SPACE = "ACEScg"
"""Of the checks' plates; Blender 4.2 and 4.5 do not read the file's tag, so an artist would choose it."""


class BlenderStage:
    """What an artist would do; see `checks.Stage`."""

    def _editor(self) -> Any:
        return bpy.context.scene.sequence_editor

    def _strip(self, clip_id: str) -> Any:
        name = clip_id.partition(":")[2]
        return next(strip for strip, _ in scenes.api().walk(self._editor()) if strip.name == name)

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        files = [str(file_of(pattern, frame)) for frame in media]
        head = used.first - media.first
        strip = scenes.add_sequence(self._editor(), files, 1, start - head, name)
        strip.colorspace_settings.name = SPACE
        scenes.trim(strip, head, media.last - used.last)
        self.select([f"strip:{strip.name}"])
        return f"strip:{strip.name}"

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        clip_id = self.add_clip(name, pattern, media, Span(media.first, media.first + length - 1), start, size)
        self._strip(clip_id).strobe = 2.0
        return clip_id

    def select(self, clip_ids: list[str]) -> None:
        scenes.select(*(self._strip(clip_id) for clip_id in clip_ids))

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        strip, api = self._strip(clip_id), scenes.api()
        setattr(strip, api.left_off, getattr(strip, api.left_off) + head)
        setattr(strip, api.right_off, getattr(strip, api.right_off) + tail)

    def delete(self, clip_id: str) -> None:
        scenes.api().children(self._editor()).remove(self._strip(clip_id))

    def snapshot(self) -> Any:
        found = scenes.dump(bpy.context.scene)
        del found["data"]["images"]  # a render leaves its result
        return found

    def undo(self) -> str:
        bpy.ops.ed.undo()
        return ""

    def shown_file(self, frame: int) -> str:
        best = (0, "")
        for strip, _ in scenes.api().walk(self._editor()):
            first, last = scenes.api().visible(strip)
            if strip.type == "IMAGE" and not strip.mute and first <= frame <= last:
                name = strip.strip_elem_from_frame(frame).filename
                best = max(best, (strip.channel, os.path.join(bpy.path.abspath(strip.directory), name)))
        return best[1]

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        return False

    def picture(self) -> None:
        return None


def checks(names: list[str], folder: str, bench: dict[str, Any]) -> dict[str, Any]:
    """Run checks; by name "" where it passed, the reason where it was left out, else what went wrong."""
    told = {}
    for name in names:
        began = time.monotonic()
        told[name] = [_one(name, Path(folder) / name, bench), round(time.monotonic() - began, 2)]
    return told


def _one(name: str, folder: Path, facts: dict[str, Any]) -> str:
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    width, height = facts["size"]
    scene = scenes.fresh(width, height)
    bpy.ops.ed.undo_push(message="start")
    folder.mkdir()
    plate = folder / "plate"
    shutil.copytree(Path(facts["original"]).parent, plate, ignore=shutil.ignore_patterns("*.json"))
    (folder / "work").mkdir()
    bench = Bench(
        host=BlenderHost(scene.name),
        stage=BlenderStage(),
        servers=Servers(Place(Path(facts["server"])), command=facts["command"]),
        restartable=facts["restartable"],
        plate=str(plate / Path(facts["original"]).name),
        media=Span(*facts["media"]),
        size=(width, height),
        identity=facts["identity"],
        reference=facts["reference"],
        folder=folder / "work",
    )
    why = skips(name, bench)
    if why:
        return f"left out: {why}"
    try:
        CHECKS[name](bench)
    except BaseException:
        return traceback.format_exc()
    return ""
