"""The error tree is as drawn, every error has a next step, none of `wire`'s gets past the client."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TypeVar

import pytest

import faceplate_client
from faceplate_client import errors, wire
from faceplate_client.deadline import Deadline
from faceplate_client.errors import ClientError, LaunchFailed, RequestTimeout, TotalTimeout

T = TypeVar("T", bound=Exception)


def below(kind: type[T]) -> Iterator[type[T]]:
    children: list[type[T]] = kind.__subclasses__()
    for child in children:
        yield child
        yield from below(child)


def name_of(kind: type[Exception]) -> str:
    return kind.__name__


ERRORS: list[type[ClientError]] = sorted(below(ClientError), key=name_of)


def test_the_tree_is_drawn() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([ │├└─]*)([A-Z]\w+)\b", line)
        if match:
            depth = len(match[1]) // 4
            path = [*path[:depth], match[2]]
            drawn[match[2]] = path[-2] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in (*ERRORS, ClientError)}


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_hint_and_a_docstring(kind: type[ClientError]) -> None:
    assert kind.__doc__
    assert kind.default_hint


def test_what_an_error_says() -> None:
    error = ClientError("it is wrong", expected="a", found="b")
    assert str(error) == "it is wrong; expected a; found b"
    assert error.hint == ClientError.default_hint
    assert ClientError("x", hint="do y").hint == "do y"
    assert str(LaunchFailed("no", log="boom")).endswith("\nboom")
    answer = wire.Error("7", "device", "DeviceError", "out of memory", "8 GB", "4 GB", None)
    server = errors.ServerError(answer)
    assert (server.code, server.type, server.job_id) == ("device", "DeviceError", "7")
    assert (server.expected, server.found) == ("8 GB", "4 GB")
    assert server.hint


def test_all_of_wires_errors_are_mapped() -> None:
    for kind in below(wire.WireError):
        mapped = errors.from_wire(kind("m", expected="e", found="f"))
        assert type(mapped) is not errors.ProtocolError
        assert (mapped.message, mapped.expected, mapped.found) == ("m", "e", "f")
        assert kind.code in wire.CODES


def test_a_part_of_a_deadline_never_ends_later() -> None:
    total = Deadline(0.05, "the job", TotalTimeout)
    assert total.within(5, "a part", RequestTimeout) is total
    part = Deadline(5, "the job", TotalTimeout).within(0.01, "a part", RequestTimeout)
    assert 0 < part.remaining() <= 0.01
    time.sleep(0.06)
    with pytest.raises(TotalTimeout, match=r"the job took longer than 0\.05 s"):
        total.remaining()
    with pytest.raises(RequestTimeout, match="a part"):
        part.remaining()


def test_the_public_door() -> None:
    assert sorted(faceplate_client.__all__) == faceplate_client.__all__
    for name in faceplate_client.__all__:
        assert getattr(faceplate_client, name) is not None
