"""InsightFace's model packs where InsightFace keeps them, their licence file inspected by InsightFace's own code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NO_CODE = "insightface is not installed, so that a MODEL.LICENSE cannot be inspected; counts as non-commercial"


@dataclass(frozen=True, slots=True)
class Pack:
    """A folder of nets.

    Attributes:
        name: e.g. "buffalo_l".
        folder: where it lies.
        files: its ONNX files.
        commercial: whether a verified licence allows paid work.
        licence: what was found, in words.
        valid_until: last day of the licence, ISO, "" for no end.
    """

    name: str
    folder: Path
    files: tuple[Path, ...]
    commercial: bool
    licence: str
    valid_until: str = ""


def pack_folders(environ: Mapping[str, str] | None = None, home: Path | None = None) -> tuple[Path, ...]:
    """Where packs may lie: `$INSIGHTFACE_HOME/models`, and `~/.insightface/models`, InsightFace's own default."""
    environ = os.environ if environ is None else environ
    roots = [Path(environ["INSIGHTFACE_HOME"]).expanduser()] if environ.get("INSIGHTFACE_HOME") else []
    roots.append((home or Path.home()) / ".insightface")
    return tuple(dict.fromkeys(root / "models" for root in roots))


def find_packs(folders: tuple[Path, ...]) -> tuple[Pack, ...]:
    """The packs in these folders, and nets that lie there by themselves as a pack without a licence file."""
    found = []
    for folder in folders:
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
        found += [read_pack(one) for one in inside if one.is_dir() and any(one.glob("*.onnx"))]
    return tuple(found)


def read_pack(folder: Path) -> Pack:
    """One pack, its licence inspected."""
    commercial, licence, until = _inspect(folder)
    return Pack(folder.name, folder, tuple(sorted(folder.glob("*.onnx"))), commercial, licence, until)


def _inspect(folder: Path) -> tuple[bool, str, str]:
    try:
        from insightface.model_zoo.model_license import inspect_model_package_license
    except ImportError:
        return False, _NO_CODE, ""
    return said_by(inspect_model_package_license(folder))


def said_by(inspection: Any) -> tuple[bool, str, str]:
    """Commercial or not, words and last day, of what InsightFace's inspection found."""
    signed = inspection.license
    if signed is None:
        return False, f"InsightFace: {inspection.message}", ""
    until = signed.valid_until.date().isoformat() if signed.valid_until else ""
    words = f"InsightFace {signed.grant} licence {signed.license_id} for {signed.model_id}"
    return bool(inspection.commercial_use_permitted), words, until
