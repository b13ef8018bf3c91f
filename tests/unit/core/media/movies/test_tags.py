"""What tags mean, and what is assumed where there are none."""

from __future__ import annotations

import pytest

from faceplate.errors import UnsupportedImageError
from faceplate.media.movies.layout import layout_of
from faceplate.media.movies.tags import MovieColour, Tags, colour_of

YUV, RGB = layout_of("yuv422p10le"), layout_of("gbrp")


def found(tags: Tags, width: int = 1920, height: int = 1080, layout: object = YUV) -> MovieColour:
    return colour_of(tags, layout, width, height, None)  # type: ignore[arg-type]


def test_untagged_hd_is_bt709_and_says_so() -> None:
    colour = found(Tags())
    assert (colour.transfer, colour.primaries, colour.coding.matrix) == ("bt709",) * 3
    assert not colour.coding.full_range
    assert colour.assumed == ("transfer", "primaries", "matrix", "range")
    assert "untagged: transfer and primaries assumed" in colour.note
    assert "matrix and range assumed" in colour.note
    assert colour.written == Tags(1, 1, 1, 1)


@pytest.mark.parametrize(
    ("width", "height", "matrix", "primaries"),
    [
        (1280, 720, "bt709", "bt709"),
        (720, 576, "bt601", "bt470bg"),
        (720, 480, "bt601", "smpte170m"),
        (720, 486, "bt601", "smpte170m"),
        (640, 360, "bt601", "bt709"),
        (608, 1080, "bt709", "bt709"),
    ],
)
def test_untagged_by_raster(width: int, height: int, matrix: str, primaries: str) -> None:
    colour = found(Tags(), width, height)
    assert (colour.coding.matrix, colour.primaries) == (matrix, primaries)


@pytest.mark.parametrize(
    ("tags", "transfer", "primaries", "matrix"),
    [
        (Tags(1, 1, 1, 1), "bt709", "bt709", "bt709"),
        (Tags(6, 6, 6, 1), "bt709", "smpte170m", "bt601"),
        (Tags(5, 6, 5, 1), "bt709", "bt470bg", "bt601"),
        (Tags(9, 14, 9, 1), "bt709", "bt2020", "bt2020"),
        (Tags(9, 16, 9, 1), "pq", "bt2020", "bt2020"),
        (Tags(9, 18, 9, 2), "hlg", "bt2020", "bt2020"),
        (Tags(12, 13, 1, 2), "srgb", "p3d65", "bt709"),
        (Tags(12, 16, 9, 1), "pq", "p3d65", "bt2020"),
        (Tags(1, 8, 1, 1), "linear", "bt709", "bt709"),
    ],
)
def test_tags_are_believed(tags: Tags, transfer: str, primaries: str, matrix: str) -> None:
    colour = found(tags)
    assert (colour.transfer, colour.primaries, colour.coding.matrix) == (transfer, primaries, matrix)
    assert colour.coding.full_range == (tags.range == 2)
    assert colour.assumed == ()
    assert colour.written == tags


def test_a_lone_tag_of_bt2020_brings_its_matrix() -> None:
    assert found(Tags(transfer=16)).coding.matrix == "bt2020"
    assert found(Tags(primaries=9)).coding.matrix == "bt2020"


def test_rgb_is_full_range_without_a_matrix() -> None:
    colour = found(Tags(1, 13), layout=RGB)
    assert (colour.coding.matrix, colour.coding.full_range) == ("rgb", True)
    assert not found(Tags(1, 13, 0, 1), layout=RGB).coding.full_range


def test_jpeg_range_by_name() -> None:
    assert found(Tags(), layout=layout_of("yuvj420p")).coding.full_range


def test_unknown_curves_have_no_name_and_are_kept() -> None:
    colour = found(Tags(11, 17, 1, 1))
    assert (colour.transfer, colour.primaries) == ("", "p3dci")
    assert colour.written == Tags(11, 17, 1, 1)


@pytest.mark.parametrize("matrix", [4, 8, 10, 14])
def test_matrices_that_are_not_undone_are_refused(matrix: int) -> None:
    with pytest.raises(UnsupportedImageError, match="matrix"):
        found(Tags(9, 16, matrix, 1))
