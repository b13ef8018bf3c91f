"""`faceplate install HOST`; the command line finds it by its entry point."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from faceplate.errors import InputError

from .archive import NotBuildable
from .places import Host, Surroundings, load_hosts
from .record import Tree, install_tree, record_path, remove_tree
from .trees import TREES

Where = Annotated[
    Optional[Path],
    typer.Option(
        help="Instead: Blender's extensions/user_default folder, a folder on NUKE_PATH, Resolve's Fusion folder."
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
    around = Surroundings(sys.platform, os.environ, Path.home())
    chosen = hosts[host]
    places = [path.absolute()] if path else chosen.places(around)
    try:
        trees = {place: TREES[host](chosen, place, around) for place in places}
    except NotBuildable as error:
        raise InputError(str(error), hint="install Faceplate as a whole") from error
    if uninstall:
        return _uninstall(chosen, trees, dry_run)
    for place, tree in trees.items():
        for written in install_tree(tree, place, dry_run=dry_run):
            print(f"{'would write' if dry_run else 'wrote'} {written}")
        for seed in tree.seeds:
            print(f"yours to edit: {place / seed}")
    if not dry_run:
        print(chosen.afterwards.get(around.system, ""))
    return 0


def _uninstall(host: Host, trees: dict[Path, Tree], dry_run: bool) -> int:
    found = {place: tree for place, tree in trees.items() if record_path(place, tree.own).is_file()}
    if not found:
        raise InputError(
            f"no plug-in for {host.name} that this program installed",
            hint=f"give --path as you did when it was installed, or remove it in {host.title}",
        )
    for place, tree in found.items():
        removed, kept = remove_tree(place, tree.own, dry_run=dry_run)
        for gone in removed:
            print(f"{'would remove' if dry_run else 'removed'} {gone}")
        for left in kept:
            print(f"left {left}: it was changed, or came from elsewhere")
    return 0
