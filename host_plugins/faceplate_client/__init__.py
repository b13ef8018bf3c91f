"""The leaf client that lives inside Blender, Resolve and Nuke: standard library only."""

from ._version import __version__

__all__ = ["__version__"]
