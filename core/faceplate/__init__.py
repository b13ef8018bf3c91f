"""Faceplate: face replacement for film plates, float and scene-linear from the reader to the writer.

Importing this package loads neither torch nor onnxruntime.
"""

from importlib.metadata import version

__version__ = version("faceplate")

__all__ = ["__version__"]
