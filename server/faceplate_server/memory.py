"""How much memory this process holds."""

from __future__ import annotations

from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE_MB = 4096 / (1 << 20)


def process_mb() -> float:
    """Resident memory in MB; the peak where the system tells no more (macOS); 0 where it tells nothing (Windows)."""
    if _STATM.exists():
        return float(_STATM.read_text("ascii").split()[1]) * _PAGE_MB
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
