"""The host in memory passes every check, and one that can do little passes those that apply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate_client import Client, find
from faceplate_client.actions import refresh
from faceplate_client.errors import BakeFailed, CannotDo, ClientError
from faceplate_client.frame_maths import Span
from faceplate_client.host import Feature
from faceplate_client.result_folder import Holds, file_of, of_record
from tests.contract.hosts.bench import one
from tests.contract.hosts.checks import CHECKS, KILLS, START, skips
from tests.contract.hosts.conftest import MakeBench
from tests.contract.hosts.memory_host import ALL, MemoryHost, MemoryStage
from tests.integration.server.conftest import Running


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in KILLS])
def test_check(name: str, make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results")
    bench = make_bench(host, MemoryStage(host), server, False)
    assert skips(name, bench) == ""
    CHECKS[name](bench)


@pytest.mark.parametrize("name", KILLS)
def test_check_with_a_server_of_its_own(
    name: str, make_bench: MakeBench, own_server: Callable[[], Running], tmp_path: Path
) -> None:
    host, server = MemoryHost(tmp_path / "results"), own_server()
    try:
        CHECKS[name](make_bench(host, MemoryStage(host), server, True))
    finally:
        try:
            with Client(find(server.place), "end") as client:
                client.stop()
        except ClientError:
            pass


def test_a_host_that_can_do_little(make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results", frozenset())
    bench = make_bench(host, MemoryStage(host), server, False)
    assert {name for name in CHECKS if skips(name, bench)} >= {"one_undo_takes_it_all_back", *KILLS}
    CHECKS["remove_restores_exactly"](bench)
    assert frozenset() < ALL


class Cameraman(MemoryHost):
    """Can render a camera's own file, which the server cannot read."""

    footage = ""

    @property
    def sources(self) -> dict[str, str]:
        return dict.fromkeys(self.document.items, self.footage)


@pytest.mark.parametrize("can_bake", [True, False])
def test_a_file_that_only_the_host_can_read(
    can_bake: bool, make_bench: MakeBench, server: Running, tmp_path: Path
) -> None:
    host = Cameraman(tmp_path / "results", ALL if can_bake else ALL - {Feature.BAKE})
    stage = MemoryStage(host)
    bench = make_bench(host, stage, server, False)
    host.footage = bench.plate
    raw = tmp_path / "A001.braw"
    raw.write_bytes(b"a camera's own")
    clip_id = stage.add_clip("camera", str(raw), bench.media, bench.media, START, bench.size)
    (ended,) = bench.apply(host.clip(clip_id)).clips
    if not can_bake:
        assert ended.state == "failed"
        assert "extension that Faceplate does not know" in str(ended.error)
        assert host.results() == ()
        return
    assert ended.state == "done", ended.error
    assert ended.record is not None
    assert ended.record.baked == "asked for"
    assert any("rendered by the host instead" in note for note in ended.notes)
    assert Path(stage.shown_file(START)) == file_of(ended.record.pattern, START)
    assert ended.record.frames == Span(START, START + len(bench.media) - 1)


def test_a_bake_that_fails_or_cannot_be_is_said(make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results")
    stage = MemoryStage(host)
    bench = make_bench(host, stage, server, False)
    clip = host.clip(stage.add_retimed("slow", bench.plate, bench.media, START, 4, bench.size))
    before = stage.snapshot()
    file_of(bench.plate, bench.media.first + 1).unlink()
    (ended,) = bench.apply(clip).clips
    assert isinstance(ended.error, BakeFailed)
    assert stage.snapshot() == before
    host.features = frozenset()
    (ended,) = bench.apply(clip).clips
    assert isinstance(ended.error, CannotDo)
    assert "retimed" in str(ended.error)
    assert stage.snapshot() == before


def test_bakes_in_a_folder_of_their_own_are_removed(make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results")
    stage = MemoryStage(host)
    bench = make_bench(host, stage, server, False)
    clip = host.clip(stage.add_retimed("slow", bench.plate, bench.media, START, 4, bench.size))
    bakes = tmp_path / "fast"
    for _ in range(2):  # the same version goes on, and finds its sources under the same name
        ended = bench.apply(clip, bakes=bakes, place=False).clips[0]
        assert ended.state == "done", ended.error
        assert ended.record is not None
        assert Path(ended.record.source).parent.parent == bakes
        assert list(bakes.iterdir()) == []
        assert not (ended.record.path.parent / "bake").exists()
    assert ended.record is not None
    assert ended.record.path.parent.name == "v001"


def test_two_programs_never_work_on_one_version(make_bench: MakeBench, server: Running, tmp_path: Path) -> None:
    host = MemoryHost(tmp_path / "results")
    bench = make_bench(host, MemoryStage(host), server, False)
    clip = bench.clip()
    first = bench.apply(clip, place=False).clips[0].record
    assert first is not None
    with Holds() as other:
        assert other.take(of_record(first.path))
        own = one(bench.apply(clip))
        assert own.record is not None
        assert (first.path.parent.name, own.record.path.parent.name) == ("v001", "v002")
        assert other.take(of_record(own.record.path))  # let go of at the action's end
        outcome = bench.run(lambda session: refresh(session, host.results())).clips[0]
        assert "another program is at work" in str(outcome.error)
        assert outcome.error is not None
        assert outcome.error.hint
    again = bench.apply(clip).clips[0].record  # v002 is placed, so that nothing is left to go on with
    assert again is not None
    assert again.path.parent.name == "v003"
