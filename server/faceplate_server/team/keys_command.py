"""`faceplate keys`: this user's key, and who may use this user's team server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faceplate.cli import options
from faceplate.cli.show import print_lines

from ..commands import mapped
from .keys import KeyFolder, TeamClient, parse_key

app = typer.Typer(
    help="Keys of a team: show this user's public key, and say who may use this user's team server.",
    invoke_without_command=True,
    no_args_is_help=False,
)
Keys = Annotated[Path | None, typer.Option("--keys", help="Key folder. Default: the user's own.")]


@app.callback()
def show(context: typer.Context, keys: Keys = None, json: options.Json = False) -> int:
    """Show this user's public key; the first call makes the pair."""
    context.obj = KeyFolder(keys)
    if context.invoked_subcommand is None:
        with mapped():
            print_lines({"public key": context.obj.own().public.hex()}, as_json=json)
    return 0


@app.command()
def allow(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Of the machine or person: a-z, 0-9 and dashes.")],
    key: Annotated[str, typer.Argument(help="What `faceplate keys` shows there.")],
    root: Annotated[
        list[Path] | None, typer.Option(help="Folder here that its jobs may name; may be repeated.")
    ] = None,
) -> int:
    """Let a client use this user's team server; at once, also where that runs already."""
    with mapped():
        client = TeamClient(name, parse_key(key), tuple(str(one.absolute()) for one in root or []))
        context.obj.allow(client)
        print_lines(_shown(client), as_json=False)
    return 0


@app.command()
def remove(context: typer.Context, name: Annotated[str, typer.Argument(help="As it was allowed.")]) -> int:
    """Let a client in no more; its connections end."""
    with mapped():
        context.obj.remove(name)
    return 0


@app.command("list")
def listed(context: typer.Context, json: options.Json = False) -> int:
    """Show who is allowed."""
    with mapped():
        for client in context.obj.clients().values():
            print_lines(_shown(client), as_json=json)
    return 0


def _shown(client: TeamClient) -> dict[str, str]:
    return {
        "client": client.name,
        "key": client.public.hex(),
        "folders": ", ".join(client.roots) or "none: it sends its files",
    }
