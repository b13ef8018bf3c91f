"""A user's net in eight bits, its ranges measured on the faces of identities."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ..colour.model_view import encode_display
from ..errors import ModelError
from ..face import Identity
from ..identity.file import IdentityFile, PhotoRecord, read_identity
from ..identity.photo_picture import decode_crop
from ..models.card import ModelCard
from ..models.runtimes.int8 import quantise
from ..models.runtimes.samples import Arrays, Error, sample
from ..models.sessions import SessionPool
from ..models.user import add_made
from ..nets.base import picture_in
from ..nets.templates import cut, five_points, place


def quantise_model(
    model_id: str, identities: Sequence[Path], pool: SessionPool, folder: Path, by: str
) -> tuple[ModelCard, Error]:
    """Make `ID_int8` of a net among the user's models.

    Args:
        model_id: of a net that is here and takes an aligned crop.
        identities: .fpid files whose photos are the crops.
        pool: store and device.
        folder: of the user's models.
        by: the user.

    Raises:
        ModelError: the net takes no crop, there are too few photos, or it cannot be quantised.
        IdentityError: an identity cannot be read.
    """
    card, path = pool.store.card(model_id), pool.store.path(model_id)
    if not card.template or not card.size:
        raise ModelError(
            f"model {card.id} takes no aligned crop of a face", hint="quantise a swapper, restorer or recogniser"
        )
    files = [read_identity(one) for one in identities]
    samples = [_sample(card, file, photo) for file in files for photo in file.photos]
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / f"{card.id}_int8.onnx"
        error = quantise(card, path, samples, made, pool.device)
        changes = {"precision": f"int8 ({error})", "title": f"{card.title}, int8"}
        return add_made(card, made, f"{card.id}_int8", folder, by, changes), error


def _sample(card: ModelCard, file: IdentityFile, photo: PhotoRecord) -> Arrays:
    """One photo as the net takes it; the person's vector where it takes one, else what `sample` gives."""
    given = sample(card)
    picture = torch.from_numpy(decode_crop(photo.crop_png, photo.crop_white)).permute(2, 0, 1).contiguous()
    crop = cut(picture, place(five_points(photo.landmarks), card.template, card.size), card.size)
    display = encode_display(crop).clamp(0.0, 1.0)[None]
    for index, spec in enumerate(card.inputs):
        if spec.layout in ("NCHW", "NHWC") and card.size in spec.shape:
            given[spec.name] = picture_in(display, card, index).numpy()
        elif spec.shape == (512,):
            given[spec.name] = _vector(card, file.identity, given[spec.name])
    return given


def _vector(card: ModelCard, identity: Identity, otherwise: NDArray[np.float32]) -> NDArray[np.float32]:
    vector = identity.embeddings.get(card.embedding)
    return otherwise if vector is None else np.asarray(vector, np.float32)[None]
