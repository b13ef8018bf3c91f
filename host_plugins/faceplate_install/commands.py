"""`faceplate install HOST`; the command line finds it by its entry point."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from faceplate.errors import InputError
from faceplate_client import __version__

from .archive import NotBuildable
from .places import Host, Surroundings, load_hosts
from .putting import install_tree, is_installed, remove_tree
from .record import read_record, record_path
from .trees import TREES, own_folder

Where = Annotated[
    Optional[str],
    typer.Option(
        metavar="DIR",
        help="Instead: Blender's extensions/user_default folder, a folder on NUKE_PATH, Resolve's Fusion folder.",
    ),
]


def install(
    host: Annotated[str, typer.Argument(help="blender, nuke, resolve or server.")],
    path: Where = None,
    user: Annotated[bool, typer.Option("--user", help="Where the host looks for this user's: the default.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take away what was installed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, change nothing.")] = False,
) -> int:
    """Put the plug-in of a host where the host looks for it, or the server among the user's services; prints each file.

    The same command again brings it up to date; --uninstall takes it away.
    """
    hosts = load_hosts()
    if host not in hosts:
        raise InputError(f"no plug-in for {host}", expected=", ".join(hosts), hint="faceplate install --help")
    if user and path is not None:
        raise InputError("--user and --path say two places", hint="give one of them")
    chosen = hosts[host]
    around, places = _places(chosen, path)
    if uninstall:
        return _uninstall(chosen, places, own_folder(chosen, around), dry_run)
    try:
        trees = {place: TREES[host](chosen, place, around) for place in places}
    except NotBuildable as error:
        raise InputError(str(error), hint="install Faceplate as a whole") from error
    for place, tree in trees.items():
        kept = record_path(place, tree.own)
        version = read_record(kept).version if kept.is_file() else __version__
        for written in install_tree(tree, place, dry_run=dry_run):
            print(f"{'would write' if dry_run else 'wrote'} {written}")
        for name, lines in tree.lines.items():
            print(f"in {place / name}: {lines.splitlines()[-1]}")
        for seed in tree.seeds:
            print(f"yours to edit: {place / seed}")
        if version != __version__:
            print(f"{__version__} {'would take' if dry_run else 'takes'} the place of {version or 'an older one'}")
    if not dry_run:
        print(chosen.afterwards.get(around.system, ""))
    return 0


def _places(host: Host, path: str | None) -> tuple[Surroundings, list[Path]]:
    """The machine, and the folders to install into."""
    try:
        if path is not None:
            if not path:
                raise InputError("--path is empty", expected=host.path, hint="a variable in it is not set")
            return Surroundings(sys.platform, os.environ, Path()), [Path(path).expanduser().absolute()]
        around = Surroundings(sys.platform, os.environ, Path.home())
    except RuntimeError as error:
        raise InputError("this user has no home folder", found=str(error), hint="set HOME, or give --path") from error
    return around, host.places(around)


def _uninstall(host: Host, places: list[Path], own: str, dry_run: bool) -> int:
    found = [place for place in places if is_installed(place, own)]
    if not found:
        raise InputError(
            f"no plug-in for {host.name} that this program installed",
            found=f"none in {places[0]}",
            hint=f"give --path as you did when it was installed, or remove it in {host.title}",
        )
    for place in found:
        removed = remove_tree(place, own, dry_run=dry_run)
        for gone in removed.files:
            print(f"{'would remove' if dry_run else 'removed'} {gone}")
        for freed in removed.freed:
            print(f"{'would take' if dry_run else 'took'} the lines of Faceplate out of {freed}")
        for left in removed.kept:
            print(f"left {left}: it was changed, or came from elsewhere")
    if not dry_run and host.undone.get(sys.platform):
        print(host.undone[sys.platform])
    return 0
