"""What OpenEXR reading and writing hand to each other and to their callers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float16] | NDArray[np.float32] | NDArray[np.uint32]

_HALF_MAX = 65504.0


@dataclass(frozen=True, slots=True, eq=False)
class ExrLayer:
    """Channels to add to a plate.

    Attributes:
        name: "matte" gives channels "matte.A" and so on; "" gives channels without a layer ("Z").
        channels: component ("A", "R", ...) to (H, W) float16, float32 or uint32, as large as the plate's data window;
            the type is the type in the file.
    """

    name: str
    channels: Mapping[str, Plane]

    def named(self) -> Iterator[tuple[str, Plane]]:
        """(name in the file, plane) of each channel."""
        for component, plane in self.channels.items():
            yield f"{self.name}.{component}" if self.name else component, plane

    def covers(self, channel: str) -> bool:
        """True when a channel with this name in the file belongs to this layer."""
        return channel.rpartition(".")[0] == self.name if self.name else channel in self.channels


@dataclass(frozen=True, slots=True, eq=False)
class ExrPart:
    """One part as it was read.

    Attributes:
        header: attributes in the binding's types.
        channels: without the plate's; (H, W), or (H, W, 3 or 4) under the layer's name.
    """

    header: Mapping[str, Any]
    channels: Mapping[str, Plane]


@dataclass(frozen=True, slots=True, eq=False)
class ExrCarrier:
    """All of an EXR file but the plate's pixels.

    Attributes:
        parts: in file order.
        plate: index of the part that holds the plate.
        originals: the plate's planes where their types differ and `pixels` is their common float32, else empty.
    """

    parts: tuple[ExrPart, ...]
    plate: int
    originals: Mapping[str, Plane]


def to_half(array: NDArray[Any]) -> NDArray[np.float16]:
    """float16 of any shape, with what exceeds half's range clamped to +-65504 instead of becoming inf; NaN stays.

    For *changed* values only: an inf of the plate has to be written as it was.
    """
    if array.dtype == np.float16:
        return array
    clamped: NDArray[np.float16] = np.clip(array, -_HALF_MAX, _HALF_MAX).astype(np.float16)
    return clamped
