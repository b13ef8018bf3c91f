"""Pictures for nets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import skimage.data
import torch
from numpy.typing import NDArray


def astronaut() -> NDArray[np.uint8]:
    """NASA's portrait, (512, 512, 3) RGB."""
    return np.asarray(skimage.data.astronaut(), np.uint8)  # type: ignore[no-untyped-call]


def as_tensor(picture: NDArray[np.uint8]) -> torch.Tensor:
    """(1, 3, h, w) float32 0..1 of an 8-bit picture."""
    return torch.from_numpy(picture.astype(np.float32) / 255).permute(2, 0, 1)[None].contiguous()


def write(folder: Path, name: str, content: bytes) -> str:
    """Path of a file with these bytes."""
    path = folder / name
    path.write_bytes(content)
    return str(path)
