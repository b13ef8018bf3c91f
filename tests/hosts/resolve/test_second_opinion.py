"""The fake Resolve of another author, `resolvescript`, as a second opinion.

It can do little of what the adapter asks and answers some things otherwise: gaps are None among a track's items, a clip
has no offsets. What cannot be told has to be refused, and nothing may be guessed.
"""

from __future__ import annotations

import pytest
from ResolveScript.sandbox import api as theirs
from ResolveScript.sandbox.env import build_default_env

from faceplate_client.errors import CannotDo
from faceplate_resolve.colours import Colour
from faceplate_resolve.edition import edition_of
from faceplate_resolve.items import Reader, on_timeline
from tests.hosts.resolve.fake.application import Project, Resolve
from tests.hosts.resolve.fake.media import Folder, MediaPool, PoolItem
from tests.hosts.resolve.fake.timeline import Timeline, TimelineItem

BOTH = (
    (Resolve, theirs.FakeResolve, "GetProjectManager"),
    (Project, theirs.FakeProject, "GetName GetTimelineCount GetTimelineByIndex GetCurrentTimeline GetMediaPool"),
    (Timeline, theirs.FakeTimeline, "GetName GetStartFrame GetEndFrame GetSetting GetTrackCount GetItemListInTrack"),
    (TimelineItem, theirs.FakeClip, "GetName GetStart GetEnd GetDuration GetMediaPoolItem GetFusionCompCount"),
    (PoolItem, theirs.FakeMediaPoolItem, "GetName GetClipProperty SetClipProperty"),
    (Folder, theirs.FakeFolder, "GetName GetClipList GetSubFolderList"),
    (MediaPool, theirs.FakeMediaPool, "GetRootFolder ImportMedia"),
)


@pytest.mark.parametrize(("ours", "other", "calls"), BOTH, ids=lambda value: getattr(value, "__name__", ""))
def test_both_fakes_have_the_calls_that_the_adapter_makes(ours: type, other: type, calls: str) -> None:
    for call in calls.split():
        assert callable(getattr(other, call)), call
        assert callable(vars(ours)[call]), call


@pytest.fixture(autouse=True)
def as_over_the_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve answers None for a method that it does not have."""

    def absent(self: object, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)

    for kind in (theirs.FakeResolve, theirs.FakeClip, theirs.FakeMediaPoolItem):
        monkeypatch.setattr(kind, "__getattr__", absent, raising=False)
        monkeypatch.setattr(kind, "GetUniqueId", lambda self: getattr(self, "_name", "x"), raising=False)


def test_a_resolve_that_does_not_say_what_it_is_is_refused() -> None:
    resolve, _ = build_default_env()
    with pytest.raises(CannotDo, match="does not say"):
        edition_of(resolve)


def test_clips_that_cannot_be_told_are_rendered_not_guessed() -> None:
    resolve, _ = build_default_env()
    timeline = resolve.GetProjectManager().GetCurrentProject().GetCurrentTimeline()
    there = list(on_timeline(timeline))
    assert [(track, item.GetName()) for track, item in there] == [
        (1, "Shot 1"),
        (1, "Shot 3"),
        (2, "Shot 2"),
        (2, "Shot 4"),
    ]
    reader = Reader(Colour("managed"), 24.0)
    for _, item in there:
        clip = reader.clip(item)
        assert clip is not None
        assert clip.needs_bake
        item._item._props["File Path"] = "/shots/A001.mov"
        clip = reader.clip(item)
        assert clip is not None
        assert clip.processed == "retimed", "without offsets nobody knows which frames show"
