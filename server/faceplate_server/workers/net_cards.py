"""The nets as the server itself knows them: cards, licences and whole files; they run in the worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faceplate.models.card import ModelCard
from faceplate.models.device import Device
from faceplate.models.sessions import Net, SessionPool


class NetCards(SessionPool):
    """A pool whose nets are never loaded: headers, ledgers and licences need no more than their cards.

    Args:
        device: where the workers run them.
        commercial: whether the job is paid work.
    """

    def __init__(self, device: Device, *, commercial: bool) -> None:
        super().__init__(device=device, threads=1, commercial=commercial)

    def _net(self, card: ModelCard, path: Path) -> Net:
        return Net(card, self.device, _elsewhere, path.stat().st_size)


def _elsewhere() -> Any:
    raise RuntimeError("nets run in the worker processes")
