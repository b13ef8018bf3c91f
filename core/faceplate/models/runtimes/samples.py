"""Inputs to try a net with, and how far two runs of it are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..card import ModelCard
from ..net import sample_shape

Arrays = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Error:
    """How far numbers are from those in float32, over all outputs.

    Attributes:
        rms: root of the mean square, as a share of the outputs' own deviation.
        most: largest, in the same unit.
    """

    rms: float
    most: float

    def __str__(self) -> str:
        return f"rms error {100 * self.rms:.2g} %, most {100 * self.most:.2g} % of the output's deviation"


def sample(card: ModelCard, batch: int = 1, seed: int = 0, side: int = 256) -> Arrays:
    """Seeded inputs as a picture would give them: smooth, with some grain, scaled as the card says; vectors of length
    1; other numbers 0.5. Lengths that are free are `side`.
    """
    random = np.random.default_rng(seed)
    return {spec.name: _one(card, spec.layout, (batch, *sample_shape(spec, side)), random) for spec in card.inputs}


def _one(card: ModelCard, layout: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.float32]:
    if layout in ("NCHW", "NHWC"):
        return _pictures(card, layout, shape, random)
    if shape[-1] > 1 and len(shape) == 2:
        vectors = random.standard_normal(shape)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)
    return np.full(shape, 0.5, np.float32)


def _pictures(card: ModelCard, layout: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.float32]:
    import cv2

    height, width, channels = (shape[2], shape[3], shape[1]) if layout == "NCHW" else (*shape[1:3], shape[3])
    pictures = np.empty((shape[0], height, width, channels), np.float32)
    for picture in pictures:
        coarse = random.random((7, 7, channels), np.float32)
        smooth = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)
        grain = random.standard_normal((height, width, channels), np.float32)
        picture[:] = np.clip(smooth.reshape(height, width, channels) + np.float32(0.02) * grain, 0, 1)
    if channels == len(card.mean):
        pictures -= np.asarray(card.mean, np.float32)
        pictures /= np.asarray(card.std, np.float32)
        pictures = pictures[..., ::-1] if card.colour_order == "BGR" else pictures
    ordered = pictures.transpose(0, 3, 1, 2) if layout == "NCHW" else pictures
    return np.ascontiguousarray(ordered, np.float32)


def difference(found: Mapping[str, Any], reference: Mapping[str, Any]) -> Error:
    """Of a run from one in float32."""
    squares = most = count = 0.0
    for name, wanted in reference.items():
        # A flat output has no deviation of its own: its size counts instead.
        scale = float(np.std(wanted)) or float(np.abs(wanted).max()) or 1.0
        apart = np.abs(np.asarray(found[name], np.float64) - wanted) / scale
        squares, count, most = squares + float((apart**2).sum()), count + apart.size, max(most, float(apart.max()))
    return Error((squares / count) ** 0.5, most)
