"""Put files into a folder of their own, with a record by which they are taken away again.

The record lies in the folder itself, so that a host that removes the folder leaves nothing behind. It is written first:
an installation that was cut short can be undone, or repeated, like a whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from faceplate.errors import OutputError
from faceplate_client import __version__

RECORD = ".faceplate-install.json"


def write_files(files: Mapping[str, bytes], target: Path) -> list[Path]:
    """Write a plug-in into `target`, in place of an earlier one of which there is a record.

    Args:
        files: by path inside the folder, with slashes.
        target: the plug-in's own folder; made where it is not there.

    Returns:
        The files that were written, the record among them.

    Raises:
        OutputError: the folder holds what this did not write, or files that were changed since, or cannot be written.
    """
    try:
        if target.exists() and any(target.iterdir()):
            _clear(target)
        target.mkdir(parents=True, exist_ok=True)
        record = target / RECORD
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        record.write_text(json.dumps({"faceplate": __version__, "files": hashes}, indent=1), "utf-8")
        written = [record]
        for name, data in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            written.append(path)
    except OSError as error:
        raise OutputError(f"cannot write into {target}", found=error.strerror or str(error)) from error
    return written


def _clear(target: Path) -> None:
    if not (target / RECORD).is_file():
        raise OutputError(
            f"{target} holds a plug-in that this program did not put there",
            hint="remove it in the host first (Blender: Preferences > Add-ons or Get Extensions), then install again",
        )
    if changed := changed_files(target):
        raise OutputError(
            f"{changed[0]} was changed since it was installed",
            found=f"{len(changed)} changed files",
            hint="copy your changes elsewhere and delete the file, then install again",
        )
    remove_files(target)


def read_record(target: Path) -> dict[str, str]:
    """The files of an installation and their SHA-256.

    Raises:
        OutputError: there is no record, or it is damaged.
    """
    path = target / RECORD
    try:
        files = json.loads(path.read_text("utf-8"))["files"]
        if not all(
            isinstance(name, str) and isinstance(digest, str) and ".." not in Path(name).parts and not Path(name).anchor
            for name, digest in files.items()
        ):
            raise ValueError("a path that leads out of the folder")
    except FileNotFoundError as error:
        raise OutputError(f"no record of an installation in {target}", hint="remove the plug-in in the host") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path} is damaged", found=str(error), hint="remove the plug-in in the host") from error
    return dict(files)


def changed_files(target: Path) -> list[Path]:
    """Files of the record that are there with other bytes."""
    changed = []
    for name, digest in read_record(target).items():
        path = target / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            changed.append(path)
    return changed


def remove_files(target: Path) -> tuple[list[Path], list[Path]]:
    """Take an installation away: the files of the record, their compiled twins, folders that become empty.

    Returns:
        What was removed, and what was left because it was changed or never belonged to it.

    Raises:
        OutputError: no record, or a file cannot be removed.
    """
    names = read_record(target)
    changed = set(changed_files(target))
    removed = []
    try:
        for name in names:
            path = target / name
            if path in changed or not path.is_file():
                continue
            path.unlink()
            removed.append(path)
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink()
        (target / RECORD).unlink()
        removed.append(target / RECORD)
    except OSError as error:
        raise OutputError(f"cannot remove {error.filename}", found=error.strerror or str(error)) from error
    for folder in sorted((path for path in target.rglob("*") if path.is_dir()), reverse=True):
        with contextlib.suppress(OSError):  # not empty: something in it is not ours
            folder.rmdir()
    kept = sorted(path for path in target.rglob("*") if path.is_file())
    with contextlib.suppress(OSError):
        target.rmdir()
    return removed, kept
