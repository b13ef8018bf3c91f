"""Results go onto the timeline and off it again, through everything that Resolve is known to do wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faceplate_client.errors import FramesMissing, HostError, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import PlaceMode, Scope
from faceplate_client.result_folder import file_of
from faceplate_resolve.host import Choices, ResolveHost
from faceplate_resolve.notes import Note
from tests.hosts.resolve.fake.timeline import TimelineItem
from tests.hosts.resolve.shots import START, USED, Shot, above, shot, write


def shown(one: Shot) -> list[str]:
    return [one.stage.shown_file(frame) for frame in one.clip.timeline]


def wanted(one: Shot) -> list[str]:
    return [str(file_of(one.result.pattern, frame)) for frame in USED]


@pytest.mark.parametrize("handles", [0, 2])
@pytest.mark.parametrize("counts_from_number", [False, True])
@pytest.mark.parametrize("take_end_exclusive", [False, True])
def test_a_take_whatever_resolve_counts_from(
    handles: int, counts_from_number: bool, take_end_exclusive: bool, tmp_path: Path
) -> None:
    one = shot(tmp_path, handles=handles, counts_from_number=counts_from_number, take_end_exclusive=take_end_exclusive)
    before = one.snapshot()
    assert (one.clip.start, one.clip.used, one.clip.head_handles, one.clip.tail_handles) == (START, USED, 2, 4)
    placed = one.host.place(one.clip, one.result)
    assert shown(one) == wanted(one)
    assert placed.timeline == one.clip.timeline
    assert one.item._takes[0][0]._name == "sh010", "the source stays in the take selector"
    assert len(one.item._takes) == 2
    assert one.host.clip(one.clip.id) == one.clip, "the clip is told as it was before"
    assert one.host.results() == (placed,)
    one.host.remove(placed)
    assert one.snapshot() == before


@pytest.mark.parametrize("handles", [0, 2])
@pytest.mark.parametrize("counts_from_number", [False, True])
def test_the_track_above_with_the_look_of_the_clip(handles: int, counts_from_number: bool, tmp_path: Path) -> None:
    one = shot(tmp_path, handles=handles, counts_from_number=counts_from_number)
    one.item._grade = "warm"
    one.item._look.update(ZoomX=1.5, Opacity=60.0)
    before = one.snapshot()
    placed = one.host.place(one.clip, above(one))
    assert shown(one) == wanted(one)
    (result,) = one.stage.timeline._tracks[1].items
    assert (result._grade, result._look) == ("warm", one.item._look)
    assert not one.item._enabled
    assert [clip.id for clip in one.host.clips(Scope.ALL)] == [one.clip.id], "a result is no clip"
    one.stage.timeline._selected_clips = [result]
    assert [clip.id for clip in one.host.clips(Scope.SELECTED)] == [one.clip.id], "a result stands for its clip"
    one.host.remove(placed)
    one.stage.timeline._selected_clips = [one.item]
    assert one.snapshot() == before


def test_a_copy_of_the_timeline_has_results_of_its_own(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.host.place(one.clip, above(one))
    copy = one.stage.timeline.DuplicateTimeline("Reel 1 copy")
    host = ResolveHost(one.resolve, timeline=copy._id)
    (placed,) = host.results()
    source, result = copy.items()
    assert placed.clip_id == f"item:{source._id}"
    assert [clip.id for clip in host.clips(Scope.ALL)] == [placed.clip_id]
    host.remove(placed)
    assert source._enabled
    assert result not in copy.items()
    assert one.host.results() != (), "the other timeline's stays"
    assert one.stage.shown_file(START) == wanted(one)[0]


def test_what_lies_above_stays_above(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.stage.put("title", None, START + 2, 3, 0, track=2)
    before = one.snapshot()
    placed = one.host.place(one.clip, above(one))
    tracks = [[item._name for item in track.items] for track in one.stage.timeline._tracks]
    assert tracks == [["sh010"], ["sh010.v001.[1001-1010].exr"], ["title"]]
    one.host.remove(placed)
    assert one.snapshot() == before


def test_a_resolve_that_puts_tracks_on_top_only(tmp_path: Path) -> None:
    one = shot(tmp_path, track_index=False)
    one.stage.put("title", None, START + 2, 3, 0, track=2)
    before = one.snapshot()
    with pytest.raises(PlaceFailed, match="something lies on the track above 'sh010'"):
        one.host.place(one.clip, above(one))
    assert one.snapshot() == before


def test_a_locked_track_above_is_left_alone(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.stage.put("late", None, START + 500, 3, 0, track=2)
    one.stage.timeline._tracks[1].locked = True
    placed = one.host.place(one.clip, above(one))
    assert [len(track.items) for track in one.stage.timeline._tracks] == [1, 1, 1]
    assert shown(one) == wanted(one)
    one.host.remove(placed)
    assert len(one.stage.timeline._tracks) == 2


def test_a_part_of_a_clip_cannot_be_a_take(tmp_path: Path) -> None:
    one = shot(tmp_path, handles=0)
    part = Span(1004, 1005)
    result = replace(one.result, files=part, used=part, start=START + 1, covers_clip=False)
    placed = one.host.place(one.clip, result)
    assert placed.timeline == Span(START + 1, START + 2)
    assert one.item._enabled
    assert one.item._takes == []
    assert [Path(name).parent.name for name in shown(one)] == ["plates", "v001", "v001", "plates", "plates", "plates"]
    one.item._comps = 1
    with pytest.raises(PlaceFailed, match="Fusion composition"):
        one.host.place(one.clip, result)


def test_results_over_results_go_in_any_order(tmp_path: Path) -> None:
    one = shot(tmp_path)
    before = one.snapshot()
    first = one.host.place(one.clip, one.result)
    pattern = write(str(tmp_path / "out" / "v002" / "sh010.v002.####.exr"), one.result.files)
    tag = replace(one.result.tag, job="fp-2")
    second = one.host.place(one.host.clip(one.clip.id), replace(one.result, pattern=pattern, tag=tag))
    assert {Path(name).parent.name for name in shown(one)} == {"v002"}
    one.host.remove(first)
    assert {Path(name).parent.name for name in shown(one)} == {"v002"}, "the newer one is still shown"
    assert one.host.results() == (second,)
    one.host.remove(second)
    assert one.snapshot() == before
    assert {Path(name).parent.name for name in shown(one)} == {"plates"}


WRITES_OF_A_TAKE = (
    "MediaPool.AddSubFolder",
    "MediaPool.SetCurrentFolder",
    "MediaPool.ImportMedia",
    "MediaPoolItem.SetClipProperty",
    "TimelineItem.AddTake",
    "TimelineItem.SelectTakeByIndex",
    "TimelineItem.AddMarker",
)
WRITES_ABOVE = (
    "Timeline.AddTrack",
    "MediaPool.AppendToTimeline",
    "TimelineItem.CopyGrades",
    "TimelineItem.SetProperty",
    "TimelineItem.SetClipEnabled",
    "TimelineItem.AddMarker",
)


WRITES = [
    (call, mode, how)
    for calls, mode in ((WRITES_OF_A_TAKE, PlaceMode.TAKE), (WRITES_ABOVE, PlaceMode.ABOVE))
    for call in calls
    for how in ("false", "none", "lie", "raise")
    if (call, how) != ("TimelineItem.CopyGrades", "lie")  # a grade cannot be read back
]


@pytest.mark.parametrize(("call", "mode", "how"), WRITES)
def test_a_write_that_fails_or_lies(call: str, mode: PlaceMode, how: str, tmp_path: Path) -> None:
    """Named with the clip, and everything is as it was."""
    one = shot(tmp_path)
    one.item._look["Pan"] = 3.0
    if call == "MediaPool.SetCurrentFolder":  # a new bin is the current one anyway
        pool = one.resolve.project._pool
        pool.AddSubFolder(pool._root, "Faceplate")
        pool._current = pool._root
    before = one.snapshot()
    one.resolve.world.fail(call, how)
    with pytest.raises(HostError) as caught:
        one.host.place(one.clip, replace(one.result, mode=mode))
    said = str(caught.value)
    method = call.partition(".")[2]
    assert method in said or (method, "input colour space" in said) == ("SetClipProperty", True)
    assert "sh010" in said or "Faceplate" in said
    assert caught.value.hint
    assert one.snapshot() == before
    assert one.host.results() == ()


@pytest.mark.parametrize("call", ["TimelineItem.SelectTakeByIndex", "TimelineItem.AddMarker", "MediaPool.AddSubFolder"])
def test_a_write_that_fails_once_is_tried_again(call: str, tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.resolve.world.fail(call, "false", times=1)
    one.host.place(one.clip, one.result)
    assert shown(one) == wanted(one)


@pytest.mark.parametrize("call", ["TimelineItem.DeleteTakeByIndex", "TimelineItem.DeleteMarkerByCustomData"])
def test_a_removal_that_fails_is_said(call: str, tmp_path: Path) -> None:
    one = shot(tmp_path)
    placed = one.host.place(one.clip, one.result)
    one.resolve.world.fail(call, "lie")
    with pytest.raises(PlaceFailed, match=call.partition(".")[2]):
        one.host.remove(placed)


def test_a_missing_file_is_found_before_anything_is_touched(tmp_path: Path) -> None:
    one = shot(tmp_path)
    before = one.snapshot()
    file_of(one.result.pattern, 1005).unlink()
    with pytest.raises(FramesMissing, match="1005"):
        one.host.place(one.clip, one.result)
    assert one.snapshot() == before


def test_the_page_the_bin_and_the_timeline_of_the_artist_come_back(tmp_path: Path) -> None:
    one = shot(tmp_path)
    other = one.resolve.project.add_timeline("Reel 2")
    one.resolve.world.page = "fairlight"
    placed = one.host.place(one.clip, above(one))
    one.host.remove(placed)
    assert one.resolve.world.page == "fairlight", "clips can be deleted on the Edit page alone"
    assert one.resolve.project._current is other
    assert one.resolve.project._pool._current._name == "Master"


def test_a_result_that_is_used_elsewhere_stays_in_its_bin(tmp_path: Path) -> None:
    one = shot(tmp_path)
    placed = one.host.place(one.clip, one.result)
    media = one.item._media
    elsewhere = one.resolve.project.add_timeline("Reel 2")
    elsewhere.put(TimelineItem(one.resolve.world, "copy", media, 86400, 6, 2))
    one.host.remove(placed)
    assert [clip._name for folder in one.resolve.project._pool._root._folders for clip in folder._clips] == [
        media._name
    ]


def test_an_artists_own_bin_stays(tmp_path: Path) -> None:
    one = shot(tmp_path)
    pool = one.resolve.project._pool
    pool.AddSubFolder(pool._root, "Faceplate")
    pool._current = pool._root
    before = one.snapshot()
    one.host.remove(one.host.place(one.clip, one.result))
    assert one.snapshot() == before


def test_markers_of_the_artist_are_in_nobodys_way(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.item.AddMarker(0, "Red", "check eyeline", "", 1, "")
    before = one.snapshot()
    placed = one.host.place(one.clip, one.result)
    told = {frame: marker["name"] for frame, marker in one.item._markers.items()}
    assert told == {0: "check eyeline", 1: "Faceplate"}
    note = Note.parse(one.item._markers[1]["customData"])
    assert note is not None
    assert (note.job, note.record, note.mode) == ("fp-1", one.result.tag.record, "take")
    one.host.remove(placed)
    assert one.snapshot() == before


def test_an_artist_who_chooses_or_deletes_takes(tmp_path: Path) -> None:
    one = shot(tmp_path)
    placed = one.host.place(one.clip, one.result)
    one.item.SelectTakeByIndex(1)
    assert one.host.clip(one.clip.id) == one.clip
    assert one.host.results() == (placed,), "it is still a take of the clip"
    one.item.DeleteTakeByIndex(2)
    assert one.host.results() == ()
    with pytest.raises(PlaceFailed, match="not on the timeline any more"):
        one.host.remove(placed)


def test_an_old_resolve_has_no_selection(tmp_path: Path) -> None:
    one = shot(tmp_path, version=(18, 6, 2))
    late = one.stage.add_clip(
        "late", str(tmp_path / "plates" / "sh010.####.exr"), Span(1001, 1012), USED, START + 50, (64, 48)
    )
    assert hasattr(one.stage.timeline, "GetSelectedClips"), "which says nothing"
    one.stage.timeline._playhead = START + 51
    assert [clip.id for clip in one.host.clips(Scope.SELECTED)] == [late]
    one.stage.timeline._playhead = START + 20
    assert one.host.clips(Scope.SELECTED) == ()
    one.host.place(one.clip, one.result)
    assert shown(one) == wanted(one)


def test_files_written_anew_are_looked_at_again(tmp_path: Path) -> None:
    one = shot(tmp_path)
    placed = one.host.place(one.clip, one.result)
    before = one.snapshot()
    one.host.reload(placed)
    assert one.item._media._relinked == 1
    assert one.snapshot() == before
    one.resolve.world.fail("MediaPool.RelinkClips", "false")
    with pytest.raises(HostError, match="RelinkClips") as caught:
        one.host.reload(placed)
    assert "Relink" in caught.value.hint


def test_marked_clips(tmp_path: Path) -> None:
    one = shot(tmp_path, choices=Choices(mark_colour="Teal"))
    plate = str(tmp_path / "plates" / "sh010.####.exr")
    ids = [one.stage.add_clip(f"c{n}", plate, Span(1001, 1012), USED, START + 50 * n, (64, 48)) for n in (1, 2, 3)]
    one.stage.put("title", None, START + 10, 5, 0)._colour = "Teal"
    one.stage.item(ids[0])._colour = "Teal"
    one.stage.item(ids[1])._colour = "Violet"
    one.stage.item(ids[2]).AddMarker(0, "Green", "Faceplate ", "", 1, "")
    assert [clip.id for clip in one.host.clips(Scope.MARKED)] == [ids[0], ids[2]]
    one.stage.item(ids[0])._enabled = False
    assert [clip.id for clip in one.host.clips(Scope.MARKED)] == [ids[2]]
