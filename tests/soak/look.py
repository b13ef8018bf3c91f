"""What a soak looks at in a running server: memory, descriptors, mapped rings, files that should not be there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_KNOWN = re.compile(r"server-[a-z0-9-]+\.(json|lock|sock|log|page|page-token)|launch-.*\.lock|server\.toml|log(\.\d+)?")


@dataclass(frozen=True)
class Memory:
    """Of one process, from /proc: MB, threads, open descriptors."""

    resident_mb: float
    anonymous_mb: float
    threads: int
    descriptors: int


def memory_of(pid: int) -> Memory:
    """What the process holds now."""
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
    """Frame rings that the process has mapped, those whose files are gone too."""
    return set(re.findall(r"\S+\.ring", Path(f"/proc/{pid}/maps").read_text("utf-8")))


def strange_files(folder: Path) -> list[str]:
    """Names in a server's folder that are none of its own."""
    return sorted(path.name for path in folder.iterdir() if not _KNOWN.fullmatch(path.name))
