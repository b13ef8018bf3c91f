"""The objects of Resolve's scripting interface as this plug-in uses them, typed.

What `fusionscript-stubs` 21.0.0 has right is in the classes that end in `Documented`; at the end of this file mypy
proves that the stubs' own classes have these methods. Where the stubs are wrong or lack something, the full class says
it anew, with the fault in a comment. When the plug-in runs, nothing of this is more than an empty class.

Whatever a call is documented to return may also be None or False: a title has no media pool item, a project no
timeline, and a write that failed says False. `calls.py` turns that into errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from typing import Literal

    Video = Literal["video"]
    Page = Literal["media", "cut", "edit", "fusion", "color", "fairlight", "deliver"]
    SingleClip = Literal[0, 1]
    Number = Union[int, float]


class FolderDocumented(Protocol):
    """A bin, as the stubs have it."""

    def GetName(self) -> str: ...

    def GetUniqueId(self) -> str: ...


class Folder(FolderDocumented, Protocol):
    """A bin."""

    # stubs: never None, though an empty or stale bin gives it
    def GetClipList(self) -> Sequence[PoolItem] | None: ...

    def GetSubFolderList(self) -> Sequence[Folder] | None: ...


class PoolItemDocumented(Protocol):
    """A clip of the media pool, as the stubs have it."""

    def GetName(self) -> str: ...

    def GetUniqueId(self) -> str: ...

    def SetClipProperty(self, propertyName: str, propertyValue: Any) -> bool: ...


class PoolItem(PoolItemDocumented, Protocol):
    """A clip of the media pool."""

    # stubs: str | dict, so that every use would need a cast; None for a property that the clip does not have
    def GetClipProperty(self, propertyName: str) -> Any: ...


class ItemDocumented(Protocol):
    """A clip on a timeline, as the stubs have it."""

    def GetName(self) -> str: ...

    def GetUniqueId(self) -> str: ...

    def GetSourceStartFrame(self) -> int: ...

    def GetSourceEndFrame(self) -> int: ...

    def GetClipColor(self) -> str: ...

    def SetProperty(self, propertyKey: str, propertyValue: Any) -> bool: ...

    def GetFusionCompCount(self) -> int: ...

    def GetSelectedTakeIndex(self) -> int: ...

    def GetTakesCount(self) -> int: ...

    def DeleteTakeByIndex(self, idx: int) -> bool: ...

    def SelectTakeByIndex(self, idx: int) -> bool: ...

    def SetClipEnabled(self, Bool: bool) -> bool: ...

    def GetClipEnabled(self) -> bool: ...

    def DeleteMarkerByCustomData(self, customData: str) -> bool: ...


class Item(ItemDocumented, Protocol):
    """A clip on a timeline. Titles, generators, transitions and adjustment clips are items too."""

    # stubs: these demand the optional argument `subframe_precision`
    def GetStart(self) -> Number: ...

    def GetDuration(self) -> Number: ...

    def GetLeftOffset(self) -> Number: ...

    def GetRightOffset(self) -> Number: ...

    # stubs: never None, though titles and generators have none
    def GetMediaPoolItem(self) -> PoolItem | None: ...

    # stubs: the extents are not optional
    def AddTake(self, mediaPoolItem: PoolItem, startFrame: int = ..., endFrame: int = ...) -> bool: ...

    # stubs: a TypedDict; a plain dict, or None for an index that is not there
    def GetTakeByIndex(self, idx: int) -> Mapping[str, Any] | None: ...

    # stubs: `color` is one of a fixed set and `customData` is not optional
    def AddMarker(
        self, frameId: int, color: str, name: str, note: str, duration: int, customData: str = ...
    ) -> bool: ...

    # stubs: a TypedDict for the marker
    def GetMarkers(self) -> Mapping[Number, Mapping[str, Any]] | None: ...

    # stubs: int | dict[str, str]; a dict of numbers and words without a key, empty for titles and transitions
    def GetProperty(self, propertyKey: str | None = ...) -> Any: ...

    # stubs: the list is not of our Item
    def CopyGrades(self, tgtTimelineItems: list[Item]) -> bool: ...

    # stubs: the layer is not optional; None where the page or the edition has none
    def GetNodeGraph(self) -> Graph | None: ...

    # stubs: a tuple; a list of two in fact, by the vendor's README
    def GetTrackTypeAndIndex(self) -> Sequence[Any]: ...


class Graph(Protocol):
    """The grade of an item or timeline, as the stubs have it."""

    def ResetAllGrades(self) -> bool: ...


class TimelineDocumented(Protocol):
    """A timeline, as the stubs have it."""

    def GetName(self) -> str: ...

    def GetUniqueId(self) -> str: ...

    def GetStartFrame(self) -> int: ...

    def GetEndFrame(self) -> int: ...

    def GetStartTimecode(self) -> str: ...

    def SetStartTimecode(self, timecode: str) -> bool: ...

    def GetTrackCount(self, trackType: Video) -> int: ...

    def GetIsTrackEnabled(self, trackType: Video, trackIndex: int) -> bool: ...

    def GetIsTrackLocked(self, trackType: Video, trackIndex: int) -> bool: ...

    def DeleteTrack(self, trackType: Video, trackIndex: int) -> bool: ...

    def SetSetting(self, settingName: str, settingValue: str) -> bool: ...


class Timeline(TimelineDocumented, Protocol):
    """A timeline."""

    # stubs: the options are not optional
    def AddTrack(self, trackType: Video, newTrackOptions: Mapping[str, Any] = ...) -> bool: ...

    # stubs: never None, though an empty track gives it
    def GetItemListInTrack(self, trackType: Video, index: int) -> Sequence[Item] | None: ...

    # stubs: never None, though the playhead may stand over a gap
    def GetCurrentVideoItem(self) -> Item | None: ...

    # stubs: absent; from 21.0.4 on
    def GetSelectedClips(self) -> Sequence[Item] | None: ...

    # stubs: the list is not of our Item, and the second argument is not optional
    def DeleteClips(self, timelineItems: list[Item], Bool: bool = ...) -> bool: ...

    # stubs: str, but numbers come too ("24", "23.976", 24.0)
    def GetSetting(self, settingName: str) -> Any: ...

    # stubs: the name is not optional; None where it failed
    def DuplicateTimeline(self, timelineName: str) -> Timeline | None: ...

    # stubs: never None
    def GetNodeGraph(self) -> Graph | None: ...


class PoolDocumented(Protocol):
    """The media pool, as the stubs have it."""

    def RefreshFolders(self) -> bool: ...


class Pool(PoolDocumented, Protocol):
    """The media pool."""

    # stubs: the objects are the stubs' own, and never None
    def GetRootFolder(self) -> Folder: ...

    def GetCurrentFolder(self) -> Folder | None: ...

    def SetCurrentFolder(self, folder: Folder) -> bool: ...

    def AddSubFolder(self, folder: Folder, name: str) -> Folder | None: ...

    def DeleteFolders(self, subfolders: list[Folder]) -> bool: ...

    def DeleteClips(self, clips: list[PoolItem]) -> bool: ...

    def CreateEmptyTimeline(self, name: str) -> Timeline | None: ...

    def DeleteTimelines(self, timeline: list[Timeline]) -> bool: ...

    def UnlinkClips(self, mediaPoolItem: list[PoolItem]) -> bool: ...

    def RelinkClips(self, mediaPoolItem: list[PoolItem], folderPath: str) -> bool: ...

    # stubs: the overload for clip infos is annotated as a list literal and matches nothing. Keys: mediaPoolItem,
    # startFrame, endFrame (exclusive, source frames), mediaType (1: picture alone), trackIndex, recordFrame
    def AppendToTimeline(self, clipInfo: list[dict[str, Any]]) -> Sequence[Item] | None: ...

    # stubs: never None, though what is not there gives it
    def ImportMedia(self, clipInfo: list[dict[str, Any]] | list[str]) -> Sequence[PoolItem] | None: ...


class ProjectDocumented(Protocol):
    """A project, as the stubs have it."""

    def GetName(self) -> str: ...

    def GetUniqueId(self) -> str: ...

    def GetTimelineCount(self) -> int: ...

    def AddRenderJob(self) -> str: ...

    def DeleteRenderJob(self, jobId: str) -> bool: ...

    def StopRendering(self) -> None: ...

    def IsRenderingInProgress(self) -> bool: ...

    def LoadRenderPreset(self, presetName: str) -> bool: ...

    def SaveAsNewRenderPreset(self, presetName: str) -> bool: ...

    def DeleteRenderPreset(self, presetName: str) -> bool: ...

    def GetRenderFormats(self) -> dict[str, str]: ...

    def GetRenderCodecs(self, renderFormat: str) -> dict[str, str]: ...

    def SetCurrentRenderFormatAndCodec(self, format: str, codec: str) -> bool: ...

    def SetCurrentRenderMode(self, renderMode: SingleClip) -> bool: ...


class Project(ProjectDocumented, Protocol):
    """A project."""

    # stubs: never None
    def GetMediaPool(self) -> Pool | None: ...

    def GetTimelineByIndex(self, idx: int) -> Timeline | None: ...

    def GetCurrentTimeline(self) -> Timeline | None: ...

    def SetCurrentTimeline(self, timeline: Timeline) -> bool: ...

    # stubs: str, but numbers come too
    def GetSetting(self, settingName: str) -> Any: ...

    # stubs: an empty TypedDict
    def GetRenderJobStatus(self, jobId: str) -> Mapping[str, Any] | None: ...

    def GetRenderPresetList(self) -> Sequence[Any] | None: ...

    # stubs: a TypedDict in which every key is demanded, though each is optional
    def SetRenderSettings(self, settings: Mapping[str, Any]) -> bool: ...

    # stubs: overloads whose first argument has another name each time
    def StartRendering(self, jobIds: list[str], isInteractiveMode: bool = ...) -> bool: ...


class ManagerDocumented(Protocol):
    """The project manager, as the stubs have it."""

    def SaveProject(self) -> bool: ...


class Manager(ManagerDocumented, Protocol):
    """The project manager."""

    # stubs: never None
    def GetCurrentProject(self) -> Project | None: ...

    def LoadProject(self, projectName: str) -> Project | None: ...

    # stubs: a TypedDict; None where Resolve came up without its database, and then nothing else works
    def GetCurrentDatabase(self) -> Mapping[str, str] | None: ...


class ApplicationDocumented(Protocol):
    """Resolve itself, as the stubs have it."""

    def OpenPage(self, pageName: Page) -> bool: ...

    def GetProductName(self) -> str: ...

    def GetVersionString(self) -> str: ...


class Application(ApplicationDocumented, Protocol):
    """Resolve itself."""

    # stubs: an untyped list
    def GetVersion(self) -> Sequence[Any]: ...

    # stubs: one of a fixed set; None when no page is shown (-nogui)
    def GetCurrentPage(self) -> Any: ...

    # stubs: never None
    def GetProjectManager(self) -> Manager | None: ...


if TYPE_CHECKING:
    import fusionscript as stubs

    def _stubs_have_what_we_call_documented(
        folder: stubs.Folder,
        pool_item: stubs.MediaPoolItem,
        item: stubs.TimelineItem,
        timeline: stubs.Timeline,
        pool: stubs.MediaPool,
        project: stubs.Project,
        manager: stubs.ProjectManager,
        application: stubs.Resolve,
    ) -> None:
        """mypy fails here when the stubs have no such method, or another one."""
        _folder: FolderDocumented = folder
        _pool_item: PoolItemDocumented = pool_item
        _item: ItemDocumented = item
        _graph: Graph = item.GetNodeGraph(1)
        _timeline: TimelineDocumented = timeline
        _pool: PoolDocumented = pool
        _project: ProjectDocumented = project
        _manager: ManagerDocumented = manager
        _application: ApplicationDocumented = application
