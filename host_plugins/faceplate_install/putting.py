"""Put a tree of files where a host looks for it, and take it away again, exactly.

Everything is checked and written beside its place before the first file changes, so that a full disk or a file that is
in the way leaves what is there. What was cut short is repeated, or undone, by its record.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from faceplate.errors import OutputError

from . import disk, shared_file
from .record import Record, Tree, read_record, record_path

_BY_HAND = "remove the plug-in by the way it came (in Blender: Preferences > Add-ons), then install again"


@dataclass(frozen=True)
class Removed:
    """What was taken away, or would be.

    Attributes:
        files: removed, the record last.
        freed: files of others without our lines now; those that held nothing else are removed.
        kept: left, since they were changed or came from elsewhere.
    """

    files: tuple[Path, ...]
    freed: tuple[Path, ...]
    kept: tuple[Path, ...]


def is_installed(place: Path, own: str) -> bool:
    """Whether there is a record, or what an installation left that was killed before it had one."""
    path = record_path(place, own)
    return any(one.is_file() for one in (path, disk.half_of(path), path.with_name(disk.LOCK)))


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
        OutputBusyError: another one installs there.
    """
    path = record_path(place, tree.own)
    new = _checked(tree, place)
    if dry_run:
        return [path, *(place / name for name in new)]
    made = disk.made_folders(place, (*new, f"{tree.own}/x"))
    if is_installed(place, tree.own) and not path.is_file():
        made = [*made, tree.own]  # by one that was killed before it had a record
    try:
        with disk.alone(path.parent):
            new = _checked(tree, place)  # another one may have been here
            _install(tree, place, new, made)
    except OSError as error:
        disk.remove_empty(place / name for name in made)
        raise disk.as_output_error("write", place, error) from error
    return [path, *(place / name for name in new)]


def _install(tree: Tree, place: Path, new: Mapping[str, bytes], made: Iterable[str]) -> None:
    path = record_path(place, tree.own)
    before = read_record(path) if path.is_file() else Record()
    lines = {**before.lines, **tree.lines}
    _drop_halves(place, (*before.files, *before.seeds, *tree.seeds, *lines), lines)  # of one that was killed
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in tree.files.items()}
    after = Record(
        {name: (digest,) for name, digest in digests.items()},
        {**before.seeds, **{name: hashlib.sha256(new[name]).hexdigest() for name in tree.seeds if name in new}},
        lines,
        tuple(dict.fromkeys((*_known(place, tree.own, before), *made))),
    )
    both = {name: (*before.files.get(name, ()), digest) for name, digest in digests.items()}
    disk.write_whole(path, Record({**before.files, **both}, after.seeds, after.lines, after.folders).to_bytes())
    try:
        for name, data in new.items():
            disk.write_half(_where(place, name, tree.lines), data)
        disk.write_half(path, after.to_bytes())
    except OSError:
        _drop_halves(place, new, tree.lines)
        if before == Record():
            path.unlink()
        else:
            disk.write_whole(path, before.to_bytes())
        raise
    for name in new:
        disk.take_place(_where(place, name, tree.lines))
    for name in before.files.keys() - tree.files.keys():
        disk.remove_file(place / name)
    disk.take_place(path)
    disk.remove_empty(_ours(place, tree.own, before, before.files))


def _known(place: Path, own: str, record: Record) -> list[str]:
    """The folders of an installation, also of one whose record does not say."""
    if record == Record():
        return []
    return sorted(path.relative_to(place).as_posix() for path in _ours(place, own, record, record.files))


def _where(place: Path, name: str, lines: Iterable[str]) -> Path:
    """A file of others may be a link to where they keep it; a file of ours never is."""
    return (place / name).resolve() if name in lines else place / name


def _drop_halves(place: Path, names: Iterable[str], lines: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            disk.half_of(_where(place, name, lines)).unlink()


def _checked(tree: Tree, place: Path) -> dict[str, bytes]:
    """What is to be written, by path inside the place.

    Raises:
        OutputError: something is in the way, or was changed.
    """
    path = record_path(place, tree.own)
    before = read_record(path) if path.is_file() else Record()
    for name in (*tree.files, *tree.seeds, *tree.lines):
        _check_folders(place, place / name)
    for name in tree.files:
        if name not in before.files and os.path.lexists(place / name):
            raise OutputError(f"{place / name} is there, and this program did not put it there", hint=_BY_HAND)
    if changed := _changed(place, before):
        raise OutputError(
            f"{changed[0]} was changed since it was installed",
            found=f"{len(changed)} changed files",
            hint="copy your changes elsewhere and delete the file, then install again",
        )
    seeds = {name: data for name, data in tree.seeds.items() if not os.path.lexists(place / name)}
    lines = {}
    for name, said in tree.lines.items():
        data = _read(place / name)
        if data is not None and shared_file.is_changed(data, before.lines.get(name)):
            raise OutputError(
                f"the lines of Faceplate in {place / name} were changed",
                hint="take them out of the file, with the two lines around them, then install again",
            )
        lines[name] = shared_file.with_lines(data, said)
        if lines[name] == data:
            del lines[name]
    return {**tree.files, **seeds, **lines}


def _check_folders(place: Path, path: Path) -> None:
    """Every folder of a file is a folder, or is not there yet."""
    for folder in path.parents:
        if os.path.lexists(folder):
            if not folder.is_dir():
                raise OutputError(
                    f"{folder} is in the way: a file, or a link that leads nowhere",
                    expected="a folder",
                    hint="move it away, or give another place with --path",
                )
            return


def _read(path: Path) -> bytes | None:
    """A file that others write too, None where it is not there."""
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise OutputError(f"{path} is no file", hint="move it away, then install again")
    try:
        return path.read_bytes()
    except OSError as error:
        raise disk.as_output_error("read", path, error) from error


def remove_tree(place: Path, own: str, *, dry_run: bool = False) -> Removed:
    """Take an installation away: the files of its record, their compiled twins, its lines, folders that it made.

    Args:
        place: as for `install_tree`.
        own: our folder in it.
        dry_run: list, remove nothing.

    Raises:
        OutputError: no record, a damaged one, or a file cannot be removed.
        OutputBusyError: another one installs there.
    """
    path = record_path(place, own)
    folders: set[Path] = set()
    if not is_installed(place, own):
        read_record(path)  # says so
    try:
        with contextlib.nullcontext() if dry_run else disk.alone(path.parent):
            record = read_record(path) if path.is_file() else Record()
            removed, kept, freed = _found(place, own, record)
            if not dry_run:
                folders = _ours(place, own, record, (*record.files, *record.seeds, *record.lines))
                _remove(place, own, record, removed, freed)
    except OSError as error:
        raise disk.as_output_error("remove", place, error) from error
    disk.remove_empty(folders)
    gone = (*removed, *([path] if record != Record() else ()))
    return Removed(gone, tuple(freed), tuple(kept))


def _found(place: Path, own: str, record: Record) -> tuple[list[Path], list[Path], dict[Path, bytes | None]]:
    """Files to remove, what is left, and what shared files are without our lines."""
    changed = {*_changed(place, record), *_changed(place, Record({n: (d,) for n, d in record.seeds.items()}))}
    there = [place / name for name in (*record.files, *record.seeds) if os.path.lexists(place / name)]
    removed = [path for path in there if path not in changed]
    freed: dict[Path, bytes | None] = {}
    for name, said in record.lines.items():
        data = _read(place / name) if (place / name).is_file() else None
        if data is not None and shared_file.is_changed(data, said):
            changed.add(place / name)
        elif data is not None and (rest := shared_file.without_lines(data)) != data:
            freed[place / name] = rest
    halves = {disk.half_of(path) for path in (*there, *(place / name for name in record.files))}
    path = record_path(place, own)
    ours = {*removed, path, disk.half_of(path), path.with_name(disk.LOCK), *halves}
    inside = (file for file in (place / own).rglob("*") if not file.is_dir() and file not in ours)
    return removed, sorted({*changed, *(file for file in inside if file.suffix != ".pyc")}), freed


def _remove(place: Path, own: str, record: Record, removed: Iterable[Path], freed: Mapping[Path, bytes | None]) -> None:
    for path in removed:
        disk.remove_file(path)
    for path, rest in freed.items():
        if rest is None:
            path.unlink()
        else:
            disk.write_whole(path.resolve(), rest)
    _drop_halves(place, (*record.files, *record.seeds, *record.lines), record.lines)
    record_file = record_path(place, own)
    disk.half_of(record_file).unlink(missing_ok=True)
    record_file.unlink(missing_ok=True)


def _changed(place: Path, record: Record) -> list[Path]:
    """Files of the record that are there with other bytes, or became a link or a folder."""
    changed = []
    for name, digests in record.files.items():
        path = place / name
        if not os.path.lexists(path):
            continue
        try:
            plain = path.is_file() and not path.is_symlink()
            if not plain or hashlib.sha256(path.read_bytes()).hexdigest() not in digests:
                changed.append(path)
        except OSError as error:
            raise disk.as_output_error("read", path, error) from error
    return changed


def _ours(place: Path, own: str, record: Record, names: Iterable[str]) -> set[Path]:
    """Of the folders of these files, those that the installation made; all inside our own where no record says."""
    folders = {folder for name in (*names, f"{own}/x") for folder in (place / name).parents}
    if record.folders is None:
        return {folder for folder in folders if folder == place / own or place / own in folder.parents}
    return folders & {place / name for name in record.folders}
