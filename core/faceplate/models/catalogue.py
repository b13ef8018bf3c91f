"""Reads the cards of the nets from `catalogue.toml`."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import ModelError
from .card import ModelCard, Source, TensorSpec

_SHA256 = re.compile(r"[0-9a-f]{64}")
_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool}


def data_folder() -> Path:
    """The folder of the shipped nets and their catalogue."""
    return Path(str(resources.files(__package__))) / "data"


def load_catalogue(path: Path | None = None) -> Mapping[str, ModelCard]:
    """The cards in a catalogue, by id, in the file's order.

    Args:
        path: a catalogue; None for the shipped one.

    Raises:
        ModelError: no such file, no TOML, a card with a missing, unknown or malformed entry.
    """
    path = path or data_folder() / "catalogue.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(
            f"the model catalogue {path} cannot be read", found=str(error), hint="reinstall Faceplate"
        ) from error
    cards = [_card(path, model_id, entry) for model_id, entry in document.items()]
    return MappingProxyType({card.id: card for card in cards})


def _card(path: Path, model_id: str, entry: object) -> ModelCard:
    where = f"{path.name}: {model_id}"
    values = dict(_table(where, entry))
    values["source"] = Source(**_checked(f"{where}.source", Source, values.get("source")))
    for key in ("inputs", "outputs"):
        values[key] = tuple(_spec(f"{where}.{key}", item) for item in _list(f"{where}.{key}", values.get(key)))
    values["notes"] = tuple(str(note) for note in _list(f"{where}.notes", values.get("notes")))
    for key in ("mean", "std"):
        values[key] = _triple(f"{where}.{key}", values.get(key))
    card = ModelCard(**_checked(where, ModelCard, {"id": model_id, **values}))
    for name, value in (("sha256", card.sha256), ("source.sha256", card.source.sha256)):
        if not _SHA256.fullmatch(value):
            raise _bad(f"{where}.{name}", "64 lower-case hex digits", value)
    if card.bytes <= 0 or Path(card.file).name != card.file:
        raise _bad(where, "a bare file name and its size", f"{card.file}, {card.bytes} bytes")
    return card


def _spec(where: str, entry: object) -> TensorSpec:
    values = dict(_table(where, entry))
    shape = _list(f"{where}.shape", values.get("shape"))
    if not all(isinstance(size, int) and size > 0 for size in shape):
        raise _bad(f"{where}.shape", "whole numbers above 0", str(shape))
    values["shape"] = tuple(shape)
    spec = TensorSpec(**_checked(where, TensorSpec, values))
    if len(spec.layout) != len(spec.shape) + 1:
        raise _bad(f"{where}.layout", f"{len(spec.shape) + 1} letters", spec.layout)
    return spec


def _checked(where: str, kind: type[Any], entry: object) -> dict[str, Any]:
    """The table with exactly the fields of `kind`; strings non-empty, numbers and truths of the right type."""
    values = _table(where, entry)
    fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if set(values) != set(fields):
        wrong = ", ".join(sorted(set(values) ^ set(fields)))
        raise _bad(where, f"the entries {', '.join(fields)}", f"missing or unknown: {wrong}")
    for name, type_name in fields.items():
        expected = _TYPES.get(type_name)
        value = values[name]
        # Not isinstance: true would pass as a whole number.
        if expected is not None and (type(value) is not expected or value == ""):
            raise _bad(f"{where}.{name}", type_name, repr(value))
    return dict(values)


def _table(where: str, entry: object) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise _bad(where, "a table", repr(entry))
    return entry


def _list(where: str, entry: object) -> Sequence[Any]:
    if not isinstance(entry, list) or not entry:
        raise _bad(where, "a list that is not empty", repr(entry))
    return entry


def _triple(where: str, entry: object) -> tuple[float, float, float]:
    values = _list(where, entry)
    if len(values) != 3 or not all(isinstance(value, (int, float)) for value in values):
        raise _bad(where, "three numbers", repr(entry))
    return float(values[0]), float(values[1]), float(values[2])


def _bad(where: str, expected: str, found: str) -> ModelError:
    return ModelError(
        f"the model catalogue has a wrong entry, {where}", expected=expected, found=found, hint="correct the card"
    )
