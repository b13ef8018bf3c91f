"""Where Blender looks for extensions, on each system and for each version that a user has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from faceplate.errors import InputError

OLDEST = (4, 2)
PACKAGE = "faceplate_blender"
FOLDER = "faceplate"
_VERSION = re.compile(r"(\d+)\.(\d+)")


def config_folder(system: str, environment: Mapping[str, str], home: Path) -> Path:
    """The folder with one folder a version, as Blender's manual has it.

    Args:
        system: as `sys.platform`.
        environment: variables.
        home: of the user.
    """
    if system == "win32":
        roaming = environment.get("APPDATA")
        return (Path(roaming) if roaming else home / "AppData" / "Roaming") / "Blender Foundation" / "Blender"
    if system == "darwin":
        return home / "Library" / "Application Support" / "Blender"
    config = environment.get("XDG_CONFIG_HOME")
    return (Path(config) if config else home / ".config") / "blender"


def repositories(system: str, environment: Mapping[str, str], home: Path) -> list[Path]:
    """The folders of the user's own extensions: one for each Blender of 4.2 or later that was ever started.

    `BLENDER_USER_EXTENSIONS` and `BLENDER_USER_RESOURCES` count, as they do for Blender.
    """
    if said := environment.get("BLENDER_USER_EXTENSIONS"):
        return [Path(said) / "user_default"]
    if said := environment.get("BLENDER_USER_RESOURCES"):
        return [Path(said) / "extensions" / "user_default"]
    found = []
    folder = config_folder(system, environment, home)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        version = _VERSION.fullmatch(path.name)
        if path.is_dir() and version and (int(version[1]), int(version[2])) >= OLDEST:
            found.append(path / "extensions" / "user_default")
    return found


def targets(path: Path | None) -> list[Path]:
    """The plug-in's own folders: in the repository at `path`, or in all that the user has.

    Raises:
        InputError: no Blender is found.
    """
    if path is not None:
        return [path.absolute() / FOLDER]
    found = repositories(sys.platform, os.environ, Path.home())
    if not found:
        raise InputError(
            "no Blender 4.2 or later was found for this user",
            found=f"nothing in {config_folder(sys.platform, os.environ, Path.home())}",
            hint="start Blender once, or give --path with its extensions/user_default folder",
        )
    return [repository / FOLDER for repository in found]
