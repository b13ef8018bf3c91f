"""The client in each Python that hosts bring, against libzmq, also under another package name."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faceplate_client.connection import Place, write_connection
from tests.contract.wire.samples import SAMPLES, SAMPLES_2
from tests.support.pythons import find_python, version_of
from tests.unit.client.double import Double

HERE = Path(__file__).parent
PLUGINS = HERE.parents[2] / "host_plugins"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Double]:
    place = Place(tmp_path / "run")
    with place.server_lock() as lock:
        assert lock.acquire(1.0)
        with Double(f"ipc://{place.socket}", place.folder) as made:
            write_connection(place, made.info)
            yield made


def run_leaf(python: str, double: Double, parent: Path, package: str) -> None:
    # isolated and without site-packages: the standard library has to do
    words = [python, "-ISB", str(HERE / "leaf.py"), str(parent), package, str(double.folder), str(HERE / "golden")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen == {
        "python": version_of(python),
        "package": f"{package}.client",
        "golden": len(SAMPLES) + len(SAMPLES_2),
        "instance": double.info.instance,
        "ready": True,
        "hint": "wait for the job that uses the slot, or cancel it",
        "events": ["Progress", "Partial", "Partial", "Partial", "Done"],
        "refused": "input",
        "long": "Done",
        "rings": [],
        "foreign": [],
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_client_in_each_python(version: str, double: Double) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    run_leaf(python, double, PLUGINS, "faceplate_client")


def test_vendored_under_another_name(double: Double, tmp_path: Path) -> None:
    python = find_python("3.9") or find_python("3.11")
    assert python is not None
    shutil.copytree(
        PLUGINS / "faceplate_client",
        tmp_path / "studio" / "tools" / "fp",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    run_leaf(python, double, tmp_path, "studio.tools.fp")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_module_loads_in_each_python(version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    names = [path.stem for path in sorted((PLUGINS / "faceplate_client").glob("*.py")) if path.stem != "__init__"]
    code = "import importlib, sys; sys.path.insert(0, sys.argv[1])\n"
    code += "for name in sys.argv[2:]: importlib.import_module('faceplate_client.' + name)"
    done = subprocess.run(
        [python, "-ISBc", code, str(PLUGINS), *names], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {"actions", "live", "task", "slate"} <= set(names)
