"""Static quantisation to eight bits: ranges measured on the user's own crops, the error said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelError
from ..card import ModelCard
from ..device import Device
from .opening import measure, open_session
from .samples import Arrays, Error

FEWEST_SAMPLES = 4
"""Crops below which ranges mean nothing."""


class _Reader:
    """The samples as onnxruntime's calibration asks for them: one at a time, by names in the file."""

    def __init__(self, card: ModelCard, samples: Sequence[Arrays]) -> None:
        names = {spec.name: spec.file_name for spec in card.inputs}
        self._left: Iterator[dict[str, Any]] = iter(
            [{names[name]: value for name, value in one.items()} for one in samples]
        )

    def get_next(self) -> dict[str, Any] | None:
        return next(self._left, None)


def quantise(card: ModelCard, path: Path, samples: Sequence[Arrays], output: Path, device: Device) -> Error:
    """Write a net whose convolutions compute in int8, and say how far it is from float32.

    Convolutions alone, each channel with its own scale; the last quarter of the samples is held back to measure on.

    Args:
        card: of the net in float32.
        path: of its file.
        samples: inputs by name on the card, float32, batch 1.
        output: file to write.
        device: to measure on.

    Raises:
        ModelError: too few samples, or a net that cannot be quantised.
    """
    if len(samples) < FEWEST_SAMPLES:
        raise ModelError(
            f"model {card.id} cannot be quantised on {len(samples)} crops",
            expected=f"at least {FEWEST_SAMPLES}, better a hundred from the shots it will be used on",
            found=str(len(samples)),
            hint="give more identities, or identities of more photos",
        )
    held_back = max(1, len(samples) // 4)
    _quantise(card, path, samples[:-held_back], output)
    made, whole = (open_session(card, one, device, 0) for one in (output, path))
    test = samples[-held_back:]
    together = {name: np.concatenate([one[name] for one in test]) for name in test[0]}
    return measure(card, made, whole, together)


def _quantise(card: ModelCard, path: Path, samples: Sequence[Arrays], output: Path) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    try:
        quantize_static(
            str(path),
            str(output),
            _Reader(card, samples),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
            op_types_to_quantize=["Conv"],
        )
    except Exception as error:  # of onnx and onnxruntime: no common base
        raise ModelError(
            f"model {card.id} cannot be quantised", found=str(error), hint="use it in float32 or bfloat16"
        ) from error
