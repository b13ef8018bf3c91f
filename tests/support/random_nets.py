"""Random nets of the true signature as `Net`s, from memory or from a folder that a user might have."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import onnxruntime

from faceplate.models.card import ModelCard
from faceplate.models.catalogue import load_catalogue
from faceplate.models.device import Device
from faceplate.models.net import Net

CPU = Device("cpu", 0, "test")
WIDTH = 0.1
"""Narrow enough for a run in milliseconds."""


@cache
def known() -> dict[str, ModelCard]:
    return dict(load_catalogue())


def card_of(model_id: str, content: bytes, **changes: Any) -> ModelCard:
    """The card of a known net with a file of this content."""
    digest = hashlib.sha256(content).hexdigest()
    card = dataclasses.replace(known()[model_id], sha256=digest, bytes=len(content))
    return dataclasses.replace(card, file=card.files[0], **changes)


class _Session:
    """onnxruntime's, of a file whose batch is 1."""

    fixed_batch = True

    def __init__(self, content: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def net_of(model_id: str, content: bytes, **changes: Any) -> Net:
    """A net of a known card, run one crop after the other."""
    return Net(card_of(model_id, content, **changes), CPU, lambda: _Session(content), len(content))


def written(folder: Path, model_id: str, content: bytes) -> Path:
    """The file of a known net under its public name."""
    path = folder / known()[model_id].files[0]
    path.write_bytes(content)
    return path
