"""The two ends of a team, from a server's settings: the gateway of a team server, the worker of a local one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from faceplate.colour.spaces import ColourConfig
from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo

from ..config import ServerConfig
from ..rings import RingTable
from ..roots import Roots
from ..workers.threads import Tell
from .keys import KeyFolder, parse_key
from .listen import Gateway
from .rewrite import PathMap
from .spool import Spool, TeamView
from .upstream import UpstreamWorker
from .upstream_link import TeamAddress, UpstreamLink


def _keys(config: ServerConfig) -> KeyFolder:
    return KeyFolder(Path(config.keys) if config.keys else None)


def team_view(config: ServerConfig) -> TeamView:
    """How the worker sees jobs of other machines."""
    return TeamView(config.spool_path if config.listen else None)


def team_roots(config: ServerConfig) -> tuple[Path, ...]:
    """Folders that this server may touch: those of its settings, and the spool of its clients."""
    roots = tuple(map(Path, config.roots))
    return (*roots, config.spool_path) if config.listen else roots


def open_gateway(config: ServerConfig, info: ConnectionInfo, limits: wire.Limits) -> Gateway | None:
    """The door for other machines, not yet open; None where the settings name none.

    Raises:
        InputError: the address cannot be used.
        ResourceError, ClientError: keys or spool cannot be used.
    """
    if not config.listen:
        return None
    spool = Spool(config.spool_path, config.spool_mb << 20)
    colour = ColourConfig.open().fingerprint
    return Gateway(config.listen, _keys(config), spool, config.place.folder, info, limits, colour)


def make_upstream(config: ServerConfig, rings: RingTable, roots: Roots, tell: Tell) -> UpstreamWorker:
    """The worker that hands jobs to the team server of the settings.

    Raises:
        ResourceError, ClientError: the keys cannot be used.
    """
    team = TeamAddress(config.upstream, parse_key(config.upstream_key, "upstream_key"))
    line = UpstreamLink(team, _keys(config).own(), f"{socket.gethostname()}, process {os.getpid()}")
    paths = PathMap(dict(config.paths))
    return UpstreamWorker(
        line,
        rings,
        roots,
        paths,
        tell,
        at_once=config.shots,
        colour=lambda: ColourConfig.open().fingerprint,
    )
