"""The DEALER against libzmq's ROUTER, over both transports."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faceplate_client.deadline import Deadline
from faceplate_client.errors import ConnectionLost, PeerError, RequestTimeout
from faceplate_client.zmtp import Dealer

SIZES = (0, 1, 2, 127, 128, 254, 255, 256, 257, 8191, 8192, 65535, 65536, 65537, 1_000_000, 5 << 20)


@pytest.fixture(scope="module")
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made = zmq.Context()
    yield made
    made.destroy(linger=0)


@pytest.fixture(params=["ipc", "tcp"])
def router(
    request: pytest.FixtureRequest, tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]
) -> Iterator[zmq.Socket[bytes]]:
    made = context.socket(zmq.ROUTER)
    made.linger, made.rcvtimeo, made.rcvhwm, made.sndhwm = 0, 5000, 0, 0
    made.bind(f"ipc://{tmp_path}/r" if request.param == "ipc" else "tcp://127.0.0.1:*")
    yield made
    made.close()


def address_of(router: zmq.Socket[bytes]) -> str:
    return bytes(router.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()


@pytest.fixture
def dealer(router: zmq.Socket[bytes]) -> Iterator[Dealer]:
    with Dealer(address_of(router), Deadline(2, "connecting"), identity=b"leaf-1") as made:
        yield made


def soon() -> Deadline:
    return Deadline(5, "the test")


@pytest.mark.parametrize("size", SIZES)
def test_every_size_there_and_back(router: zmq.Socket[bytes], dealer: Dealer, size: int) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    dealer.send([data], soon())
    who, got = router.recv_multipart()
    assert who == b"leaf-1"
    assert got == data
    router.send_multipart([who, got])
    assert dealer.receive(soon()) == [data]


@settings(max_examples=30, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.one_of(st.binary(max_size=5), st.binary(min_size=254, max_size=300)), min_size=1, max_size=8))
def test_parts_keep_their_borders(router: zmq.Socket[bytes], dealer: Dealer, parts: list[bytes]) -> None:
    dealer.send(parts, soon())
    who, *got = router.recv_multipart()
    assert got == parts
    router.send_multipart([who, *got])
    assert dealer.receive(soon()) == parts


def test_ten_thousand_in_order(router: zmq.Socket[bytes], dealer: Dealer) -> None:
    def echo() -> None:
        for _ in range(10_000):
            router.send_multipart(router.recv_multipart())

    thread = threading.Thread(target=echo)
    thread.start()
    sent = taken = 0
    while taken < 10_000:
        while sent < 10_000 and sent - taken < 50:
            dealer.send([b"%d" % sent], soon())
            sent += 1
        assert dealer.receive(soon()) == [b"%d" % taken]
        taken += 1
    thread.join(5)


def test_without_routing_id(router: zmq.Socket[bytes]) -> None:
    with Dealer(address_of(router), soon()) as one, Dealer(address_of(router), soon()) as two:
        one.send([b"1"], soon())
        first, _ = router.recv_multipart()
        two.send([b"2"], soon())
        second, _ = router.recv_multipart()
        assert first != second
        router.send_multipart([second, b"to two"])
        router.send_multipart([first, b"to one"])
        assert one.receive(soon()) == [b"to one"]
        assert two.receive(soon()) == [b"to two"]


def test_silence_is_a_timeout_and_no_loss(router: zmq.Socket[bytes], dealer: Dealer) -> None:
    dealer.send([b"hello"], soon())
    who, _ = router.recv_multipart()
    with pytest.raises(RequestTimeout, match=r"an answer took longer than 0\.1 s"):
        dealer.receive(Deadline(0.1, "an answer", RequestTimeout))
    router.send_multipart([who, b"late"])
    assert dealer.receive(soon()) == [b"late"]


def test_heartbeats_of_libzmq_are_answered(tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]) -> None:
    with context.socket(zmq.ROUTER) as router:
        router.linger, router.heartbeat_ivl, router.heartbeat_timeout, router.rcvtimeo = 0, 50, 300, 2000
        router.bind(f"ipc://{tmp_path}/h")
        with Dealer(f"ipc://{tmp_path}/h", soon(), identity=b"x") as dealer:
            end = time.monotonic() + 1
            while time.monotonic() < end:
                with pytest.raises(RequestTimeout):
                    dealer.receive(Deadline(0.1, "nothing", RequestTimeout))
            dealer.send([b"still here"], soon())
            assert router.recv_multipart() == [b"x", b"still here"]


def test_a_connection_to_a_curve_server_is_refused(tmp_path: Path, context: zmq.Context[zmq.Socket[bytes]]) -> None:
    if not zmq.has("curve"):
        pytest.skip("this libzmq has no CURVE")
    with context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.curve_server = True
        router.curve_publickey, router.curve_secretkey = zmq.curve_keypair()
        router.bind(f"ipc://{tmp_path}/c")
        with pytest.raises((ConnectionLost, PeerError), match=r"hung up during the handshake|another security"):
            Dealer(f"ipc://{tmp_path}/c", soon())
