"""Clips that Resolve renders first: alone, scene-linear, in a timeline that is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import OpenEXR
import pytest

from faceplate_client.errors import BakeFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip
from faceplate_client.result_folder import file_of
from faceplate_resolve import rendering
from tests.hosts.resolve.fake.application import UNMANAGED
from tests.hosts.resolve.shots import MEDIA, START, Shot, shot, write
from tests.hosts.resolve.stage import leftovers


def slow(one: Shot) -> Clip:
    """The clip at half speed, graded and moved, between others."""
    item = one.item
    item._speed, item._duration, item._left = 0.5, 8, 2
    item._grade = "warm"
    item._look["ZoomX"] = 2.0
    one.stage.timeline._grade = "film"
    one.stage.put("Cross Dissolve", None, START - 3, 6, 0)
    one.stage.put("title", None, START - 5, 100, 0, track=2)
    one.stage.put("far", one.stage.media("far", "/nowhere.mov", MEDIA, (64, 48)), START + 500, 5, 0, track=2)
    over = one.stage.media("over", str(one.folder / "plates" / "sh010.####.exr"), MEDIA, (64, 48))
    one.stage.put("over", over, START, 12, 0, track=3)
    clip = one.host.clip(one.clip.id)
    assert clip.processed == "retimed"
    return clip


def pattern(folder: Path) -> str:
    made = folder / "bake"
    made.mkdir(exist_ok=True)
    return str(made / "b.####.exr")


def pixels(path: Path) -> np.ndarray:
    with OpenEXR.File(str(path)) as file:
        return np.concatenate([part.pixels.ravel() for part in file.channels().values()])


def test_a_retimed_clip_comes_out_alone_linear_and_ungraded(tmp_path: Path) -> None:
    one = shot(tmp_path)
    clip = slow(one)
    before = one.snapshot()
    out = pattern(tmp_path)
    assert list(one.host.bake(clip, clip.timeline, out)) == list(clip.timeline)
    for frame in clip.timeline:
        source = file_of(str(tmp_path / "plates" / "sh010.####.exr"), 1003 + (frame - START) // 2)
        assert file_of(out, frame).read_bytes() == source.read_bytes()
    assert one.snapshot() == before
    assert leftovers(tmp_path / "bake") == []
    (render,) = one.resolve.project.renders
    sizes = [render["timeline"]._settings[f"timelineResolution{name}"] for name in ("Width", "Height")]
    assert sizes == ["64", "48"], "the source's size, whatever the project's"
    assert (render["codec"], render["mode"], render["ExportAudio"]) == ("RGBHalfZIP", 1, False)


@pytest.mark.parametrize("counts_from_number", [False, True])
def test_a_file_that_the_server_cannot_read(counts_from_number: bool, tmp_path: Path) -> None:
    """At its own speed: a timeline of its own, a part of the clip."""
    one = shot(tmp_path, counts_from_number=counts_from_number)
    one.item._grade = "warm"
    before = one.snapshot()
    part = Span(START + 1, START + 4)
    out = pattern(tmp_path)
    assert list(one.host.bake(one.clip, part, out)) == list(part)
    for frame in part:
        source = file_of(one.clip.source, one.clip.times.to_source(frame))
        assert file_of(out, frame).read_bytes() == source.read_bytes()
    assert one.snapshot() == before


def test_a_clip_that_has_a_result_is_rendered_from_its_source(tmp_path: Path) -> None:
    """As a refresh does: below a result above, and under a take."""
    one = shot(tmp_path)
    out = pattern(tmp_path)
    one.host.place(one.clip, one.result)
    clip = one.host.clip(one.clip.id)
    before = one.snapshot()
    assert list(one.host.bake(clip, clip.timeline, out)) == list(clip.timeline)
    assert file_of(out, START).read_bytes() == file_of(one.clip.source, 1003).read_bytes()
    assert one.snapshot() == before
    one.item._takes[0][0]._properties["Super Scale"] = "2x"  # set after the result was made
    clip = one.host.clip(one.clip.id)
    assert clip.processed == "Super Scale"
    list(one.host.bake(clip, clip.timeline, out))
    assert file_of(out, START).read_bytes() == file_of(one.clip.source, 1003).read_bytes()
    assert one.snapshot()["timelines"] == [*before["timelines"]]
    other = shot(tmp_path / "other")
    clip = slow(other)
    result = replace(other.result, files=clip.timeline, used=clip.timeline)
    write(result.pattern, result.files)
    other.host.place(clip, result)
    assert not other.item._enabled
    before = other.snapshot()
    out = pattern(tmp_path / "other")
    list(other.host.bake(clip, clip.timeline, out))
    assert file_of(out, START + 2).read_bytes() == file_of(one.clip.source, 1004).read_bytes()
    assert other.snapshot() == before


def test_the_made_up_resolve_would_encode_what_is_not_asked_to_be_linear(tmp_path: Path) -> None:
    """What the two tests above stand on: a render is in the output space unless somebody sees to it."""
    one = shot(tmp_path)
    project, timeline = one.resolve.project, one.stage.timeline
    project.SetCurrentRenderFormatAndCodec("exr", "RGBHalfZIP")
    project.SetRenderSettings({"MarkIn": START, "MarkOut": START, "TargetDir": str(tmp_path), "CustomName": "plain"})
    project.StartRendering([project.AddRenderJob()])
    while project.IsRenderingInProgress():
        pass
    linear = pixels(file_of(one.clip.source, one.clip.used.first))
    encoded = pixels(next(tmp_path.glob("plain*.exr")))
    assert timeline.GetSetting("colorSpaceOutput") == "Rec.709 Gamma 2.4"
    assert encoded.shape == linear.shape
    half = linear == 0.5
    assert not half.any() or not np.array_equal(encoded, linear)


def test_no_linear_output_no_render(tmp_path: Path) -> None:
    one = shot(tmp_path, spaces=frozenset({"Rec.709 Gamma 2.4"}))
    clip = slow(one)
    before = one.snapshot()
    with pytest.raises(BakeFailed, match="scene-linear"):
        list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
    assert one.snapshot() == before
    assert one.resolve.project.renders == []


def test_an_unmanaged_project_is_refused_before_anything(tmp_path: Path) -> None:
    one = shot(tmp_path, **UNMANAGED)
    clip = slow(one)
    before = one.snapshot()
    with pytest.raises(BakeFailed, match="manages no colour") as caught:
        list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
    assert "DaVinci YRGB Color Managed" in caught.value.hint
    assert one.snapshot() == before


CALLS = (
    "Timeline.DuplicateTimeline",
    "Timeline.SetSetting",
    "TimelineItem.SetProperty",
    "Graph.ResetAllGrades",
    "Project.SetCurrentTimeline",
    "Project.SaveAsNewRenderPreset",
    "Project.SetCurrentRenderFormatAndCodec",
    "Project.SetCurrentRenderMode",
    "Project.SetRenderSettings",
    "Project.AddRenderJob",
    "Project.StartRendering",
)


@pytest.mark.parametrize("how", ["false", "none", "raise"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_leaves_nothing(call: str, how: str, tmp_path: Path) -> None:
    one = shot(tmp_path)
    clip = slow(one)
    if call == "Project.SetCurrentTimeline":  # a copy becomes the current one by itself; it has to be left, though
        one.resolve.project.add_timeline("Reel 2")
        one.resolve.project._current = one.stage.timeline
    before = one.snapshot()
    one.resolve.world.fail(call, how, times=3)
    if call == "Project.SetCurrentTimeline":
        assert list(one.host.bake(clip, clip.timeline, pattern(tmp_path))) == list(clip.timeline), "tried until it went"
    else:
        with pytest.raises(BakeFailed, match=r"sh010|title|over") as caught:
            list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
        assert caught.value.hint
    one.resolve.world.faults.clear()
    assert one.snapshot() == before
    assert leftovers(tmp_path / "bake") == []


def test_a_cancel_stops_the_render(tmp_path: Path) -> None:
    one = shot(tmp_path)
    clip = slow(one)
    before = one.snapshot()
    out = pattern(tmp_path)
    bake: Iterator[int] = one.host.bake(clip, clip.timeline, out)
    assert next(bake) == START
    bake.close()  # type: ignore[attr-defined]
    assert one.resolve.project._running == []
    assert one.snapshot() == before
    assert [path.name for path in sorted((tmp_path / "bake").iterdir())] == [f"b.{START}.exr"], "finished frames stay"


def test_a_render_that_fails_in_the_middle(tmp_path: Path) -> None:
    one = shot(tmp_path)
    clip = slow(one)
    file_of(str(tmp_path / "plates" / "sh010.####.exr"), 1005).unlink()
    before = one.snapshot()
    with pytest.raises(BakeFailed, match="did not render all of 'sh010'") as caught:
        list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
    assert "1005" in str(caught.value)
    assert one.snapshot() == before


def test_a_render_that_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = shot(tmp_path, polls_a_frame=1 << 30)
    clip = slow(one)
    before = one.snapshot()
    monkeypatch.setattr(rendering, "STALLED_S", 0.05)
    pumped = []
    one.host.pump = lambda: pumped.append(1)
    with pytest.raises(BakeFailed, match="stands still"):
        list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
    assert pumped, "the window lives on"
    assert one.snapshot() == before


def test_jobs_of_the_artist_are_left_alone(tmp_path: Path) -> None:
    one = shot(tmp_path)
    project = one.resolve.project
    project.AddRenderJob()
    one.resolve.world.page = "edit"
    clip = slow(one)
    before = one.snapshot()
    list(one.host.bake(clip, clip.timeline, pattern(tmp_path)))
    assert one.snapshot() == before
    assert len(project.renders) == 1
