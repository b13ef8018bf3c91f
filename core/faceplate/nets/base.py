"""What adapters work on, and how a picture goes into a net and comes out of it.

An adapter is a small class `Thing(net: TensorNet)` with `pre(...) -> dict[str, Tensor]` (what the net gets, by the
names on its card), `run(inputs) -> dict[str, Tensor]` and `post(outputs, ...)`, and one that chains them. Between
adapters, all float32 on the net's device: pictures (N, 3, h, w) RGB, sRGB-encoded, 0..1; mattes (N, h, w), 0..1; points
(N, P, 2) x, y in px of the crop, the centre of the first pixel at 0.5. Size, template, mean, std, channel order, layout
and range come from the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch

from ..errors import ModelError
from ..models.card import ModelCard, TensorSpec
from ..models.device import Device

Tensors = dict[str, torch.Tensor]


class TensorNet(Protocol):
    """What an adapter needs of `models.net.Net`."""

    @property
    def card(self) -> ModelCard: ...

    @property
    def device(self) -> Device: ...

    def run_tensors(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """(N, ...) float32 by name on the net's device, in and out."""
        ...


def torch_device(net: TensorNet) -> torch.device:
    """Where the tensors of a net lie."""
    return torch.device(net.device.torch_name)


def need_kind(net: TensorNet, *kinds: str) -> None:
    """Make sure that an adapter got a net that it serves.

    Raises:
        ModelError: the card names another kind.
    """
    if net.card.kind not in kinds:
        raise ModelError(
            f"model {net.card.id} cannot be used as {net.card.role} of this kind",
            expected=" or ".join(kinds),
            found=net.card.kind or "none",
            hint="faceplate models list names the role and kind of each model",
        )


def picture_in(pictures: torch.Tensor, card: ModelCard, index: int = 0, spec: TensorSpec | None = None) -> torch.Tensor:
    """Pictures as a net takes them: (picture - mean) / std, channels and axes in the card's order.

    Args:
        pictures: (N, 3, h, w) float32 RGB, sRGB-encoded 0..1.
        card: of the net.
        index: which of its inputs.
        spec: the input, None for the one at `index`.
    """
    spec = spec or card.inputs[index]
    mean = pictures.new_tensor(card.mean).view(3, 1, 1)
    std = pictures.new_tensor(card.std).view(3, 1, 1)
    scaled = (pictures - mean) / std
    scaled = scaled.flip(1) if card.colour_order == "BGR" else scaled
    return scaled.permute(0, 2, 3, 1).contiguous() if spec.layout == "NHWC" else scaled


def picture_out(
    output: torch.Tensor, card: ModelCard, index: int = 0, output_range: tuple[float, float] | None = None
) -> torch.Tensor:
    """A net's picture as ours: (N, 3, h, w) float32 RGB, sRGB-encoded; the card's range becomes 0..1, and is clipped.

    Args:
        output: as the net gave it.
        card: of the net.
        index: which of its outputs.
        output_range: values of black and white, None for the card's.
    """
    low, high = output_range or card.output_range
    planes = output.permute(0, 3, 1, 2) if card.outputs[index].layout == "NHWC" else output
    planes = planes.flip(1) if card.colour_order == "BGR" and planes.shape[1] == 3 else planes
    return ((planes - low) / (high - low)).clamp(0.0, 1.0)


def matte_out(output: torch.Tensor, card: ModelCard, index: int = 0) -> torch.Tensor:
    """A net's single-channel picture (N, 1, h, w), (N, h, w, 1) or (N, h, w) as a matte (N, h, w), clipped to 0..1."""
    layout = card.outputs[index].layout
    plane = output[..., 0] if layout == "NHWC" else output[:, 0] if layout == "NCHW" else output
    return plane.clamp(0.0, 1.0)
