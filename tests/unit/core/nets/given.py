"""A net that is only its card, for what an adapter does before and after; and a face in a crop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from faceplate.models.card import ModelCard
from faceplate.models.device import Device
from faceplate.nets.templates import five_points, template_points
from tests.support.random_nets import CPU, known

DATA = Path(__file__).parents[4] / "core" / "faceplate" / "demo" / "data"
Run = Callable[[Mapping[str, torch.Tensor]], dict[str, torch.Tensor]]


class Given:
    """A net of a known card that answers what a test says, and keeps what it was asked."""

    def __init__(self, model_id: str, run: Run | None = None) -> None:
        self.card: ModelCard = known()[model_id]
        self.device: Device = CPU
        self.asked: list[dict[str, torch.Tensor]] = []
        self._run = run

    def run_tensors(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self.asked.append(dict(inputs))
        assert self._run is not None, "not to be run"
        return self._run(inputs)


def points_in(size: int, template: str = "arcface_128", count: int = 1) -> torch.Tensor:
    """(count, 5, 2) px of a face that lies as in a template's crop of this size."""
    return template_points(template, size).expand(count, 5, 2)


def turned_points(size: int) -> torch.Tensor:
    """(1, 5, 2) px: smaller, turned by ten degrees, off the middle."""
    angle = np.deg2rad(10)
    turn = torch.tensor([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = points_in(size)
    middle = points.mean(1, keepdim=True)
    return (points - middle) @ turn.T * 0.8 + middle + 3.0


def picture(size: int, seed: int = 0) -> torch.Tensor:
    """(1, 3, size, size), smooth, all of 0..1 used."""
    noise = torch.from_numpy(np.random.default_rng(seed).random((1, 3, 9, 9), np.float32))
    return torch.nn.functional.interpolate(noise, (size, size), mode="bicubic", align_corners=False).clamp(0.05, 0.95)


def landmarks() -> NDArray[np.float32]:
    """(478, 3), px, of NASA's portrait."""
    document = json.loads((DATA / "astronaut_landmarks.json").read_text("utf-8"))
    points = np.asarray(document["points"], np.float32)
    return points.reshape(478, -1)


def portrait_points() -> torch.Tensor:
    """(1, 5, 2) px of NASA's portrait."""
    return five_points(landmarks())[None]
