"""One job of a client, as its team server holds it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .rooms import Room


@dataclass(eq=False)
class TeamJob:
    """A job of a client.

    Attributes:
        id: as the client named it.
        inner: as this server's own queue knows it.
        message: as it came.
        head: of its `job`.
        missing: contents that have not come yet.
        frames: of the head, as they come in.
        rooms: for results.
        waiting: frames that are not whole yet.
        started: whether the server has it.
        told: size and time of the files that were sent back.
        synced: `time.monotonic()` when the job folder was sent back.
    """

    id: str
    inner: str
    message: Any
    head: Mapping[str, Any]
    missing: set[str] = field(default_factory=set)
    frames: list[Room] = field(default_factory=list)
    rooms: list[Room] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    started: bool = False
    told: dict[Path, tuple[int, int]] = field(default_factory=dict)
    synced: float = field(default_factory=time.monotonic)

    @property
    def urgent(self) -> bool:
        """Whether a person waits for it."""
        return bool(self.message.priority == "interactive")

    @property
    def contents(self) -> dict[str, int]:
        """Sizes of the files that came with it, by hash."""
        return {content: size for _, content, size, _ in self.head["files"]}
