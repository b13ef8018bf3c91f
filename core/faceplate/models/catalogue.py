"""Reads the cards of the nets from the TOML files in `data`."""

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
_TYPES: dict[str, type] = {"str": str, "int": int}
_DTYPES = ("float32", "float16", "float64", "int64")
_CHANNELS = 3


def data_folder() -> Path:
    """The folder of the shipped nets and their catalogue."""
    return Path(str(resources.files(__package__))) / "data"


def load_catalogue(path: Path | None = None) -> Mapping[str, ModelCard]:
    """Cards by id, in the files' order.

    Args:
        path: one file; None for all that Faceplate brings: `catalogue.toml` with the nets that ship, then the others
            by name, with nets that are known and not here.

    Raises:
        ModelError: no such file, no TOML, a card with a missing, unknown or malformed entry, an id given twice.
    """
    if path is not None:
        return MappingProxyType(read_cards(path))
    first = data_folder() / "catalogue.toml"
    cards: dict[str, ModelCard] = {}
    for file in (first, *sorted(set(data_folder().glob("*.toml")) - {first})):
        for model_id, card in read_cards(file).items():
            if model_id in cards:
                raise _bad(f"{file.name}: {model_id}", "an id of its own", "another file has it too")
            cards[model_id] = card
    return MappingProxyType(cards)


def read_cards(path: Path) -> dict[str, ModelCard]:
    """The cards in one file, by id.

    Raises:
        ModelError: as `load_catalogue`.
    """
    return {model_id: parse_card(path.name, model_id, entry) for model_id, entry in read_toml(path).items()}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a catalogue file.

    Raises:
        ModelError: no such file, no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        hint = "reinstall Faceplate" if path.parent == data_folder() else "correct the file, or add the model again"
        raise ModelError(f"the model catalogue {path} cannot be read", found=str(error), hint=hint) from error


def parse_card(file: str, model_id: str, entry: object) -> ModelCard:
    """The card that a table of a catalogue file describes.

    Args:
        file: name, for the error.
        model_id: key of the table.
        entry: the table.

    Raises:
        ModelError: an entry is missing, unknown or malformed.
    """
    where = f"{file}: {model_id}"
    values = dict(_table(where, entry))
    values["source"] = Source(**_checked(f"{where}.source", Source, values.get("source")))
    for key in ("inputs", "outputs"):
        values[key] = tuple(_spec(f"{where}.{key}", item) for item in _list(f"{where}.{key}", values.get(key)))
    values["notes"] = tuple(str(note) for note in _any_list(f"{where}.notes", values.get("notes")))
    for key in ("files", "hashes"):
        values[key] = tuple(str(item) for item in _list(f"{where}.{key}", values[key])) if key in values else ()
    for key, count in (("mean", 3), ("std", 3), ("output_range", 2)):
        if key in values or count == _CHANNELS:
            values[key] = _numbers(f"{where}.{key}", values.get(key), count)
    card = ModelCard(**_checked(where, ModelCard, {"id": model_id, **values}))
    _check_file(where, card)
    return card


def _check_file(where: str, card: ModelCard) -> None:
    named = [("sha256", card.sha256), ("source.sha256", card.source.sha256), *(("hashes", one) for one in card.hashes)]
    for name, value in named:
        if value and not _SHA256.fullmatch(value):
            raise _bad(f"{where}.{name}", "64 lower-case hex digits", value)
    names = (card.file, *card.files)
    if card.is_here != (card.bytes > 0) or not any(names) or any(Path(name).name != name for name in names):
        raise _bad(where, "bare file names, and the size with the hash", f"{', '.join(names)}, {card.bytes} bytes")
    if card.commercial not in (True, False, "unknown"):
        raise _bad(f"{where}.commercial", 'true, false or "unknown"', repr(card.commercial))


def _spec(where: str, entry: object) -> TensorSpec:
    values = dict(_table(where, entry))
    shape = _any_list(f"{where}.shape", values.get("shape"))
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise _bad(f"{where}.shape", "whole numbers, 0 for any", str(shape))
    values["shape"] = tuple(shape)
    spec = TensorSpec(**_checked(where, TensorSpec, values))
    if len(spec.layout) != len(spec.shape) + spec.batched:
        raise _bad(f"{where}.layout", f"{len(spec.shape) + spec.batched} letters", spec.layout)
    if spec.dtype not in _DTYPES:
        raise _bad(f"{where}.dtype", " or ".join(_DTYPES), spec.dtype)
    return spec


def _checked(where: str, kind: type[Any], entry: object) -> dict[str, Any]:
    """The table with the fields of `kind`, all but those with a default; numbers and truths of the right type, and
    strings that must be there are not empty.
    """
    values = _table(where, entry)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    needed = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
    wrong = (needed - set(values)) | (set(values) - set(fields))
    if wrong:
        raise _bad(where, f"the entries {', '.join(fields)}", f"missing or unknown: {', '.join(sorted(wrong))}")
    for name, value in values.items():
        expected = _TYPES.get(str(fields[name].type))
        # Not isinstance: true would pass as a whole number.
        if expected is not None and (
            type(value) is not expected or (value == "" and name in needed and name != "layout")
        ):
            raise _bad(f"{where}.{name}", str(fields[name].type), repr(value))
    return dict(values)


def _table(where: str, entry: object) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise _bad(where, "a table", repr(entry))
    return entry


def _list(where: str, entry: object) -> Sequence[Any]:
    if not _any_list(where, entry):
        raise _bad(where, "a list that is not empty", repr(entry))
    return _any_list(where, entry)


def _any_list(where: str, entry: object) -> Sequence[Any]:
    if not isinstance(entry, list):
        raise _bad(where, "a list", repr(entry))
    return entry


def _numbers(where: str, entry: object, count: int) -> tuple[float, ...]:
    values = _list(where, entry)
    if len(values) != count or not all(isinstance(value, int | float) for value in values):
        raise _bad(where, f"{count} numbers", repr(entry))
    return tuple(float(value) for value in values)


def _bad(where: str, expected: str, found: str) -> ModelError:
    return ModelError(
        f"the model catalogue has a wrong entry, {where}", expected=expected, found=found, hint="correct the card"
    )
