"""Timelines and their items in the made-up Resolve."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from .media import PoolItem
from .world import Remote, World

LOOK = {"Pan": 0.0, "Tilt": 0.0, "ZoomX": 1.0, "ZoomY": 1.0, "RotationAngle": 0.0, "Opacity": 100.0, "CropLeft": 0.0}


class Graph(Remote):
    """The grade of an item or timeline."""

    def __init__(self, world: World, owner: Any) -> None:
        super().__init__(world)
        self._owner = owner

    def ResetAllGrades(self) -> bool:
        self._owner._grade = ""
        return True


class TimelineItem(Remote):
    """A clip, title or generator on a timeline.

    Args:
        media: None for a title or generator.
        left: frames of the media before the first that shows, in the media's own frames.
        speed: 0.5 shows each frame twice.
    """

    def __init__(
        self, world: World, name: str, media: PoolItem | None, start: int, duration: int, left: int, speed: float = 1.0
    ) -> None:
        super().__init__(world)
        self._name = name
        self._media = media
        self._start = start
        self._duration = duration
        self._left = left
        self._speed = speed
        self._enabled = True
        self._colour = ""
        self._grade = ""
        self._comps = 0
        self._markers: dict[int, dict[str, Any]] = {}
        self._look = dict(LOOK)
        self._takes: list[list[Any]] = []
        self._selected = 0
        self._track: Track | None = None

    def copied(self) -> TimelineItem:
        """As on a copy of the timeline: another id."""
        twin = copy.copy(self)
        twin._id = self._world.new_id()
        twin._markers, twin._look = copy.deepcopy(self._markers), dict(self._look)
        twin._takes = [list(take) for take in self._takes]
        return twin

    @property
    def end(self) -> int:
        return self._start + self._duration

    def source_offset(self, frame: int) -> int:
        """Frame of the media, from 0, at a timeline frame."""
        return self._left + int((frame - self._start) * self._speed)

    def GetName(self) -> str:
        return self._name

    def GetStart(self, subframe_precision: bool = False) -> int:
        return self._start

    def GetEnd(self, subframe_precision: bool = False) -> int:
        return self.end

    def GetDuration(self, subframe_precision: bool = False) -> int:
        return self._duration

    def GetMediaPoolItem(self) -> PoolItem | None:
        return self._media

    def _base(self) -> int:
        return self._media._first if self._media is not None and self._world.counts_from_number else 0

    def GetLeftOffset(self, subframe_precision: bool = False) -> Any:
        return None if self._media is None else self._base() + round(self._left / self._speed)

    def GetRightOffset(self, subframe_precision: bool = False) -> Any:
        if self._media is None:
            return None
        return round(self._media._count / self._speed) - round(self._left / self._speed) - self._duration

    def GetSourceStartFrame(self) -> int:
        return self._base() + self._left

    def GetSourceEndFrame(self) -> int:
        return self._base() + self._left + round(self._duration * self._speed)

    def GetClipColor(self) -> str:
        return self._colour

    def GetClipEnabled(self) -> bool:
        return self._enabled

    def SetClipEnabled(self, Bool: bool) -> bool:
        self._enabled = Bool or self._media is None  # a title or transition says yes and stays
        return True

    def GetFusionCompCount(self) -> int:
        return self._comps

    def GetProperty(self, propertyKey: Any = None) -> Any:
        return {} if self._media is None else dict(self._look)

    def SetProperty(self, propertyKey: str, propertyValue: Any) -> bool:
        if propertyKey not in self._look:
            return False
        self._look[propertyKey] = propertyValue
        return True

    def CopyGrades(self, tgtTimelineItems: list[TimelineItem]) -> bool:
        for one in tgtTimelineItems:
            one._grade = self._grade
        return True

    def GetNodeGraph(self, layerIdx: int = 1) -> Graph:
        return Graph(self._world, self)

    def GetTrackTypeAndIndex(self) -> list[Any]:
        assert self._track is not None
        return ["video", self._track.timeline._tracks.index(self._track) + 1]

    # Markers: one a frame

    def AddMarker(
        self, frameId: float, color: str, name: str, note: str, duration: float, customData: str = ""
    ) -> bool:
        frame = int(frameId)
        if frame in self._markers or not 0 <= frame < self._duration:
            return False
        told = {"color": color, "name": name, "note": note, "duration": float(duration), "customData": customData}
        self._markers[frame] = told
        return True

    def GetMarkers(self) -> dict[float, dict[str, Any]]:
        return {float(frame): dict(one) for frame, one in self._markers.items()}

    def DeleteMarkerByCustomData(self, customData: str) -> bool:
        for frame, one in self._markers.items():
            if one["customData"] == customData:
                del self._markers[frame]
                return True
        return False

    # Takes

    def AddTake(self, mediaPoolItem: PoolItem, startFrame: int | None = None, endFrame: int | None = None) -> bool:
        if self._media is None:
            return False
        base = mediaPoolItem._first if self._world.counts_from_number else 0
        first = 0 if startFrame is None else startFrame - base
        last = mediaPoolItem._count if endFrame is None else endFrame - base
        if endFrame is not None and not self._world.take_end_exclusive:
            last += 1
        if not 0 <= first < last <= mediaPoolItem._count:
            return False
        if not self._takes:
            self._takes = [[self._media, self._left, self._duration]]
            self._selected = 1
        self._takes.append([mediaPoolItem, first, last - first])
        return True

    def GetTakesCount(self) -> int:
        return len(self._takes)

    def GetSelectedTakeIndex(self) -> int:
        return self._selected

    def GetTakeByIndex(self, idx: int) -> Any:
        if not 1 <= idx <= len(self._takes):
            return None
        media, first, length = self._takes[idx - 1]
        return {"mediaPoolItem": media, "startFrame": first, "endFrame": first + length}

    def SelectTakeByIndex(self, idx: int) -> bool:
        if not 1 <= idx <= len(self._takes):
            return False
        self._selected = idx
        self._media, self._left, self._duration = self._takes[idx - 1]
        return True

    def DeleteTakeByIndex(self, idx: int) -> bool:
        if not 1 <= idx <= len(self._takes) or idx == self._selected:
            return False
        del self._takes[idx - 1]
        if self._selected > idx:
            self._selected -= 1
        return True

    def FinalizeTake(self) -> bool:
        raise AssertionError("takes are never finalised: the artist chooses")

    def trim(self, head: int, tail: int) -> None:
        """What an artist does in the window: all takes go along."""
        self._start += head
        self._duration -= head + tail
        self._left += round(head * self._speed)
        for take in self._takes:
            take[1] += head
            take[2] -= head + tail


@dataclass(eq=False)
class Track:
    timeline: Any
    items: list[TimelineItem] = field(default_factory=list)
    enabled: bool = True
    locked: bool = False


class Timeline(Remote):
    """A timeline; one video track to begin with."""

    def __init__(self, world: World, project: Any, name: str, start: int) -> None:
        super().__init__(world)
        self._project = project
        self._name = name
        self._first = start
        self._tracks = [Track(self)]
        self._settings: dict[str, str] = {}
        self._selected_clips: list[TimelineItem] = []
        self._playhead = start
        self._grade = ""

    def put(self, item: TimelineItem, track: int = 1) -> TimelineItem:
        while len(self._tracks) < track:
            self._tracks.append(Track(self))
        item._track = self._tracks[track - 1]
        item._track.items.append(item)
        return item

    def items(self) -> list[TimelineItem]:
        return [item for track in self._tracks for item in track.items]

    def append(self, info: dict[str, Any]) -> TimelineItem:
        """Source frames with an exclusive end; what overlaps is dropped, and an object comes back all the same."""
        media: PoolItem = info["mediaPoolItem"]
        base = media._first if self._world.counts_from_number else 0
        left, duration = info["startFrame"] - base, info["endFrame"] - info["startFrame"]
        rate = float(self._project._settings["timelineFrameRate"]) / float(media._properties["FPS"])
        duration = int(duration * rate)
        item = TimelineItem(self._world, media._name, media, info["recordFrame"], duration, left)
        item._track = self._tracks[info["trackIndex"] - 1]
        lost = TimelineItem(self._world, media._name, media, 0, 0, 0)
        lost._id = ""
        if item._track.locked or not 0 <= left < left + duration <= media._count:
            return lost
        if any(item._start < one.end and one._start < item.end for one in item._track.items):
            return lost
        item._track.items.append(item)
        return item

    def GetName(self) -> str:
        return self._name

    def GetStartFrame(self) -> int:
        return self._first

    def GetEndFrame(self) -> int:
        return max([self._first + 1, *(item.end for item in self.items())])

    def GetStartTimecode(self) -> str:
        return "00:00:00:00" if self._first == 0 else "01:00:00:00"

    def SetStartTimecode(self, timecode: str) -> bool:
        self._first = 0 if timecode == "00:00:00:00" else 86400
        return True

    def GetTrackCount(self, trackType: str) -> int:
        return len(self._tracks) if trackType == "video" else 0

    def AddTrack(self, trackType: str, newTrackOptions: Any = None) -> bool:
        index = (newTrackOptions or {}).get("index") if self._world.track_index else None
        self._tracks.insert(len(self._tracks) if index is None else index - 1, Track(self))
        return True

    def DeleteTrack(self, trackType: str, trackIndex: int) -> bool:
        del self._tracks[trackIndex - 1]
        return True

    def GetIsTrackEnabled(self, trackType: str, trackIndex: int) -> bool:
        return self._tracks[trackIndex - 1].enabled

    def GetIsTrackLocked(self, trackType: str, trackIndex: int) -> bool:
        return self._tracks[trackIndex - 1].locked

    def GetItemListInTrack(self, trackType: str, index: int) -> Any:
        return list(self._tracks[index - 1].items) or None

    def GetCurrentVideoItem(self) -> Any:
        return next((one for one in self.items() if one._start <= self._playhead < one.end), None)

    def GetSelectedClips(self) -> Any:
        return list(self._selected_clips)

    def DeleteClips(self, timelineItems: list[TimelineItem], Bool: bool = False) -> bool:
        if self._world.page not in (None, "edit"):
            return False
        for track in self._tracks:
            track.items = [one for one in track.items if one not in timelineItems or track.locked]
        return True

    def GetSetting(self, settingName: str = "") -> Any:
        return self._settings.get(settingName, self._project._settings.get(settingName))

    def SetSetting(self, settingName: str, settingValue: str) -> bool:
        if settingName != "useCustomSettings" and self._settings.get("useCustomSettings") != "1":
            return False
        if settingName == "colorSpaceOutput" and settingValue not in self._world.spaces:
            return True  # it did not
        self._settings[settingName] = settingValue
        return True

    def DuplicateTimeline(self, timelineName: str = "") -> Any:
        twin = self._project.add_timeline(timelineName)
        twin._first, twin._grade = self._first, self._grade
        twin._settings, twin._tracks = dict(self._settings), []
        for index, track in enumerate(self._tracks):
            twin._tracks.append(Track(twin, [], track.enabled, track.locked))
            for item in track.items:
                twin.put(item.copied(), index + 1)
        return twin

    def GetNodeGraph(self) -> Graph:
        return Graph(self._world, self)
