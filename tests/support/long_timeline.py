"""A long cut to plan: `python -m tests.support.long_timeline` prints processor time and memory for several lengths.

2,000 clips of three hours, 24 frames a second, from a tenth as many sources; every fifth clip retimed, every seventh
dissolved into. The media are hard links to one movie and planned like any other.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import opentimelineio as otio

from tests.support.movies import Clip
from tests.support.timelines import clip, dissolve, timeline

FRAMES = 3000
SECONDS_A_CLIP = 5.4
"""2,000 of them are three hours."""


def write_media(folder: Path, sources: int) -> list[Path]:
    """Movies of `FRAMES` frames."""
    first = folder / "S0000.mov"
    one = Clip("mpeg4", "yuv420p", 16, 16, timecode="01:00:00:00")
    one.write(first, one.noise(1) * FRAMES)
    for number in range(1, sources):
        os.link(first, folder / f"S{number:04d}.mov")
    return [folder / f"S{number:04d}.mov" for number in range(sources)]


def build(media: Sequence[Path], clips: int) -> tuple[Any, dict[str, set[int]]]:
    """(the timeline, plate frames that it shows by source)."""
    code, items = 86400, []
    length = round(SECONDS_A_CLIP * 24)
    shown: dict[str, set[int]] = {}
    previous: tuple[str, int, int] | None = None
    for number in range(clips):
        source = media[number % len(media)]
        speed = 2 if number % 5 == 4 else 1
        start = 20 + (number * 137) % (FRAMES - 2 * length - 100)
        frames = shown.setdefault(source.stem, set())
        head = 0
        if number % 7 == 6 and previous is not None:
            items.append(dissolve(4, 6))
            head = 4
            name, end, pace = previous
            shown[name] |= {end + step * pace for step in range(6)}
        made = clip(f"c{number}", code + start, length, url=source.as_uri(), available=(code, FRAMES))
        if speed != 1:
            made.effects.append(otio.schema.LinearTimeWarp(time_scalar=float(speed)))
        items.append(made)
        frames |= {1 + start + step * speed for step in range(-head, length)}
        previous = (source.stem, 1 + start + length * speed, speed)
    return timeline(items, start=otio.opentime.RationalTime(code, 24)), shown


def _measure(folder: Path, clips: int) -> tuple[float, float, str]:
    """(s of processor time, peak MiB, what the plan says) of a dry run in a process of its own."""
    document, _ = build(write_media(folder, max(1, clips // 10)), clips)
    path = folder / "cut.otio"
    otio.adapters.write_to_file(document, str(path))
    words = [sys.executable, "-m", "faceplate", "render", str(path), "-o", str(folder / "out"), "--dry-run", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(words, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, after.ru_maxrss / 1024, str(json.loads(ran.stdout.splitlines()[-1])["text"])


def main() -> None:
    """Print a row for each length, shortest first, since the peak of children only grows."""
    for clips in (250, 500, 1000, 2000, 4000):
        with tempfile.TemporaryDirectory() as folder:
            took, peak, said = _measure(Path(folder), clips)
        print(f"{clips:5d} clips, {clips * SECONDS_A_CLIP / 3600:.2f} h: {took:5.2f} s, peak {peak:4.0f} MiB; {said}")


if __name__ == "__main__":
    main()
