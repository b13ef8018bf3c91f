"""A person's vectors: what recognisers say of the photos, kept in the identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..face import Identity
from ..faces.recognise import References, Vector, face_vectors, unit_vector
from ..faces.view import LinearPlateView
from ..frame import Box
from ..nets.recognisers.arcface import ArcFace
from ..swap.mesh.texture import PhotoView

_PHOTO = "#"
"""Between the name of a space and the number of a photo, from 1: `w600k_r50#2`."""


def no_vectors(_: Sequence[PhotoView]) -> Mapping[str, Vector]:
    """Where no recogniser is installed."""
    return {}


def embed_views(recognisers: Sequence[ArcFace], views: Sequence[PhotoView]) -> dict[str, Vector]:
    """Unit vectors by name: under that of each recogniser's space the mean of all photos, which swappers take; where
    there are several, each photo's by itself too, as a reference to compare with.
    """
    found: dict[str, Vector] = {}
    for recogniser in recognisers:
        looks = [(_view(view), view.landmarks) for view in views]
        units = [unit_vector(vector) for vector in face_vectors(recogniser, looks)]
        found[recogniser.space] = unit_vector(np.mean(units, axis=0))
        if len(units) > 1:
            found |= {f"{recogniser.space}{_PHOTO}{number}": unit for number, unit in enumerate(units, 1)}
    return found


def _view(photo: PhotoView) -> LinearPlateView:
    height, width = photo.picture.shape[:2]
    return LinearPlateView(photo.picture, Box(0, 0, width, height))


def spaces(identity: Identity) -> list[str]:
    """Names of the spaces that an identity has vectors of."""
    return sorted(name for name in identity.embeddings if _PHOTO not in name)


def references(identity: Identity, space: str) -> References | None:
    """All vectors of a person in a space; None where there is none."""
    named = [name for name in sorted(identity.embeddings) if name.partition(_PHOTO)[0] == space]
    if not named:
        return None
    vectors: NDArray[np.float32] = np.stack([identity.embeddings[name] for name in named])
    return References(vectors, identity.name)
