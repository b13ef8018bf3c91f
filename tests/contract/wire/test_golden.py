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
from tests.contract.wire.samples import NEWEST, SAMPLES, SAMPLES_2

GOLDEN = Path(__file__).parent / "golden"
BY_VERSION = {1: (GOLDEN, SAMPLES), 2: (GOLDEN / "v2", SAMPLES_2)}
CASES = [(version, tag) for version, (_, samples) in BY_VERSION.items() for tag in sorted(samples)]


def golden(version: int, tag: str) -> bytes:
    return (BY_VERSION[version][0] / f"{tag}.json").read_bytes()


def test_every_message_has_a_sample_and_a_golden_file() -> None:
    assert set(NEWEST) == set(wire.MESSAGES) == set(wire.TO_SERVER) == set(wire.SINCE)
    assert max(BY_VERSION) == wire.PROTOCOL_MAX
    for folder, samples in BY_VERSION.values():
        assert {path.stem for path in folder.glob("*.json")} == set(samples)


@pytest.mark.parametrize(("version", "tag"), CASES)
def test_written_as_golden(version: int, tag: str) -> None:
    assert wire.encode(BY_VERSION[version][1][tag], version) == golden(version, tag)


@pytest.mark.parametrize(("version", "tag"), CASES)
def test_golden_is_read(version: int, tag: str) -> None:
    assert wire.decode(golden(version, tag)) == BY_VERSION[version][1][tag]


@pytest.mark.parametrize(("version", "tag"), CASES)
def test_order_and_spaces_do_not_count(version: int, tag: str) -> None:
    document = json.loads(golden(version, tag))
    turned = json.dumps(dict(reversed(document.items())), indent=1, ensure_ascii=False).encode()
    assert wire.decode(turned) == BY_VERSION[version][1][tag]


@pytest.mark.parametrize("tag", sorted(SAMPLES))
def test_a_peer_of_version_1_gets_what_it_knows(tag: str) -> None:
    newest, first = NEWEST[tag], wire.encode(SAMPLES[tag], 1)
    assert wire.encode(newest, 1) == first
    assert json.loads(first)["v"] == 1
    assert json.loads(wire.encode(newest))["v"] == (1 if tag in wire.FOR_EVER else 2)


@pytest.mark.parametrize("tag", sorted(set(SAMPLES_2) - set(SAMPLES)))
def test_what_version_1_does_not_know_is_not_said_to_it(tag: str) -> None:
    assert not wire.can_say(type(SAMPLES_2[tag]), 1)
    assert wire.can_say(type(SAMPLES_2[tag]), 2)
    with pytest.raises(wire.UnknownMessage):
        wire.encode(SAMPLES_2[tag], 1)
    with pytest.raises(wire.UnknownMessage):
        wire.decode(golden(2, tag).replace(b'"v":2', b'"v":1'))


def test_fields_of_version_2_are_unknown_to_version_1() -> None:
    with pytest.raises(wire.Malformed, match="field form is not known"):
        wire.decode(golden(2, "submit_frame").replace(b'"v":2', b'"v":1'))
    with pytest.raises(wire.Malformed, match="field form is missing"):
        wire.decode(golden(1, "submit_frame").replace(b'"v":1', b'"v":2'))


def test_wire_imports_only_the_standard_library() -> None:
    for path in Path(wire.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                # its own files, and nothing beside the package
                assert node.level == 1 or (node.module or "").split(".")[0] in sys.stdlib_module_names


def test_the_readme_lists_every_message_and_field() -> None:
    rows = {}
    for line in (Path(wire.__file__).parents[2] / "README.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[1].endswith(("to server", "to client")):
            rows[cells[0].split("`")[1]] = (cells[1], re.findall(r"`(\w+)`", cells[2]))
    ways = {True: "client to server", False: "server to client"}
    assert rows == {
        tag: (ways[wire.TO_SERVER[tag]], [spec.name for spec in dataclasses.fields(kind)])
        for tag, kind in wire.MESSAGES.items()
    }
