"""What every host adapter must do, as plain functions that run wherever the host does: in pytest, or inside the host.

Standard library and `faceplate_client` only, so that a process of Blender's Python can import this file. Each
`check_NAME(bench)` gets a fresh `Bench` whose document is empty, and raises AssertionError where the adapter is at
fault. `CHECKS` has them by name; `skips` says why one does not apply to a host.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from faceplate_client import Client, find, find_or_start, slate, wire
from faceplate_client.actions import analyse, apply, batch, identities, process_range, refresh, remove
from faceplate_client.errors import ClientError, ClipGone, NoClips, ServerNotFound
from faceplate_client.exr_head import read_head
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, Host, Placed, Progress, Scope
from faceplate_client.job_record import Recipe, load
from faceplate_client.live import Live
from faceplate_client.outcome import BatchOutcome, ClipOutcome, Manner
from faceplate_client.result_folder import file_of
from faceplate_client.slots import FrameHeader
from faceplate_client.task import Servers, Session, Task, run

E = TypeVar("E", bound=ClientError)

START = 11
"""Timeline frame of the clips that the checks make."""


class Stage(Protocol):
    """What the checks do to a document as an artist would. An adapter's tests bring one."""

    def add_clip(self, name: str, pattern: str, media: Span, used: Span, start: int, size: tuple[int, int]) -> str:
        """An image sequence on the timeline, selected; returns its `Clip.id`."""
        ...

    def add_retimed(self, name: str, pattern: str, media: Span, start: int, length: int, size: tuple[int, int]) -> str:
        """A clip that shows each source frame twice, selected; "" where this host's tests cannot make one."""
        ...

    def select(self, clip_ids: list[str]) -> None:
        """Select these clips and no others."""
        ...

    def trim(self, clip_id: str, head: int, tail: int) -> None:
        """Cut so many frames off either end; what stays does not move."""
        ...

    def delete(self, clip_id: str) -> None:
        """Delete a clip."""
        ...

    def snapshot(self) -> Any:
        """Everything of the document that an artist could see, comparable with ==."""
        ...

    def undo(self) -> str:
        """One undo; the name of the step, "" where the host does not tell."""
        ...

    def shown_file(self, frame: int) -> str:
        """The file that the document shows at a timeline frame, "" for none."""
        ...

    def give_pixels(self, clip_id: str, pixels: bytes) -> bool:
        """Make the clip one that has pixels and no file: RGBA float, bottom row first, of its size. False: cannot."""
        ...

    def picture(self) -> tuple[FrameHeader, bytes] | None:
        """What `show_pixels` showed last."""
        ...


@dataclass
class Bench:
    """A host with an empty document, a real server, and something to work on.

    Attributes:
        host: the adapter.
        stage: of its tests.
        servers: a running server; `start` is False.
        restartable: whether the server may be killed and started again by `servers.command`.
        plate: pattern of a sequence that this check may change; frames `media` of `size`, ACEScg.
        media: its frames, six at least.
        size: (width, height), px.
        identity: an identity file without a consent record.
        reference: pattern of what `faceplate apply` made of the same plate and identity.
        folder: empty, for anything.
    """

    host: Host
    stage: Stage
    servers: Servers
    restartable: bool
    plate: str
    media: Span
    size: tuple[int, int]
    identity: str
    reference: str
    folder: Path

    @property
    def recipe(self) -> Recipe:
        """One identity on the main face."""
        return Recipe((wire.Assignment(self.identity),))

    @property
    def features(self) -> frozenset[Feature]:
        """Of the host."""
        return self.host.about().features

    def clip(self, name: str = "plate", *, used: Span | None = None, start: int = START) -> Clip:
        """A clip of the plate on the timeline, selected."""
        clip_id = self.stage.add_clip(name, self.plate, self.media, used or self.media, start, self.size)
        return self.host.clip(clip_id)

    def run(self, action: Callable[[Session], Any], host: Any = None) -> Any:
        """Run an action on this thread."""
        return run(host or self.host, self.servers, action)

    def apply(self, *clips: Clip, **options: Any) -> BatchOutcome:
        """Apply the recipe."""
        recipe = options.pop("recipe", self.recipe)
        host = options.pop("host", None)
        manner = Manner(folder=self.folder, **options)
        outcome: BatchOutcome = self.run(lambda session: apply(session, clips, recipe, manner), host)
        return outcome


class Watched:
    """A host whose `show` calls back first, and may ask the action to stop."""

    def __init__(self, host: Host, on_show: Callable[[Progress], bool]) -> None:
        self._host = host
        self._on_show = on_show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def show(self, progress: Progress | None) -> bool:
        going = self._host.show(progress)
        return going if progress is None else self._on_show(progress) and going


def one(outcome: BatchOutcome) -> ClipOutcome:
    """The only clip's outcome; what was wrong with it is said."""
    (ended,) = outcome.clips
    assert ended.error is None, f"{type(ended.error).__name__}: {ended.error}"
    return ended


def placed_of(ended: ClipOutcome) -> Placed:
    """The result in the document."""
    assert ended.state == "done"
    assert ended.placed is not None
    return ended.placed


def refused(kind: type[E], act: Callable[[], Any]) -> E:
    """The error that a call has to raise."""
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def files(pattern: str, frames: Span) -> dict[int, bytes]:
    """The bytes of each frame's file."""
    return {frame: file_of(pattern, frame).read_bytes() for frame in frames}


def times(pattern: str, frames: Span) -> dict[int, int]:
    """When each frame's file was written."""
    return {frame: file_of(pattern, frame).stat().st_mtime_ns for frame in frames}


# Listing


def check_about(bench: Bench) -> None:
    about, project = bench.host.about(), bench.host.project()
    assert about.kind
    assert about.version
    assert about.places
    assert about == bench.host.about()
    assert project.folder.is_absolute()
    assert project.fps > 0
    assert project.working_space
    assert bench.host.results() == ()


def check_clips_are_told_as_they_are(bench: Bench) -> None:
    used = Span(bench.media.first + 1, bench.media.last - 2)
    first, second = bench.clip("first", used=used), bench.clip("second", start=START + 40)
    assert [clip.id for clip in bench.host.clips(Scope.ALL)] == [first.id, second.id]
    assert (first.start, first.used, first.media) == (START, used, bench.media)
    assert (first.head_handles, first.tail_handles) == (1, 2)
    assert os.path.normpath(first.source) == os.path.normpath(bench.plate)
    assert first.size in ((0, 0), bench.size)
    assert not first.needs_bake
    bench.stage.select([second.id])
    assert [clip.id for clip in bench.host.clips(Scope.SELECTED)] == [second.id]
    bench.stage.delete(second.id)
    refused(ClipGone, lambda: bench.host.clip(second.id))


# Apply, remove, undo


def check_apply_gives_the_command_lines_bytes_in_place(bench: Bench) -> None:
    clip = bench.clip()
    untouched = files(bench.plate, bench.media)
    ended = one(bench.apply(clip))
    placed, record = placed_of(ended), ended.record
    assert record is not None
    assert files(record.pattern, bench.media) == files(bench.reference, bench.media)
    assert files(bench.plate, bench.media) == untouched
    for frame in bench.media:
        assert Path(bench.stage.shown_file(clip.times.to_timeline(frame))) == file_of(record.pattern, frame)
    assert placed.timeline == clip.timeline
    assert placed.clip_id == clip.id
    assert placed.tag.job == record.id
    assert load(placed.tag.record) == record
    assert record.placed
    assert bench.host.results() == bench.host.results(record.id) == (placed,)
    assert bench.host.results("another job") == ()
    assert [found.id for found in bench.host.clips(Scope.ALL)] == [clip.id], "a result is no clip"
    assert any("no consent record" in note for note in ended.notes)
    assert (record.colour_space, record.interop_id) == ("ACEScg", "lin_ap1_scene")


def check_remove_restores_exactly(bench: Bench) -> None:
    clip = bench.clip()
    before = bench.stage.snapshot()
    ended = one(bench.apply(clip))
    placed = placed_of(ended)
    assert bench.stage.snapshot() != before
    assert bench.run(lambda session: remove(session, [placed])) == 1
    assert bench.stage.snapshot() == before
    assert bench.host.results() == ()
    assert ended.record is not None
    assert file_of(ended.record.pattern, bench.media.first).exists(), "files stay"


def check_one_undo_takes_it_all_back(bench: Bench) -> None:
    clips = [bench.clip("first"), bench.clip("second", start=START + 40)]
    before = bench.stage.snapshot()
    outcome = bench.apply(*clips)
    assert [ended.state for ended in outcome.clips] == ["done", "done"]
    assert len(bench.host.results()) == 2
    bench.stage.undo()
    assert bench.stage.snapshot() == before
    assert bench.host.results() == ()


def check_handles_are_made_and_not_shown(bench: Bench) -> None:
    first, last = bench.media.first, bench.media.last
    clip = bench.clip(used=Span(first + 2, last - 1))
    ended = one(bench.apply(clip, recipe=replace(bench.recipe, handles=10)))
    record = ended.record
    assert record is not None
    assert (record.frames, record.used) == (bench.media, clip.used)
    assert placed_of(ended).timeline == clip.timeline
    shown = [bench.stage.shown_file(frame) for frame in clip.timeline]
    assert [Path(name) for name in shown] == [file_of(record.pattern, frame) for frame in clip.used]
    assert bench.stage.shown_file(clip.timeline.last + 1) == ""


def check_versions_are_never_written_over(bench: Bench) -> None:
    clip = bench.clip()
    short = replace(bench.recipe, settings={"strength": ((START, 0.5),)})
    first = one(bench.apply(clip)).record
    assert first is not None
    kept = files(first.pattern, bench.media), times(first.pattern, bench.media)
    bench.run(lambda session: remove(session, bench.host.results()))
    second = one(bench.apply(clip, recipe=short)).record
    third = one(bench.apply(clip, place=False)).record
    assert second is not None
    assert third is not None
    assert [record.path.parent.name for record in (first, second, third)] == ["v001", "v002", "v003"]
    assert (files(first.pattern, bench.media), times(first.pattern, bench.media)) == kept
    assert files(second.pattern, bench.media) != kept[0]
    assert files(third.pattern, bench.media) == kept[0]


def check_names_of_any_kind(bench: Bench) -> None:
    clip = bench.clip("Zoë 面 take#2 @ 50%: a/b")
    record = one(bench.apply(clip)).record
    assert record is not None
    assert "Zoë" in record.pattern
    assert Path(bench.stage.shown_file(START)) == file_of(record.pattern, bench.media.first)


def check_settings_keyed_on_the_timeline(bench: Bench) -> None:
    clip = bench.clip()
    middle = START + 3
    keyed = replace(bench.recipe, settings={"strength": ((middle - 1, 0.0), (middle, 1.0))})
    record = one(bench.apply(clip, recipe=keyed)).record
    assert record is not None
    made, reference = files(record.pattern, bench.media), files(bench.reference, bench.media)
    # the whole effect from the key on; before it the plate, with a hash of other settings in its head
    same = [frame for frame in bench.media if made[frame] == reference[frame]]
    assert same == [frame for frame in bench.media if clip.times.to_timeline(frame) >= middle]


# Doing it again


def check_refresh_does_only_what_changed(bench: Bench) -> None:
    clip = bench.clip()
    placed = placed_of(one(bench.apply(clip)))
    record = load(placed.tag.record)
    before = times(record.pattern, bench.media)
    again = one(bench.run(lambda session: refresh(session, [placed])))
    assert again.placed == placed
    assert times(record.pattern, bench.media) == before, "nothing had changed"
    settings = {"strength": ((START, 1.0), (START + 2, 1.0), (START + 3, 0.5))}
    other = one(bench.run(lambda session: refresh(session, [placed], replace(record.recipe, settings=settings))))
    assert other.record is not None
    assert other.record.id == record.id
    changed = [frame for frame, when in times(record.pattern, bench.media).items() if when != before[frame]]
    assert changed == [frame for frame in bench.media if clip.times.to_timeline(frame) > START + 2]


def check_refresh_follows_a_trim(bench: Bench) -> None:
    clip = bench.clip()
    placed = placed_of(one(bench.apply(clip)))
    record = load(placed.tag.record)
    bench.run(lambda session: remove(session, [placed]))
    before = bench.stage.snapshot()
    placed = placed_of(one(bench.apply(clip)))
    bench.stage.trim(clip.id, 2, 1)
    trimmed = bench.host.clip(clip.id)
    assert trimmed.used == Span(bench.media.first + 2, bench.media.last - 1)
    ended = one(bench.run(lambda session: refresh(session, [placed])))
    (stands,) = bench.host.results()
    assert stands == ended.placed
    assert stands.timeline == trimmed.timeline
    assert ended.record is not None
    assert ended.record.pattern != record.pattern, "removed results keep their files to themselves"
    assert Path(bench.stage.shown_file(START + 2)) == file_of(ended.record.pattern, bench.media.first + 2)
    assert bench.stage.snapshot() != before


def check_a_failed_frame_is_a_slate_and_is_listed(bench: Bench) -> None:
    clip = bench.clip()
    bad = bench.media.first + 2
    whole = file_of(bench.plate, bad).read_bytes()
    file_of(bench.plate, bad).write_bytes(whole[: len(whole) // 2])
    outcome = bench.apply(clip)
    ended = one(outcome)
    placed, record = placed_of(ended), ended.record
    assert record is not None
    assert outcome.exit_code == 1
    assert list(ended.failed) == list(record.failed) == [bad]
    assert ended.failed[bad]
    assert slate.is_slate(file_of(record.pattern, bad))
    head = read_head(file_of(record.pattern, bad))
    assert head is not None
    assert (head.size, head.interop_id) == (bench.size, record.interop_id)
    assert Path(bench.stage.shown_file(clip.times.to_timeline(bad))) == file_of(record.pattern, bad)
    assert not any(slate.is_slate(file_of(record.pattern, frame)) for frame in bench.media if frame != bad)
    file_of(bench.plate, bad).write_bytes(whole)
    outcome = bench.run(lambda session: refresh(session, [placed]))
    assert one(outcome).failed == {}
    assert outcome.exit_code == 0
    assert files(record.pattern, bench.media) == files(bench.reference, bench.media)
    assert load(placed.tag.record).failed == {}


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

    ended = one(bench.apply(clip, host=Watched(bench.host, kill_after_first)))
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


# Live


def check_a_live_frame_from_the_source(bench: Bench) -> None:
    clip = bench.clip()
    live = Live(bench.host, bench.servers, bench.recipe)
    layout = bench.host.result_layout(clip)
    for frame in (START, START + 2, START):
        ended = live.frame(clip, frame)
        assert ended.error is None, str(ended.error)
        assert ended.state == "done"
        shown = bench.stage.picture()
        assert shown is not None
        header, pixels = shown
        assert (header.width, header.height) == bench.size
        assert (header.channels, header.dtype, header.bottom_up) == (layout.channels, layout.dtype, layout.bottom_up)
        assert any(pixels)
        assert set(ended.ms) == {"host in", "server", "transport", "host out"}
    assert live.failed == {}
    assert any("no consent record" in note for note in ended.notes)
    live.close()


def check_a_live_frame_from_pixels_is_exact(bench: Bench) -> None:
    import array

    clip = bench.clip()
    width, height = bench.size
    values = array.array("f", [-0.5, 0.25, 1000.0, 1.0] * (width * height))
    if not bench.stage.give_pixels(clip.id, values.tobytes()):
        return
    live = Live(bench.host, bench.servers, replace(bench.recipe, engine="null"))
    ended = live.frame(bench.host.clip(clip.id), START)
    assert ended.error is None, str(ended.error)
    shown = bench.stage.picture()
    assert shown is not None
    assert shown[1] == values.tobytes()
    live.close()


def check_a_live_frame_that_fails_is_a_slate(bench: Bench) -> None:
    clip = bench.clip()
    bad = file_of(bench.plate, bench.media.first + 1)
    whole = bad.read_bytes()
    bad.write_bytes(b"no picture")
    live = Live(bench.host, bench.servers, bench.recipe)
    ended = live.frame(clip, START + 1)
    assert ended.state == "failed"
    assert list(live.failed) == [START + 1]
    shown = bench.stage.picture()
    assert shown is not None
    header, pixels = shown
    expected = bytearray(header.nbytes)
    slate.fill(header, memoryview(expected))
    assert pixels == bytes(expected)
    bad.write_bytes(whole)
    assert live.frame(clip, START + 1).state == "done"
    assert live.failed == {}
    live.close()


def check_a_live_effect_outlives_the_server(bench: Bench) -> None:
    clip = bench.clip()
    live = Live(bench.host, bench.servers, bench.recipe)
    assert live.frame(clip, START).state == "done"
    with Client(find(bench.servers.place), "check") as client:
        pid = client.status().pid
    os.kill(pid, signal.SIGKILL)
    while bench.servers.place.is_alive():
        time.sleep(0.02)
    for frame in (START + 1, START + 2):
        assert live.frame(clip, frame).state == "failed"
    find_or_start(bench.servers.place, bench.servers.command)
    assert live.frame(clip, START + 3).state == "done"
    assert list(live.failed) == [START + 1, START + 2]
    live.close()


CHECKS: dict[str, Callable[[Bench], None]] = {
    name[len("check_") :]: value for name, value in list(globals().items()) if name.startswith("check_")
}
NEEDS: dict[str, frozenset[Feature]] = {
    "one_undo_takes_it_all_back": frozenset({Feature.UNDO}),
    "a_retimed_clip_is_baked_first": frozenset({Feature.BAKE}),
    "a_live_frame_from_the_source": frozenset({Feature.PIXELS_OUT}),
    "a_live_frame_from_pixels_is_exact": frozenset({Feature.PIXELS_IN, Feature.PIXELS_OUT}),
    "a_live_frame_that_fails_is_a_slate": frozenset({Feature.PIXELS_OUT}),
    "a_live_effect_outlives_the_server": frozenset({Feature.PIXELS_OUT}),
}
KILLS = ("a_server_that_dies_in_mid_job_is_no_loss", "a_live_effect_outlives_the_server")
"""Checks that need a server of their own, `Bench.restartable`."""


def skips(name: str, bench: Bench) -> str:
    """Why a check does not apply to this host, "" where it does."""
    lacking = NEEDS.get(name, frozenset()) - bench.features
    if lacking:
        return "the host has no " + ", ".join(sorted(feature.value for feature in lacking))
    return "needs a server of its own" if name in KILLS and not bench.restartable else ""
