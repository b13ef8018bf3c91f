"""Colour spaces of video against the formulas of the standards."""

from __future__ import annotations

import numpy as np
import PyOpenColorIO as ocio
import pytest
from numpy.typing import NDArray

from faceplate.colour.spaces import ColourConfig
from faceplate.colour.video import rgb_to_xyz, with_video_space
from faceplate.errors import ColourSpaceError


@pytest.fixture(scope="module")
def config() -> ColourConfig:
    return ColourConfig.open(None)


@pytest.fixture(autouse=True)
def no_studio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCIO", raising=False)


# OCIO joins the straight and the curved part without a bend, the standard in rounded numbers: 5e-5 near black.
def bt709(code: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(code < 0.081, code / 4.5, ((np.maximum(code, 0.081) + 0.099) / 1.099) ** (1 / 0.45))


def pq(code: NDArray[np.float64]) -> NDArray[np.float64]:
    """BT.2100-2 table 4, in units of 100 cd/m2."""
    m1, m2, c1, c2, c3 = 0.1593017578125, 78.84375, 0.8359375, 18.8515625, 18.6875
    power = code ** (1 / m2)
    return 100 * (np.maximum(power - c1, 0) / (c2 - c3 * power)) ** (1 / m1)


def hlg(code: NDArray[np.float64]) -> NDArray[np.float64]:
    """BT.2100-2 table 5: light of the 1000 cd/m2 display, in units of 100 cd/m2; (n, 3)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(code <= 0.5, code**2 / 3, (np.exp((np.maximum(code, 0.5) - c) / a) + b) / 12)
    luminance = scene @ [0.2627, 0.6780, 0.0593]
    return 10 * luminance[:, None] ** 0.2 * scene


CODES = np.linspace(0, 1, 257)


@pytest.mark.parametrize("primaries", ["bt709", "bt2020", "bt470bg", "smpte170m", "p3d65"])
@pytest.mark.parametrize(
    ("transfer", "formula"),
    [("bt709", bt709), ("pq", pq), ("gamma22", lambda code: code**2.2), ("linear", lambda code: code)],
)
def test_the_curve(config: ColourConfig, transfer: str, primaries: str, formula: object) -> None:
    more, name = with_video_space(config, transfer, primaries)
    grey = np.repeat(CODES[:, None], 3, 1).astype(np.float32)
    found = more.transform(name, "lin_rec709_scene").numpy(grey)
    wanted = formula(CODES)  # type: ignore[operator]
    np.testing.assert_allclose(found, np.repeat(wanted[:, None], 3, 1), rtol=2e-4, atol=6e-5)


@pytest.mark.parametrize("primaries", ["bt2020", "bt470bg", "smpte170m", "p3d65"])
def test_the_primaries(config: ColourConfig, primaries: str) -> None:
    more, name = with_video_space(config, "bt709", primaries)
    found = more.transform(name, "lin_rec709_scene").numpy(np.eye(3, dtype=np.float32))
    wanted = (np.linalg.inv(rgb_to_xyz("bt709")) @ rgb_to_xyz(primaries)).T
    np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_rgb_to_xyz_is_the_published_matrix() -> None:
    wanted = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    np.testing.assert_allclose(rgb_to_xyz("bt709"), wanted, atol=3e-4)


def test_hlg(config: ColourConfig) -> None:
    more, name = with_video_space(config, "hlg", "bt2020")
    codes = np.random.default_rng(2).uniform(0.05, 1, (200, 3))
    codes[:50] = codes[:50, :1]
    found = more.transform(name, "lin_rec2020_scene").numpy(codes.astype(np.float32))
    np.testing.assert_allclose(found, hlg(codes), rtol=1e-3, atol=1e-4)
    assert found.max() > 5  # light above 1 is kept


@pytest.mark.parametrize(
    ("transfer", "primaries"),
    [
        *(("bt709", primaries) for primaries in ("bt709", "bt2020", "bt470bg", "smpte170m", "p3d65")),
        *(("pq", "bt2020"), ("pq", "p3d65"), ("hlg", "bt2020"), ("srgb", "p3d65"), ("gamma28", "bt470bg")),
        *(("smpte240m", "smpte170m"), ("linear", "bt2020")),
    ],
)
def test_codes_come_back(config: ColourConfig, transfer: str, primaries: str) -> None:
    more, name = with_video_space(config, transfer, primaries)
    codes = np.random.default_rng(3).uniform(0.02, 1.0, (2000, 3)).astype(np.float32)
    linear = more.linear_twin(name)
    assert linear in config.names
    back = more.transform(linear, name).numpy(more.transform(name, linear).numpy(codes))
    np.testing.assert_allclose(back, codes, atol=1.0 / 65535)  # a code of 16 bits


def test_a_space_that_is_there_is_taken(config: ColourConfig) -> None:
    assert with_video_space(config, "bt709", "bt709") == (config, "Camera Rec.709")
    assert with_video_space(config, "pq", "bt2020") == (config, "Rec.2100-PQ - Display")


@pytest.mark.parametrize(
    ("transfer", "primaries"), [("", "bt709"), ("bt709", ""), ("hlg", "bt709"), ("bt709", "p3dci")]
)
def test_no_name(config: ColourConfig, transfer: str, primaries: str) -> None:
    with pytest.raises(ColourSpaceError, match="no name"):
        with_video_space(config, transfer, primaries)


def studio_config(tmp_path: object) -> ColourConfig:
    """A small studio's configuration: two spaces, none of video."""
    made = ocio.Config.CreateRaw()
    made.addColorSpace(ocio.ColorSpace(name="house linear", aliases=["lin_rec709_scene"], isData=False))
    made.setRole("scene_linear", "house linear")
    path = f"{tmp_path}/house.ocio"
    with open(path, "w", encoding="utf-8") as file:
        file.write(made.serialize())
    return ColourConfig.open(path)


@pytest.mark.parametrize(("transfer", "formula"), [("bt709", bt709), ("pq", pq)])
def test_a_configuration_without_video(tmp_path: object, transfer: str, formula: object) -> None:
    config = studio_config(tmp_path)
    more, name = with_video_space(config, transfer, "bt709")
    grey = np.repeat(CODES[:, None], 3, 1).astype(np.float32)
    found = more.transform(name, "house linear").numpy(grey)[:, 0]
    np.testing.assert_allclose(found, formula(CODES), rtol=2e-4, atol=6e-5)  # type: ignore[operator]
    assert more.name == config.name
