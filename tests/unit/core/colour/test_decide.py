"""Where a plate's colour space is found, and that nothing is guessed in silence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import OpenImageIO as oiio
import pytest

from faceplate.colour.decide import PRIMARIES, decide_space
from faceplate.colour.spaces import DEFAULT_CONFIG, ColourConfig
from faceplate.errors import ColourSpaceError
from faceplate.frame import Box, StoredImage

CONFIG = ColourConfig.open(DEFAULT_CONFIG)
STUDIO = """ocio_profile_version: 2
roles: {default: plate, scene_linear: plate, aces_interchange: plate}
displays: {d: [!<View> {name: v, colorspace: plate}]}
file_rules:
  - !<Rule> {name: Scans, colorspace: scanlog, pattern: "*scan*", extension: "*"}
  - !<Rule> {name: Default, colorspace: plate}
colorspaces:
  - !<ColorSpace> {name: plate, encoding: scene-linear}
  - !<ColorSpace> {name: scanlog, encoding: log, to_scene_reference: !<LogTransform> {base: 2, direction: inverse}}
"""


def image(
    file_format: str = "exr", bit_depth: str = "half", path: str = "/show/plate.1001.exr", **metadata: Any
) -> StoredImage:
    return stored(file_format, bit_depth, path, metadata)


def stored(file_format: str, bit_depth: str, path: str, metadata: Mapping[str, Any]) -> StoredImage:
    window = Box(0, 0, 2, 2)
    pixels = np.zeros((2, 2, 3), dtype=np.float32)
    return StoredImage(pixels, ("R", "G", "B"), window, window, 1.0, None, Path(path), file_format, bit_depth, metadata)


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ColourConfig:
    path = tmp_path / "studio.ocio"
    path.write_text(STUDIO)
    monkeypatch.setenv("OCIO", str(path))
    return ColourConfig.open()


def test_the_job_wins_over_every_tag() -> None:
    tagged = image(colorInteropID="lin_rec709_scene", chromaticities=PRIMARIES["lin_ap0_scene"])
    decision = decide_space(CONFIG, tagged, "LogC4")
    assert (decision.space, decision.source) == ("ARRI LogC4", "job")


def test_a_job_that_names_nonsense_fails_even_when_the_file_is_tagged() -> None:
    with pytest.raises(ColourSpaceError):
        decide_space(CONFIG, image(colorInteropID="lin_rec709_scene"), "no such space")


@pytest.mark.parametrize(
    ("metadata", "space", "word"),
    [
        ({"colorInteropID": "lin_rec709_scene"}, "Linear Rec.709 (sRGB)", "colorInteropID"),
        ({"colorInteropID": "lin_ap1_scene", "chromaticities": PRIMARIES["lin_ap0_scene"]}, "ACEScg", "colorInteropID"),
        ({"acesImageContainerFlag": 1}, "ACES2065-1", "acesImageContainerFlag"),
        ({"colorInteropID": "unknown", "chromaticities": PRIMARIES["lin_vgamut"]}, "Linear V-Gamut", "chromaticities"),
    ],
)
def test_exr_tags(metadata: dict[str, Any], space: str, word: str) -> None:
    decision = decide_space(CONFIG, stored("exr", "half", "/a.exr", metadata), None)
    assert (decision.space, decision.source) == (space, "file tag")
    assert word in decision.note


@pytest.mark.parametrize("name", PRIMARIES)
def test_primaries_are_recognised_as_float32_and_as_written_short(name: str) -> None:
    for given in (np.array(PRIMARIES[name], dtype=np.float32), tuple(round(value, 4) for value in PRIMARIES[name])):
        decision = decide_space(CONFIG, image(chromaticities=given), None)
        assert decision.space == CONFIG.resolve(name)


def to_xyz(xy: tuple[float, ...]) -> np.ndarray:
    """RGB to XYZ from chromaticities, white at Y = 1 (SMPTE RP 177)."""
    corners = np.array([[xy[i], xy[i + 1], 1 - xy[i] - xy[i + 1]] for i in (0, 2, 4)]).T
    white = np.array([xy[6] / xy[7], 1.0, (1 - xy[6] - xy[7]) / xy[7]])
    return corners * np.linalg.solve(corners, white)


BRADFORD = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
CAT02 = np.array([[0.7328, 0.4296, -0.1624], [-0.7036, 1.6975, 0.0061], [0.0030, 0.0136, 0.9834]])


def to_aces(xy: tuple[float, ...], adaptation: np.ndarray) -> np.ndarray:
    """Linear RGB to ACES2065-1, the white adapted in the cone space `adaptation`."""
    aces = PRIMARIES["lin_ap0_scene"]
    whites = [adaptation @ np.array([x / y, 1.0, (1 - x - y) / y]) for x, y in (xy[6:], aces[6:])]
    adapt = np.linalg.solve(adaptation, np.diag(whites[1] / whites[0]) @ adaptation)
    return np.linalg.solve(to_xyz(aces), adapt @ to_xyz(xy))


@pytest.mark.parametrize("name", PRIMARIES)
def test_primaries_are_those_of_the_configuration(name: str) -> None:
    """OCIO's matrix must be the one that the published chromaticities give, by one of the two usual adaptations."""
    found = CONFIG.transform(name, "lin_ap0_scene").numpy(np.eye(3, dtype=np.float32)).T
    errors = [float(np.abs(found - to_aces(PRIMARIES[name], space)).max()) for space in (BRADFORD, CAT02)]
    assert min(errors) < 2e-5


@pytest.mark.parametrize(
    "metadata",
    [
        {"colorInteropID": "lin_of_another_planet"},
        {"chromaticities": (0.5, 0.3, 0.3, 0.5, 0.2, 0.1, 0.3, 0.3)},
        {"chromaticities": (0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.2, 0.3290)},
        {"chromaticities": (1.0, 2.0)},
    ],
)
def test_a_tag_that_cannot_be_translated_stops_the_job(metadata: dict[str, Any]) -> None:
    with pytest.raises(ColourSpaceError, match=r"a\.exr") as caught:
        decide_space(CONFIG, stored("exr", "half", "/a.exr", metadata), None)
    assert "in the job" in (caught.value.hint or "")


def test_data_is_no_plate() -> None:
    with pytest.raises(ColourSpaceError):
        decide_space(CONFIG, image(colorInteropID="data"), None)


def test_studio_rules_come_after_the_tag_and_before_the_default(studio: ColourConfig) -> None:
    scan, render = "/show/scan.1001.exr", "/show/render.1001.exr"
    assert decide_space(studio, image(path=scan), None).source == "studio rules"
    assert decide_space(studio, image(path=scan), None).space == "scanlog"
    assert decide_space(studio, image(path=render), None).source == "default"
    assert decide_space(studio, image(path=scan, colorInteropID="plate"), None).source == "file tag"
    assert decide_space(studio, image(path=scan), "plate").source == "job"
    dpx = image("dpx", "uint10", "/show/scan.1001.dpx", **{"dpx:Transfer": "Logarithmic"})
    decision = decide_space(studio, dpx, None)
    assert (decision.space, decision.source) == ("scanlog", "studio rules")
    assert "Logarithmic" in decision.note


def test_rules_of_a_configuration_that_is_not_the_studios_do_not_count() -> None:
    """The built-in configuration has a rule for every .exr; it is no one's decision about this plate."""
    assert CONFIG.rule_for("/show/plate.1001.exr") is not None
    assert decide_space(CONFIG, image(), None).source == "default"


@pytest.mark.parametrize(
    ("file_format", "bit_depth", "space"),
    [
        ("exr", "half", "ACEScg"),
        ("exr", "float", "ACEScg"),
        ("tiff", "float", "ACEScg"),
        ("tiff", "uint16", "sRGB Encoded Rec.709 (sRGB)"),
        ("png", "uint8", "sRGB Encoded Rec.709 (sRGB)"),
        ("jpeg", "uint8", "sRGB Encoded Rec.709 (sRGB)"),
    ],
)
def test_defaults_say_that_they_assume(file_format: str, bit_depth: str, space: str) -> None:
    decision = decide_space(CONFIG, image(file_format, bit_depth), None)
    assert (decision.space, decision.source) == (space, "default")
    assert "assumed" in decision.note


@pytest.mark.parametrize(
    ("transfer", "bit_depth", "space"),
    [
        ("ADX", "uint10", "ADX10"),
        ("ADX", "uint16", "ADX16"),
        ("Printing density", "uint10", "ADX10"),
        ("Linear", "uint16", "ACEScg"),
        ("ITU-R 709-4", "uint10", "Camera Rec.709"),
    ],
)
def test_dpx_transfers(transfer: str, bit_depth: str, space: str) -> None:
    decision = decide_space(CONFIG, image("dpx", bit_depth, **{"dpx:Transfer": transfer}), None)
    assert (decision.space, decision.source) == (space, "file tag")
    assert ("assumed" in decision.note) == (transfer == "Printing density")


@pytest.mark.parametrize("metadata", [{}, {"dpx:Transfer": "Logarithmic"}, {"dpx:Transfer": "User defined"}])
def test_a_dpx_of_unknown_curve_asks(metadata: dict[str, Any]) -> None:
    with pytest.raises(ColourSpaceError, match="curve"):
        decide_space(CONFIG, stored("dpx", "uint10", "/a.dpx", metadata), None)


@pytest.mark.parametrize(
    ("metadata", "space", "source"),
    [
        ({"oiio:ColorSpace": "srgb_rec709_scene"}, "sRGB Encoded Rec.709 (sRGB)", "default"),
        ({"oiio:ColorSpace": "lin_rec709_scene"}, "Linear Rec.709 (sRGB)", "file tag"),
        ({"Exif:ColorSpace": 1, "oiio:ColorSpace": "srgb_rec709_scene"}, "sRGB Encoded Rec.709 (sRGB)", "file tag"),
        ({"ICCProfile:profile_description": "sRGB IEC61966-2.1"}, "sRGB Encoded Rec.709 (sRGB)", "file tag"),
        ({"ICCProfile:profile_description": "Display P3"}, "sRGB Encoded P3-D65", "file tag"),
        ({"ICCProfile:profile_description": "Adobe RGB (1998)"}, "Gamma 2.2 Encoded AdobeRGB", "file tag"),
    ],
)
def test_picture_tags(metadata: dict[str, Any], space: str, source: str) -> None:
    decision = decide_space(CONFIG, stored("png", "uint8", "/a.png", metadata), None)
    assert (decision.space, decision.source) == (space, source)


@pytest.mark.parametrize("metadata", [{"ICCProfile:profile_description": "My Scanner"}, {"oiio:ColorSpace": "martian"}])
def test_a_picture_tag_that_cannot_be_translated_stops_the_job(metadata: dict[str, Any]) -> None:
    with pytest.raises(ColourSpaceError, match=r"a\.tif"):
        decide_space(CONFIG, stored("tiff", "uint8", "/a.tif", metadata), None)


def test_tags_as_the_libraries_give_them(tmp_path: Path) -> None:
    """Names and types come from OpenEXR and OpenImageIO themselves, not from what this test believes of them."""
    exr = tmp_path / "a.exr"
    header = {"chromaticities": PRIMARIES["lin_rec2020_scene"], "compression": OpenEXR.ZIP_COMPRESSION}
    OpenEXR.File({**header, "type": OpenEXR.scanlineimage}, {"RGB": np.zeros((8, 8, 3), np.float16)}).write(str(exr))
    read = dict(OpenEXR.File(str(exr)).header())
    assert decide_space(CONFIG, stored("exr", "half", str(exr), read), None).space == "Linear Rec.2020"

    dpx = tmp_path / "a.dpx"
    spec = oiio.ImageSpec(8, 8, 3, "uint16")
    spec.attribute("dpx:Transfer", "Printing density")
    spec.attribute("oiio:BitsPerSample", 10)
    out = oiio.ImageOutput.create(str(dpx))
    assert out.open(str(dpx), spec)
    assert out.write_image(np.zeros((8, 8, 3), np.uint16))
    assert out.close()
    tags = {entry.name: entry.value for entry in oiio.ImageInput.open(str(dpx)).spec().extra_attribs}
    assert decide_space(CONFIG, stored("dpx", "uint10", str(dpx), tags), None).space == "ADX10"
