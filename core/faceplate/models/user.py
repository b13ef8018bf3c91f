"""The user's model folder: files that were added, each with a record of what it is and of the licence that was taken.

A record is a TOML file `ID.toml` with one table: `base` names the known card that it completes; every other entry of a
card may stand there and counts more. `nodes` gives names in the file, `dtypes` types, `shapes` lengths that the known
card leaves free, by name on the card. `[ID.taken]` says who took which licence, and when.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import ModelError
from ..media.atomic import atomic_write
from .card import ModelCard
from .catalogue import data_folder, load_catalogue, parse_card, read_toml
from .signature import Recognised, read_signature, recognise

_ONLY_IN_RECORDS = ("base", "nodes", "dtypes", "shapes", "taken")


@dataclass(frozen=True, slots=True)
class Taken:
    """Who took a licence.

    Attributes:
        licence: as it was shown.
        by: user.
        on: date, ISO.
    """

    licence: str
    by: str
    on: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A file that was recognised and can be added.

    Attributes:
        path: of the file.
        sha256: of it.
        bytes: size.
        found: which net it is.
        model_id: that it will have.
    """

    path: Path
    sha256: str
    bytes: int
    found: Recognised
    model_id: str


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where a user's models lie: `$FACEPLATE_MODELS`, else the platform's folder for data."""
    environ = os.environ if environ is None else environ
    if environ.get("FACEPLATE_MODELS"):
        return Path(environ["FACEPLATE_MODELS"]).expanduser()
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "Faceplate" / "models"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Faceplate" / "models"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "faceplate" / "models"


def load_user_cards(folder: Path) -> Mapping[str, ModelCard]:
    """The cards of the nets that a user has added, by id.

    Raises:
        ModelError: a record is damaged.
    """
    known = _known_tables()
    cards: dict[str, ModelCard] = {}
    for file in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
        for model_id, table in read_toml(file).items():
            cards[model_id] = parse_card(file.name, model_id, _complete(file, model_id, table, known))
    return MappingProxyType(cards)


def read_taken(folder: Path) -> Mapping[str, Taken]:
    """Who took which licence, by id of the net.

    Raises:
        ModelError: a record is damaged.
    """
    found = {}
    for file in sorted(folder.glob("*.toml")) if folder.is_dir() else []:
        for model_id, table in read_toml(file).items():
            taken = table.get("taken", {}) if isinstance(table, dict) else {}
            values = (taken.get(name, "") for name in ("licence", "by", "on"))
            found[model_id] = Taken(*(str(value) for value in values))
    return MappingProxyType(found)


def _known_tables() -> dict[str, dict[str, Any]]:
    return {key: table for file in sorted(data_folder().glob("*.toml")) for key, table in read_toml(file).items()}


def _complete(file: Path, model_id: str, table: Any, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A record with what its base says."""
    if not isinstance(table, dict):
        raise ModelError(f"{file} is no record of a model", hint="delete it and add the model again")
    base = table.get("base", "")
    if base and base not in known:
        raise ModelError(
            f"the record of model {model_id} builds on {base}, which is not known",
            found=str(file),
            hint="it was made by another version of Faceplate: add the model again",
        )
    entries = {**known.get(base, {}), **{key: value for key, value in table.items() if key not in _ONLY_IN_RECORDS}}
    for key in ("inputs", "outputs"):
        entries[key] = [_named(spec, table) for spec in entries.get(key, [])]
    return entries


def _named(spec: Any, table: Mapping[str, Any]) -> Any:
    """An input or output with its name, type and lengths in the file."""
    name = spec.get("name", "")
    told = (("node", "nodes"), ("dtype", "dtypes"), ("shape", "shapes"))
    return {**spec, **{key: table[entry][name] for key, entry in told if name in table.get(entry, {})}}


def look_at(path: Path, wanted: str | None = None) -> Offer:
    """Recognise a file, without adding it.

    Args:
        path: ONNX or DFM file.
        wanted: id of the known net that the user says it is.

    Raises:
        ModelError: it cannot be read, is damaged, or is not known.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(
            f"the model file {path} cannot be read",
            found=error.strerror or str(error),
            hint="check path and permissions",
        ) from error
    known = {card.id: card for card in load_catalogue().values() if not card.is_here}
    found = recognise(path, digest, read_signature(path), known, wanted)
    return Offer(path, digest, size, found, _model_id(path, found.base))


def _model_id(path: Path, base: ModelCard) -> str:
    """The known id, except for kinds of which everybody has their own, e.g. a DFM a person."""
    if base.kind != "dfm":
        return base.id
    words = "".join(letter if letter.isalnum() else "_" for letter in path.stem.lower()).strip("_")
    return words or base.id


def add(
    offer: Offer,
    folder: Path,
    by: str,
    *,
    in_place: bool = False,
    licensed: str | None = None,
    valid_until: str = "",
    check: Callable[[ModelCard, Path], str] | None = None,
) -> ModelCard:
    """Add a file to the user's models.

    Args:
        offer: see `look_at`.
        folder: of the user's models.
        by: who takes the licence.
        in_place: leave the file where it is; else it is copied, or linked where the file system can.
        licensed: a licence of the user's own that allows paid work, e.g. a contract's number; None for the public one.
        valid_until: last day of such a licence, ISO; "" for no end.
        check: called with the card and the path before anything is written, to run the net once; gives the card's
            `batch`.

    Raises:
        ModelError: the net cannot be run.
        OutputError: the folder cannot be written.
    """
    base = offer.found.base
    suffix = offer.path.suffix if base.kind == "dfm" else ".onnx"
    entries: dict[str, Any] = {
        "base": base.id,
        "file": offer.path.name if in_place else f"{offer.model_id}{suffix}",
        "sha256": offer.sha256,
        "bytes": offer.bytes,
        "nodes": dict(offer.found.nodes),
        "dtypes": dict(offer.found.dtypes),
        "shapes": {name: list(shape) for name, shape in offer.found.shapes.items()},
    }
    if base.kind == "dfm":
        entries["title"] = f"{base.title}: {offer.path.stem}"
    if in_place:
        entries["path"] = str(offer.path.resolve())
    if licensed is not None:
        entries |= {"licence": licensed, "commercial": True}
    if valid_until:
        entries["valid_until"] = valid_until
    taken = {"licence": licensed or base.licence, "by": by, "on": datetime.date.today().isoformat()}
    card = parse_card("the new record", offer.model_id, _complete(folder, offer.model_id, entries, _known_tables()))
    batch = check(card, offer.path) if check is not None else ""
    if batch:
        entries["batch"] = batch
    folder.mkdir(parents=True, exist_ok=True)
    if not in_place:
        _take(offer.path, folder / card.file)
    with atomic_write(folder / f"{offer.model_id}.toml") as temporary:
        temporary.write_text(_toml(offer.model_id, entries, taken), "utf-8")
    return card


def add_made(
    base: ModelCard, path: Path, model_id: str, folder: Path, by: str, changes: Mapping[str, str]
) -> ModelCard:
    """Add a net that was made of one of the user's: it has its card, licence and names in the file.

    Args:
        base: card of the net that it was made of.
        path: of the new file, which is copied.
        model_id: of the new net.
        folder: of the user's models.
        by: who made it.
        changes: entries of the card that are other.

    Raises:
        OutputError: the folder cannot be written.
    """
    record = read_toml(folder / f"{base.id}.toml")[base.id]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    entries = {key: value for key, value in record.items() if key not in ("taken", "path")}
    entries |= {"file": f"{model_id}.onnx", "sha256": digest, "bytes": path.stat().st_size, **changes}
    taken = {**record.get("taken", {}), "by": by}
    _take(path, folder / f"{model_id}.onnx")
    with atomic_write(folder / f"{model_id}.toml") as temporary:
        temporary.write_text(_toml(model_id, entries, taken), "utf-8")
    return parse_card("the new record", model_id, _complete(folder, model_id, entries, _known_tables()))


def _take(source: Path, target: Path) -> None:
    if target.exists() and source.samefile(target):
        return
    with atomic_write(target) as temporary:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, temporary)


def _toml(model_id: str, entries: Mapping[str, Any], taken: Mapping[str, str]) -> str:
    def value(entry: Any) -> str:
        # JSON's strings, numbers and truths are TOML's too.
        if isinstance(entry, dict):
            return "{ " + ", ".join(f"{json.dumps(key)} = {value(one)}" for key, one in entry.items()) + " }"
        return json.dumps(entry)

    rows = [f"[{model_id}]", *(f"{key} = {value(entry)}" for key, entry in entries.items())]
    rows += ["", f"[{model_id}.taken]", *(f"{key} = {value(entry)}" for key, entry in taken.items()), ""]
    return "\n".join(rows)
