"""How much memory this process holds, and the worker processes that it has started."""

from __future__ import annotations

from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE_MB = 4096 / (1 << 20)


def process_mb() -> float:
    """Resident memory in MB of this process and its children, pages that they share counted in each. The peak of this
    process where the system tells no more (macOS); 0 where it tells nothing (Windows).
    """
    if _STATM.exists():
        return sum(_resident_mb(Path("/proc", pid)) for pid in ("self", *_children()))
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def _children() -> list[str]:
    """Processes that any thread of this one has started."""
    found: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += (task / "children").read_text("ascii").split()
        except OSError:
            continue  # a thread that has ended, or a kernel that does not tell
    return found


def _resident_mb(process: Path) -> float:
    try:
        return float((process / "statm").read_text("ascii").split()[1]) * _PAGE_MB
    except OSError:
        return 0.0  # it has ended
