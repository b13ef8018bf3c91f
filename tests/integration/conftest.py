"""One identity and small plates for whole jobs; jobs run through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from faceplate.cli.main import main
from tests.support.exr import write_flat
from tests.support.plates import SyntheticPlate, moving_plate


@dataclass(frozen=True)
class Ran:
    """A finished command line in this process."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def event(self, name: str) -> dict[str, Any]:
        return next(event for event in reversed(self.events) if event["event"] == name)


class Cli:
    """Runs `faceplate ...` in this process, where imports are warm."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: object) -> Ran:
        self._capfd.readouterr()
        code = main([str(word) for word in words])
        out, err = self._capfd.readouterr()
        assert "Traceback" not in out + err
        return Ran(code, out, err)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capfd)


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration's fictional person."""
    path = tmp_path_factory.mktemp("identity") / "person.fpid"
    assert main(["identity", "make", "person", *map(str, person_photos()), "-o", str(path)]) == 0
    return path


def person_photos() -> list[Path]:
    """The photos of the demonstration's fictional person."""
    return sorted(Path(str(files("faceplate.demo"))).glob("data/person_*.png"))


def write_plain_exr(path: Path, pixels: NDArray[np.float16]) -> None:
    """(H, W, C) as channels Y, YA, RGB or RGBA."""
    names = {1: "Y", 2: "YA", 3: "RGB", 4: "RGBA"}[pixels.shape[2]]
    write_flat(path, {name: np.ascontiguousarray(pixels[..., index]) for index, name in enumerate(names)})


SMALL = moving_plate(480, 300, 6, face_width_px=120, motion="linear", travel_px=40)


@pytest.fixture(scope="session")
def small_plate(tmp_path_factory: pytest.TempPathFactory) -> str:
    return SMALL.write(tmp_path_factory.mktemp("plate"))


@pytest.fixture(scope="session")
def small() -> SyntheticPlate:
    return SMALL


def start(words: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
    """`faceplate ...` in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "faceplate", *map(str, words)], **options)


def outputs(folder: Path) -> dict[str, bytes]:
    """Every result file of a folder by name; hidden ones are what a kill left, which the next run sweeps."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("[!.]*.exr"))}


def leftovers(folder: Path) -> list[str]:
    """Temporary files below a folder."""
    return [name for _, _, names in os.walk(folder) for name in names if name.startswith(".")]
