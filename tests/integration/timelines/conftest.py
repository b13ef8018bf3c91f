"""One cut of a movie and a sequence, small enough to be rendered many times."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opentimelineio as otio
import pytest

from tests.integration.conftest import Cli, cli, identity, small_plate  # noqa: F401
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
        movie: 6 frames with timecode and sound.
        plate: pattern of 6 pictures, 1001-1006.
        document: the timeline.
    """

    path: Path
    movie: Path
    plate: str
    document: Any


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory, small_plate: str) -> Path:  # noqa: F811
    """A folder with A001.mov and the pictures sh010.####.exr, numbered from 1001."""
    folder = tmp_path_factory.mktemp("media")
    face_clip(folder / "A001.mov", MOVIE)
    for index, path in enumerate(sorted(Path(small_plate).parent.glob("*.exr"))):
        shutil.copy(path, folder / f"sh010.{1001 + index}.exr")
    return folder


def pictures(folder: Path, first: int = 1001, begins: int = 0, length: int = 6, rate: float = 24) -> Any:
    """A reference to the pictures."""
    return otio.schema.ImageSequenceReference(
        folder.as_uri() + "/", "sh010.", ".exr", first, 1, rate, 4, available_range=span(begins, length, rate)
    )


def build(folder: Path) -> Any:
    """Movie frames 2-4, a gap, pictures 1002-1004 dissolving into movie frame 1-2, the movie again on a track above."""
    url = (folder / "A001.mov").as_uri()
    shot = clip("shot", 1, 2)
    shot.media_reference = pictures(folder)
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


@pytest.fixture
def cut(media: Path, tmp_path: Path) -> Cut:
    """The cut in a folder of its own."""
    document = build(media)
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(document, str(path))
    return Cut(path, media / "A001.mov", str(media / "sh010.####.exr"), document)
