"""What a soak looks at in a running server: memory, descriptors, mapped rings, files that should not be there."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import astuple, dataclass
from pathlib import Path

_KNOWN = re.compile(r"server-[a-z0-9-]+\.(json|lock|sock|log|page|page-token)|launch-.*\.lock|server\.toml|log(\.\d+)?")


@dataclass(frozen=True)
class Memory:
    """Of a server and its worker processes, from /proc: MB, threads, open descriptors."""

    resident_mb: float
    anonymous_mb: float
    threads: int
    descriptors: int


def family(pid: int) -> list[int]:
    """A server and its worker processes."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            found += map(int, (task / "children").read_text("ascii").split())
    return found


def memory_of(pid: int) -> Memory:
    """What they hold now."""
    each = []
    for one in family(pid):
        with contextlib.suppress(OSError):  # a worker that has just ended
            each.append(_memory_of(one))
    return Memory(*(sum(column) for column in zip(*map(astuple, each), strict=True)))


def _memory_of(pid: int) -> Memory:
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    facts = dict(line.split(":", 1) for line in text.splitlines())

    def megabytes(name: str) -> float:
        return int(facts[name].split()[0]) / 1024

    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return Memory(megabytes("VmRSS"), megabytes("RssAnon"), int(facts["Threads"]), descriptors)


def growth_percent(before: float, after: float) -> float:
    """How much more, in percent."""
    return round(100 * (after - before) / before, 3)


def mapped_rings(pid: int) -> set[str]:
    """Frame rings that a server and its workers have mapped, those whose files are gone too."""
    texts = (Path(f"/proc/{one}/maps").read_text("utf-8") for one in family(pid))
    return {ring for text in texts for ring in re.findall(r"\S+\.ring", text)}


def strange_files(folder: Path) -> list[str]:
    """Names in a server's folder that are none of its own."""
    return sorted(path.name for path in folder.iterdir() if not _KNOWN.fullmatch(path.name))
