"""The bytes of every message are a contract: kept as files, read and written the same."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from faceplate_client import wire
from tests.contract.wire.samples import SAMPLES

GOLDEN = Path(__file__).parent / "golden"


def test_every_message_has_a_sample_and_a_golden_file() -> None:
    assert set(SAMPLES) == set(wire.MESSAGES) == set(wire.TO_SERVER)
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(wire.MESSAGES)


@pytest.mark.parametrize("tag", sorted(SAMPLES))
def test_written_as_golden(tag: str) -> None:
    assert wire.encode(SAMPLES[tag]) == (GOLDEN / f"{tag}.json").read_bytes()


@pytest.mark.parametrize("tag", sorted(SAMPLES))
def test_golden_is_read(tag: str) -> None:
    assert wire.decode((GOLDEN / f"{tag}.json").read_bytes()) == SAMPLES[tag]


@pytest.mark.parametrize("tag", sorted(SAMPLES))
def test_order_and_spaces_do_not_count(tag: str) -> None:
    document = json.loads((GOLDEN / f"{tag}.json").read_bytes())
    turned = json.dumps(dict(reversed(document.items())), indent=1, ensure_ascii=False).encode()
    assert wire.decode(turned) == SAMPLES[tag]


def test_wire_imports_only_the_standard_library() -> None:
    tree = ast.parse(Path(wire.__file__).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert (node.module or "").split(".")[0] in sys.stdlib_module_names


def test_the_readme_lists_every_message_and_field() -> None:
    rows = {}
    for line in (Path(wire.__file__).parents[1] / "README.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[1].endswith(("to server", "to client")):
            rows[cells[0].strip("`")] = (cells[1], re.findall(r"`(\w+)`", cells[2]))
    ways = {True: "client to server", False: "server to client"}
    assert rows == {
        tag: (ways[wire.TO_SERVER[tag]], [spec.name for spec in dataclasses.fields(kind)])
        for tag, kind in wire.MESSAGES.items()
    }
