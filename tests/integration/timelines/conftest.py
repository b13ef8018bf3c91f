"""One cut of a movie and a sequence, small enough to be rendered many times."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opentimelineio as otio
import pytest

from faceplate.cli.main import main
from tests.support.movies import Clip, face_clip
from tests.support.timelines import clip, dissolve, gap, span, timeline

MOVIE = Clip("prores_ks", "yuv422p10le", 480, 300, timecode="01:00:00:00", audio=True)
CODE = 86400
"""01:00:00:00 at 24 frames a second."""


@dataclass(frozen=True)
class Cut:
    """A timeline with its media.

    Attributes:
        path: the `.otio`.
        media: folder of A001.mov (6 frames with timecode and sound) and sh010.1001-1006.exr.
        document: the timeline.
    """

    path: Path
    media: Path
    document: Any


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory, small_plate: str) -> Path:
    """The media of `Cut`; nothing is written there."""
    folder = tmp_path_factory.mktemp("media")
    face_clip(folder / "A001.mov", MOVIE)
    for index, path in enumerate(sorted(Path(small_plate).parent.glob("*.exr"))):
        shutil.copy(path, folder / f"sh010.{1001 + index}.exr")
    return folder


def build(folder: Path) -> Any:
    """Movie frames 2-3, a gap, pictures 1002-1003 dissolving into movie frames 1-2; movie frames 3-4 above."""
    url = (folder / "A001.mov").as_uri()
    shot = clip("shot", 1, 2)
    shot.media_reference = otio.schema.ImageSequenceReference(
        folder.as_uri() + "/", "sh010.", ".exr", 1001, 1, 24, 4, available_range=span(0, 6)
    )
    shot.metadata["note"] = {"take": 3}
    return timeline(
        [
            clip("a", CODE + 1, 2, url=url, available=(CODE, 6)),
            gap(4),
            shot,
            dissolve(0, 1),
            clip("b", CODE, 2, url=url, available=(CODE, 6)),
        ],
        [gap(3), clip("again", CODE + 2, 2, url=url, available=(CODE, 6))],
        start=otio.opentime.RationalTime(CODE, 24),
    )


@pytest.fixture(scope="session")
def once(media: Path, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished render of the cut; copied by who changes it."""
    folder = tmp_path_factory.mktemp("once")
    otio.adapters.write_to_file(build(media), str(folder / "cut.otio"))
    assert main(["render", str(folder / "cut.otio"), "-o", str(folder / "out"), "--identity", str(identity)]) == 0
    return folder / "out"


@pytest.fixture
def cut(media: Path, tmp_path: Path) -> Cut:
    """The cut in a folder of its own."""
    document = build(media)
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(document, str(path))
    return Cut(path, media, document)
