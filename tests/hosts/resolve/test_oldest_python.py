"""The plug-in in Python 3.9 without site-packages: from its sources, and as it is installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from faceplate_install.archive import plugin_files
from tests.contract.hosts.conftest import PLATE
from tests.integration.server.conftest import Running
from tests.support.pythons import find_python

ROOT = Path(__file__).parents[3]
OLDEST = "3.9"
NAMES = ["clips_are_told_as_they_are", "remove_restores_exactly", "a_retimed_clip_is_baked_first"]


@pytest.fixture
def oldest() -> str:
    python = find_python(OLDEST)
    if python is None:
        pytest.skip(f"Python {OLDEST} is not on this machine")
    return python


def test_the_contract(
    oldest: str,
    server: Running,
    tmp_path: Path,
    original: str,
    reference: str,
    identity: Path,
) -> None:
    request = tmp_path / "request.json"
    facts = {
        "paths": [str(ROOT / "host_plugins"), str(ROOT)],
        "names": NAMES,
        "folder": str(tmp_path / "checks"),
        "original": original,
        "reference": reference,
        "identity": str(identity),
        "server": str(server.place.folder),
        "media": [1001, 1008],
        "size": [PLATE.width, PLATE.height],
    }
    request.write_text(json.dumps(facts), "utf-8")
    script = ROOT / "tests" / "hosts" / "resolve" / "inside" / "oldest.py"
    run = subprocess.run([oldest, "-ISB", str(script), str(request)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said == {"python": OLDEST, "told": dict.fromkeys(NAMES, ""), "foreign": []}


def test_as_it_is_installed(oldest: str, tmp_path: Path) -> None:
    """With the client inside: every module is imported, and a command answers."""
    target = tmp_path / "Fusion" / "Faceplate" / "faceplate_resolve"
    for name, data in plugin_files("faceplate_resolve").items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    assert (target / "LICENSE").is_file()
    code = f"""
import importlib, pkgutil, sys
sys.path[:0] = [{str(target.parent)!r}, {str(ROOT)!r}]
import faceplate_resolve
names = [found.name for found in pkgutil.walk_packages(faceplate_resolve.__path__, "faceplate_resolve.")]
for name in names:
    if not name.endswith("__main__") and ".menu" not in name:
        importlib.import_module(name)
from faceplate_resolve.__main__ import main
from tests.hosts.resolve.fake.application import Resolve
class Module:
    def scriptapp(self, name):
        return Resolve()
code = main(["check", "--settings", {str(tmp_path / "resolve.json")!r}], Module())
assert "faceplate_client" not in sys.modules, "the client is the plug-in's own"
print(code, "faceplate_resolve.faceplate_client.client" in names)
"""
    run = subprocess.run([oldest, "-ISBc", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "DaVinci Resolve Studio 21.0.4" in run.stdout
    assert run.stdout.split()[-2:] in (["3", "True"], ["0", "True"])
