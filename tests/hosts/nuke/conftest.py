"""The stand-in for Nuke on the path, a stage to act in it as an artist would, and a plate in Nuke's terms."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FAKE = Path(__file__).parent / "fake"
if str(FAKE) not in sys.path:
    sys.path.insert(0, str(FAKE))

import nuke  # noqa: E402
from nuke.document import APP  # noqa: E402

from faceplate.cli.main import main  # noqa: E402
from faceplate_client.frame_maths import Span  # noqa: E402
from faceplate_client.slots import FrameHeader  # noqa: E402
from faceplate_nuke import application, buttons, host, servers  # noqa: E402
from faceplate_nuke.files import nuke_path  # noqa: E402
from tests.contract.hosts.conftest import (  # noqa: E402, F401 - fixtures
    make_bench,
    original,
    own_server,
)
from tests.integration.conftest import identity  # noqa: E402, F401 - a fixture
from tests.integration.server.conftest import Running, running  # noqa: E402
from tests.support.plates import moving_plate  # noqa: E402


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """One server for all tests that leave it whole."""
    with running() as one:
        yield one


@pytest.fixture(scope="session")
def reference(original: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """What the command line makes of the plate in the space that Nuke reads it in."""
    pattern = tmp_path_factory.mktemp("reference") / "o.####.exr"
    words = ["apply", original, "--identity", str(identity), "-o", str(pattern), "--device", "cpu"]
    assert main([*words, "--input-space", "lin_ap1_scene"]) == 0
    return str(pattern)


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A fresh Nuke with an empty script in ACEScg."""
    monkeypatch.delenv("OCIO", raising=False)
    nuke.reset()
    buttons.close()
    return nuke


@pytest.fixture(scope="session")
def plates(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plate with overscan and pixels that are twice as wide as high, with a time code."""
    return moving_plate(96, 54, 4, face_width_px=24, overscan=6, pixel_aspect=2.0).write(tmp_path_factory.mktemp("p"))


class NukeStage:
    """What the checks do to a script as an artist would; see `tests.contract.hosts.bench.Stage`."""

    def plate(self, pattern: str, media: Span, **values: Any) -> Any:
        """A raw Read of files, black outside of them."""
        return nuke.create(
            "Read",
            file=nuke_path(pattern),
            first=media.first,
            last=media.last,
            before="black",
            after="black",
            **{"raw": True, **values},
        )

    def group(self, source: Any, timeline: Span | None = None, name: str = "", **values: Any) -> Any:
        """A Faceplate group behind a node, as Tab makes it, selected."""
        chosen = [node for node in nuke.allNodes() if node["selected"].value()]
        for node in nuke.allNodes():
            node.setSelected(node == source)
        group = nuke.toNode(application.add_group())
        assert group is not None
        assert group.input(0) == source
        if timeline is not None:
            values = {"range": "custom", "first": timeline.first, "last": timeline.last, **values}
        for knob, value in {"result_name": name, **values}.items():
            group[knob].setValue(value)
        for node in chosen:
            node.setSelected(True)
        return group

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        first = str(start - (used.first - media.first))
        read = self.plate(pattern, media, frame_mode="start at", frame=first)
        return str(self.group(read, Span(start, start + len(used) - 1), name).fullName())

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        read = self.plate(pattern, media, frame=f"{media.first} + floor((frame - {start}) / 2)")
        return str(self.group(read, Span(start, start + length - 1), name).fullName())

    def select(self, clip_ids: list[str]) -> None:
        for node in nuke.allNodes():
            node.setSelected(node.fullName() in clip_ids)

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        group = nuke.toNode(clip_id)
        group["first"].setValue(group["first"].value() + head)
        group["last"].setValue(group["last"].value() - tail)

    def delete(self, clip_id: str) -> None:
        nuke.delete(nuke.toNode(clip_id))

    def snapshot(self) -> Any:
        return nuke.snapshot()

    def undo(self) -> str:
        return str(nuke.Undo.undo())

    def shown_file(self, frame: int) -> str:
        """Of the group whose range has the frame: a script has no timeline of its own."""
        for group in host.NukeHost()._groups():
            if group["first"].value() <= frame <= group["last"].value():
                return nuke.shownFile(group, frame)
        return ""

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        return False

    def picture(self) -> tuple[FrameHeader, bytes] | None:
        return None


@pytest.fixture
def stage() -> NukeStage:
    return NukeStage()


@pytest.fixture
def talks_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Have buttons and batches use a server by its folder."""

    def use(folder: Path, **more: Any) -> None:
        settings = servers.ServerSettings(folder=str(folder), **more)
        monkeypatch.setattr(buttons, "load_settings", lambda: settings)

    return use


def turn_until_idle(seconds: float = 60.0) -> None:
    """Nuke's event loop, until no action is at work."""
    end = time.monotonic() + seconds
    while buttons.RUNNING.task is not None or APP.waiting:
        APP.pump()
        time.sleep(0.002)
        assert time.monotonic() < end, "the action does not end"
