"""The frame ring within one process: layout, states, references, refusals."""

from __future__ import annotations

import array
import dataclasses
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate_client import wire
from faceplate_client.errors import (
    ConnectionFailed,
    RingError,
    RingNoResult,
    RingNoSpace,
    RingStale,
    RingWrongFormat,
    RingWrongSize,
    RingWrongState,
    UnsafeFile,
)
from faceplate_client.slot_header import EMPTY, SLOT_BYTES, pack_header, unpack_header
from faceplate_client.slots import FrameHeader, FrameType, Ring, State, as_array, sweep

HEADER = FrameHeader(
    4, 3, ("R", "G", "B", "A"), FrameType.HALF, "ACEScg", True, -7, 2.0, (-1, 5, 3, 8), (0, 0, 1920, 1080)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "rings"


@pytest.fixture
def ring(folder: Path) -> Iterator[Ring]:
    with Ring.create(3, 1000, folder) as made:
        yield made


@pytest.fixture
def server(ring: Ring, folder: Path) -> Iterator[Ring]:
    with Ring.attach(ring.path, ring.file_id, ring.generation, folder=folder) as attached:
        yield attached


def test_the_file_is_private_whole_and_as_drawn(ring: Ring, folder: Path) -> None:
    found = ring.path.stat()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert found.st_mode & 0o777 == 0o600
    assert found.st_size == 4096 + 4096 + 3 * 4096
    assert found.st_blocks * 512 >= found.st_size, "every block is reserved"
    reference = ring.put(HEADER, bytes(range(96)))
    raw = ring.path.read_bytes()
    assert struct.unpack_from("<8sIIQQQQQ", raw) == (
        b"FPLTRING",
        1,
        3,
        4096,
        8192,
        found.st_size,
        ring.generation,
        os.getpid(),
    )
    state, dtype, use, width, height, channels, order, frame, aspect = struct.unpack_from("<IIQIIIIqd", raw, 4096)
    assert (state, dtype, use, width, height, channels, order) == (State.READY, 1, 1, 4, 3, 4, 1)
    assert (frame, aspect) == (-7, 2.0)
    assert struct.unpack_from("<8iQ", raw, 4096 + 48) == (-1, 5, 3, 8, 0, 0, 1920, 1080, 96)
    assert raw[4096 + 96 : 4096 + 104] == b"R,G,B,A\0"
    assert raw[4096 + 224 : 4096 + 231] == b"ACEScg\0"
    assert raw[8192 : 8192 + 96] == bytes(range(96))
    assert reference == wire.SlotRef(str(ring.path), ring.file_id, ring.generation, 0, 1)


def test_a_frame_there_and_its_result_back(ring: Ring, server: Ring) -> None:
    plate = np.arange(48, dtype=np.float16).reshape(3, 4, 4)
    sent = ring.put(HEADER, plate[::-1].copy())  # bottom row first
    room = ring.offer(ring.acquire())
    header, pixels = server.take(sent)
    assert header == HEADER
    assert header is not None
    np.testing.assert_array_equal(as_array(header, pixels), plate)
    nothing, target = server.take(room)
    assert nothing is None
    assert target.nbytes == server.slot_bytes == 4096
    made = dataclasses.replace(HEADER, dtype=FrameType.FLOAT, bottom_up=False)
    as_array(made, target)[:] = plate * 2
    server.finish(room, made)
    server.give_back(sent)
    got, result = ring.result(room)
    assert got == made
    assert result.readonly
    np.testing.assert_array_equal(as_array(made, result), plate.astype(np.float32) * 2)
    assert ring.result(sent)[0] is None
    ring.release(room.slot)
    ring.release(sent.slot)
    assert [ring.state(slot) for slot in range(3)] == [State.FREE] * 3


def test_a_result_is_read_where_it_lies(ring: Ring, server: Ring) -> None:
    room = ring.offer(ring.acquire())
    _, target = server.take(room)
    with pytest.raises(RingWrongState), ring.view(room):
        pass
    assert ring.state(room.slot) is State.BUSY  # it is the server's
    target[:96] = bytes(range(96))
    server.finish(room, HEADER)
    with ring.view(room) as (header, pixels):
        assert (header, pixels.readonly, bytes(pixels)) == (HEADER, True, bytes(range(96)))
        target[0] = 77
        assert pixels[0] == 77  # the slot's own memory
        assert ring.state(room.slot) is State.DONE
    assert ring.state(room.slot) is State.FREE
    with pytest.raises(RingWrongState), ring.view(room):
        pass


def test_a_view_lets_go_whatever_happens(ring: Ring, server: Ring) -> None:
    room = ring.offer(ring.acquire())
    server.take(room)
    server.give_back(room)
    with pytest.raises(RingNoResult, match="wrote no result") as caught, ring.view(room):
        pass
    assert "send the frame again" in caught.value.hint
    assert ring.state(room.slot) is State.FREE
    room = ring.offer(ring.acquire())
    server.take(room)
    server.finish(room, HEADER)
    with pytest.raises(ZeroDivisionError), ring.view(room):
        raise ZeroDivisionError
    assert ring.state(room.slot) is State.FREE
    with pytest.raises(RingStale), ring.view(dataclasses.replace(room, use=99)):
        pass


def test_a_result_may_come_back_in_the_plates_slot(ring: Ring, server: Ring) -> None:
    sent = ring.put(HEADER, bytes(96))
    header, pixels = server.take(sent)
    assert header is not None
    pixels[:] = bytes(range(96))
    server.finish(sent, header)
    assert bytes(ring.result(sent)[1]) == bytes(range(96))


def test_only_the_hand_that_has_it_moves_a_slot(ring: Ring, server: Ring) -> None:
    slot = ring.acquire()
    sent = ring.publish(slot, HEADER)
    wrongs: tuple[Callable[[], object], ...] = (
        lambda: ring.release(slot),
        lambda: ring.result(sent),
        lambda: ring.publish(slot, HEADER),
        lambda: server.finish(sent, HEADER),
        lambda: server.give_back(sent),
    )
    for wrong in wrongs:
        with pytest.raises(RingWrongState, match="another hand"):
            wrong()
    server.take(sent)
    with pytest.raises(RingWrongState, match="expected READY; found BUSY"):
        server.take(sent)
    with pytest.raises(RingWrongState):
        ring.release(slot)
    with pytest.raises(RingStale, match="no such slot"):
        ring.state(3)


def test_a_late_result_does_not_reach_the_next_frame(ring: Ring, server: Ring) -> None:
    late = ring.put(HEADER, bytes(96))
    server.take(late)
    ring.reclaim(late.slot)
    with pytest.raises(RingWrongState):
        server.finish(late, HEADER)
    following = ring.put(HEADER, bytes(96))
    server.take(following)
    assert following.slot == late.slot
    with pytest.raises(RingStale):
        server.finish(late, HEADER)
    with pytest.raises(RingStale):
        server.give_back(late)
    assert ring.state(following.slot) is State.BUSY


def test_an_earlier_use_is_refused(ring: Ring, server: Ring) -> None:
    first = ring.put(HEADER, bytes(96))
    server.take(first)
    server.give_back(first)
    ring.release(first.slot)
    second = ring.put(HEADER, bytes(96))
    assert (second.slot, second.use) == (first.slot, first.use + 1)
    with pytest.raises(RingStale, match="not there any more"):
        server.take(first)
    for wrong in ({"generation": first.generation ^ 1}, {"file_id": "1:1"}, {"slot": 9}, {"use": 99}):
        with pytest.raises(RingStale):
            server.take(dataclasses.replace(second, **wrong))
    assert server.take(second)[0] == HEADER


def test_slots_run_out(ring: Ring) -> None:
    for _ in range(3):
        ring.acquire()
    with pytest.raises(RingNoSpace, match="all 3 slots") as caught:
        ring.acquire()
    assert "cancel" in (caught.value.hint or "")
    ring.release(1)
    assert ring.acquire() == 1


@pytest.mark.parametrize("pixels", [bytes(95), bytes(97), array.array("f", [0.0] * 25), 5, np.zeros((3, 8, 4), "f2")])
def test_wrong_buffers(ring: Ring, pixels: Any) -> None:
    with pytest.raises(RingWrongSize):
        ring.put(HEADER, pixels[:, ::2] if isinstance(pixels, np.ndarray) else pixels)
    assert ring.state(0) is State.FREE


def test_frames_larger_than_a_slot(ring: Ring, server: Ring) -> None:
    large = FrameHeader(64, 64)
    with pytest.raises(RingWrongSize):
        ring.put(large, bytes(large.nbytes))
    with pytest.raises(RingWrongSize):
        ring.publish(ring.acquire(), large)
    room = ring.offer(ring.acquire())
    server.take(room)
    with pytest.raises(RingWrongSize):
        server.finish(room, large)
    assert server.state(room.slot) is State.BUSY


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"height": -1},
        {"width": 1 << 30},
        {"channels": ()},
        {"channels": ("R,G",)},
        {"channels": ("R" * 129,)},
        {"colour_space": "x\0y"},
        {"colour_space": "é" * 65},
        {"pixel_aspect": float("nan")},
        {"pixel_aspect": 0.0},
        {"data_window": (0, 0, 5, 3)},
    ],
)
def test_impossible_headers(change: dict[str, Any]) -> None:
    with pytest.raises(RingWrongFormat):
        dataclasses.replace(HEADER, **change)


def test_headers_that_do_not_fit_their_fields() -> None:
    changes: list[dict[str, Any]] = [
        {"frame": 1 << 63},
        {"display_window": (0, 0, 1 << 31, 1)},
        {"colour_space": "\udc80"},
    ]
    for change in changes:
        with pytest.raises(RingWrongFormat, match="does not fit"):
            pack_header(dataclasses.replace(HEADER, **change))


@settings(max_examples=300, deadline=None, database=None)
@given(st.binary(min_size=SLOT_BYTES, max_size=SLOT_BYTES), st.lists(st.integers(0, 351), max_size=6))
def test_any_bytes_as_a_header(noise: bytes, places: list[int]) -> None:
    dtype, packed = pack_header(HEADER)
    sound = bytearray(struct.pack("<IIQ", 2, dtype, 1) + packed)
    assert unpack_header(bytes(sound), 96) == HEADER
    for place in places:
        sound[place] = noise[place]
    for data in (noise, bytes(sound)):
        try:
            header = unpack_header(data, 96)
        except RingError:
            continue
        assert header is None or header.nbytes <= 96


@settings(max_examples=100, deadline=None, database=None)
@given(
    st.builds(
        lambda w, h, x, y, names, space, **rest: FrameHeader(
            w, h, tuple(names), colour_space=space, data_window=(x, y, x + w, y + h), **rest
        ),
        w=st.integers(1, 1 << 20),
        h=st.integers(1, 1 << 20),
        x=st.integers(-(1 << 30), 1 << 30),
        y=st.integers(-(1 << 30), 1 << 30),
        names=st.lists(st.text("RGBAZé.", min_size=1, max_size=4), min_size=1, max_size=9),
        space=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
        dtype=st.sampled_from(FrameType),
        bottom_up=st.booleans(),
        frame=st.one_of(st.none(), st.integers(-(1 << 63) + 1, (1 << 63) - 1)),
        pixel_aspect=st.floats(1e-3, 1e3),
        display_window=st.tuples(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 4),
    )
)
def test_any_header_comes_back(header: FrameHeader) -> None:
    dtype, packed = pack_header(header)
    assert len(packed) == len(EMPTY)
    assert unpack_header(struct.pack("<IIQ", 2, dtype, 1) + packed, 1 << 60) == header


def test_views_outlive_the_ring(folder: Path) -> None:
    ring = Ring.create(1, 96, folder)
    view = ring.pixels(ring.acquire())
    values = np.frombuffer(view, np.uint8)
    ring.close()
    ring.close()
    assert not ring.path.exists()
    values[:] = 5
    assert bytes(view[:3]) == b"\5\5\5"
    with pytest.raises(RingError, match="closed"):
        ring.acquire()


def test_a_lost_ring_removes_its_file(folder: Path) -> None:
    path = Ring.create(1, 96, folder).path
    assert not path.exists()


def attach(ring: Ring, folder: Path, **changes: Any) -> Ring:
    facts: dict[str, Any] = {"path": ring.path, "file_id": ring.file_id, "generation": ring.generation, **changes}
    return Ring.attach(facts.pop("path"), facts.pop("file_id"), facts.pop("generation"), folder=folder, **facts)


def test_what_is_not_attached(ring: Ring, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RingStale, match="another ring"):
        attach(ring, folder, generation=ring.generation ^ 1)
    with pytest.raises(RingStale, match="another file"):
        attach(ring, folder, file_id="0:0")
    with pytest.raises(RingStale, match="gone"):
        attach(ring, folder, path=folder / "none.ring")
    with pytest.raises(RingWrongSize, match="too large"):
        attach(ring, folder, largest=4096)
    for path in (tmp_path / "x.ring", folder / "x.txt", folder / ".." / "rings" / ring.path.name, f"{folder}/a\0.ring"):
        with pytest.raises(RingError):
            attach(ring, folder, path=path)
    link = folder / "link.ring"
    link.symlink_to(ring.path)
    with pytest.raises(UnsafeFile, match="link"):
        attach(ring, folder, path=link)
    os.mkfifo(folder / "fifo.ring", 0o600)
    with pytest.raises(UnsafeFile, match="regular"):
        attach(ring, folder, path=folder / "fifo.ring")
    os.chmod(ring.path, 0o644)
    with pytest.raises(UnsafeFile, match="open to other users"):
        attach(ring, folder)


@pytest.mark.parametrize(
    ("at", "value", "error"),
    [
        (0, b"FPLTRINX", RingWrongFormat),
        (8, struct.pack("<I", 2), RingWrongFormat),
        (12, struct.pack("<I", 4), RingWrongSize),
        (12, struct.pack("<I", 0), RingWrongSize),
        (16, struct.pack("<Q", 4095), RingWrongSize),
        (16, struct.pack("<Q", (1 << 64) - 4096), RingWrongSize),
        (24, struct.pack("<Q", 0), RingWrongSize),
        (32, struct.pack("<Q", 1 << 40), RingWrongSize),
    ],
)
def test_damaged_files_are_not_attached(
    ring: Ring, folder: Path, at: int, value: bytes, error: type[Exception]
) -> None:
    with open(ring.path, "r+b") as file:
        file.seek(at)
        file.write(value)
    with pytest.raises(error):
        attach(ring, folder)


def test_short_files_are_not_attached(ring: Ring, folder: Path) -> None:
    whole = ring.path.read_bytes()
    for size in (0, 30, 56, 4096, len(whole) - 1, len(whole) + 1):
        other = folder / f"{size}.ring"
        other.touch(0o600)
        other.write_bytes(whole[:size].ljust(size, b"\0"))
        found = other.stat()
        with pytest.raises((RingWrongSize, RingWrongFormat)):
            attach(ring, folder, path=other, file_id=f"{found.st_dev}:{found.st_ino}")


def test_looking_on_cannot_change(ring: Ring, folder: Path) -> None:
    sent = ring.put(HEADER, bytes(96))
    with attach(ring, folder, writable=False) as viewer:
        assert viewer.header(0) == HEADER
        assert viewer.pixels(0).readonly
        with pytest.raises(TypeError):
            viewer.take(sent)
    assert ring.state(0) is State.READY


def test_unknown_state(ring: Ring, server: Ring) -> None:
    with open(ring.path, "r+b") as file:
        file.seek(4096)
        file.write(b"\x09")
    with pytest.raises(RingWrongFormat, match="no known state"):
        server.state(0)


@pytest.mark.parametrize(("slots", "size"), [(0, 1), (1025, 1), (1, 0), (-1, 1)])
def test_no_such_ring(folder: Path, slots: int, size: int) -> None:
    with pytest.raises(RingWrongSize):
        Ring.create(slots, size, folder)


def test_folders_that_others_could_enter(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    os.chmod(folder, 0o755)
    with pytest.raises(UnsafeFile, match="open to other users") as caught:
        Ring.create(1, 1, folder)
    assert "0700" in (caught.value.hint or "")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(UnsafeFile, match="not a folder"):
            Ring.create(1, 1, tmp_path / name)
    with pytest.raises(ConnectionFailed, match="cannot make the folder"):
        Ring.create(1, 1, tmp_path / "file" / "below")


def test_sweep_takes_only_what_is_stale(ring: Ring, folder: Path) -> None:
    (folder / "dead.ring").touch(0o600)
    (folder / "other.txt").touch(0o600)
    (folder / "link.ring").symlink_to(folder / "other.txt")
    assert sweep(folder) == [folder / "dead.ring"]
    assert ring.path.exists()
    assert (folder / "link.ring").is_symlink()
    assert sweep(folder / "none") == []
