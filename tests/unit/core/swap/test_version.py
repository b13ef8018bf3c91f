"""Results that change need another `MeshEngine.version`: manifests and headers tell frames apart by it.

What the engine makes of one crop is kept as means over blocks (`data/mesh_<version>.npz`), so that machines whose last
bits differ agree. Where a change of results is meant, raise the version, write the file of the new one with
`python -m tests.unit.core.swap.test_version` and drop the old one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from faceplate.demo.portrait import load_portrait, portrait_landmarks
from faceplate.swap.mesh.engine import MeshEngine
from faceplate.swap.mesh.texture import PhotoView, build_texture

from .conftest import crop_of, enlarged, identity_of, swap

DATA = Path(__file__).parent / "data"
BLOCKS = (20, 24)
CASES = {"plain": {}, "shaped": {"shape": 0.6, "keep_mouth": False, "keep_eyes": False, "colour": 0.5}}


def summaries() -> dict[str, np.ndarray]:
    """By case (8, 20, 24): means of picture, mattes and UV over blocks, and the mean change of the picture there."""
    picture, landmarks = load_portrait(), portrait_landmarks()
    prepared = MeshEngine().prepare(identity_of(build_texture([PhotoView(picture, landmarks)])))
    grain = np.random.default_rng(5).normal(1.0, 0.02, picture.shape)
    plate, moved = enlarged((picture[:, ::-1] * grain * 0.5).astype(np.float32), mirrored(landmarks, picture), 2.3)
    found = {}
    for name, settings in CASES.items():
        crop = crop_of(plate, moved, **settings)
        made = swap(crop, prepared)
        assert made.st is not None
        change = (made.edited - crop.view).abs().mean(0, keepdim=True)
        planes = torch.cat([made.edited, made.matte_core[None], made.matte_occluder[None], made.st, change])
        found[name] = torch.nn.functional.adaptive_avg_pool2d(planes[None], BLOCKS)[0].numpy()
    return found


def mirrored(landmarks: np.ndarray, picture: np.ndarray) -> np.ndarray:
    """The same landmarks where the face lies in the mirrored picture: they fit it as a stranger's would."""
    return (landmarks + np.float32([picture.shape[1] - 2 * landmarks[:468, 0].mean(), 0, 0])).astype(np.float32)


def test_results_change_with_the_version_only() -> None:
    path = DATA / f"mesh_{MeshEngine.version}.npz"
    assert [each.name for each in DATA.glob("mesh_*.npz")] == [path.name], "write the file of this version, drop others"
    with np.load(path) as kept:
        for name, made in summaries().items():
            np.testing.assert_allclose(
                made, kept[name], rtol=0, atol=1e-3, err_msg=f"{name}: results changed: raise MeshEngine.version"
            )


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    np.savez_compressed(DATA / f"mesh_{MeshEngine.version}.npz", **summaries())
