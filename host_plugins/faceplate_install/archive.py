"""What a host's plug-in consists of, and the archive that carries it. Standard library alone.

A plug-in takes the leaf client along as a folder of its own, so its imports of `faceplate_client` are made relative: a
host may hold several plug-ins with several versions of it.
"""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from faceplate_client import __version__

CLIENT = "faceplate_client"
_IMPORT = re.compile(rf"^(\s*)from {CLIENT}(?=[. ])", re.MULTILINE)
_OTHER = re.compile(rf"^\s*import {CLIENT}\b", re.MULTILINE)
_ENDINGS = (".py", ".toml", ".txt", ".svg", ".png", ".nk")
_EARLIEST = (1980, 1, 1, 0, 0, 0)


class NotBuildable(Exception):
    """A source file that cannot travel in a plug-in; the message says which and why."""


def package_folder(name: str) -> Path:
    """Where a package's files lie; the package is not imported, since its host is not there.

    Raises:
        NotBuildable: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise NotBuildable(f"the package {name} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def package_files(name: str) -> dict[str, bytes]:
    """The files of a package, by their path inside it, without what Python and editors leave behind."""
    folder = package_folder(name)
    found = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith((".", "__pycache__")) for part in inside.parts)
        if path.is_file() and not hidden and (path.suffix in _ENDINGS or path.name.startswith("LICENSE")):
            found[inside.as_posix()] = path.read_bytes()
    return found


def plugin_files(package: str) -> dict[str, bytes]:
    """A plug-in with the leaf client inside, by path: what is in its folder in the host.

    Raises:
        NotBuildable: a package is missing, or an import of the client cannot be made relative.
    """
    files = {}
    for name, data in package_files(package).items():
        files[name] = _relative_imports(name, data) if name.endswith(".py") else data
    for name, data in package_files(CLIENT).items():
        files[f"{CLIENT}/{name}"] = data
    return dict(sorted(files.items()))


def nuke_files() -> dict[str, bytes]:
    """Nuke's plug-in folder: the loaders on top, for the folder is on Nuke's path, and the package inside it.

    Raises:
        NotBuildable: see `plugin_files`.
    """
    top = "plugin/"
    files = plugin_files("faceplate_nuke").items()
    return {name[len(top) :] if name.startswith(top) else f"faceplate_nuke/{name}": data for name, data in files}


def resolve_files() -> dict[str, bytes]:
    """Resolve's Fusion folder: what its menu lists, and the package where these scripts look for it.

    Raises:
        NotBuildable: see `plugin_files`.
    """
    menu = "menu/"
    files = {}
    for name, data in plugin_files("faceplate_resolve").items():
        title = f"Faceplate {PurePosixPath(name).stem.capitalize()}.py"
        files[f"Scripts/Utility/{title}" if name.startswith(menu) else f"Faceplate/faceplate_resolve/{name}"] = data
    return files


def _relative_imports(name: str, data: bytes) -> bytes:
    text = data.decode("utf-8")
    if _OTHER.search(text):
        raise NotBuildable(f"{name}: write `from {CLIENT} import ...`, which can be made relative")
    dots = "." * len(PurePosixPath(name).parts)
    return _IMPORT.sub(rf"\1from {dots}{CLIENT}", text).encode("utf-8")


def write_zip(files: Mapping[str, bytes], path: Path) -> Path:
    """Write an archive whose bytes depend on `files` alone: no times, no owners, no compressor's version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return path


def blender_zip(folder: Path) -> Path:
    """Build Blender's extension as `faceplate-blender-VERSION.zip` in a folder, which is made.

    Raises:
        NotBuildable: see `plugin_files`.
    """
    return write_zip(plugin_files("faceplate_blender"), folder / f"faceplate-blender-{__version__}.zip")


def nuke_zip(folder: Path) -> Path:
    """Build Nuke's plug-in folder, to be unpacked into a folder on NUKE_PATH, whose `init.py` then has to name it.

    Raises:
        NotBuildable: see `plugin_files`.
    """
    files = {f"faceplate/{name}": data for name, data in nuke_files().items()}
    return write_zip(files, folder / f"faceplate-nuke-{__version__}.zip")


def resolve_zip(folder: Path) -> Path:
    """Build what is unpacked into Resolve's Fusion folder.

    Raises:
        NotBuildable: see `plugin_files`.
    """
    return write_zip(resolve_files(), folder / f"faceplate-resolve-{__version__}.zip")
