"""What the tests of the nets share: MediaPipe's wheel, got once, and the pool of the shipped nets."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray

from faceplate.models.sessions import SessionPool


def cache_folder() -> Path:
    """Where downloads stay from one run of the tests to the next."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "faceplate-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def need_network(what: str, result: "subprocess.CompletedProcess[str]") -> None:
    """Skip, in sight, what cannot be fetched; fail instead where the network is required."""
    if result.returncode == 0:
        return
    said = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
    message = f"{what} cannot be had: {said}"
    if os.environ.get("FACEPLATE_REQUIRE_NETWORK") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def mediapipe_wheel() -> Path:
    """MediaPipe 0.10.21's wheel: $FACEPLATE_MEDIAPIPE_WHEEL, else downloaded. Any platform's holds the same nets."""
    given = os.environ.get("FACEPLATE_MEDIAPIPE_WHEEL")
    if given:
        return Path(given)
    folder = cache_folder()
    found = sorted(folder.glob("mediapipe-0.10.21-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
        # Named, so that a Python for which there is no such wheel can take the nets too.
        command += ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64", "mediapipe==0.10.21"]
        need_network("MediaPipe's wheel", subprocess.run(command, capture_output=True, text=True, check=False))
        found = sorted(folder.glob("mediapipe-0.10.21-*.whl"))
    return found[0]


@pytest.fixture(scope="session")
def pool() -> Iterator[SessionPool]:
    """The shipped nets on one CPU thread."""
    with SessionPool(device="cpu", threads=1) as sessions:
        yield sessions


@pytest.fixture(scope="session")
def astronaut() -> NDArray[np.uint8]:
    """NASA's portrait of Eileen Collins, public domain: (512, 512, 3) uint8 RGB, sRGB-encoded."""
    return np.asarray(skimage.data.astronaut(), np.uint8)  # type: ignore[no-untyped-call]
