"""Values come out of the pipe as they went in; a closed end is told."""

from __future__ import annotations

import dataclasses
import os
import threading
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from faceplate.face import Appearance, Origin
from faceplate.frame import Box
from faceplate.job import HoldOut as FileHoldOut
from faceplate_client import wire
from faceplate_server.workers import pipe
from faceplate_server.workers.pipe import Pipe, PipeClosed, decode, encode

LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.sampled_from([Origin.EDITED, Path("/show/a.exr"), Box(1, 2, 3, 4), wire.SlotRef("/r", "1:2", 3, 4, 5)]),
)
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=3),
    ),
    max_leaves=12,
)


def there_and_back(message: dict[str, Any]) -> dict[str, Any]:
    _, document, *arrays = encode(message)
    return decode(document, b"".join(bytes(part) for part in arrays))


@given(st.dictionaries(st.text(), VALUE, max_size=4))
@settings(max_examples=200, deadline=None)
def test_every_value_comes_back(message: dict[str, Any]) -> None:
    assert there_and_back(message) == message


@given(
    st.lists(
        hnp.arrays(
            st.sampled_from(["f2", "f4", "f8", "u1", "i8", "?"]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)
        ),
        max_size=4,
    )
)
@settings(max_examples=100, deadline=None)
def test_arrays_come_back_bit_for_bit(arrays: list[Any]) -> None:
    found = there_and_back({"arrays": arrays})["arrays"]
    for given_, got in zip(arrays, found, strict=True):
        assert (got.dtype, got.shape, got.tobytes()) == (given_.dtype, given_.shape, given_.tobytes())


def test_types_of_one_name_are_told_apart_and_strangers_are_refused() -> None:
    values = {"file": FileHoldOut("/a.exr", "x"), "wire": wire.HoldOut(wire.FileRef("/a.exr", 1), "x")}
    assert there_and_back(values) == values
    median = np.zeros((2, 2, 3), np.float32)[:, ::-1]
    back = there_and_back({"a": Appearance(median, median[..., 0])})["a"]
    assert isinstance(back, Appearance)
    with pytest.raises(TypeError, match="cannot go"):
        encode({"a": object()})
    with pytest.raises(KeyError):
        decode(b'{"a":{"$":"os.system","is":{}}}', b"")


def test_what_a_type_of_the_table_holds_is_in_the_table() -> None:
    """A field that was added to a face, say, whose type nobody told the pipe of."""
    lacking = []
    for kind in pipe._by_name().values():
        if dataclasses.is_dataclass(kind):
            hints = get_type_hints(kind)
            held = [one for spec in dataclasses.fields(kind) for one in _within(hints[spec.name])]
            lacking += [(kind, one) for one in held if pipe._by_name().get(pipe._name(one)) is not one]
    assert lacking == []


def _within(hint: Any) -> list[type]:
    """Dataclasses and enumerations that an annotation names."""
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, Enum)):
        return [hint]
    return [one for part in get_args(hint) for one in _within(part)]


def test_messages_of_many_threads_stay_whole_and_the_end_is_told() -> None:
    reading, writing = os.pipe()
    sender = Pipe(os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb", 0), os.fdopen(writing, "wb", 0))
    receiver = Pipe(os.fdopen(reading, "rb", 0), open(os.devnull, "wb"))  # noqa: SIM115 - closed with the pipe

    def send(number: int) -> None:
        for turn in range(20):
            sender.send({"who": number, "turn": turn, "pixels": np.full(40_000, number, np.float32)})

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    turns = {number: 0 for number in range(4)}
    for _ in range(80):
        message = receiver.receive()
        assert message["turn"] == turns[message["who"]]
        assert (message["pixels"] == message["who"]).all()
        turns[message["who"]] += 1
    for thread in threads:
        thread.join()
    sender._writing.close()
    with pytest.raises(PipeClosed):
        receiver.receive()
    with pytest.raises(PipeClosed):
        sender.send({})
