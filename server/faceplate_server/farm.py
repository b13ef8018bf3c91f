"""`faceplate farm-server`: the warm server of one session of a farm, which must not outlive it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from faceplate.cli.show import print_lines
from faceplate.errors import ResourceError
from faceplate_client.connection import Place, find
from faceplate_client.errors import ServerNotFound
from faceplate_client.launch import find_or_start

from .commands import mapped
from .commands import stop as stop_server
from .parent import ParentWatch

app = typer.Typer(help="The warm server of one session of a farm.", no_args_is_help=True)
_BETWEEN = ("sudo", "su", "runuser", "setsid", "sh", "bash", "dash")
"""Programs by which a session's runner starts actions, and which end with them."""

Folder = Annotated[Path, typer.Option(help="Folder of this server alone, as in: apply --server FOLDER.")]


@app.callback()
def farm_server() -> None:
    """The warm server of one session of a farm."""


@app.command("start")
def start(
    folder: Folder,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without work after which it ends.")] = 900.0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    threads: Annotated[int, typer.Option(min=0, help="Frames worked on at once; 0 chooses by the machine.")] = 0,
    wait: Annotated[float, typer.Option(min=1, help="Seconds for its start.")] = 240.0,
) -> int:
    """Start a server that works until `stop`, without work for a while, or the end of the session's runner."""
    place = Place(folder.absolute())
    words = ["serve", "--folder", str(place.folder), "--idle", str(idle), "--device", device, "--threads", str(threads)]
    runner = session_runner()
    if runner is not None:
        words += ["--parent", str(runner)]
    with mapped():
        found = find_or_start(place, (sys.executable, "-m", "faceplate", *words), start_s=wait)
    print_lines(
        {"server": str(place.folder), "process": found.info.pid, "ends with": runner or "idling"}, as_json=False
    )
    return 0


@app.command("stop")
def stop(
    folder: Folder, wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for its end.")] = 120.0
) -> int:
    """Stop the server and wait for its end; one that has ended is no fault."""
    place = Place(folder.absolute())
    end = time.monotonic() + wait
    with mapped():
        try:
            pid = find(place).pid
        except ServerNotFound:
            print_lines({"server": "has ended"}, as_json=False)
            return 0
    process = None if sys.platform == "win32" else ParentWatch(pid)
    stop_server(place.name, place.folder, wait)
    while process is not None and process.is_alive():  # it is done, and lets go of its libraries
        if time.monotonic() > end:
            raise ResourceError(f"the server, process {pid}, does not end", hint="end the process")
        time.sleep(0.05)
    print_lines({"server": "is stopped", "process": f"{pid} has ended"}, as_json=False)
    return 0


def session_runner() -> int | None:
    """The process that runs the session to which this action belongs: the first one above that is of another session
    of the system and is no mere starter. None where the system does not tell (other than Linux)."""
    own, pid = _stat(os.getpid()), os.getppid()
    while own is not None and pid > 1:
        found = _stat(pid)
        if found is None:
            return None
        name, parent, session = found
        if session != own[2] and name not in _BETWEEN:
            return pid
        pid = parent
    return None


def _stat(pid: int) -> tuple[str, int, int] | None:
    """(name, parent, session) of a process, from /proc/PID/stat."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, int(fields[1]), int(fields[3])
