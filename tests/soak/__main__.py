"""The long tests of the server, with counts of one's own: `python -m tests.soak --help`, from the repository's root.

What it finds is printed as one JSON object a part, and the exit code is 1 when a figure is not as it has to be.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from faceplate.cli.main import main as faceplate
from tests.integration.conftest import SMALL, outputs, person_photos
from tests.soak.frames import soak_frames
from tests.soak.kills import Shot, kill_clients, kill_servers
from tests.soak.mutants import soak_messages

PARTS = ("frames", "messages", "client kills", "server kills")
GROWTH_PERCENT = 1.0
HANG_S = 12.0
"""Longest that any answer, or a client's notice that its server is dead, may take: the client's own deadlines."""


def make_shot(folder: Path) -> Shot:
    """The small plate with its sidecar, an identity, and the result of a run in which nobody dies."""
    plate = SMALL.write(folder / "plate")
    identity = folder / "person.fpid"
    words = ["apply", plate, "--identity", str(identity), "-o", str(folder / "whole" / "o.####.exr"), "--device", "cpu"]
    for command in (
        ["identity", "make", "person", *map(str, person_photos()), "-o", str(identity)],
        ["analyse", plate, "--device", "cpu"],
        words,
    ):
        if faceplate(command) != 0:
            raise SystemExit(f"faceplate {' '.join(command)} failed")
    return Shot(plate, identity, outputs(folder / "whole"), folder / "results")


def faults(part: str, found: dict[str, Any]) -> list[str]:
    """What is not as it has to be, in words."""
    wrong = [
        f"{part}: {name} is {found[name]}" for name in ("lost", "doubled", "wrong", "exit_code") if found.get(name)
    ]
    for name in ("stale_files", "leaked", "batches_not_resumed"):
        wrong += [f"{part}: {name}: {found[name]}"] if found.get(name) else []
    if found.get("memory_growth_percent", 0.0) >= GROWTH_PERCENT:
        wrong.append(f"{part}: memory grew by {found['memory_growth_percent']} %")
    if found.get("slowest_answer_s", 0.0) > HANG_S:
        wrong.append(f"{part}: an answer took {found['slowest_answer_s']} s")
    if not found.get("alive", True) or found.get("open_jobs"):
        wrong.append(f"{part}: the server is not well: {found}")
    return wrong


def main(words: list[str] | None = None) -> int:
    """Run the parts whose counts are not 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100_000, help="null-engine frames")
    parser.add_argument("--client-kills", type=int, default=200)
    parser.add_argument("--server-kills", type=int, default=50)
    parser.add_argument("--messages", type=int, default=100_000, help="mutated messages")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    wrong: list[str] = []

    def tell(part: str, found: dict[str, Any]) -> None:
        wrong.extend(faults(part, found))
        print(json.dumps({"part": part, **found}), flush=True)

    with tempfile.TemporaryDirectory(prefix="fp-soak-") as name:
        folder = Path(name)
        if given.frames:
            tell("frames", soak_frames(given.frames))
        if given.messages:
            (folder / "root").mkdir()
            tell("messages", soak_messages(given.messages, given.seed, str(folder / "root")))
        shot = make_shot(folder) if given.client_kills or given.server_kills else None
        if shot is not None and given.client_kills:
            tell("client kills", kill_clients(given.client_kills, shot, given.seed))
        if shot is not None and given.server_kills:
            own = folder / "s"
            own.mkdir(mode=0o700)
            tell("server kills", kill_servers(given.server_kills, shot, given.seed, own))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
