"""Content hashes of files, each computed once while the file stays as it is."""

from __future__ import annotations

import threading
from pathlib import Path

from ..media.file_hash import file_hash


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of change; one that never recurs for what is not there (the reader says why)."""
    try:
        state = path.stat()
    except OSError:
        return -1, -1
    return state.st_size, state.st_mtime_ns


class HashCache:
    """Content hashes of input files, computed again only when size or time of change differ. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, int, str]] = {}
        self._lock = threading.Lock()

    def get(self, path: Path) -> str:
        """SHA-256 of the file's content."""
        stamp = _stamp(path)
        with self._lock:
            known = self._known.get(path)
        if known is not None and known[:2] == stamp:
            return known[2]
        value = file_hash(path)
        with self._lock:
            self._known[path] = (*stamp, value)
        return value
