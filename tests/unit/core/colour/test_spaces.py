"""Names of colour spaces, twins, and configurations other than the built-in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from faceplate.colour.spaces import DEFAULT_CONFIG, ColourConfig
from faceplate.errors import ColourSpaceError

CONFIG = ColourConfig.open(DEFAULT_CONFIG)
LOG = "!<LogTransform> {base: 2, direction: inverse}"
BARE = """ocio_profile_version: 2
roles: {default: plate, scene_linear: plate%s}
displays: {d: [!<View> {name: v, colorspace: plate}]}
file_rules:
  - !<Rule> {name: Scans, colorspace: log, pattern: "*scan*", extension: exr}
  - !<Rule> {name: Default, colorspace: plate}
colorspaces:
  - !<ColorSpace> {name: plate, encoding: scene-linear}
  - !<ColorSpace> {name: log, encoding: log, to_scene_reference: !<LogTransform> {base: 2, direction: inverse}}
  - !<ColorSpace> {name: aces, encoding: scene-linear}
  - !<ColorSpace> {name: numbers, isdata: true}
"""


def bare(folder: Path, extra: str = "") -> Path:
    path = folder / "show.ocio"
    path.write_text(BARE % extra)
    return path


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ACEScg", "ACEScg"),
        ("acescct", "ACEScct"),
        (" aces2065-1 ", "ACES2065-1"),
        ("scene_linear", "ACEScg"),
        ("TEXTURE_PAINT", "sRGB Encoded Rec.709 (sRGB)"),
        ("lin_rec709_scene", "Linear Rec.709 (sRGB)"),
        ("ocio:arrilogc4_awg4_scene", "ARRI LogC4"),
        ("Utility - sRGB - Texture", "sRGB Encoded Rec.709 (sRGB)"),
        ("LogC4", "ARRI LogC4"),
        ("LogC3", "ARRI LogC3 (EI800)"),
        ("v-log", "V-Log V-Gamut"),
        ("Canon Log 3", "CanonLog3 CinemaGamut D55"),
        ("Log3G10", "Log3G10 REDWideGamutRGB"),
        ("slog3_sgamut3", "S-Log3 S-Gamut3"),
    ],
)
def test_names_people_use(name: str, canonical: str) -> None:
    assert CONFIG.resolve(name) == canonical


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("S-Log3", "S-Log3 S-Gamut3.Cine"),
        ("sRGB", "sRGB Encoded Rec.709 (sRGB)"),
        ("Rec.709", "Linear Rec.709 (sRGB)"),
        ("rec2020", "Linear Rec.2020"),
        ("P3", "Linear P3-D65"),
        ("davinci", "DaVinci Intermediate WideGamut"),
        ("AcesCGG", "ACEScg"),
        ("arri logc5", "ARRI LogC4"),
        ("linear rec 709 srgbb", "Linear Rec.709 (sRGB)"),
    ],
)
def test_what_is_not_certain_is_offered_not_taken(name: str, offered: str) -> None:
    with pytest.raises(ColourSpaceError) as caught:
        CONFIG.resolve(name)
    assert f"'{offered}'" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "   ", "gibberish_99", "a", "é"])
def test_nonsense_lists_the_spaces(name: str) -> None:
    with pytest.raises(ColourSpaceError) as caught:
        CONFIG.resolve(name)
    assert "ACEScg" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["Raw", "data", "none", "Utility - Raw"])
def test_data_spaces_are_refused(name: str) -> None:
    with pytest.raises(ColourSpaceError, match="data") as caught:
        CONFIG.resolve(name)
    assert "ACEScg" in (caught.value.hint or "")


def test_every_name_and_alias_resolves_to_itself() -> None:
    for name in CONFIG.names:
        assert CONFIG.resolve(name) == name
        assert CONFIG.resolve(name.upper()) == name


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("ACEScg", "ACEScg"),
        ("Linear ARRI Wide Gamut 4", "Linear ARRI Wide Gamut 4"),
        ("ARRI LogC3 (EI800)", "Linear ARRI Wide Gamut 3"),
        ("ARRI LogC4", "Linear ARRI Wide Gamut 4"),
        ("BMDFilm WideGamut Gen5", "Linear BMD WideGamut Gen5"),
        ("DaVinci Intermediate WideGamut", "Linear DaVinci WideGamut"),
        ("CanonLog2 CinemaGamut D55", "Linear CinemaGamut D55"),
        ("CanonLog3 CinemaGamut D55", "Linear CinemaGamut D55"),
        ("D-Log D-Gamut", "Linear D-Gamut"),
        ("V-Log V-Gamut", "Linear V-Gamut"),
        ("Log3G10 REDWideGamutRGB", "Linear REDWideGamutRGB"),
        ("S-Log3 S-Gamut3", "Linear S-Gamut3"),
        ("S-Log3 S-Gamut3.Cine", "Linear S-Gamut3.Cine"),
        ("S-Log3 Venice S-Gamut3", "Linear Venice S-Gamut3"),
        ("S-Log3 Venice S-Gamut3.Cine", "Linear Venice S-Gamut3.Cine"),
        ("Apple Log", "Linear Rec.2020"),
        ("ACEScct", "ACEScg"),
        ("ADX10", "ACEScg"),
        ("sRGB Encoded Rec.709 (sRGB)", "Linear Rec.709 (sRGB)"),
        ("Camera Rec.709", "Linear Rec.709 (sRGB)"),
        ("sRGB Encoded P3-D65", "Linear P3-D65"),
        ("sRGB - Display", "Linear Rec.709 (sRGB)"),
    ],
)
def test_linear_twins(name: str, twin: str) -> None:
    assert CONFIG.linear_twin(name) == twin
    assert CONFIG.is_linear(twin)


def test_near_primaries_are_no_twin(tmp_path: Path) -> None:
    matrix = "!<MatrixTransform> {matrix: [%s, 0, 0, 0, 1]}"
    near = matrix % "0.99, 0.01, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0"
    far = matrix % "0.6, 0.4, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0"
    text = (BARE % "").replace("scene_linear: plate", "scene_linear: wide")
    text += f"  - !<ColorSpace> {{name: coded, to_scene_reference: !<GroupTransform> {{children: [{LOG}, {near}]}}}}\n"
    text += f"  - !<ColorSpace> {{name: wide, encoding: scene-linear, to_scene_reference: {far}}}\n"
    path = tmp_path / "near.ocio"
    path.write_text(text)
    config = ColourConfig.open(str(path))
    assert config.linear_twin("coded") == "wide"
    assert config.linear_twin("log") == "plate"


def test_transforms_are_kept() -> None:
    assert CONFIG.transform("ACEScg", "srgb_texture") is CONFIG.transform("lin_ap1", "sRGB - Texture")


def test_the_environment_is_used_when_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCIO", str(bare(tmp_path)))
    studio = ColourConfig.open()
    assert (studio.name, studio.from_studio, studio.names) == ("show.ocio", True, ("plate", "log", "aces"))
    named = ColourConfig.open(DEFAULT_CONFIG)
    assert (named.from_studio, named.source) == (False, DEFAULT_CONFIG)
    monkeypatch.setenv("OCIO", "  ")
    assert ColourConfig.open().source == DEFAULT_CONFIG


@pytest.mark.parametrize("text", [None, "", "nonsense: [", "ocio_profile_version: 99\n"])
def test_a_broken_configuration_says_which_file(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "broken.ocio"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ColourSpaceError, match=r"broken\.ocio") as caught:
        ColourConfig.open(str(path))
    assert "$OCIO" in (caught.value.hint or "")


def test_rules_speak_only_when_they_are_not_the_default(tmp_path: Path) -> None:
    config = ColourConfig.open(str(bare(tmp_path)))
    assert config.rule_for("/x/scan_01.exr") == "log"
    assert config.rule_for("/x/render_01.exr") is None


def test_a_configuration_without_rec709_is_bridged_by_its_interchange_role(tmp_path: Path) -> None:
    config = ColourConfig.open(str(bare(tmp_path, ", aces_interchange: aces")))
    pixels = np.array([[0.18, 0.5, 2.0], [0.3, 0.2, 0.1]], dtype=np.float32)
    expected = CONFIG.to_rec709("ACES2065-1").numpy(pixels)
    found = config.to_rec709("plate")
    np.testing.assert_allclose(found.numpy(pixels), expected, rtol=1e-6)
    assert found.matrix is not None
    np.testing.assert_allclose(config.from_rec709("plate").numpy(expected), pixels, rtol=1e-5)


def test_a_configuration_that_cannot_be_bridged_names_the_role(tmp_path: Path) -> None:
    config = ColourConfig.open(str(bare(tmp_path)))
    with pytest.raises(ColourSpaceError) as caught:
        config.to_rec709("plate")
    assert "aces_interchange" in (caught.value.hint or "")


def test_a_missing_lut_is_an_error_of_ours(tmp_path: Path) -> None:
    text = (BARE % "").replace("!<LogTransform> {base: 2, direction: inverse}", "!<FileTransform> {src: absent.cube}")
    path = tmp_path / "lut.ocio"
    path.write_text(text)
    with pytest.raises(ColourSpaceError, match="cannot convert log to plate"):
        ColourConfig.open(str(path)).transform("log", "plate")
