"""Put files where a host looks for them, with a record by which they are taken away again.

The record lies in our own folder, so that a host that removes the folder leaves nothing of it behind. It is written
before the first file and names what may be there then: an installation that was cut short can be undone, or repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from faceplate.errors import OutputError
from faceplate_client import __version__

RECORD = ".faceplate-install.json"
_OPENING = "# faceplate: written by `faceplate install`, taken away by its --uninstall"
_CLOSING = "# faceplate: end"
_BLOCK = re.compile(rf"\n?{re.escape(_OPENING)}\n.*?{re.escape(_CLOSING)}\n?", re.DOTALL)


@dataclass(frozen=True)
class Tree:
    """What is installed into one place; all paths are inside it, with slashes.

    Attributes:
        own: our folder, which holds the record.
        files: to write.
        seeds: files that are the user's from then on: written where none is there, taken away while unchanged.
        lines: Python to be in a file that others write too, by file.
    """

    own: str
    files: Mapping[str, bytes]
    seeds: Mapping[str, bytes] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """What an installation left in a place.

    Attributes:
        files: SHA-256 that a file may have, by path: two where an installation was cut short.
        seeds: paths and SHA-256 as they were written.
        lines: files with a block of ours.
    """

    files: Mapping[str, tuple[str, ...]]
    seeds: Mapping[str, str]
    lines: tuple[str, ...]

    def to_json(self) -> str:
        """As it is kept."""
        files = {name: list(digests) for name, digests in self.files.items()}
        document = {"faceplate": __version__, "files": files, "seeds": dict(self.seeds), "lines": list(self.lines)}
        return json.dumps(document, indent=1)


_NOTHING = Record({}, {}, ())


def record_path(place: Path, own: str) -> Path:
    """Where the record of a place lies."""
    return place / own / RECORD


def install_tree(tree: Tree, place: Path, *, dry_run: bool = False) -> list[Path]:
    """Write a tree into a place, over an earlier one of which there is a record.

    Args:
        tree: what is written; each file is there whole or as it was.
        place: made where it is not there.
        dry_run: check and list, write nothing.

    Returns:
        The files that are written, the record first.

    Raises:
        OutputError: a file is there that this did not write, or that was changed since; or it cannot be written.
    """
    path = record_path(place, tree.own)
    before = read_record(path) if path.is_file() else _NOTHING
    _check(tree, place, before)
    seeds = {name: data for name, data in tree.seeds.items() if not (place / name).exists()}
    written = [path, *(place / name for name in (*tree.files, *seeds, *tree.lines))]
    if dry_run:
        return written
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in tree.files.items()}
    planted = {**before.seeds, **{name: hashlib.sha256(data).hexdigest() for name, data in seeds.items()}}
    lines = tuple(dict.fromkeys((*before.lines, *tree.lines)))
    both = {name: (*before.files.get(name, ()), *([digests[name]] if name in digests else ())) for name in digests}
    try:
        _write(path, Record({**before.files, **both}, planted, lines).to_json().encode())
        for name, data in (*tree.files.items(), *seeds.items()):
            _write(place / name, data)
        for name, line in tree.lines.items():
            _write(place / name, _with_block(place / name, line).encode())
        for name in before.files.keys() - tree.files.keys():
            _remove(place / name)
        _write(path, Record({name: (digest,) for name, digest in digests.items()}, planted, lines).to_json().encode())
        _prune(place, before.files)
    except OSError as error:
        raise OutputError(f"cannot write {error.filename or place}", found=error.strerror or str(error)) from error
    return written


def _check(tree: Tree, place: Path, before: Record) -> None:
    for name in tree.files:
        if name not in before.files and (place / name).exists():
            raise OutputError(
                f"{place / name} is there, and this program did not put it there",
                hint="remove the plug-in by the way it came (in Blender: Preferences > Add-ons), then install again",
            )
    if changed := _changed(place, before):
        raise OutputError(
            f"{changed[0]} was changed since it was installed",
            found=f"{len(changed)} changed files",
            hint="copy your changes elsewhere and delete the file, then install again",
        )


def remove_tree(place: Path, own: str, *, dry_run: bool = False) -> tuple[list[Path], list[Path]]:
    """Take an installation away: the files of its record, their compiled twins, its blocks, folders that become empty.

    Args:
        place: as for `install_tree`.
        own: our folder in it.
        dry_run: list, remove nothing.

    Returns:
        What is removed, or for a shared file freed of its block, and what is left because it was changed or came from
        elsewhere.

    Raises:
        OutputError: no record, a damaged one, or a file cannot be removed.
    """
    path = record_path(place, own)
    record = read_record(path)
    changed = {*_changed(place, record), *_changed(place, Record({n: (d,) for n, d in record.seeds.items()}, {}, ()))}
    names = [name for name in (*record.files, *record.seeds) if (place / name).is_file()]
    removed = [place / name for name in names if place / name not in changed]
    shared = [place / name for name in record.lines if (place / name).is_file()]
    if not dry_run:
        try:
            for gone in removed:
                _remove(gone)
            for file in shared:
                _free(file)
            path.unlink()
            _prune(place, (*names, f"{own}/x", *record.lines))
        except OSError as error:
            raise OutputError(f"cannot remove {error.filename}", found=error.strerror or str(error)) from error
    ours = {*removed, path}
    inside = (file for file in (place / own).rglob("*") if file.is_file() and file not in ours)
    kept = sorted({*changed, *(file for file in inside if file.suffix != ".pyc")})
    return [*removed, *shared, path], kept


def read_record(path: Path) -> Record:
    """The record of an installation.

    Raises:
        OutputError: there is none, or it is damaged.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        record = Record(
            {str(name): tuple(map(str, digests)) for name, digests in document["files"].items()},
            {str(name): str(digest) for name, digest in document["seeds"].items()},
            tuple(map(str, document["lines"])),
        )
        for name in (*record.files, *record.seeds, *record.lines):
            parts = PureWindowsPath(name)  # knows the anchors of every system
            if ".." in parts.parts or parts.anchor or not parts.parts:
                raise ValueError("a path that leads out of the folder")
    except FileNotFoundError as error:
        raise OutputError(
            f"no record of an installation in {path.parent}", hint="remove the plug-in by the way it came"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path} is damaged", found=str(error), hint="remove the plug-in by hand") from error
    return record


def _changed(place: Path, record: Record) -> list[Path]:
    """Files of the record that are there with other bytes."""
    changed = []
    for name, digests in record.files.items():
        path = place / name
        try:
            if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() not in digests:
                changed.append(path)
        except OSError as error:
            raise OutputError(f"cannot read {path}", found=error.strerror or str(error)) from error
    return changed


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all; where a link stands, the file that it leads to."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.faceplate-half")
    try:
        half.write_bytes(data)
        if path.exists():
            shutil.copymode(path, half)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)


def _prune(place: Path, names: Mapping[str, object] | tuple[str, ...]) -> None:
    """Remove the folders of these files, up to the place, as far as they are empty."""
    folders = {folder for name in names for folder in (place / name).parents if place in folder.parents}
    caches = {folder / "__pycache__" for folder in folders}
    for folder in sorted(folders | caches, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):  # not empty: something in it is not ours
            folder.rmdir()


def _text(path: Path) -> str:
    """A file that others write too."""
    try:
        return path.read_bytes().decode("utf-8") if path.exists() else ""
    except UnicodeDecodeError as error:
        raise OutputError(f"{path} is no UTF-8 text", found=str(error), hint="save it as UTF-8, then again") from error


def _with_block(path: Path, line: str) -> str:
    text = _BLOCK.sub("", _text(path))
    between = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{between}\n{_OPENING}\n{line}\n{_CLOSING}\n" if text else f"{_OPENING}\n{line}\n{_CLOSING}\n"


def _free(path: Path) -> None:
    """Take our block out of a shared file; a file that held nothing else goes."""
    left = _BLOCK.sub("", _text(path))
    if left.strip():
        _write(path, left.encode())
    else:
        path.unlink()
