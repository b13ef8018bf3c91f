"""How much memory this process holds, and the worker processes that it has started."""

from __future__ import annotations

from pathlib import Path

_PAGE_MB = 4096 / (1 << 20)


def process_mb(*, children: bool = True) -> float:
    """Resident memory in MB of this process and, unless told not to, its children, pages that they share counted in
    each. The peak of this process where the system tells no more (macOS); 0 where it tells nothing (Windows).

    Args:
        children: finding them looks at each thread of this process, which takes some tenths of a millisecond.
    """
    own = _resident_mb("self")
    if own:
        return own + (sum(map(_resident_mb, children_of("self"))) if children else 0.0)
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def children_of(process: int | str) -> list[str]:
    """Processes that any thread of a process has started; on Linux alone."""
    found: list[str] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            found += (task / "children").read_text("ascii").split()
        except OSError:
            continue  # a thread that has ended, or a kernel that does not tell
    return found


def _resident_mb(process: str) -> float:
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return float(file.read().split()[1]) * _PAGE_MB
    except OSError:
        return 0.0  # it has ended, or the system has no such files
