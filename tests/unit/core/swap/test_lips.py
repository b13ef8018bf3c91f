"""Lips in the plate's light: no brighter for the stubble around them."""

from __future__ import annotations

import numpy as np
import torch

from faceplate.face import FaceTexture
from faceplate.faces.zones import ZONE_SIZE, zones
from faceplate.swap.mesh.engine import MeshEngine
from faceplate.swap.mesh.light import hold_lips

from .conftest import crop_of, enlarged, identity_of, result_of, swap

Photo = tuple[np.ndarray, np.ndarray]
SIDE = 64
FACE_PX = 60.0


def spot() -> torch.Tensor:
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    return ((x - 32) ** 2 + (y - 32) ** 2 < 10**2).float()


def flat(*colour: float) -> torch.Tensor:
    return torch.tensor(colour)[:, None, None].expand(3, SIDE, SIDE).clone()


def test_a_gain_that_fits_is_left_alone() -> None:
    view, lips = flat(0.3, 0.2, 0.1), spot()
    gain = flat(1.0, 1.0, 1.0)
    torch.testing.assert_close(hold_lips(gain, view, view, lips, lips, FACE_PX, 1.0), gain)
    darker = hold_lips(gain, view, 0.5 * view, lips, lips, FACE_PX, 1.0)
    torch.testing.assert_close(darker, gain)


def test_too_much_gain_is_taken_back_on_the_lips_only_and_in_all_channels_alike() -> None:
    view, lips = flat(0.3, 0.2, 0.1), spot()
    gain = flat(1.3, 1.2, 1.1)
    held = hold_lips(gain, view, flat(0.3, 0.2, 0.1), lips, lips, FACE_PX, 1.0)
    lit, seen = (held * view).mean(0), view.mean(0)
    assert abs(float(lit[32, 32] / seen[32, 32]) - 1.0) < 0.02
    torch.testing.assert_close(held[:, 32, 32] / held[1, 32, 32], gain[:, 32, 32] / gain[1, 32, 32])
    assert torch.equal(held[:, lips == 0], gain[:, lips == 0])


def test_no_more_than_a_share_is_taken_back() -> None:
    lips = spot()
    held = hold_lips(flat(1, 1, 1), flat(0.01, 0.01, 0.01), flat(0.5, 0.5, 0.5), lips, lips, FACE_PX, 1.0)
    assert abs(float(held[0, 32, 32]) - 0.6) < 1e-5


def test_it_follows_the_exposure() -> None:
    generator = torch.Generator().manual_seed(0)
    view, source = (torch.rand(3, SIDE, SIDE, generator=generator) for _ in range(2))
    gain, lips = torch.rand(3, SIDE, SIDE, generator=generator) + 1.0, spot()
    held = hold_lips(gain, view, source, lips, lips, FACE_PX, 1.0)
    bright = hold_lips(4.0 * gain, 4.0 * view, source, lips, lips, FACE_PX, 1.0)
    torch.testing.assert_close(bright, 4.0 * held)


def test_a_beard_does_not_light_the_lips_up(photo: Photo, texture: FaceTexture) -> None:
    plate, landmarks = enlarged(*photo, 2.0)
    v = (np.arange(ZONE_SIZE, dtype=np.float32)[:, None] + 0.5) / ZONE_SIZE
    beard = np.clip((v - 0.52) / 0.03, 0.0, 1.0) * (1.0 - zones().lips)
    size = texture.colour.shape[0]
    large = np.kron(beard, np.ones((size // ZONE_SIZE, size // ZONE_SIZE), np.float32))[..., None]
    colour = np.asarray(texture.colour, np.float32)
    bearded = FaceTexture((colour * (1.0 - 0.5 * large)).astype(np.float16), texture.coverage, texture.detail_px)
    crop = crop_of(plate, landmarks, detail=0.0)
    made = result_of(crop, swap(crop, MeshEngine().prepare(identity_of(bearded)))).mean(0)
    x, y = (landmarks[[17, 14], :2].mean(0) - [crop.window.x0, crop.window.y0]).astype(int)
    around = np.s_[y - 2 : y + 3, x - 8 : x + 9]
    assert float(made[around].mean() / crop.view.mean(0)[around].mean()) < 1.12
