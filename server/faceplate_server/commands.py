"""`faceplate serve`, `faceplate status` and `faceplate stop`; the command line finds them by their entry points."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from faceplate.cli import options
from faceplate.cli.show import print_lines
from faceplate.errors import ResourceError
from faceplate_client import wire
from faceplate_client.connection import Place, find
from faceplate_client.errors import ClientError

Name = Annotated[str, typer.Option(help="Name of the server, where a user has several.")]
Folder = Annotated[Path | None, typer.Option(help="Private folder of the server. Default: the user's own.")]


@contextmanager
def mapped() -> Iterator[None]:
    """The leaf client's errors as the command line's."""
    try:
        yield
    except ClientError as error:
        raise ResourceError(error.message, expected=error.expected, found=error.found, hint=error.hint) from error


def serve(
    config: Annotated[Path | None, typer.Option(help="TOML file; server/README.md lists its keys.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the server, where a user has several.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Private folder. Default: the user's own.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:N, or several: cuda:0,cuda:1.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes on the CPU; a GPU has one.")] = None,
    threads: Annotated[int | None, typer.Option(min=0, help="Frames at once in each worker; 0 chooses.")] = None,
    root: Annotated[list[Path] | None, typer.Option(help="Folder that jobs may touch; may be repeated.")] = None,
    idle: Annotated[float | None, typer.Option(help="Seconds without work after which it stops; 0 for never.")] = None,
    upstream: Annotated[str | None, typer.Option(help="Team server that does the jobs: tcp://HOST:PORT.")] = None,
    upstream_key: Annotated[str | None, typer.Option(help="Its public key: `faceplate keys` there.")] = None,
    listen: Annotated[str | None, typer.Option(help="Work for other machines: tcp://0.0.0.0:PORT, encrypted.")] = None,
    parent: Annotated[int | None, typer.Option(help="Process that the server must not outlive.")] = None,
) -> int:
    """Keep nets and identities loaded and work for hosts and the command line, until stopped."""
    from .config import read_config
    from .log import logging_to
    from .workers.start import workers_ahead

    given = read_config(
        config,
        name=name,
        folder=None if folder is None else str(folder.absolute()),
        device=device,
        workers=workers,
        threads=threads,
        roots=None if root is None else [str(one.absolute()) for one in root],
        idle_s=idle,
        upstream=upstream,
        upstream_key=upstream_key,
        listen=listen,
    )
    with (
        mapped(),
        logging_to(given.log_path, megabytes=given.log_mb, files=given.log_files),
        workers_ahead(0 if given.upstream else len(given.devices)) as ahead,
    ):
        from .lifecycle import Server  # after the workers' start: it takes as long to load as they do

        return Server(given, parent, ahead).run()


def status(
    name: Name = "default",
    folder: Folder = None,
    page: Annotated[bool, typer.Option("--page", help="Print the address of its status page instead.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the status page in the browser.")] = False,
    json: options.Json = False,
) -> int:
    """Show what the running server does; exit code 3 when there is none."""
    from .ask import Asker

    place = Place(folder, name)
    with mapped():
        info = find(place)
        if page or open_:
            return _page(place, show=open_, as_json=json)
    with Asker(info, "faceplate status") as asker:
        reply = asker.ask(wire.Status(asker.next_id()), wire.StatusReply)
        pong = asker.ask(wire.Ping(asker.next_id()), wire.Pong)
        facts = {
            "server": f"{name}, process {reply.pid}, {'ready' if pong.ready else 'starting'}",
            "version": asker.welcome.server_version,
            "address": info.address,
            "up": f"{reply.uptime_s:.0f} s",
            "memory": f"{reply.memory_mb:.0f} MB",
            "devices": ", ".join(f"{device.name} by {device.provider}" for device in reply.devices) or "none yet",
            "nets": ", ".join(reply.nets) or "none yet",
            "clients": reply.clients,
            "frames done": reply.frames_done,
        }
        print_lines(facts, as_json=json)
        for job in reply.jobs:
            line = f"{job.state}, {job.priority}, {job.done} of {job.total or '?'} frames, {job.client}"
            print_lines({"job": job.id, "kind": job.kind, "state": line}, as_json=json)
    return 0


def _page(place: Place, *, show: bool, as_json: bool) -> int:
    """The address alone, so that a script can take it."""
    from .page.places import read_url

    url = read_url(place)
    print(dumps({"page": url}) if as_json else url)
    if show and not webbrowser.open(url):
        raise ResourceError("no browser could be opened", hint="copy the address into one of this machine")
    return 0


def stop(
    name: Name = "default",
    folder: Folder = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for its end.")] = 60.0,
) -> int:
    """Ask the running server to finish its current frames and exit; exit code 3 when there is none."""
    from .ask import Asker

    place = Place(folder, name)
    with mapped():
        info = find(place)
    with Asker(info, "faceplate stop") as asker:
        asker.ask(wire.Stop(asker.next_id()), wire.Stopping)
    end = time.monotonic() + wait
    while place.is_alive():
        if time.monotonic() > end:
            raise ResourceError(
                f"the server called {name!r} still works after {wait:g} s", hint="wait longer, or end its process"
            )
        time.sleep(0.05)
    return 0
