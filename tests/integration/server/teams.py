"""Two servers as on two machines: a team server on 127.0.0.2 and a local one that sends its jobs there."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faceplate_server.team.keys import KeyFolder, TeamClient
from tests.integration.server.conftest import Running, start_server, wait_ready

HOST = "127.0.0.2"


def free_port(host: str = HOST) -> int:
    with socket.create_server((host, 0)) as one:
        return int(one.getsockname()[1])


@dataclass
class Team:
    """A team server, its keys, and the local servers that were started for it."""

    base: Path
    port: int
    server: Running
    keys: KeyFolder
    started: list[Running]

    @property
    def address(self) -> str:
        return f"tcp://{HOST}:{self.port}"

    @property
    def spool(self) -> Path:
        return self.base / "spool"

    def client_keys(self, name: str, *, allowed: bool = True, roots: tuple[str, ...] = ()) -> KeyFolder:
        folder = KeyFolder(self.base / f"keys-{name}")
        if allowed:
            self.keys.allow(TeamClient(name, folder.own().public, roots))
        return folder

    def local(
        self,
        name: str,
        *,
        allowed: bool = True,
        roots: tuple[str, ...] = (),
        address: str = "",
        key: str = "",
        config: str = "",
        wait: bool = True,
    ) -> Running:
        """A local server whose jobs go to the team server."""
        keys = self.client_keys(name, allowed=allowed, roots=roots)
        text = f'upstream = "{address or self.address}"\nkeys = "{keys.folder}"\n'
        text += f'upstream_key = "{key or self.keys.own().public.hex()}"\n{config}'
        server = start_server(self.base / f"l-{name}", config=text, warm=True)
        self.started.append(server)
        return wait_ready(server) if wait else server

    def start(self) -> None:
        """Start the team server, anew after a kill."""
        text = f'listen = "{self.address}"\nkeys = "{self.keys.folder}"\nspool = "{self.spool}"\n'
        self.server = start_server(self.base / "t", config=text, warm=True)
        self.started.append(self.server)


@contextmanager
def team_of() -> Iterator[Team]:
    """A team server; all that was started ends with it."""
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        base = Path(folder)
        team = Team(base, free_port(), None, KeyFolder(base / "keys"), [])  # type: ignore[arg-type]
        team.start()
        try:
            wait_ready(team.server)
            yield team
        finally:
            for server in team.started:
                if server.process.poll() is None:
                    os.kill(server.process.pid, signal.SIGKILL)
                server.process.wait()
