"""The media pool of the made-up Resolve."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from .world import Remote, World

PICTURES = (".exr", ".dpx", ".png", ".tif", ".tiff")


class PoolItem(Remote):
    """A clip, timeline or compound clip in a bin."""

    _kind = "MediaPoolItem"

    def __init__(self, world: World, name: str, path: str, first: int, count: int, fps: str, **more: str) -> None:
        super().__init__(world)
        self._name = name
        self._path = path
        self._first = first
        self._count = count
        self._was = path
        self._relinked = 0
        self._properties = {
            "Type": "Video",
            "Start": str(first),
            "End": str(first + count - 1),
            "Frames": str(count),
            "FPS": fps,
            "Input Color Space": "ACEScg",
            "PAR": "Square",
            "Super Scale": "1",
            "Input LUT": "",
            **more,
        }

    def GetName(self) -> str:
        return self._name

    def GetClipProperty(self, propertyName: str = "") -> Any:
        values = {"File Path": self._path, **self._properties}
        return values if not propertyName else values.get(propertyName)

    def SetClipProperty(self, propertyName: str, propertyValue: Any) -> bool:
        if propertyName == "Clip Name":
            self._name = propertyValue
            return False  # it did it all the same
        if propertyName in ("Input Color Space", "IDT") and propertyValue not in self._world.spaces:
            return True  # it did not
        if propertyName == "Input Gamma":
            return False
        self._properties[propertyName] = str(propertyValue)
        return True

    def file_of(self, offset: int) -> Path:
        """The file of a frame, from 0."""
        row = re.fullmatch(r"(.*)\[(\d+)-(\d+)\](.*)", self._path, re.DOTALL)
        if row is None:
            return Path(self._path)
        return Path(f"{row[1]}{int(row[2]) + offset:0{len(row[2])}d}{row[4]}")


class Folder(Remote):
    """A bin."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world)
        self._name = name
        self._clips: list[PoolItem] = []
        self._folders: list[Folder] = []

    def GetName(self) -> str:
        return self._name

    def GetClipList(self) -> Any:
        return list(self._clips) or None

    def GetSubFolderList(self) -> Any:
        return list(self._folders)


class MediaPool(Remote):
    """The media pool."""

    def __init__(self, world: World, project: Any) -> None:
        super().__init__(world)
        self._project = project
        self._root = Folder(world, "Master")
        self._current = self._root

    def folders(self) -> list[Folder]:
        found, waiting = [], [self._root]
        while waiting:
            found.append(waiting.pop())
            waiting += found[-1]._folders
        return found

    def RefreshFolders(self) -> bool:
        return True

    def GetRootFolder(self) -> Folder:
        return self._root

    def GetCurrentFolder(self) -> Folder:
        return self._current

    def SetCurrentFolder(self, folder: Folder) -> bool:
        if folder not in self.folders():
            return False
        self._current = folder
        return True

    def AddSubFolder(self, folder: Folder, name: str) -> Any:
        if any(one._name == name for one in folder._folders):
            return None
        folder._folders.append(Folder(self._world, name))
        self._current = folder._folders[-1]
        return self._current

    def DeleteFolders(self, subfolders: list[Folder]) -> bool:
        for parent in self.folders():
            parent._folders = [one for one in parent._folders if one not in subfolders]
        if self._current not in self.folders():
            self._current = self._root
        return True

    def DeleteClips(self, clips: list[PoolItem]) -> bool:
        for folder in self.folders():
            folder._clips = [one for one in folder._clips if one not in clips]
        return True

    def ImportMedia(self, items: list[Any]) -> Any:
        """Into the current bin. A row whose files are not all there comes in as far as they are."""
        new = []
        for item in items:
            found = self._row(item) if isinstance(item, dict) else self._file(str(item))
            if found is None:
                return None
            new.append(found)
        self._current._clips += new
        return new

    def _row(self, item: dict[str, Any]) -> PoolItem | None:
        pattern, first, last = item["FilePath"], item["StartIndex"], item["EndIndex"]
        numbers = [n for n in range(first, last + 1) if os.path.isfile(pattern % n)]
        if not numbers:
            return None
        width = max(4, len(str(numbers[0])))
        row = f"[{numbers[0]:0{width}d}-{numbers[-1]:0{width}d}]"
        path = re.sub(r"%0\d+d", lambda _: row, pattern).replace("%%", "%")
        name, fps = os.path.basename(path), self._project._settings["timelineFrameRate"]
        made = PoolItem(self._world, name, path, numbers[0], len(numbers), fps)
        made._properties["Input Color Space"] = "sRGB"  # what a project takes EXR for that it knows nothing of
        return made

    def _file(self, path: str) -> PoolItem | None:
        if not os.path.isfile(path):
            return None
        count = self._world.frames_of(path)
        return PoolItem(
            self._world, os.path.basename(path), path, 0, count, self._project._settings["timelineFrameRate"]
        )

    def UnlinkClips(self, clips: list[PoolItem]) -> bool:
        for one in clips:
            one._was, one._path = one._path, ""
        return True

    def RelinkClips(self, clips: list[PoolItem], folderPath: str) -> bool:
        for one in clips:
            was = one._was
            if os.path.dirname(was) != folderPath:
                return False
            one._path = was
            one._relinked += 1
        return True

    def CreateEmptyTimeline(self, name: str) -> Any:
        return self._project.add_timeline(name)

    def DeleteTimelines(self, timelines: list[Any]) -> bool:
        return bool(self._project.delete_timelines(timelines))

    def AppendToTimeline(self, infos: list[dict[str, Any]]) -> Any:
        assert isinstance(infos, list), "a bare dict freezes Resolve"
        return [self._project._current.append(info) for info in infos]
