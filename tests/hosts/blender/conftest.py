"""Real Blenders: each test's code runs inside bpy in a process of its own, for each version that is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faceplate.cli.main import main
from tests.hosts.blender.environments import VERSIONS, ready
from tests.integration.conftest import identity, small_plate  # noqa: F401 - fixtures
from tests.integration.server.conftest import Running, running

ROOT = Path(__file__).parents[3]
INSIDE = Path(__file__).parent / "inside"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "blender" in metafunc.fixturenames:
        metafunc.parametrize("blender", [version.name for version in VERSIONS], indirect=True, scope="session")


@pytest.fixture(scope="session")
def extension_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as `installers/build.py` builds it."""
    out = tmp_path_factory.mktemp("zip")
    done = subprocess.run(
        [sys.executable, ROOT / "installers" / "build.py", "blender", "-o", out], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@dataclass(frozen=True)
class Blender:
    """One version.

    Attributes:
        version: "4.2".
        python: the interpreter that has its bpy.
        extension: the extension's files, unpacked.
        folder: for its user folders.
    """

    version: str
    python: Path
    extension: Path
    folder: Path

    @property
    def number(self) -> tuple[int, int]:
        major, minor = self.version.split(".")
        return int(major), int(minor)

    def run(
        self,
        module: str,
        function: str,
        *,
        enable: bool = True,
        paths: tuple[Path, ...] = (),
        timeout: float = 120.0,
        environment: dict[str, str] | None = None,
        **arguments: Any,
    ) -> Any:
        """Call a function of a module in `inside/` in a fresh Blender; what it returns."""
        place = self.folder / f"{module}.{function}.{len(list(self.folder.iterdir()))}"
        place.mkdir()
        resources = place / "user"
        if enable:
            shutil.copytree(self.extension, resources / "extensions" / "user_default" / "faceplate")
        else:
            resources.mkdir()
        request = place / "request.json"
        request.write_text(
            json.dumps(
                {
                    "enable": enable,
                    "module": module,
                    "function": function,
                    "arguments": {name: str(v) if isinstance(v, Path) else v for name, v in arguments.items()},
                    "paths": [str(path) for path in paths],
                }
            ),
            "utf-8",
        )
        log = place / "log"
        with log.open("wb") as out:
            done = subprocess.run(
                [self.python, "-B", INSIDE / "start.py", request],
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                cwd=place,
                env={**_clean(), "BLENDER_USER_RESOURCES": str(resources), **(environment or {})},
            )
        answer = place / "request.answer"
        assert answer.is_file(), (
            f"Blender {self.version} died with {done.returncode}: {log.read_text(errors='replace')}"
        )
        said = json.loads(answer.read_text("utf-8"))
        assert said["error"] is None, f"Blender {self.version}: {said['error']}"
        return said["value"]


ENDS = (VERSIONS[0].name, VERSIONS[-1].name)


def at_the_ends(blender: Blender) -> None:
    """Skip a test in the versions between: of what is the same code in each, the oldest and the newest are enough.

    FACEPLATE_BPY_WHOLE_CONTRACT=1 runs it in each version.
    """
    if blender.version not in ENDS and os.environ.get("FACEPLATE_BPY_WHOLE_CONTRACT") != "1":
        pytest.skip("the same code in each version: it runs in the oldest and the newest")


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BLENDER", "OCIO"))}


@pytest.fixture(scope="session")
def unpacked(extension_zip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extension")
    zipfile.ZipFile(extension_zip).extractall(folder)
    return folder


@pytest.fixture(scope="session")
def blender(request: pytest.FixtureRequest, unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Blender:
    version = next(one for one in VERSIONS if one.name == request.param)
    python = ready(version)
    if python is None:
        why = f"no bpy {version.name}: python3 tests/hosts/blender/environments.py makes it"
        if os.environ.get("FACEPLATE_REQUIRE_BPY") == "1":
            pytest.fail(f"FACEPLATE_REQUIRE_BPY=1, but {why}")
        pytest.skip(why)
    return Blender(version.name, python, unpacked, tmp_path_factory.mktemp(f"blender {version.name} ä"))


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """One server for all tests that leave it whole."""
    with running() as one:
        yield one


FRAMES = 3
SPACE = "lin_rec709_scene"
"""What the tests set strips and nodes of the shot to."""


@pytest.fixture(scope="session")
def shot(small_plate: str, identity: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:  # noqa: F811
    """A plate with a face, and what the command line makes of it."""
    folder = tmp_path_factory.mktemp("shot ä")
    plates, results = folder / "plates", folder / "results"
    plates.mkdir()
    for path in sorted(Path(small_plate).parent.glob("*.exr"))[:FRAMES]:
        shutil.copyfile(path, plates / f"pl ä.{path.name.split('.')[-2]}.exr")
    words = ["apply", plates / "pl ä.####.exr", "--identity", identity, "-o", results / "r.####.exr"]
    assert main([str(word) for word in (*words, "--input-space", SPACE, "--layers", "rgba")]) == 0
    return {"plates": plates, "results": results, "identity": identity}
