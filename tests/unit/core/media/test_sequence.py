"""Ranges, patterns and folders of frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import MissingFrameError, SequenceError
from faceplate.media.sequence import is_pattern, open_sequence, output_path, parse_frame_range


@pytest.mark.parametrize(
    ("text", "frames"),
    [
        ("1001", (1001,)),
        ("1001-1004", (1001, 1002, 1003, 1004)),
        ("1001-1010x4,1003", (1001, 1003, 1005, 1009)),
        ("1001-1009:2", (1001, 1003, 1005, 1007, 1009)),
        ("1-3,2-5", (1, 2, 3, 4, 5)),
        ("-5--3", (-5, -4, -3)),
        ("-2-1", (-2, -1, 0, 1)),
        ("3-1", (1, 2, 3)),
        (" 7 , 9 ", (7, 9)),
    ],
)
def test_ranges(text: str, frames: tuple[int, ...]) -> None:
    assert parse_frame_range(text) == frames


@pytest.mark.parametrize(
    "text", ["", ",", "a", "1-", "1-b", "1..5", "1-5x", "1-5x0", "1-5x-1", "1.5", "1-2x0.5", "1001-1100-2", "#", "1e3"]
)
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SequenceError) as caught:
        parse_frame_range(text)
    assert "1001-1100x2" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["1-99999999", "-9999999999-9999999999", "1-6000000,10000000-16000000"])
def test_absurdly_large_ranges_are_refused(text: str) -> None:
    with pytest.raises(SequenceError, match="10 million"):
        parse_frame_range(text)


@given(st.lists(st.tuples(st.integers(-500, 500), st.integers(0, 40), st.integers(1, 7)), min_size=1, max_size=5))
def test_ranges_mean_what_python_ranges_mean(blocks: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{first}-{first + length}x{step}" for first, length, step in blocks)
    expected = {n for first, length, step in blocks for n in range(first, first + length + 1, step)}
    assert parse_frame_range(text) == tuple(sorted(expected))
    assert parse_frame_range(text.replace("x", ":")) == tuple(sorted(expected))


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("sign", ["####", "%04d", "$F4", "@@@@"])
def test_patterns_find_their_frames_and_no_others(sign: str, tmp_path: Path) -> None:
    make(tmp_path, "shöt 1.1001.exr", "shöt 1.1002.exr", "shöt 1.1004.exr", "shöt 1.10005.exr")
    make(tmp_path, "shöt 1.103.exr", "shöt 1.1003.exr.bak", "shöt 1.1003.tif", "Shöt 1.1003.exr", "shöt 1.10 3.exr")
    sequence = open_sequence(tmp_path / f"shöt 1.{sign}.exr")
    assert sequence.frames == (1001, 1002, 1004, 10005)
    assert sequence.holes[:2] == (1003, 1005)
    assert len(sequence.holes) == 10005 - 1001 + 1 - 4
    assert sequence.extension == ".exr"
    assert sequence.path(1004) == tmp_path / "shöt 1.1004.exr"


def test_a_hole_is_a_missing_frame_that_names_its_file(tmp_path: Path) -> None:
    make(tmp_path, "a.0001.exr", "a.0003.exr")
    with pytest.raises(MissingFrameError) as caught:
        open_sequence(f"{tmp_path}/a.####.exr").path(2)
    assert caught.value.expected == str(tmp_path / "a.0002.exr")
    assert caught.value.found == "frames 1,3"


def test_unpadded_numbers(tmp_path: Path) -> None:
    make(tmp_path, "a.8.exr", "a.9.exr", "a.10.exr", "a.0011.exr")
    for pattern in ("a.#.exr", "a.%d.exr", "a.$F.exr"):
        assert open_sequence(tmp_path / pattern).frames == (8, 9, 10)


def test_negative_frames_in_the_padding_of_printf_and_of_nuke(tmp_path: Path) -> None:
    make(tmp_path, "a.-003.exr", "a.-0002.exr", "a.0000.exr", "a.0001.exr")
    sequence = open_sequence(tmp_path / "a.####.exr")
    assert sequence.frames == (-3, -2, 0, 1)
    assert sequence.holes == (-1,)
    assert output_path(f"{tmp_path}/a.####.exr", -3) == tmp_path / "a.-003.exr"


def test_a_name_with_two_numbers_or_digits_before_the_pattern(tmp_path: Path) -> None:
    make(tmp_path, "x.1001.5.exr", "x.1001.6.exr", "take20007.exr")
    assert open_sequence(tmp_path / "x.1001.#.exr").frames == (5, 6)
    assert open_sequence(tmp_path / "x.1001.5.exr").frames == (5,)
    assert open_sequence(tmp_path / "take2####.exr").frames == (7,)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("x.1001.exr", 1001),
        ("x_0007.exr", 7),
        ("x-0005.exr", 5),
        ("x.-0005.exr", -5),
        ("1001.exr", 1001),
        ("-3.exr", -3),
        ("x_v002.exr", 1),
        ("plain.exr", 1),
    ],
)
def test_a_lone_file_is_one_frame(name: str, number: int, tmp_path: Path) -> None:
    make(tmp_path, name, "x.2000.exr")
    sequence = open_sequence(tmp_path / name)
    assert dict(sequence.files) == {number: tmp_path / name}
    assert sequence.holes == ()


def test_a_folder_with_one_sequence(tmp_path: Path) -> None:
    folder = make(
        tmp_path / "plate v1", "s 01.0998.exr", "s 01.-0001.exr", "s 01.1000.exr", "notes.txt", ".hidden.1.exr"
    )
    make(folder, ".faceplate-tmp-12-0123456789ab.exr")
    sequence = open_sequence(folder)
    assert sequence.pattern == str(folder / "s 01.####.exr")
    assert sequence.frames == (-1, 998, 1000)


def test_a_folder_with_one_picture(tmp_path: Path) -> None:
    assert open_sequence(make(tmp_path / "a", "x_v002.png")).frames == (1,)
    assert open_sequence(make(tmp_path / "b", "x.0042.png")).frames == (42,)


def test_a_folder_with_several_sequences_lists_them(tmp_path: Path) -> None:
    make(tmp_path, "a.0001.exr", "a.0002.exr", "b.1.exr", "b.2.exr", "a.0001.dpx", "thumb.jpg")
    with pytest.raises(SequenceError, match="several") as caught:
        open_sequence(tmp_path)
    assert caught.value.found == "a.####.exr, a.0001.dpx, b.#.exr, thumb.jpg"


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(SequenceError, match="no image sequence"):
        open_sequence(make(tmp_path / "empty", "notes.txt"))
    with pytest.raises(SequenceError, match="no file"):
        open_sequence(tmp_path / "x.exr")
    with pytest.raises(SequenceError, match="no file matches") as caught:
        open_sequence(tmp_path / "x.####.exr")
    assert "digits" in str(caught.value.hint)
    with pytest.raises(SequenceError, match="No such file"):
        open_sequence(tmp_path / "nowhere" / "x.####.exr")


def test_two_placeholders_are_refused(tmp_path: Path) -> None:
    for pattern in ("x.##.%04d.exr", "x.#.#.exr"):
        with pytest.raises(SequenceError, match="2 placeholders"):
            open_sequence(tmp_path / pattern)
        with pytest.raises(SequenceError, match="2 placeholders"):
            output_path(pattern, 1)


def test_output_paths() -> None:
    assert output_path("out/é x.####.exr", 7) == Path("out/é x.0007.exr")
    assert output_path("out/x.%04d.exr", 12345) == Path("out/x.12345.exr")
    assert output_path("/o/$F3.exr", 7) == Path("/o/007.exr")
    assert output_path("v####/take2.exr", 7) == Path("v####/take2.exr")
    assert output_path("x.1001.exr", 7) == Path("x.1001.exr")
    assert [is_pattern(p) for p in ("x.#.exr", "x.@@.exr", "x.%d.exr", "x.$F.exr")] == [True] * 4
    assert not any(is_pattern(p) for p in ("x.1001.exr", "a#/x.exr", "x%20y.exr", "100%.exr"))


@given(st.integers(-99999, 10**7), st.sampled_from(["####", "%04d", "$F4", "@@@@", "#", "%d", "$F", "%06d"]))
def test_what_is_written_under_a_pattern_is_found_under_it(
    tmp_path_factory: pytest.TempPathFactory, frame: int, sign: str
) -> None:
    folder = tmp_path_factory.mktemp("s")
    pattern = f"{folder}/x.{sign}.exr"
    output_path(pattern, frame).touch()
    assert open_sequence(pattern).frames == (frame,)
