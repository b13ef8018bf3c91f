"""The leaf client that lives inside Blender, Resolve and Nuke: standard library only.

Start at `Client` (jobs), `Ring` (frames in shared memory) and `find_or_start` (the server); `wire` holds the messages,
`errors` everything that is raised.
"""

from . import errors, wire
from ._version import __version__
from .client import Client, Timeouts
from .connection import ConnectionInfo, Place, find
from .launch import Found, find_or_start
from .slots import FrameHeader, FrameType, Ring, as_array

__all__ = [
    "Client",
    "ConnectionInfo",
    "Found",
    "FrameHeader",
    "FrameType",
    "Place",
    "Ring",
    "Timeouts",
    "__version__",
    "as_array",
    "errors",
    "find",
    "find_or_start",
    "wire",
]
