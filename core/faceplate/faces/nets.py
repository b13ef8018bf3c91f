"""The nets that find and measure faces, and how a picture is handed to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from ..models.card import ModelCard
from ..models.sessions import SessionPool
from .view import Picture

DETECTOR_ID = "face_detector"
MESH_ID = "face_mesh_attention"


class Net(Protocol):
    """What this package needs of `models.sessions.Net`."""

    @property
    def card(self) -> ModelCard: ...

    def run(self, inputs: Mapping[str, NDArray[np.float32]]) -> Mapping[str, NDArray[np.float32]]: ...


@dataclass(frozen=True, slots=True)
class FaceNets:
    """The nets that analysis runs.

    Attributes:
        detector: `image` to `regressors` (N, 2304, 16) and `scores` (N, 2304, 1).
        mesh: `image` to `landmarks` (N, 478, 3) in crop px and `presence` (N, 1).
    """

    detector: Net
    mesh: Net

    @classmethod
    def load(cls, pool: SessionPool) -> FaceNets:
        """The nets that ship with Faceplate.

        Raises:
            ModelError: a net's file is absent or damaged.
            DeviceError: the device cannot run them.
        """
        return cls(pool.get(DETECTOR_ID), pool.get(MESH_ID))

    def hashes(self) -> dict[str, str]:
        """SHA-256 of each net's file by its id."""
        return {net.card.id: net.card.sha256 for net in (self.detector, self.mesh)}


def to_input(pictures: Sequence[Picture], card: ModelCard) -> NDArray[np.float32]:
    """Equal-sized 0..1 pictures (h, w, 3) as one batch (N, 3, h, w), scaled as the card asks."""
    batch = np.empty((len(pictures), 3, *pictures[0].shape[:2]), np.float32)
    for planes, picture in zip(batch, pictures, strict=True):
        cv2.split(picture, list(planes))
        for plane, mean, std in zip(planes, card.mean, card.std, strict=True):
            plane -= np.float32(mean)
            plane /= np.float32(std)
    return batch


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logistic function, safe for any logit."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -80.0, 80.0))), np.float32)
