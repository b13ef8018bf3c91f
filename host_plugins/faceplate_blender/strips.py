# SPDX-License-Identifier: GPL-3.0-or-later
"""Strips of the sequencer as clips: which files a strip shows at which frames, or why it has to be rendered first.

Works on strips that it is given and imports nothing of Blender.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from faceplate_client.errors import BadClip
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip

from . import colours
from .shim import Api

JOB, RECORD, UNDO, BATCH = "faceplate_job", "faceplate_record", "faceplate_before", "faceplate_batch"
"""Custom properties. A result has JOB, RECORD and UNDO (what was there before it), its source JOB; BATCH is a mark."""

KEY = "faceplate_key"
"""Custom property of strips that UNDO names."""

SETTINGS = "faceplate"
"""The scene's property with what the artist set."""

OPACITY_BAKED = "animated opacity"
"""Why a strip is baked whose opacity has to be in the files, since it is not the same for all frames."""

FILES = ("MOVIE", "IMAGE")
RENDERED = ("META", "SCENE", "MOVIECLIP")
"""Without a file of their own that the server could read."""

_SIGNS = re.compile(r"[#@%$]")
"""What stands for a number in the server's patterns."""
_LONE = re.compile(r"(?<![0-9vV])((?:(?<![A-Za-z0-9])-)?[0-9]+)$")
"""As the server numbers a lone file: x.1001.exr is frame 1001; a version (x_v002) is no number."""
_LARGEST = 2**31


@dataclass(frozen=True)
class Reader:
    """What is needed to read strips.

    Attributes:
        api: words of this version.
        fps: of the scene.
        studio: whether $OCIO is set.
        absolute: `bpy.path.abspath` of the scene's library.
        animated: names of strips whose values are keyed or driven, and which values.
    """

    api: Api
    fps: float
    studio: bool
    absolute: Callable[[str], str]
    animated: Mapping[str, frozenset[str]]

    def clip(self, strip: Any) -> Clip:
        """The clip of a strip; `processed` says why it has to be baked.

        Raises:
            BadClip: a strip without frames.
        """
        first, last = self.api.visible(strip)
        if last < first:
            raise BadClip(f"strip {strip.name!r} has no frames", hint="lengthen or delete it")
        files = self._files(strip) if strip.type in FILES else None
        why = self._why_baked(strip, files)
        shared = {
            "id": clip_id(strip),
            "name": strip.name,
            "start": first,
            "size": _size(strip),
            "fps": float(getattr(strip, "fps", 0.0) or self.fps),
        }
        if files is None or why:
            return Clip(used=Span(first, last), processed=why, **shared)
        space = colours.to_server(strip.colorspace_settings.name, studio=self.studio)
        return Clip(used=files.used, media=files.media, source=files.source, colour_space=space, **shared)

    def _why_baked(self, strip: Any, files: Files | None) -> str:
        if strip.type not in FILES:
            return {"META": "meta strip", "SCENE": "scene strip", "MOVIECLIP": "movie clip strip"}[strip.type]
        if strip.name in self.animated:
            return OPACITY_BAKED if "blend_alpha" in self.animated[strip.name] else "animated"
        if len(getattr(strip, "retiming_keys", ())) > 0:
            return "retimed"
        if strip.type == "MOVIE" and strip.fps > 0 and abs(strip.fps - self.fps) > 0.01:
            return f"{strip.fps:g} frames a second in a scene of {self.fps:g}"
        reasons = (
            (any(not modifier.mute for modifier in strip.modifiers), "modifiers"),
            (strip.use_reverse_frames, "reversed"),
            (strip.strobe > 1.0, "strobe"),
            (strip.use_deinterlace, "deinterlaced"),
            (strip.use_multiview, "stereo"),
            (getattr(strip, "stream_index", 0) != 0, "second video stream"),
            (float(getattr(strip, self.api.content_start)) % 1.0 != 0.0, "starts between frames"),
        )
        for applies, reason in reasons:
            if applies:
                return reason
        if colours.to_server(strip.colorspace_settings.name, studio=self.studio) is None:
            return f"colour space {strip.colorspace_settings.name}"
        return files.why if files is not None else ""

    def _files(self, strip: Any) -> Files:
        """What the server would have to read."""
        api = self.api
        first, last = api.visible(strip)
        start = round(float(getattr(strip, api.content_start)))
        offset = int(getattr(strip, api.trim_start))
        if strip.type == "MOVIE":
            path = self.absolute(strip.filepath)
            length = getattr(strip, api.length) + offset + int(getattr(strip, api.trim_end))
            return _within(path, Span(1, max(length, 1)), Span(first, last).moved(1 + offset - start))
        folder = self.absolute(strip.directory)
        names = [element.filename for element in strip.elements]
        if len(names) == 1:
            number = lone_number(names[0])
            return Files(os.path.join(folder, names[0]), Span(number, number), Span(number, number))
        found = pattern_of(names)
        if found is None:
            return Files("", None, Span(first, last), "file names without a plain row of numbers")
        pattern, number = found
        media = Span(number, number + len(names) - 1)
        return _within(os.path.join(folder, pattern), media, Span(first, last).moved(number + offset - start))


@dataclass(frozen=True)
class Files:
    """A file or pattern, the frames that there are, those that show, and why they cannot be taken as they are."""

    source: str
    media: Span | None
    used: Span
    why: str = ""


def _within(source: str, media: Span, used: Span) -> Files:
    return Files(source, media, used, "" if used.meet(media) == used else "longer than its files")


def pattern_of(names: Sequence[str]) -> tuple[str, int] | None:
    """The pattern with "####" and the first number of files that are numbered in a row; None where they are not."""
    for number in reversed(list(re.finditer("[0-9]+", names[0]))):
        before, after = names[0][: number.start()], names[0][number.end() :]
        width, first = len(number[0]), int(number[0])
        if first + len(names) >= _LARGEST or _SIGNS.search(before + after):
            continue
        if all(name == f"{before}{first + place:0{width}d}{after}" for place, name in enumerate(names)):
            return f"{before}{'#' * width}{after}", first
    return None


def keys_of(value: Callable[[int], float], frames: Span) -> tuple[tuple[int, float], ...]:
    """A curve as keys that are straight between: a key a frame, but for those inside a stretch that stays the same."""
    values = [(frame, float(value(frame))) for frame in frames]
    inner = zip(values, values[1:], values[2:])
    return (values[0], *(now for before, now, after in inner if not before[1] == now[1] == after[1]), *values[1:][-1:])


def lone_number(name: str) -> int:
    """The frame that the server takes a lone file for."""
    found = _LONE.search(os.path.splitext(name)[0])
    number = int(found[1]) if found else 1
    return number if abs(number) < _LARGEST else 1


def clip_id(strip: Any) -> str:
    """Names are unique among all strips of a scene."""
    return f"strip:{strip.name}"


def is_result(strip: Any) -> bool:
    """Whether Faceplate placed this strip."""
    return all(name in strip for name in (JOB, RECORD, UNDO))


def is_still(strip: Any) -> bool:
    """Whether one picture is held for the strip's length."""
    return bool(strip.type == "IMAGE" and len(strip.elements) == 1)


def _size(strip: Any) -> tuple[int, int]:
    element = next(iter(getattr(strip, "elements", None) or ()), None)
    return (0, 0) if element is None else (int(element.orig_width), int(element.orig_height))
