"""The five commands of installers/server/README.md set a team up, as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate_client import Place
from faceplate_server.config import ServerConfig
from tests.integration.server.conftest import Running, wait_ready
from tests.integration.server.teams import HOST, free_port

README = Path(__file__).parents[3] / "installers" / "server" / "README.md"
COMMANDS = re.findall(r"^\| (team server|artist's machine) \| `(faceplate [^`]+)` \|", README.read_text("utf-8"), re.M)


def home(base: Path, name: str) -> dict[str, str]:
    """The environment of another machine's user."""
    folders = {f"XDG_{kind}_HOME": str(base / name / kind.lower()) for kind in ("CONFIG", "CACHE", "STATE")}
    return {**os.environ, "HOME": str(base / name), **folders}


@pytest.mark.skipif(sys.platform != "linux", reason="one machine has one loopback address elsewhere")
def test_five_commands_set_a_team_up(until: Callable[[Callable[[], bool]], None]) -> None:
    assert [command.split()[1] for _, command in COMMANDS] == ["keys", "keys", "keys", "serve", "serve"]
    assert len(COMMANDS) == 5
    servers: list[Running] = []
    known = {"TEAM_HOST": HOST, "0.0.0.0": HOST, "7447": str(free_port())}
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        base = Path(folder)
        try:
            for machine, command in COMMANDS:
                place = base / machine[:1]
                for name, value in known.items():
                    command = command.replace(name, value)
                words = [sys.executable, "-m", *shlex.split(command)]
                if "serve" in words:
                    place.mkdir(mode=0o700)
                    # two machines in one: each has a private folder of its own
                    words += ["--folder", str(place), "--device", "cpu"]
                    process = subprocess.Popen(words, env=home(base, machine[:4]), stderr=subprocess.DEVNULL)
                    servers.append(Running(process, Place(place)))
                    wait_ready(servers[-1])
                    continue
                ran = subprocess.run(words, env=home(base, machine[:4]), check=True, capture_output=True, text=True)
                if command == "faceplate keys":
                    known["TEAM_KEY" if machine == "team server" else "ANNA_KEY"] = ran.stdout.split()[-1]
            with servers[-1].client() as client:
                until(lambda: [one.name for one in client.status().devices] == [f"cpu at tcp://{HOST}:{known['7447']}"])
        finally:
            for server in servers:
                if server.process.poll() is None:
                    os.kill(server.process.pid, signal.SIGKILL)
                server.process.wait()


def test_the_configurations_that_are_shown_are_taken() -> None:
    text = re.search(r"```toml\n(.*?)```", README.read_text("utf-8"), re.S)
    assert text is not None
    values = tomllib.loads(text[1])
    ServerConfig(**{**values, "paths": tuple(values["paths"].items())})
    shown = (README.parent / "server.toml").read_text("utf-8").replace("# listen", "listen")
    values = tomllib.loads(shown)
    assert ServerConfig(**{**values, "roots": tuple(values["roots"])}).listen.startswith("tcp://0.0.0.0:")
