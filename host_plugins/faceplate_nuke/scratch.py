# SPDX-License-Identifier: Apache-2.0
"""Where the frames lie that Nuke renders for the server: in memory where they fit, and for no longer than the job.

Imports nothing of Nuke.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from faceplate_client.errors import ClientError
from faceplate_client.private import default_folder, private_folder

NAME = "nuke-bakes"
SHARE = 0.5
"""Of what is free in memory, that is taken at most: the rings of frames and other programs live there too."""
_CHANNELS = 6
"""As few as a frame is reckoned with: colour and alpha, and some more that the graph may have."""
_OLD_S = 24 * 3600.0


def bakes_folder(size: tuple[int, int], frames: int, float_bytes: int, results: Path, channels: int = 0) -> Path:
    """The folder for what Nuke renders of one clip, not made: memory where that has room, else beside the results.

    Args:
        size: of the picture with its overscan, px; (0, 0) where unknown.
        frames: how many.
        float_bytes: bytes of a value.
        results: folder of the results.
        channels: of a frame; it is reckoned with some in any case.
    """
    beside = results / f".{NAME}"
    needed = size[0] * size[1] * max(_CHANNELS, channels) * float_bytes * frames
    if not sys.platform.startswith("linux") or needed <= 0:
        return beside
    memory = default_folder() / NAME
    if Path("/dev/shm") not in memory.parents:
        return beside
    try:
        private_folder(memory.parent)
        private_folder(memory)
        _sweep(memory)
        free = shutil.disk_usage(memory).free
    except (ClientError, OSError):
        return beside  # not ours or not writable: the results' own disk always is
    return memory if needed <= SHARE * free else beside


def _sweep(folder: Path) -> None:
    """Remove what a killed Nuke left: nothing in there is written for a day."""
    now = time.time()
    for path in folder.iterdir():
        newest = max((entry.stat().st_mtime for entry in os.scandir(path)), default=path.stat().st_mtime)
        if now - newest > _OLD_S:
            shutil.rmtree(path, ignore_errors=True)
