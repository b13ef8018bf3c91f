"""`*.faces.json`: what analysis found, for people to read, correct and reuse.

One line a frame of a track; landmarks are multiples of 1/1024 px in memory and have four decimals in the file, which
gives back the same bits.
A person may rename a track (`label`), delete, split or join tracks, delete a frame, or move landmarks and set the
frame's `origin` to "edited" (what was seen in front of the face, `cover`, then counts no more); `edits.carry_edits`
keeps such frames through a new analysis. Or name points and say where they are: `corrections.py`. Keys that this
version does not know are kept.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SidecarError
from ..face import Appearance, Cover, Track
from ..frame import Box
from ..media.atomic import atomic_write
from .shot import AnalyseSettings, ShotFaces, ShotSource
from .sidecar_read import FORMAT, VERSION, parse_shot

_KNOWN = (
    *("format", "version", "tool", "plate", "settings", "nets", "frames", "cuts", "no_face", "weak", "tracks"),
    *("hashes", "appearances"),
)


def sidecar_path(pattern: str) -> Path:
    """Where the sidecar of a sequence lies: beside it, named after it without frame number and ending."""
    path = Path(pattern)
    stem = path.name.split("#")[0].split("%")[0].split("@")[0].split("$")[0].rstrip("._-")
    return path.with_name((stem if stem != path.name else path.stem) + ".faces.json")


def read_sidecar(path: Path) -> ShotFaces:
    """Read and check a sidecar.

    Raises:
        SidecarError: absent, truncated, another version, a wrong type or count, a number that is not finite, a track
            id or frame that stands twice; the message names the field, and the line where JSON itself is broken.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SidecarError(
            f"{path} cannot be read", found=str(error), hint="run `faceplate analyse` to make it anew"
        ) from error
    return parse_shot(text, str(path))


def write_sidecar(path: Path, shot: ShotFaces, *, tool: str) -> None:
    """Write a sidecar in one stroke: the file is the old one or the new one, never half of it.

    Args:
        path: where.
        shot: what; its `source` must be known.
        tool: name and version of the program.

    Raises:
        OutputError: the file cannot be written.
        SidecarError: the shot's source is unknown.
    """
    text = format_shot(shot, tool=tool)
    with atomic_write(path) as temporary:
        temporary.write_text(text, "utf-8")


def format_shot(shot: ShotFaces, *, tool: str) -> str:
    """The text of a sidecar; the same shot gives the same text."""
    if shot.source is None:
        raise SidecarError("a sidecar needs to know its plate", hint="give the shot a source before it is written")
    fields: dict[str, str] = {
        "format": _line(FORMAT),
        "version": _line(VERSION),
        "tool": _line(tool),
        "plate": _line(_plate(shot.source)),
        "settings": _line(dataclasses.asdict(shot.settings)),
        "nets": _line(dict(sorted(shot.nets.items()))),
        "frames": _line(frame_ranges(shot.frames)),
        "cuts": _line(list(shot.cuts)),
        "no_face": _line(frame_ranges(shot.no_face)),
        "weak": _line({str(track_id): frame_ranges(frames) for track_id, frames in shot.weak.items()}),
        "tracks": _list(_track(track) for track in shot.tracks),
        "hashes": _table((str(frame), digest) for frame, digest in sorted(shot.source.hashes.items())),
        **{key: _line(value) for key, value in shot.extras.items() if key not in _KNOWN},
        "appearances": _table(
            (str(track.id), _pack(track.appearance)) for track in shot.tracks if track.appearance is not None
        ),
    }
    return "{\n" + ",\n".join(f"{_line(key)}: {value}" for key, value in fields.items()) + "\n}\n"


def sidecar_matches(
    shot: ShotFaces, hashes: Mapping[int, str], settings: AnalyseSettings, nets: Mapping[str, str], colour_space: str
) -> tuple[bool, str]:
    """Whether a sidecar can be used for these frames, and why (not), in one sentence.

    Args:
        shot: as read.
        hashes: content hash by frame number of the frames that are wanted; the sidecar may hold more.
        settings: that would be used now.
        nets: hashes of the nets that would be used now.
        colour_space: that the plate would be read in now.
    """
    if shot.source is None:
        return False, "the sidecar does not say which plate it belongs to"
    missing = sorted(frame for frame in hashes if frame not in shot.source.hashes)
    if missing:
        return False, f"frames {_words(missing)} are not in the sidecar"
    changed = sorted(frame for frame, digest in hashes.items() if shot.source.hashes[frame] != digest)
    if changed:
        return False, f"frames {_words(changed)} have changed since the analysis"
    if colour_space != shot.source.colour_space:
        return False, f"the plate was analysed as {shot.source.colour_space} and is now read as {colour_space}"
    if dict(nets) != dict(shot.nets):
        return False, "the nets have changed since the analysis"
    if settings != shot.settings:
        return False, "the settings of the analysis have changed"
    return True, f"all {len(hashes)} frames, the nets and the settings are the same"


def frame_ranges(frames: Iterable[int]) -> str:
    """Frame numbers as people write them: "1001-1010,1015"."""
    runs: list[list[int]] = []
    for frame in frames:
        if runs and frame == runs[-1][1] + 1:
            runs[-1][1] = frame
        else:
            runs.append([frame, frame])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _words(frames: list[int]) -> str:
    text = frame_ranges(frames)
    return text if len(text) < 60 else text[:60].rsplit(",", 1)[0] + ",..."


def _plate(source: ShotSource) -> dict[str, Any]:
    return {
        "pattern": source.pattern,
        "display_window": _box(source.display_window),
        "data_window": _box(source.data_window),
        "pixel_aspect": source.pixel_aspect,
        "colour_space": source.colour_space,
    }


def _box(box: Box) -> list[int]:
    return [box.x0, box.y0, box.x1, box.y1]


def _track(track: Track) -> str:
    lines = []
    for frame, seen in track.observations.items():
        head = {"frame": frame, "origin": seen.origin.value, "score": seen.score, "yaw": seen.yaw_deg}
        points = "[" + ",".join(map(_number, seen.landmarks.ravel().tolist())) + "]"
        cover = "" if seen.cover is None else f',"cover":{_line(_pack_cover(seen.cover))}'
        lines.append(f'{_line(head)[:-1]},"landmarks":{points}{cover}}}')
    return f'{{"id":{track.id},"label":{_line(track.label)},"frames":{_list(lines)}}}'


def _number(value: float) -> str:
    # Four decimals are nearer than half of 1/1024 px: the reader's rounding finds the same multiple.
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _pack_cover(cover: Cover) -> str:
    """Deflated bytes, as base64."""
    return base64.b64encode(zlib.compress(cover.tobytes(), 6)).decode("ascii")


def _pack(appearance: Appearance) -> str:
    """Half floats in a compressed numpy archive, as base64."""
    memory = io.BytesIO()
    np.savez_compressed(
        memory, median=appearance.median.astype(np.float16), spread=appearance.spread.astype(np.float16)
    )
    return base64.b64encode(memory.getvalue()).decode("ascii")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _list(lines: Iterable[str]) -> str:
    return "[\n" + ",\n".join(lines) + "\n]"


def _table(items: Iterable[tuple[str, str]]) -> str:
    return "{\n" + ",\n".join(f"{_line(key)}:{_line(value)}" for key, value in items) + "\n}"
