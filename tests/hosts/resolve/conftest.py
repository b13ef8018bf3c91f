"""No test waits between two tries of a call, or long between two looks at a render."""

from __future__ import annotations

import pytest

from faceplate_resolve import calls, rendering


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PAUSE_S", 0.0)
    monkeypatch.setattr(rendering, "POLL_S", 0.002)
