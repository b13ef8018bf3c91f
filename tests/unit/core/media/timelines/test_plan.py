"""From a timeline to what has to be rendered: merging, handles, edges of the media, names, missing media."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import opentimelineio as otio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.errors import InputError, SettingError
from faceplate.jobs.timeline.plan import merge, outputs, ranges_text
from faceplate.jobs.timeline.run import check_plan
from faceplate.media.sequence import parse_frame_range
from tests.support import long_timeline
from tests.support.timelines import clip, gap, span, timeline
from tests.unit.core.media.timelines.conftest import CODE, FRAMES, planned, render_job, shown

RUNS = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair))), max_size=30)


@given(RUNS)
def test_merged_ranges_hold_the_same_frames_once(runs: list[tuple[int, int]]) -> None:
    found = merge(runs)
    frames = {frame for first, last in runs for frame in range(first, last + 1)}
    assert [frame for first, last in found for frame in range(first, last + 1)] == sorted(frames)
    assert all(second[0] > first[1] + 1 for first, second in itertools.pairwise(found))
    if found:
        assert set(parse_frame_range(ranges_text(found))) == frames


def write(folder: Path, *items: Any) -> Path:
    path = folder / "cut.otio"
    otio.adapters.write_to_file(timeline(*items), str(path))
    return path


def test_three_hours_of_two_thousand_clips(tmp_path: Path) -> None:
    media = long_timeline.write_media(tmp_path, 200)
    document, expected = long_timeline.build(media, 2000)
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(document, str(path))
    _, plan = planned(path, tmp_path / "out")
    assert plan.problems == ()
    assert (len(plan.shots), plan.clips) == (200, 2000)
    assert document.duration().value == 2000 * 130
    for shot in plan.shots:
        wanted = expected[shot.name]
        rendered = set(parse_frame_range(shot.frames))
        assert wanted <= rendered
        # Of a retimed clip the frames between are rendered too, so that the result is a whole movie; nothing else.
        ends = {frame for each in shot.clips for frame in each.needed}
        assert ends <= wanted
        assert rendered == {frame for each in shot.clips for frame in range(each.needed[0], each.needed[1] + 1)}


def test_handles_end_where_the_media_do(media: Path, tmp_path: Path) -> None:
    url = (media / "A001.mov").as_uri()
    path = write(
        tmp_path,
        [
            clip("a", CODE + 3, 10, url=url, available=(CODE, FRAMES)),
            clip("b", CODE + 50, 15, url=url, available=(CODE, FRAMES)),
        ],
    )
    _, plan = planned(path, tmp_path, handles=5)
    (shot,) = plan.shots
    assert shot.parts == ((1, 18), (46, 60))
    assert shot.frames == "1-18,46-60"
    assert plan.notes == ("b (V1 at 00:00:00:10) needs 5 frames more than A001.mov has",)
    assert shot.part_of(shot.clips[1]) == (46, 60)
    with pytest.raises(SettingError):
        render_job(path, tmp_path, handles=-1)


def test_a_clip_outside_its_media_is_a_problem(media: Path, tmp_path: Path) -> None:
    url = (media / "A001.mov").as_uri()
    _, plan = planned(write(tmp_path, [clip("a", CODE + 100, 10, url=url, available=(CODE, FRAMES))]), tmp_path)
    ((where, why),) = plan.problems
    assert (where, "lie outside" in why, "1-60" in why) == ("a (V1 at 00:00:00:00)", True, True)


def test_playing_backwards_covers_both_readings_where_both_are_possible(media: Path, tmp_path: Path) -> None:
    url = (media / "A001.mov").as_uri()
    items = [
        clip("both", CODE + 30, 10, url=url, available=(CODE, FRAMES), speed=-1),
        clip("one", CODE + 2, 10, url=url, available=(CODE, FRAMES), speed=-1),
    ]
    _, plan = planned(write(tmp_path, items), tmp_path)
    # from 31 down to 22, or from 40 down to 31; the other cannot begin at 3 and go down 10 frames
    assert [each.shown for each in plan.shots[0].clips] == [(22, 40), (3, 12)]
    assert all("plays backwards" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("name", "start", "expected", "doubt"),
    [
        ("A001.mov", CODE + 10, (11, 14), False),  # timecode
        ("A001.mov", 10, (11, 14), False),  # a count from 0
        ("B 002.mov", 10, (11, 14), False),
        ("sh010.1001.exr", 1010, (1010, 1013), False),  # frame numbers
    ],
)
def test_without_an_available_range_the_clips_times_decide(
    media: Path, tmp_path: Path, name: str, start: int, expected: tuple[int, int], doubt: bool
) -> None:
    url = (media / name).as_uri().replace("1001", "[1001-1060]")
    _, plan = planned(write(tmp_path, [clip("a", start, 4, url=url)]), tmp_path)
    assert plan.problems == ()
    assert [each.shown for each in plan.shots[0].clips] == [expected]
    assert bool(plan.notes) == doubt


def test_a_time_that_is_nowhere_is_refused(media: Path, tmp_path: Path) -> None:
    _, plan = planned(write(tmp_path, [clip("a", 5000, 4, url=(media / "A001.mov").as_uri())]), tmp_path)
    ((_, why),) = plan.problems
    assert "lie outside A001.mov, which has 60 frames from timecode 3600 s" in why


def test_a_trimmed_available_range_is_met_by_timecode(media: Path, tmp_path: Path) -> None:
    url = (media / "A001.mov").as_uri()
    _, plan = planned(write(tmp_path, [clip("a", CODE + 25, 4, url=url, available=(CODE + 20, 20))]), tmp_path)
    assert shown(plan) == {"A001": [(26, 29)]}


def test_mixed_rates_and_twins(media: Path, tmp_path: Path) -> None:
    a, n = (media / "A001.mov").as_uri(), (media / "N001.mov").as_uri()
    items = [
        clip("a", CODE, 24, url=a, available=(CODE, FRAMES)),
        clip("twin", CODE, 24, url=n, available=(CODE, FRAMES)),  # 23.976 counted as 24
        clip("other", 30, 30, url=a, available=(0, 75), rate=30),
    ]
    _, plan = planned(write(tmp_path, items), tmp_path)
    assert plan.rate == 24
    by_name = {each.name: each.shown for shot in plan.shots for each in shot.clips}
    # One second of a timeline at 24: frames of a movie at 24, whatever rate the clip is counted in.
    assert by_name == {"a": (1, 24), "twin": (1, 24), "other": (25, 48)}


def test_only_and_skip(media: Path, tmp_path: Path) -> None:
    a, b = (media / "A001.mov").as_uri(), (media / "B 002.mov").as_uri()
    path = write(
        tmp_path,
        [clip("hero", CODE, 4, url=a, available=(CODE, FRAMES)), clip("extra", 8, 4, url=b, available=(0, FRAMES))],
    )
    _, plan = planned(path, tmp_path, only=("HERO",))
    assert shown(plan) == {"A001": [(1, 4)]}
    _, plan = planned(path, tmp_path, only=("b*",))
    assert shown(plan) == {"B_002": [(9, 12)]}
    _, plan = planned(path, tmp_path, skip=("a001.mov",))
    assert shown(plan) == {"B_002": [(9, 12)]}
    assert plan.left == (("hero", "left out on purpose"),)
    with pytest.raises(InputError, match="no clip of the timeline is called 'villain'"):
        planned(path, tmp_path, only=("villain",))


def test_missing_media_are_listed_relinked_or_skipped(media: Path, tmp_path: Path) -> None:
    far = "file:///Volumes/RAID%201/day 2/"
    items = [
        clip("a", CODE, 4, url=far + "A001.mov", available=(CODE, FRAMES)),
        clip("gone", CODE, 4, url=far + "gone.mov", available=(CODE, FRAMES)),
        gap(2),
        otio.schema.Clip("title", otio.schema.GeneratorReference(generator_kind="text"), span(0, 5)),
    ]
    path = write(tmp_path, items)
    _, plan = planned(path, tmp_path)
    assert [why for _, why in plan.problems] == [
        "media not found: /Volumes/RAID 1/day 2/A001.mov: it is not there",
        "media not found: /Volumes/RAID 1/day 2/gone.mov: it is not there",
    ]
    with pytest.raises(InputError, match="2 clips of") as error:
        check_plan(plan, lambda event: None)
    assert "gone.mov" in str(error.value)
    _, plan = planned(path, tmp_path, roots=(media,), offline="skip")
    assert shown(plan) == {"A001": [(1, 4)]}
    assert [why for _, why in plan.left] == [
        "media not found: /Volumes/RAID 1/day 2/gone.mov: it is not there, nor below the media roots",
        "no media: a title or generator",
    ]
    _, plan = planned(path, tmp_path, relink=(("/Volumes/RAID 1/day 2", str(media)),), offline="skip")
    assert shown(plan) == {"A001": [(1, 4)]}


def test_of_several_files_the_nearest_folder_wins_and_a_tie_is_refused(media: Path, tmp_path: Path) -> None:
    for day in ("day1", "day2"):
        (tmp_path / "root" / day).mkdir(parents=True)
        (tmp_path / "root" / day / "A001.mov").hardlink_to(media / "A001.mov")
    options: dict[str, Any] = {"roots": (tmp_path / "root",)}
    path = write(tmp_path, [clip("a", CODE, 4, url="/x/DAY2/A001.mov", available=(CODE, FRAMES))])
    _, plan = planned(path, tmp_path, **options)
    assert plan.shots[0].media.plate == str(tmp_path / "root/day2/A001.mov")
    path = write(tmp_path, [clip("a", CODE, 4, url="/x/A001.mov", available=(CODE, FRAMES))])
    _, plan = planned(path, tmp_path, **options)
    assert "2 files fit" in plan.problems[0][1]


def test_sources_of_one_name_and_results_apart(media: Path, tmp_path: Path) -> None:
    items = []
    for day in ("day1", "day2"):
        (tmp_path / day).mkdir()
        (tmp_path / day / "A001.mov").hardlink_to(media / "A001.mov")
        items.append(clip(day, CODE, 4, url=f"{day}/A001.mov", available=(CODE, FRAMES)))
    items.append(clip("again", CODE + 50, 4, url="day1/A001.mov", available=(CODE, FRAMES)))
    job, plan = planned(write(tmp_path, items), tmp_path)
    assert [shot.name for shot in plan.shots] == ["day1_A001", "day2_A001"]
    assert outputs(plan.shots[0], job.output, ".exr") == dict.fromkeys(
        ((1, 4), (51, 54)), str(tmp_path / "day1_A001" / "day1_A001.####.exr")
    )
    assert outputs(plan.shots[0], job.output, ".mov") == {
        (1, 4): str(tmp_path / "day1_A001_1-4.mov"),
        (51, 54): str(tmp_path / "day1_A001_51-54.mov"),
    }


def test_holes_in_a_sequence_are_found_before_anything_runs(media: Path, tmp_path: Path) -> None:
    for number in (1, 2, 3, 6, 7):
        (tmp_path / f"x.{number:04d}.exr").touch()
    items = [clip("a", 0, 7, url="x.0001.exr", available=(0, 7))]
    _, plan = planned(write(tmp_path, items), tmp_path)
    assert "has no file for frames 4-5" in plan.problems[0][1]
    _, plan = planned(write(tmp_path, items), tmp_path, missing="hold")
    assert plan.problems == ()
    assert shown(plan) == {"x": [(1, 7)]}


def test_frames_one_by_one(media: Path, tmp_path: Path) -> None:
    url = (media / "A001.mov").as_uri()
    items = [gap(3), clip("fast", CODE + 10, 4, url=url, available=(CODE, FRAMES), speed=2.5)]
    _, plan = planned(write(tmp_path, items), tmp_path)
    (shot,) = plan.shots
    (fast,) = shot.clips
    assert fast.frames(Fraction(24), shot.media) == [(3, 11), (4, 13), (5, 16), (6, 18)]
    assert fast.shown == (11, 19)  # between 18 and 19: both


def test_documents_that_say_nonsense_are_refused_in_words(media: Path, tmp_path: Path) -> None:
    nobody_knows = otio.schema.Clip("a", otio.schema.ExternalReference("a.mov"))
    with pytest.raises(InputError, match="length is not known"):
        planned(write(tmp_path, [nobody_knows]), tmp_path)
    _, plan = planned(
        write(tmp_path, [clip("a", 0, 4, url="a\0b.mov"), clip("b", 0, 4, url="https://x/y.mov")]), tmp_path
    )
    assert ["media not found" in why for _, why in plan.problems] == [True, True]
    steps = clip("a", 0, 4)
    steps.media_reference = otio.schema.ImageSequenceReference(
        media.as_uri() + "/", "sh010.", ".exr", 1001, 2, 24, 4, available_range=span(0, 30)
    )
    _, plan = planned(write(tmp_path, [steps]), tmp_path)
    assert "in steps of 2" in plan.problems[0][1]
    text = re.sub(r'"rate": *[0-9.]+', '"rate": -1.0', write(tmp_path, [clip("a", 0, 4)]).read_text("utf-8"))
    (tmp_path / "cut.otio").write_text(text, "utf-8")
    _, plan = planned(tmp_path / "cut.otio", tmp_path)
    with pytest.raises(InputError, match="no clip to render"):
        check_plan(plan, lambda event: None)


def test_results_are_no_media(media: Path, tmp_path: Path) -> None:
    for folder in ("media", "out/A001"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "media/A001.mov").hardlink_to(media / "A001.mov")
    (tmp_path / "out/A001/A001.0001.exr").touch()
    lost = otio.schema.Clip("A001", otio.schema.MissingReference(), span(CODE, 4))
    _, plan = planned(write(tmp_path, [lost]), tmp_path / "out", roots=(tmp_path,))
    assert plan.shots[0].media.plate == str(tmp_path / "media/A001.mov")
