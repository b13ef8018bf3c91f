"""What goes over the line between two servers: pieces, windows, heads, paths, copies."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import InputError, SettingError
from faceplate.media.file_hash import file_hash
from faceplate_client import FrameHeader, wire
from faceplate_client.connection import ConnectionInfo
from faceplate_client.slot_header import SLOT_BYTES, FrameType, pack_header, unpack_header
from faceplate_server.ask import Asker, check_near
from faceplate_server.config import ServerConfig
from faceplate_server.errors import Refused
from faceplate_server.team import link
from faceplate_server.team.packed import PACKED, PLAIN, SORTED, chunk_bytes, pack, unpack
from faceplate_server.team.rewrite import PathMap
from faceplate_server.team.spool import TEAM, Spool, TeamView
from faceplate_server.team.streams import Outbox, Sink, file_source, frame_source
from faceplate_server.team.window import Window


@given(st.binary(min_size=1, max_size=3000), st.sampled_from([1, 2, 4, 6, 8, 12, 16]))
def test_pieces_come_back_bit_for_bit(data: bytes, stride: int) -> None:
    code, packed = pack(memoryview(data), stride)
    assert bytes(unpack(code, packed, len(data), stride)) == data


@pytest.mark.parametrize(("kind", "worst"), [(np.float16, 0.62), (np.float32, 0.68)])
def test_a_grained_plate_packs(kind: type, worst: float) -> None:
    rows, columns = np.mgrid[0:256, 0:512] / 256
    clean = np.stack([0.2 + 0.1 * rows, 0.18 + 0.05 * columns, 0.1 + 0.05 * rows * columns, np.ones_like(rows)], -1)
    grain = np.random.default_rng(1).normal(0, 0.004, clean.shape) * (1, 1, 1, 0)
    pixels = (clean + grain).astype(kind)
    size = sum(len(pack(memoryview(part.tobytes()), pixels.itemsize * 4)[1]) for part in np.array_split(pixels, 4))
    assert size / pixels.nbytes < worst


def test_noise_is_not_packed() -> None:
    noise = os.urandom(10_000)
    assert pack(memoryview(noise), 1) == (PLAIN, noise)


@given(st.integers(0, 5), st.binary(max_size=200), st.integers(-1, 1 << 40), st.sampled_from([1, 4, 16]))
def test_any_piece_is_taken_or_refused(code: int, data: bytes, size: int, stride: int) -> None:
    try:
        piece = unpack(code, data, size, stride)
    except wire.Malformed:
        return
    assert piece.nbytes == size <= chunk_bytes(stride)


def test_a_bomb_is_refused_before_it_bursts() -> None:
    _, packed = pack(memoryview(bytes(chunk_bytes(1))), 1)
    assert len(packed) < 200
    for code in (PACKED, SORTED):
        with pytest.raises(wire.Malformed, match="another size"):
            unpack(code, packed, 16, 1)


def test_the_window_bounds_follows_and_lets_urgent_ones_go_first() -> None:
    window = Window()
    never = lambda: False  # noqa: E731
    assert window.take(window.limit, urgent=False, given_up=never)
    order: list[str] = []

    def take(name: str, urgent: bool) -> None:
        if window.take(100, urgent=urgent, given_up=never):
            order.append(name)

    threads = [
        threading.Thread(target=take, args=("batch", False)),
        threading.Thread(target=take, args=("frame", True)),
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.15)
    assert order == []
    before = window.limit
    assert window.answered(window.limit)
    for thread in threads:
        thread.join(5)
    assert order == ["frame", "batch"]
    assert window.limit < before  # the answer took three tenths of a second
    assert not window.answered(1 << 30)
    assert window.take(10, urgent=False, given_up=lambda: True) is False
    window.close()
    assert window.take(10, urgent=True, given_up=never) is False


JOB = {"id": "j", "files": [], "gone": [], "listings": [], "shared": [], "frames": [], "rooms": [], "colour": "0" * 64}


def test_heads_come_back_and_wrong_ones_are_refused() -> None:
    head = {**JOB, "files": [["/a/b.exr", "f" * 64, 3, "input"]], "listings": [["/a", ["b.exr"]]]}
    assert link.decode(link.encode("job", head, b"body")) == ("job", head, b"body")
    for name, value in {
        "files": [["/a/../b", "f" * 64, 3, "input"]],
        "gone": ["a"],
        "listings": [["/a", ["../b"]]],
        "shared": [["/a", "F" * 64, 1]],
        "frames": [[1, 2]],
        "rooms": [-1],
        "id": "",
        "colour": 7,
    }.items():
        with pytest.raises(wire.Malformed, match=name):
            link.decode(link.encode("job", {**JOB, name: value}))


@given(st.lists(st.binary(max_size=60), max_size=3))
def test_any_bytes_are_a_message_or_refused(parts: list[bytes]) -> None:
    with pytest.raises(wire.Malformed):
        link.decode(parts)


@given(st.text(max_size=30))
def test_a_path_inside_a_tree_stays_there(text: str) -> None:
    path = "/" + text
    if link.is_path(path):
        assert os.path.normpath("/root" + path) == "/root" + path
        assert "\0" not in path


def test_headers_travel() -> None:
    for header in (
        FrameHeader(
            3, 2, ("R", "G", "B"), FrameType.HALF, "ACES - ACEScg", True, None, 2.0, (1, 2, 4, 4), (0, 0, 9, 9)
        ),
        FrameHeader(1, 1, frame=-7),
    ):
        text = link.header_text(*pack_header(header))
        assert link.KINDS["open"]["header"](text)
        assert unpack_header(link.header_bytes(text, SLOT_BYTES), header.nbytes) == header


def test_paths_are_mapped_both_ways() -> None:
    paths = PathMap({"/Volumes/show": "/mnt/show", "/Volumes/show/lib": "/lib", "/x/": "/y/"})
    assert paths.there("/Volumes/show/a/p.####.exr") == "/mnt/show/a/p.####.exr"
    assert paths.there("/Volumes/show/lib/jane.fpid") == "/lib/jane.fpid"
    assert paths.there("/Volumes/show") == "/mnt/show"
    assert paths.there("/Volumes/shows/a") is None
    assert paths.there("/x/1") == "/y/1"
    said = json.dumps(
        {"a": "/mnt/show/a.exr", "b": "cannot read /lib/jane.fpid; x", "c": "/library/y", "d": "/a/lib/z"}
    )
    here = json.loads(paths.here(said.encode()))
    assert here == {
        "a": "/Volumes/show/a.exr",
        "b": "cannot read /Volumes/show/lib/jane.fpid; x",
        "c": "/library/y",
        "d": "/a/lib/z",
    }
    assert PathMap({"/": "/mnt"}).there("/a") == "/mnt/a"


def put(spool: Spool, client: str, data: bytes) -> str:
    contents = spool.contents(client)
    file = contents.new_file()
    file.write_bytes(data)
    content = file_hash(file)
    contents.keep(file, content)
    return content


def test_a_spool_keeps_within_its_budget_what_no_job_needs(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 2500)
    first, second = put(spool, "anna", b"1" * 1000), put(spool, "anna", b"2" * 1000)
    contents = spool.contents("anna")
    assert not spool.contents("bert").has(first)
    time.sleep(0.01)
    assert contents.has(first)  # used just now
    third = put(spool, "anna", b"3" * 1000)
    assert [contents.has(one) for one in (first, second, third)] == [True, False, True]
    contents.pin({first: 1000, third: 1000})
    fourth = put(spool, "anna", b"4" * 1000)
    assert [contents.has(one) for one in (first, third, fourth)] == [True, True, False]
    with pytest.raises(Refused, match="do not fit") as caught:
        contents.pin({fourth: 1000})
    assert caught.value.code == "limit"
    contents.unpin([first, third])
    contents.pin({fourth: 1000})


def test_a_content_that_is_another_is_refused(tmp_path: Path) -> None:
    contents = Spool(tmp_path / "spool", 1000).contents("anna")
    file = contents.new_file()
    file.write_bytes(b"x")
    with pytest.raises(Refused, match="changed while it was sent"):
        contents.keep(file, "0" * 64)
    assert list(contents.folder.iterdir()) == []


def test_a_tree_is_its_clients_alone_and_inputs_cannot_be_written_through(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)
    content = put(spool, "anna", b"pixels")
    tree = spool.tree("anna")
    for kind in ("input", "output", "state"):
        tree.place(f"/show/{kind}.exr", content, kind)
    assert {path.read_bytes() for path in (tree.root / "show").iterdir()} == {b"pixels"}
    with (tree.root / "show" / "state.exr").open("ab") as file:
        file.write(b"more")
    assert spool.contents("anna").path(content).read_bytes() == b"pixels"
    stamp = (tree.root / "show" / "input.exr").lstat().st_mtime_ns
    tree.place("/show/input.exr", content, "input")
    assert (tree.root / "show" / "input.exr").lstat().st_mtime_ns == stamp
    tree.keep_only("/show", ["input.exr"])
    assert [path.name for path in (tree.root / "show").iterdir()] == ["input.exr"]
    for path in ("/../x", "relative", "/a//b", "/a/./b", "/"):
        with pytest.raises(Refused):
            tree.inside(path)
    shown, user = TeamView(spool.folder).seen(TEAM + "anna")
    assert (shown(str(tree.inside("/show/a.exr"))), user) == ("/show/a.exr", "anna")
    assert shown("/elsewhere/a.exr") == "/elsewhere/a.exr"
    assert TeamView(spool.folder).seen("nuke") == (str, None)
    assert tree.root.stat().st_mode & 0o777 == 0o700
    tree.close()
    left = spool.tree("anna")
    Spool(tmp_path / "spool", 10_000)
    assert not left.root.exists()  # of a server that was killed


def pumped(outbox: Outbox, posted: list[list[bytes]], count: int) -> list[tuple[str, dict[str, object], bytes]]:
    end = time.monotonic() + 10
    while True:
        got = [link.decode(parts) for parts in list(posted)]
        if sum(kind == "say" for kind, _, _ in got) >= count:
            return got
        assert time.monotonic() < end
        time.sleep(0.01)


def test_streams_go_urgent_first_in_order_and_come_back_whole(tmp_path: Path) -> None:
    posted: list[list[bytes]] = []
    outbox = Outbox(posted.append, lambda job, error: None, "test")
    outbox.window.limit = 1 << 30
    pixels = np.random.default_rng(1).random((900, 400, 4), np.float32).tobytes()
    path = tmp_path / "f"
    path.write_bytes(pixels[:1_500_000])
    gone: list[str] = []
    outbox.window.take(outbox.window.limit, urgent=True, given_up=lambda: False)  # nothing goes until this is answered
    outbox.put("b", file_source("b", "blob", path, 1_500_000, content="0" * 64), urgent=False)
    outbox.put("b", link.encode("say", None, b"b"), urgent=False)
    outbox.put("u", frame_source("u", 0, memoryview(pixels), 16, "", lambda: gone.append("u")), urgent=True)
    outbox.put("u", link.encode("say", None, b"u"), urgent=True)
    outbox.put("n", link.encode("say", None, b"n"), urgent=False)
    outbox.window.answered(outbox.window.limit)
    got = pumped(outbox, posted, 3)
    assert [body for kind, _, body in got if kind == "say"] == [b"u", b"n", b"b"]
    assert gone == ["u"]
    heads = {head["stream"]: head for kind, head, _ in got if kind == "open"}
    memory, back = bytearray(len(pixels)), tmp_path / "back"
    sinks = {}
    for number, head in heads.items():
        sinks[number] = Sink(head, room=memoryview(memory)) if head["what"] == "frame" else Sink(head, path=back)
    for kind, head, body in got:
        if kind == "data" and sinks[head["stream"]].take(head["code"], body, head["size"]):
            sinks[head["stream"]].finish()
    assert bytes(memory) == pixels
    assert back.read_bytes() == path.read_bytes()
    with pytest.raises(wire.Malformed, match="longer"):
        next(iter(sinks.values())).take(PLAIN, b"x", 1)
    outbox.close()


def test_a_file_that_becomes_shorter_fails_its_own_job(tmp_path: Path) -> None:
    posted: list[list[bytes]] = []
    failed: list[tuple[str, str]] = []
    outbox = Outbox(posted.append, lambda job, error: failed.append((job, str(error))), "test")
    path = tmp_path / "f"
    path.write_bytes(b"x")
    outbox.put("a", file_source("a", "blob", path, 10, content="0" * 64), urgent=True)
    outbox.put("b", link.encode("say", None, b"b"), urgent=False)
    pumped(outbox, posted, 1)
    outbox.close()
    assert [job for job, _ in failed] == ["a"]
    assert "shorter" in failed[0][1]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"listen": "tcp://0.0.0.0"}, "tcp://HOST:PORT"),
        ({"listen": "ipc:///tmp/x"}, "tcp://HOST:PORT"),
        ({"transport": "tcp://0.0.0.0:7447"}, "encrypted"),
        ({"upstream": "tcp://team:7447"}, "belong together"),
        ({"upstream_key": "0" * 64}, "belong together"),
        ({"upstream": "tcp://team:7447", "upstream_key": "x"}, "64 hex digits"),
        ({"upstream": "tcp://a:1", "upstream_key": "0" * 64, "listen": "tcp://0.0.0.0:1"}, "not both"),
        ({"paths": (("/a", "/b"),)}, "upstream"),
        ({"upstream": "tcp://a:1", "upstream_key": "0" * 64, "paths": (("a", "/b"),)}, "whole paths"),
        ({"upstream": "tcp://a:1", "upstream_key": "0" * 64, "paths": (("/a", "/b/.."),)}, "whole paths"),
        ({"paths": "x"}, "table"),
    ],
)
def test_settings_that_do_not_fit(values: dict[str, object], word: str) -> None:
    with pytest.raises(SettingError) as caught:
        ServerConfig(**values)  # type: ignore[arg-type]
    assert word in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:7447", "tcp://team:7447", "tcp://0.0.0.0:1", "tcp://127.0.0.2:1"])
def test_nothing_goes_to_another_machine_in_plain(address: str) -> None:
    with pytest.raises(InputError, match="another machine's") as caught:
        Asker(ConnectionInfo(address), "test")
    assert "--upstream" in str(caught.value.hint)
    for near in ("tcp://127.0.0.1:1", "tcp://localhost:1", "tcp://[::1]:1", "ipc:///x", "nonsense"):
        check_near(near)
