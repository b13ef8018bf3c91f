"""Checks: clips are told rightly; results come, go and are done again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from faceplate_client import slate
from faceplate_client.actions import refresh, remove
from faceplate_client.errors import ClipGone
from faceplate_client.exr_head import read_head
from faceplate_client.frame_maths import Span
from faceplate_client.host import Scope
from faceplate_client.job_record import load
from faceplate_client.result_folder import file_of
from tests.contract.hosts.bench import START, Bench, files, one, placed_of, refused, times

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
