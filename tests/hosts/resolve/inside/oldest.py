"""Runs in the oldest Python that Resolve may bring, without site-packages: the contract suite on the made-up Resolve.

oldest.py REQUEST.json: names of checks and the bench; prints by name what went wrong, "" for nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

REQUEST = json.loads(Path(sys.argv[1]).read_text("utf-8"))
sys.path[:0] = REQUEST["paths"]

from faceplate_client.connection import Place  # noqa: E402
from faceplate_client.frame_maths import Span  # noqa: E402
from faceplate_client.task import Servers  # noqa: E402
from faceplate_resolve.host import ResolveHost  # noqa: E402
from tests.contract.hosts.checks import CHECKS, Bench  # noqa: E402
from tests.hosts.resolve.fake.application import Resolve  # noqa: E402
from tests.hosts.resolve.stage import ResolveStage  # noqa: E402


def run(name: str, facts: dict[str, Any]) -> str:
    """One check in a folder of its own."""
    folder = Path(facts["folder"]) / name
    shutil.copytree(Path(facts["original"]).parent, folder / "plate", ignore=shutil.ignore_patterns("*.json"))
    (folder / "work").mkdir()
    resolve = Resolve()
    bench = Bench(
        host=ResolveHost(resolve),
        stage=ResolveStage(resolve),
        servers=Servers(Place(Path(facts["server"]))),
        restartable=False,
        plate=str(folder / "plate" / Path(facts["original"]).name),
        media=Span(*facts["media"]),
        size=(facts["size"][0], facts["size"][1]),
        identity=facts["identity"],
        reference=facts["reference"],
        folder=folder / "work",
    )
    try:
        CHECKS[name](bench)
    except BaseException:
        return traceback.format_exc()
    return ""


foreign = sorted(name for name in sys.modules if name.split(".")[0] in ("numpy", "zmq", "faceplate"))
told = {name: run(name, REQUEST) for name in REQUEST["names"]}
print(json.dumps({"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "told": told, "foreign": foreign}))
