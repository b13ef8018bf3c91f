"""Words of the command line as values."""

from __future__ import annotations

from pathlib import Path

import pytest

from faceplate.errors import SettingError
from faceplate.job import Assignment, HoldOut
from faceplate.jobs.words import parse_assignment, parse_holdout, parse_missing, parse_settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jane.fpid", Assignment(Path("jane.fpid"), "main")),
        ("a/jane.fpid@3", Assignment(Path("a/jane.fpid"), 3)),
        ("jane.fpid@all", Assignment(Path("jane.fpid"), "all")),
        ("jane@home/j.fpid@main", Assignment(Path("jane@home/j.fpid"), "main")),
        ("jane.fpid@auto", Assignment(Path("jane.fpid"), "auto")),
        ("a/jane.fpid@refs@1/anna.fpid", Assignment(Path("a/jane.fpid"), "auto", Path("refs@1/anna.fpid"))),
    ],
)
def test_assignment(text: str, expected: Assignment) -> None:
    assert parse_assignment(text) == expected


def test_a_file_with_an_at_sign_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "jane@2.fpid"
    path.touch()
    assert parse_assignment(str(path)) == Assignment(path, "main")


def test_a_track_that_is_no_track_is_refused() -> None:
    with pytest.raises(SettingError, match="no track"):
        parse_assignment("jane.fpid@left")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("roto.####.exr", HoldOut("roto.####.exr")),
        ("roto.####.exr:hand", HoldOut("roto.####.exr", "hand")),
        ("C:/roto/hand.exr", HoldOut("C:/roto/hand.exr")),
        ("C:/roto/hand.exr:matte.A", HoldOut("C:/roto/hand.exr", "matte.A")),
    ],
)
def test_holdout(text: str | None, expected: HoldOut | None) -> None:
    assert parse_holdout(text) == expected


def test_words_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "look.toml"
    file.write_text('strength = 0.5\nkeep_eyes = false\nshape = "1001:0,1011:1"\n')
    settings = parse_settings(["strength=0.25"], file).at(1006)
    assert (settings.strength, settings.keep_eyes, settings.shape) == (0.25, False, 0.5)


def test_a_table_of_keys_is_a_keyed_setting(tmp_path: Path) -> None:
    file = tmp_path / "look.toml"
    file.write_text("[strength]\n1001 = 0\n1011 = 1\n")
    assert parse_settings([], file).at(1006).strength == 0.5


@pytest.mark.parametrize("content", ["strength = ", "strenght = 1\n", "strength = 3\n", "\xff"])
def test_a_wrong_settings_file_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "look.toml"
    file.write_text(content, "latin-1")
    with pytest.raises(SettingError):
        parse_settings([], file)


def test_missing_policies() -> None:
    assert [parse_missing(word) for word in ("error", "skip", "hold")] == ["error", "skip", "hold"]
    with pytest.raises(SettingError):
        parse_missing("ignore")
