"""The one version number of everything in this repository."""

__version__ = "0.1.0"
