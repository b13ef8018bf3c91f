"""`faceplate install HOST`; the command line finds it by its entry point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from faceplate.errors import InputError

from . import blender
from .archive import NotBuildable, plugin_files
from .record import RECORD, remove_files, write_files

HOSTS = {"blender": (blender.PACKAGE, blender.targets)}
AFTERWARDS = {"blender": "then, in Blender: Edit > Preferences > Add-ons, enable Faceplate, press Check"}


def install(
    host: Annotated[str, typer.Argument(help="blender.")],
    path: Annotated[
        Optional[Path],  # noqa: UP045 - Python 3.9
        typer.Option(help="Blender: an extensions/user_default folder. Default: those of every version you have."),
    ] = None,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take away what was installed.")] = False,
) -> int:
    """Put the plug-in of a host where the host looks for it; prints each file. --uninstall takes it away again."""
    if host not in HOSTS:
        raise InputError(f"no plug-in for {host}", expected=", ".join(HOSTS), hint="faceplate install --help")
    package, targets = HOSTS[host]
    if uninstall:
        return _uninstall([target for target in targets(path) if (target / RECORD).is_file()], host)
    try:
        files = plugin_files(package)
    except NotBuildable as error:
        raise InputError(str(error), hint="install Faceplate as a whole") from error
    for target in targets(path):
        for written in write_files(files, target):
            print(f"wrote {written}")
    print(AFTERWARDS[host])
    return 0


def _uninstall(targets: list[Path], host: str) -> int:
    if not targets:
        raise InputError(
            f"no plug-in for {host} that this program installed",
            hint=f"give --path as you did when it was installed, or remove it in {host.capitalize()}",
        )
    for target in targets:
        removed, kept = remove_files(target)
        for gone in removed:
            print(f"removed {gone}")
        for left in kept:
            print(f"left {left}: it was changed, or came from elsewhere")
    return 0
