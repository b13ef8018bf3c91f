"""What is installed for each host, by path inside the place where it is put."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from .archive import NotBuildable, nuke_files, plugin_files, resolve_files
from .places import Host, Surroundings
from .record import Tree

INSTALLED = "installed.json"
"""In Nuke's plug-in folder: a Nuke that was started from a desktop has no PATH that leads to the program."""
SERVER_TOML = """\
# Settings of the server: every key with its default is in server/README.md; an unknown key is refused.
device = "auto"
idle_s = 0  # a service does not stop by itself
"""
_UNIT = """\
# A user's Faceplate server as a service: systemctl --user enable --now faceplate.service
[Unit]
Description=Faceplate server

[Service]
Type=exec
ExecStart="{program}" serve --config "{config}"
Restart=on-failure
RestartSec=2
# Current frames are finished: longer than stop_s of the configuration.
TimeoutStopSec=90
KillSignal=SIGTERM
KillMode=mixed
NoNewPrivileges=yes
LimitCORE=0

[Install]
WantedBy=default.target
"""
_AGENT = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>Label</key><string>faceplate.server</string>
    <key>ProgramArguments</key>
    <array>
        <string>{program}</string><string>serve</string><string>--config</string><string>{config}</string>
    </array>
    <key>RunAtLoad</key><true/>
    <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
    <key>ExitTimeOut</key><integer>90</integer>
</dict>
</plist>
"""
_STARTUP = '@echo off\r\nchcp 65001 >nul\r\nstart "Faceplate server" /min "{program}" serve --config "{config}"\r\n'


def blender_tree(host: Host, _place: Path, _around: Surroundings) -> Tree:
    """Blender's extension."""
    return Tree(host.own, _inside(host.own, plugin_files("faceplate_blender")))


def nuke_tree(host: Host, _place: Path, around: Surroundings) -> Tree:
    """Nuke's plug-in folder, which knows the program that installed it, and the line that puts it on Nuke's path."""
    line = f'import nuke\n\nnuke.pluginAddPath("./{host.own}")'
    told = json.dumps({"program": str(_program(around))}).encode()
    files = {**nuke_files(), INSTALLED: told}
    return Tree(host.own, _inside(host.own, files), lines={"init.py": line})


def resolve_tree(host: Host, _place: Path, _around: Surroundings) -> Tree:
    """The scripts of Resolve's menu, and the package that they call."""
    return Tree(host.own, resolve_files())


def server_tree(host: Host, place: Path, around: Surroundings) -> Tree:
    """The server as a service of this user, started by this environment's program, with a configuration to edit."""
    own = own_folder(host, around)
    config = place / own / "server.toml"
    both = {"program": str(_program(around)), "config": str(config)}
    if around.system == "linux":
        said = {key: _for_systemd(value) for key, value in both.items()}
        said["config"] = said["config"].replace("$", "$$")  # only the program's own path has no variables
        name, text = "systemd/user/faceplate.service", _UNIT.format(**said)
    elif around.system == "darwin":
        said = {key: escape(value) for key, value in both.items()}
        name, text = "LaunchAgents/faceplate.server.plist", _AGENT.format(**said)
    else:
        said = {key: value.replace("%", "%%") for key, value in both.items()}
        name, text = "Microsoft/Windows/Start Menu/Programs/Startup/Faceplate server.cmd", _STARTUP.format(**said)
    return Tree(own, {name: text.encode()}, seeds={f"{own}/server.toml": SERVER_TOML.encode()})


def own_folder(host: Host, around: Surroundings) -> str:
    """Our folder inside a place, which holds the record."""
    inside = host.name == "server" and around.system == "darwin"
    return f"Application Support/{host.own}" if inside else host.own


def _program(around: Surroundings) -> Path:
    return program_of("faceplate.exe" if around.system == "win32" else "faceplate")


def program_of(name: str) -> Path:
    """The program of this environment: beside Python, or where this Python's installers put programs.

    Raises:
        NotBuildable: it is in neither.
    """
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    folders = [Path(sys.executable).parent, *(Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes)]
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if found is None:
        raise NotBuildable(f"the program {name}, which starts the server, is not in {folders[0]}")
    return found


def _for_systemd(word: str) -> str:
    """Inside of double quotes on a command line of a unit."""
    for sign, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        word = word.replace(sign, escaped)
    return word


def _inside(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": data for name, data in files.items()}


TREES: Mapping[str, Callable[[Host, Path, Surroundings], Tree]] = {
    "blender": blender_tree,
    "nuke": nuke_tree,
    "resolve": resolve_tree,
    "server": server_tree,
}
