"""Checks: cancels, servers that die, bakes, ranges, batches, what the artist chooses from, threads."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faceplate_client import find, find_or_start, slate, wire
from faceplate_client.actions import analyse, apply, batch, identities, process_range, refresh, remove
from faceplate_client.errors import NoClips, ServerNotFound
from faceplate_client.frame_maths import Span
from faceplate_client.host import Progress, Scope
from faceplate_client.job_record import Recipe, load
from faceplate_client.outcome import Manner
from faceplate_client.result_folder import file_of
from faceplate_client.task import Servers, Session, Task, run
from tests.contract.hosts.bench import START, Bench, Watched, files, one, placed_of, refused, times

# Stopping


def check_a_cancel_keeps_what_is_done(bench: Bench) -> None:
    clip = bench.clip()
    before = bench.stage.snapshot()

    def stop_after_first(progress: Progress) -> bool:
        return not (progress.step == "swap" and progress.done >= 1)

    outcome = bench.apply(clip, host=Watched(bench.host, stop_after_first))
    ended = one(outcome)
    assert (ended.state, outcome.exit_code) == ("cancelled", 130)
    assert bench.stage.snapshot() == before
    record = ended.record
    assert record is not None
    done = [frame for frame, state in load(record.path).states.items() if state == "done"]
    assert 0 < len(done) < len(bench.media)
    kept = {frame: file_of(record.pattern, frame).stat().st_mtime_ns for frame in done}
    again = one(bench.apply(clip))
    assert again.record is not None
    assert again.record.pattern == record.pattern, "the unfinished version goes on"
    assert {frame: file_of(record.pattern, frame).stat().st_mtime_ns for frame in done} == kept
    assert files(record.pattern, bench.media) == files(bench.reference, bench.media)
    assert placed_of(again).tag.job == record.id


def check_a_cancelled_job_is_placed_where_asked_for(bench: Bench) -> None:
    clip = bench.clip()

    def stop_after_first(progress: Progress) -> bool:
        return not (progress.step == "swap" and progress.done >= 1)

    ended = one(bench.apply(clip, host=Watched(bench.host, stop_after_first), place_partial=True))
    assert ended.state == "cancelled"
    assert ended.placed is not None
    assert ended.record is not None
    slates = [frame for frame in bench.media if slate.is_slate(file_of(ended.record.pattern, frame))]
    assert slates == sorted(ended.failed)
    assert slates
    placed = ended.placed
    again = one(bench.run(lambda session: refresh(session, [placed])))
    assert again.failed == {}
    assert files(ended.record.pattern, bench.media) == files(bench.reference, bench.media)


def check_no_server_leaves_everything_alone(bench: Bench) -> None:
    clip = bench.clip()
    before = bench.stage.snapshot()
    nowhere = Servers(type(bench.servers.place)(bench.folder / "no server"))
    manner = Manner(folder=bench.folder / "out")
    actions: tuple[Callable[[Session], Any], ...] = (
        lambda session: apply(session, [clip], bench.recipe, manner),
        lambda session: analyse(session, clip, manner=manner),
    )
    for action in actions:
        error = refused(ServerNotFound, partial(run, bench.host, nowhere, action))
        assert "start" in error.hint
    assert bench.stage.snapshot() == before
    assert not (bench.folder / "out").exists()


def check_a_server_that_dies_in_mid_job_is_no_loss(bench: Bench) -> None:
    clip = bench.clip()
    killed: list[Progress] = []

    def kill_after_first(progress: Progress) -> bool:
        if progress.step == "swap" and progress.done >= 1 and not killed:
            killed.append(progress)
            info = find(bench.servers.place)
            os.kill(info.pid, signal.SIGKILL)
            while bench.servers.place.is_alive():
                time.sleep(0.02)
            find_or_start(bench.servers.place, bench.servers.command)
        return True

    # a busy machine may take long to import torch again
    ended = one(bench.apply(clip, host=Watched(bench.host, kill_after_first), retry_s=180.0))
    assert killed
    placed_of(ended)
    assert ended.record is not None
    assert ended.failed == {}
    assert files(ended.record.pattern, bench.media) == files(bench.reference, bench.media)


# Kinds of clips


def check_a_retimed_clip_is_baked_first(bench: Bench) -> None:
    length = 2 * min(3, len(bench.media))
    clip_id = bench.stage.add_retimed("slow", bench.plate, bench.media, START, length, bench.size)
    if not clip_id:
        return
    clip = bench.host.clip(clip_id)
    assert clip.processed
    before = bench.stage.snapshot()
    ended = one(bench.apply(clip))
    record = ended.record
    assert record is not None
    assert record.baked == clip.processed
    assert record.frames == record.used == clip.timeline == Span(START, START + length - 1)
    assert placed_of(ended).timeline == clip.timeline
    assert Path(bench.stage.shown_file(START + 1)) == file_of(record.pattern, START + 1)
    bench.run(lambda session: remove(session, bench.host.results()))
    assert bench.stage.snapshot() == before, "the bake left the document as it was"


def check_a_range_covers_its_frames_alone(bench: Bench) -> None:
    clip = bench.clip()
    part = Span(START + 1, START + 2)
    ended = bench.run(lambda session: process_range(session, clip, part, bench.recipe, Manner(folder=bench.folder)))
    record = ended.record
    assert ended.error is None, ended.error
    assert record is not None
    assert not record.whole
    assert placed_of(ended).timeline == part
    assert Path(bench.stage.shown_file(START)) == file_of(bench.plate, bench.media.first), "the plate is still seen"
    assert Path(bench.stage.shown_file(START + 1)) == file_of(record.pattern, bench.media.first + 1)
    part_files = Span(bench.media.first + 1, bench.media.first + 2)
    assert files(record.pattern, part_files) == files(bench.reference, part_files), "as in the whole"
    # grows, with a hole: not placed anew before the hole is filled
    more = {"manner": Manner(folder=bench.folder), "into": record.path}
    ended = bench.run(lambda session: process_range(session, clip, Span(clip.timeline.last, 999), bench.recipe, **more))
    assert ended.record is not None
    assert ended.record.to_do
    assert ended.placed is None
    ended = bench.run(lambda session: process_range(session, clip, clip.timeline, bench.recipe, **more))
    assert ended.record is not None
    assert ended.record.id == record.id
    assert placed_of(ended).timeline == clip.timeline
    assert len(bench.host.results()) == 1
    assert files(record.pattern, bench.media) == files(bench.reference, bench.media)


def check_a_batch_goes_on_after_a_bad_clip(bench: Bench) -> None:
    good = bench.clip("good")
    nowhere = bench.plate.replace(os.path.basename(bench.plate), "nothing.####.exr")
    bench.stage.add_clip("bad", nowhere, bench.media, bench.media, START + 40, bench.size)
    late = bench.clip("late", start=START + 80)
    manner = Manner(folder=bench.folder)
    outcome = bench.run(lambda session: batch(session, Scope.ALL, bench.recipe, manner))
    states = {ended.clip: ended.state for ended in outcome.clips}
    assert states == {"good": "done", "bad": "failed", "late": "done"}
    assert outcome.exit_code == 1
    assert len(bench.host.results()) == 2
    bad = next(ended for ended in outcome.clips if ended.clip == "bad")
    assert bad.error is not None
    assert bad.error.hint
    report = outcome.to_json()
    assert report["clips"][1]["error"]["message"]
    # again: what has a result is refreshed, and nothing is done twice
    patterns = [load(placed.tag.record).pattern for placed in bench.host.results()]
    before = [times(pattern, bench.media) for pattern in patterns]
    again = bench.run(lambda session: batch(session, Scope.ALL, None, manner))
    assert sorted(ended.clip for ended in again.clips) == ["good", "late"]
    assert again.exit_code == 0
    assert [times(pattern, bench.media) for pattern in patterns] == before
    assert {placed.clip_id for placed in bench.host.results()} == {good.id, late.id}


def check_nothing_selected_is_said(bench: Bench) -> None:
    actions: tuple[Callable[[Session], Any], ...] = (
        lambda session: apply(session, session.ask(lambda host: host.clips(Scope.SELECTED)), bench.recipe),
        lambda session: batch(session, Scope.ALL, bench.recipe),
    )
    for action in actions:
        assert refused(NoClips, partial(bench.run, action)).hint


# Choosing


def check_tracks_are_found_and_shown(bench: Bench) -> None:
    clip = bench.clip()
    before = bench.stage.snapshot()
    found = bench.run(lambda session: analyse(session, clip, manner=Manner(folder=bench.folder)))
    assert bench.stage.snapshot() == before
    assert found.sidecar.is_file()
    (track,) = found.tracks
    assert (track.first, track.last, track.frames) == (bench.media.first, bench.media.last, len(bench.media))
    picture = Path(track.picture).read_bytes()
    assert picture.startswith(b"\x89PNG")
    chosen = Recipe((wire.Assignment(bench.identity, track.id),))
    record = one(bench.apply(clip, recipe=chosen)).record
    assert record is not None
    assert record.sidecar == str(found.sidecar), "the analysis that the artist saw is the one that is used"


def check_people_are_listed(bench: Bench) -> None:
    folder = bench.folder / "people"
    folder.mkdir()
    shutil.copy(bench.identity, folder / "someone.fpid")
    (person,) = bench.run(lambda session: identities(session, folder, pictures=bench.folder / "pictures"))
    assert (person.state, person.path) == ("none", str(folder / "someone.fpid"))
    assert Path(person.picture).read_bytes().startswith(b"\x89PNG")


# Threads


def check_a_worker_never_touches_the_host(bench: Bench) -> None:
    clip = bench.clip()
    main = threading.get_ident()
    calls = []

    class Guarded:
        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **options: Any) -> Any:
                assert threading.get_ident() == main, f"{name} off the host's thread"
                calls.append(name)
                return getattr(bench.host, name)(*args, **options)

            return call

    guarded: Any = Guarded()
    manner = Manner(folder=bench.folder)
    task = Task(guarded, bench.servers, lambda session: apply(session, [clip], bench.recipe, manner))
    task.start()
    steps = set()
    end = time.monotonic() + 120
    while task.tick():
        steps.add(task.progress.step)
        assert time.monotonic() < end, "the task does not end"
        time.sleep(0.005)
    placed_of(one(task.result()))
    assert {"place", "show", "project"} <= set(calls)
    assert {"analyse", "swap"} & steps
    # Esc at once: it ends by itself and nothing stands in the document
    before = bench.stage.snapshot()
    task = Task(guarded, bench.servers, lambda session: apply(session, [clip], bench.recipe, manner))
    task.start()
    task.cancel()
    while task.tick():
        assert time.monotonic() < end, "the task does not end"
        time.sleep(0.005)
    assert one(task.result()).state == "cancelled"
    assert bench.stage.snapshot() == before
