"""Who a face becomes, in the form that a swapper takes."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import torch

from ...colour.model_view import decode_display, encode_display
from ...errors import IdentityError
from ...face import Identity, Portrait
from ...nets.swappers.base import Swapper
from .place import find_crop

Convert = Callable[[Identity, str], torch.Tensor | None]
"""(512,) of an identity in a space that it has no vector of, by a converter; None where there is none."""

_FULL = 65535.0


def source_of(identity: Identity, swapper: Swapper, convert: Convert) -> torch.Tensor:
    """What of the identity goes into the net, (1, ...) on its device.

    Raises:
        IdentityError: the identity lacks what this net takes.
    """
    if swapper.source_kind == "none":
        return swapper.source(torch.empty(0))
    if swapper.source_kind == "picture":
        return swapper.source(_picture(identity, *swapper.source_place))
    space = swapper.net.card.embedding
    vector = identity.embeddings.get(space)
    given = convert(identity, space) if vector is None else torch.from_numpy(np.array(vector, np.float32))
    if given is None:
        known = ", ".join(sorted(identity.embeddings)) or "none"
        raise IdentityError(
            f"identity {identity.name!r} says nothing that {swapper.net.card.id} understands",
            expected=f"an embedding of {space}",
            found=known,
            hint=f"add the recogniser or a converter to {space} (faceplate models add), and make the identity again",
        )
    return swapper.source(given)


def _picture(identity: Identity, template: str, size: int) -> torch.Tensor:
    """(3, size, size) sRGB-encoded 0..1, the photo that shows most of the face from the front."""
    if not identity.portraits:
        raise IdentityError(
            f"identity {identity.name!r} holds no photo", hint="make the identity again from photos of the person"
        )
    best = max(identity.portraits, key=lambda one: one.width_px * np.cos(np.deg2rad(one.yaw_deg)) ** 2)
    crop = find_crop(best.landmarks, template, size).cut(_decoded(best))
    return encode_display(crop).clamp_(0.0, 1.0)


def _decoded(portrait: Portrait) -> torch.Tensor:
    """(3, h, w) linear light of a portrait."""
    codes = cv2.imdecode(np.frombuffer(portrait.png, np.uint8), cv2.IMREAD_UNCHANGED)
    if codes is None or codes.dtype != np.uint16 or codes.ndim != 3:
        raise IdentityError("a photo inside the identity cannot be read", hint="make the identity again")
    rgb = torch.from_numpy(codes[..., ::-1].astype(np.float32) / _FULL).permute(2, 0, 1)
    return decode_display(rgb.contiguous()).mul_(portrait.white)
