"""What is not a message is refused, with the field's name, and nothing else is ever raised."""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate_client import wire
from tests.contract.wire.samples import NEWEST, SAMPLES, record, strange_json

GOLDEN = {tag: wire.encode(sample) for tag, sample in NEWEST.items()}


def changed(tag: str, **fields: Any) -> bytes:
    return json.dumps({**json.loads(GOLDEN[tag]), **fields}).encode()


@pytest.mark.parametrize("tag", sorted(wire.MESSAGES))
def test_any_message_comes_back(tag: str) -> None:
    @settings(max_examples=25, deadline=None, database=None)
    @given(record(wire.MESSAGES[tag]))
    def check(message: Any) -> None:
        data = wire.encode(message)
        assert wire.decode(data) == message
        assert wire.encode(wire.decode(data)) == data

    check()


@pytest.mark.parametrize("tag", sorted(wire.MESSAGES))
def test_each_field_must_be_there_and_no_other(tag: str) -> None:
    document = json.loads(GOLDEN[tag])
    for spec in dataclasses.fields(wire.MESSAGES[tag]):
        short = {name: value for name, value in document.items() if name != spec.name}
        with pytest.raises(wire.Malformed, match=f"field {spec.name} is missing") as caught:
            wire.decode(json.dumps(short).encode())
        assert caught.value.where == spec.name
    with pytest.raises(wire.Malformed, match="field zzz is not known"):
        wire.decode(changed(tag, zzz=1))


@pytest.mark.parametrize(
    ("tag", "fields", "where"),
    [
        ("ping", {"id": 7}, "id"),
        ("ping", {"id": ""}, "id"),
        ("ping", {"id": "x" * 65}, "id"),
        ("accepted", {"ahead": True}, "ahead"),
        ("accepted", {"ahead": -1}, "ahead"),
        ("accepted", {"ahead": 1.0}, "ahead"),
        ("accepted", {"ahead": 1 << 53}, "ahead"),
        ("submit_frame", {"frame": "1001"}, "frame"),
        ("submit_frame", {"priority": "urgent"}, "priority"),
        ("submit_frame", {"deadline_s": 0}, "deadline_s"),
        ("submit_frame", {"plate": None}, "plate"),
        ("submit_frame", {"plate": {"kind": "url", "pattern": "/x", "frame": 1}}, "plate"),
        ("submit_frame", {"plate": {"kind": "file", "pattern": "a\0b", "frame": 1}}, "plate.pattern"),
        ("submit_frame", {"plate": {"kind": "file", "pattern": "/a", "frame": 1, "slot": 2}}, "plate.slot"),
        ("submit_frame", {"assignments": [{"identity": "/a", "track": "both"}]}, "assignments[0].track"),
        ("submit_frame", {"assignments": [{"identity": "/a"}]}, "assignments[0].track"),
        ("submit_frame", {"settings": {"strength": [[1, 2, 3]]}}, "settings.strength[0]"),
        ("submit_frame", {"settings": {"strength": [[1, "2"]]}}, "settings.strength[0]"),
        ("pong", {"ready": 1}, "ready"),
        ("error", {"code": "whatever"}, "code"),
        ("progress", {"step": "\ud800"}, "step"),
        ("status_reply", {"uptime_s": -0.5}, "uptime_s"),
    ],
)
def test_wrong_values_name_their_field(tag: str, fields: dict[str, Any], where: str) -> None:
    with pytest.raises(wire.Malformed) as caught:
        wire.decode(changed(tag, **fields))
    assert caught.value.where == where
    assert caught.value.code == "malformed"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 21, "9" * 400_000])
def test_numbers_must_be_finite_and_short(number: str) -> None:
    for tag, name in (("status_reply", "uptime_s"), ("partial", "facts")):
        data = GOLDEN[tag].replace(b'"uptime_s":12.5', f'"uptime_s":{number}'.encode())
        data = data.replace(b'"note":null', f'"note":{number}'.encode())
        assert data != GOLDEN[tag], name
        with pytest.raises(wire.Malformed):
            wire.decode(data)
    with pytest.raises(wire.Malformed):
        wire.encode(dataclasses.replace(SAMPLES["progress"], remaining_s=float("nan")))


@pytest.mark.parametrize("version", [0, wire.PROTOCOL_MAX + 1, None, "1", True, 1.0, 10**19])
def test_other_versions(version: object) -> None:
    with pytest.raises(wire.UnsupportedVersion):
        wire.decode(changed("ping", v=version))


@pytest.mark.parametrize("tag", ["", "Ping", "shutdown", None, 3, ["ping"], {}])
def test_other_types(tag: object) -> None:
    with pytest.raises(wire.UnknownMessage):
        wire.decode(changed("ping", t=tag))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"ping"',
        b"{",
        b"\xff\xfe{}",
        '{"v":1,"t":"ping","id":"1"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"v":1,"t":"ping","id":"1"}',
        b'{"v":1,"t":"ping","id":"1"} x',
        b'{"v":1,"t":"ping","id":"1","id":"2"}',
        b'{"v":1,"t":"ping","id":"\xff"}',
        b"[" * 500_000,
        b'{"v":1,"t":"ping","id":' + b"[" * 20 + b"]" * 20 + b"}",
        b'"' + b'\\"' * 400_000,
        b"\x80\x04\x95.",
    ],
    ids=range(15),
)
def test_no_message(data: bytes) -> None:
    with pytest.raises(wire.Malformed):
        wire.decode(data)


def test_size_limit() -> None:
    with pytest.raises(wire.Malformed, match="too large"):
        wire.decode(GOLDEN["ping"] + b" " * wire.MAX_BYTES)
    with pytest.raises(wire.Malformed, match="too large"):
        wire.decode(GOLDEN["ping"], largest=10)
    keys = tuple((frame, 0.123456789) for frame in range(100_000))
    with pytest.raises(wire.Malformed, match="too large"):
        wire.encode(dataclasses.replace(SAMPLES["submit_frame"], settings={"strength": keys}))


def test_only_messages_are_written() -> None:
    for thing in (SAMPLES["submit_frame"].plate, {"t": "ping"}, None, wire.Ping):
        with pytest.raises(wire.UnknownMessage):
            wire.encode(thing)
    with pytest.raises(wire.UnsupportedVersion):
        wire.encode(SAMPLES["ping"], version=wire.PROTOCOL_MAX + 1)


def mutate_bytes(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data)) if data else 0
        way = rng.randrange(5)
        if way == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del data[at : at + rng.randint(1, 20)]
        elif way == 2:
            data[at:at] = rng.choice([b"{", b"}", b"[", b'"', b",", b"\\u", b"\0", b"NaN", b"-", b"e9999", b"\xc3"])
        elif way == 3:
            data[at:at] = data[at : at + rng.randint(1, 60)]
        else:
            data = data[:at]
    return bytes(data)


def mutate_value(document: Any, rng: random.Random) -> Any:
    if isinstance(document, dict) and document and rng.random() < 0.8:
        name = rng.choice(sorted(document))
        return {**document, name: mutate_value(document[name], rng)}
    if isinstance(document, list) and document and rng.random() < 0.8:
        at = rng.randrange(len(document))
        return [*document[:at], mutate_value(document[at], rng), *document[at + 1 :]]
    return rng.choice(strange_json())


def test_twenty_thousand_mutations_raise_only_typed_errors() -> None:
    rng = random.Random(3)
    tags = sorted(GOLDEN)
    refused = 0
    for number in range(20_000):
        data = GOLDEN[tags[number % len(tags)]]
        if number % 3:
            mutated = mutate_bytes(bytearray(data), rng)
        else:
            mutated = json.dumps(mutate_value(json.loads(data), rng)).encode()
        try:
            message = wire.decode(mutated)
        except wire.WireError as error:
            refused += error.code in wire.CODES
        else:
            assert wire.decode(wire.encode(message)) == message
    assert refused > 15_000


@settings(max_examples=200, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(data)
