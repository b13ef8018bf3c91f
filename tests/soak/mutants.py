"""Messages that went wrong, by the thousand: each is answered in the protocol's own words, and the server lives."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import zmq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from faceplate_client import wire
from tests.contract.wire.samples import SAMPLES, record
from tests.integration.server.conftest import Running, running
from tests.soak.look import growth_percent, memory_of

_ANSWER_MS = 5000
_DOCUMENTS = [json.loads(wire.encode(sample)) for sample in SAMPLES.values()]
_TYPES = sorted(document["t"] for document in _DOCUMENTS)
_SCRAPS = [b"{", b"}", b"[", b'"', b"null", b"1e999", b"-1", b"\xff", b"\\u0000", b"\\ud800", b"9" * 40, b"\0", b"NaN"]

_odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
    st.sampled_from(["", "/", "../..", "/dev/zero", "/proc/self/mem", "x" * 5000, "mesh", "null", *_TYPES]),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.integers(1, 40).map(lambda depth: json.loads("[" * depth + "]" * depth)),
)


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    found = [path] if path else []
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        found += _places(value, (*path, key))
    return found


@st.composite
def changed_documents(draw: st.DrawFn) -> bytes:
    """A sample in which fields are gone, doubled in depth, renamed or of another value."""
    document = json.loads(json.dumps(draw(st.sampled_from(_DOCUMENTS))))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        parent = document
        for step in way:
            parent = parent[step]
        match draw(st.integers(0, 3)):
            case 0:
                del parent[last]
            case 1:
                parent[last] = {"again": parent[last]}
            case 2 if isinstance(parent, dict):
                parent[draw(st.text(max_size=8))] = parent.pop(last)
            case _:
                parent[last] = draw(_odd)
    return json.dumps(document).encode("utf-8", "surrogatepass")


@st.composite
def changed_bytes(draw: st.DrawFn) -> bytes:
    """A sample with bytes flipped, cut out, put in or repeated."""
    data = bytearray(json.dumps(draw(st.sampled_from(_DOCUMENTS))).encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0 if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at : at + draw(st.integers(1, 30))]
            case 2:
                data[at:at] = draw(st.sampled_from(_SCRAPS))
            case _:
                data += data[: draw(st.integers(0, 200))]
    return bytes(data)


@st.composite
def legal_nonsense(draw: st.DrawFn) -> bytes:
    """A message whose every field is legal and means nothing: jobs on files that are not there, rings of nobody."""
    kinds = (wire.SubmitFrame, wire.SubmitRange, wire.SubmitAnalyse, wire.Cancel, wire.Release, wire.Hello)
    return wire.encode(draw(record(draw(st.sampled_from(kinds)))))


mutants = st.one_of(changed_documents(), changed_bytes(), legal_nonsense(), st.binary(max_size=200))


class _Talk:
    """A raw connection that sends anything and takes only what the protocol knows."""

    def __init__(self, server: Running) -> None:
        self._context = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.linger = 0
        self._dealer.connect(server.address)
        self._count = 0
        self.sent = 0
        self.codes: Counter[str] = Counter()
        self._dealer.send(wire.encode(wire.Hello(1, 1, "mutant", "1")))
        assert isinstance(self._receive(), wire.Welcome)

    def _receive(self) -> Any:
        assert self._dealer.poll(_ANSWER_MS), "no answer"
        (data,) = self._dealer.recv_multipart()
        return wire.decode(data)

    def __call__(self, data: bytes) -> None:
        """Send a message, and a ping behind it: before the pong come its answer and ends of earlier jobs."""
        try:
            meant = wire.decode(data)
        except wire.WireError:
            meant = None
        if isinstance(meant, (wire.Stop, wire.Bye)):
            return  # heard as they are meant
        self._count += 1
        self.sent += 1
        fence = f"fence-{self._count}"
        self._dealer.send(data)
        self._dealer.send(wire.encode(wire.Ping(fence)))
        errors = 0
        while True:
            answer = self._receive()
            if isinstance(answer, wire.Pong) and answer.id == fence:
                break
            if isinstance(answer, wire.Error):
                errors += 1
                self.codes[answer.code] += 1
                assert answer.code != "internal", answer
        assert errors or meant is not None, f"not answered: {data!r}"

    def close(self) -> None:
        self._dealer.close()
        self._context.term()


def soak_messages(count: int, seed_: int, roots: str) -> dict[str, Any]:
    """Send `count` mutated messages.

    Args:
        count: how many.
        seed_: of hypothesis.
        roots: folder that the messages' paths may reach; empty and of no worth.
    """
    with running(config=f'roots = ["{roots}"]\nlog_mb = 1\n') as server:
        talk = _Talk(server)
        samples = []

        @seed(seed_)
        @settings(
            max_examples=count + count // 50,  # some are left out
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(mutants)
        def send(data: bytes) -> None:
            talk(data)
            if talk.sent % max(1, count // 100) == 0:
                samples.append(memory_of(server.process.pid).resident_mb)

        send()
        with server.client() as client:
            alive = client.ping().ready
            open_jobs = len(client.status().jobs)
        talk.close()
        samples.append(memory_of(server.process.pid).resident_mb)
    early = samples[len(samples) // 10]
    return {
        "messages": talk.sent,
        "answers_by_code": dict(talk.codes.most_common()),
        "alive": alive,
        "open_jobs": open_jobs,
        "memory_mb": [round(early, 1), round(samples[-1], 1)],
        "memory_growth_percent": growth_percent(early, samples[-1]),
    }
