"""Nets that say where the face is, and is not covered: XSeg, and the occluder of Rope and VisoMaster."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from ..base import TensorNet, Tensors, matte_out, need_kind, picture_in
from ..filters import gaussian
from ..through import resized

KINDS = ("xseg", "occluder")
_SIGMA = 5.0


class FaceMatte:
    """A matte of the kinds "xseg" (0..1) and "occluder" (logits), 1 on the face.

    Args:
        net: input `input`, output `output`.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet) -> None:
        need_kind(net, *KINDS)
        self.net = net

    def pre(self, crops: torch.Tensor) -> Tensors:
        """`input`: (N, 3, h, w) crops brought to the net's size, channels and axes in its order."""
        return {"input": picture_in(resized(crops, self.net.card.size), self.net.card)}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, size, size) 0..1; logits through the sigmoid, so that half lies where their authors cut."""
        output = outputs["output"]
        return matte_out(output.sigmoid() if self.net.card.kind == "occluder" else output, self.net.card)

    def matte(self, crops: torch.Tensor) -> torch.Tensor:
        """(N, h, w) 0..1 of (N, 3, h, w) crops of the same size."""
        found = self.post(self.run(self.pre(crops)))
        size = crops.shape[-1]
        return resized(found[:, None], size)[:, 0].clamp(0.0, 1.0)


def pulled_in(mattes: torch.Tensor, sigma: float = _SIGMA) -> torch.Tensor:
    """Mattes softened, and cut so that the soft edge lies inside the face, as FaceFusion and DeepFaceLab do it.

    Args:
        mattes: (N, h, w) 0..1.
        sigma: of the Gaussian, px.

    Returns:
        (N, h, w) 0..1: 0 up to half of the softened one, then rising to 1.
    """
    soft = gaussian(mattes[:, None], sigma)[:, 0] if sigma > 0 else mattes
    return ((soft.clamp(0.5, 1.0) - 0.5) * 2.0).clamp_(0.0, 1.0)
