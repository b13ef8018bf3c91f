"""The made-up Resolve itself: projects, the render queue that writes real EXR files, pages."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

from .media import MediaPool, PoolItem
from .timeline import Timeline, TimelineItem
from .world import Remote, World

FORMATS = {"EXR": "exr", "QuickTime": "mov"}
CODECS = {"exr": {"RGB half (ZIP)": "RGBHalfZIP", "RGB float": "RGBFloat"}, "mov": {"ProRes 422 HQ": "ProRes422HQ"}}
MANAGED = {
    "colorScienceMode": "davinciYRGBColorManagedv2",
    "colorSpaceOutput": "Rec.709 Gamma 2.4",
    "outputDRT": "DaVinci",
}
UNMANAGED = {"colorScienceMode": "davinciYRGB"}


class Project(Remote):
    """A project with one timeline.

    Args:
        start: first frame of the timeline.
        settings: over those of a managed project at 24 frames a second.
    """

    def __init__(self, world: World, name: str, start: int = 0, **settings: str) -> None:
        super().__init__(world)
        self._name = name
        self._settings = {"timelineFrameRate": "24", "inputDRT": "DaVinci", **MANAGED, **settings}
        self._timelines: list[Timeline] = []
        self._pool = MediaPool(world, self)
        self._start = start
        self._current: Any = None
        self.add_timeline("Reel 1")
        page: dict[str, Any] = {"page": "mine"}
        self._render: dict[str, Any] = {"format": "mov", "codec": "ProRes422HQ", "mode": 1, "settings": page}
        self._presets: dict[str, dict[str, Any]] = {"H.264 Master": {"format": "mov", "codec": "H264", "settings": {}}}
        self._jobs: dict[str, dict[str, Any]] = {}
        self._running: list[Any] = []
        self._polls = 0
        self.renders: list[dict[str, Any]] = []

    def add_timeline(self, name: str) -> Timeline:
        made = Timeline(self._world, self, name, self._start)
        self._timelines.append(made)
        self._current = made
        return made

    def delete_timelines(self, gone: list[Timeline]) -> bool:
        if self._current in gone:
            return False
        self._timelines = [one for one in self._timelines if one not in gone]
        return True

    def GetName(self) -> str:
        return self._name

    def GetMediaPool(self) -> MediaPool:
        return self._pool

    def GetTimelineCount(self) -> int:
        return len(self._timelines)

    def GetTimelineByIndex(self, idx: int) -> Any:
        return self._timelines[idx - 1] if 1 <= idx <= len(self._timelines) else None

    def GetCurrentTimeline(self) -> Any:
        return self._current

    def SetCurrentTimeline(self, timeline: Timeline) -> bool:
        if timeline not in self._timelines:
            return False
        self._current = timeline
        return True

    def GetSetting(self, settingName: str = "") -> Any:
        return self._settings.get(settingName, "")

    # Rendering: each call that changes it opens the Deliver page

    def _deliver(self) -> None:
        if self._world.page is not None:
            self._world.page = "deliver"

    def GetRenderFormats(self) -> dict[str, str]:
        return dict(FORMATS)

    def GetRenderCodecs(self, renderFormat: str) -> dict[str, str]:
        return dict(CODECS.get(renderFormat, {}))

    def SetCurrentRenderFormatAndCodec(self, format: str, codec: str) -> bool:
        self._deliver()
        if codec not in CODECS.get(format, {}).values():
            return False
        self._render.update(format=format, codec=codec)
        return True

    def SetCurrentRenderMode(self, renderMode: int) -> bool:
        self._deliver()
        self._render["mode"] = renderMode
        return True

    def GetRenderPresetList(self) -> list[str]:
        return list(self._presets)

    def SaveAsNewRenderPreset(self, presetName: str) -> bool:
        state = {**self._render, "settings": dict(self._render["settings"])}
        self._presets[presetName] = state
        return True

    def LoadRenderPreset(self, presetName: str) -> bool:
        self._deliver()
        if presetName not in self._presets:
            return False
        state = self._presets[presetName]
        self._render = {**self._render, **state, "settings": dict(state["settings"])}
        return True

    def DeleteRenderPreset(self, presetName: str) -> bool:
        return self._presets.pop(presetName, None) is not None

    def SetRenderSettings(self, settings: dict[str, Any]) -> bool:
        self._deliver()
        if settings.get("CustomName", "x") in ("", None):
            return False
        self._render["settings"].update(settings)
        return True

    def AddRenderJob(self) -> str:
        self._deliver()
        job = self._world.new_id()
        self._jobs[job] = {**self._render["settings"], **self._render, "timeline": self._current, "JobStatus": "Ready"}
        return job

    def DeleteRenderJob(self, jobId: str) -> bool:
        return self._jobs.pop(jobId, None) is not None

    def GetRenderJobStatus(self, jobId: str) -> Any:
        job = self._jobs.get(jobId)
        return None if job is None else {"JobStatus": job["JobStatus"], "Error": job.get("Error", "")}

    def StartRendering(self, jobIds: list[str], isInteractiveMode: bool = False) -> bool:
        self._deliver()
        for name in jobIds:
            job = self._jobs[name]
            frames = range(job["MarkIn"], job["MarkOut"] + 1) if job["format"] == "exr" else range(1)
            self._running += [(job, frame) for frame in frames]
            self.renders.append(job)
        return True

    def StopRendering(self) -> None:
        self._running.clear()

    def IsRenderingInProgress(self) -> bool:
        if not self._running:
            return False
        self._polls += 1
        if self._polls % self._world.polls_a_frame == 0:
            job, frame = self._running.pop(0)
            try:
                _render_frame(self, job, frame)
                job["JobStatus"] = "Rendering" if self._running else "Complete"
            except OSError as error:
                job.update(JobStatus="Failed", Error=str(error))
                self._running.clear()
        return bool(self._running)


def _render_frame(project: Project, job: dict[str, Any], frame: int) -> None:
    timeline: Timeline = job["timeline"]
    if job["format"] != "exr":
        (Path(job["TargetDir"]) / f"{job['CustomName']}.mov").write_bytes(b"a movie")
        return
    target = Path(job["TargetDir"]) / f"{job['CustomName']}{frame:08d}.exr"
    shown: TimelineItem | None = None
    for track in timeline._tracks:
        for item in track.items:
            if track.enabled and item._enabled and item._start <= frame < item.end:
                shown = item
    if shown is None or shown._media is None:
        target.write_bytes(b"\x76\x2f\x31\x01 black")
        return
    source = shown._media.file_of(shown.source_offset(frame))
    output = (timeline.GetSetting("colorSpaceOutput"), timeline.GetSetting("outputDRT"))
    if not source.is_file():
        raise FileNotFoundError(f"{source} is not there")
    if output == (shown._media._properties["Input Color Space"], "None") and not shown._grade and not timeline._grade:
        shutil.copyfile(source, target)
    else:
        _encoded(source, target, graded=bool(shown._grade or timeline._grade))


def _encoded(source: Path, target: Path, *, graded: bool) -> None:
    """What comes out where nobody saw to it: display-encoded values in an EXR."""
    import numpy as np
    import OpenEXR

    with OpenEXR.File(str(source)) as file:
        header, parts = file.header(), file.channels()
        channels = {name: part.pixels for name, part in parts.items()}
    for name, pixels in channels.items():
        if not name.endswith("A"):
            channels[name] = (np.clip(pixels, 0, 1) ** (1 / 2.4) * (0.5 if graded else 1.0)).astype(pixels.dtype)
    header.pop("channels", None)
    with OpenEXR.File(header, channels) as file:
        file.write(str(target))


class ProjectManager(Remote):
    """The project manager."""

    def __init__(self, world: World, project: Project) -> None:
        super().__init__(world)
        self._project: Any = project
        self._others: dict[str, Project] = {}
        self.saved: list[Any] = []

    def GetCurrentProject(self) -> Any:
        return self._project

    def GetCurrentDatabase(self) -> Any:
        return {"DbType": "Disk", "DbName": "Local"}

    def LoadProject(self, projectName: str) -> Any:
        found = self._others.get(projectName)
        if found is not None:
            self._project = found
        return found

    def SaveProject(self) -> bool:
        assert self._project._name != "Untitled Project", "this would wait for ever"
        self.saved.append(snapshot(self._project))
        return True


class Fusion(Remote):
    """Fusion inside Resolve; its UIManager is for Studio alone."""

    def __init__(self, world: World, ui: Any = None) -> None:
        super().__init__(world)
        self._ui = ui

    @property
    def UIManager(self) -> Any:
        if "Studio" not in self._world.product:
            self._world.modal = True
            return None
        return self._ui


class Resolve(Remote):
    """The application."""

    def __init__(self, world: World | None = None, project: Project | None = None, **settings: Any) -> None:
        super().__init__(world if world is not None else World())
        self.project = project if project is not None else Project(self._world, "The Long Take", **settings)
        self.manager = ProjectManager(self._world, self.project)

    @property
    def world(self) -> World:
        return self._world

    def GetProductName(self) -> str:
        return self._world.product

    def GetVersion(self) -> list[Any]:
        return [*self._world.version, 5, ""]

    def GetVersionString(self) -> str:
        return ".".join(map(str, self._world.version)) + ".5"

    def GetProjectManager(self) -> ProjectManager:
        return self.manager

    def GetCurrentPage(self) -> Any:
        return self._world.page

    def OpenPage(self, pageName: str) -> bool:
        if self._world.page is None:
            return False
        self._world.page = pageName
        return True

    def Fusion(self) -> Fusion:
        return Fusion(self._world)


def snapshot(project: Project) -> Any:
    """Everything of a project that an artist could see, comparable."""
    pool = project._pool

    def bin_of(folder: Any) -> Any:
        clips = sorted((one._name, one._path, sorted(one._properties.items())) for one in folder._clips)
        return folder._name, clips, [bin_of(one) for one in folder._folders]

    return {
        "name": project._name,
        "settings": dict(project._settings),
        "timelines": [_timeline(one) for one in project._timelines],
        "current": project._current._name,
        "pool": bin_of(pool._root),
        "bin": pool._current._name,
        "render": copy.deepcopy(project._render),
        "presets": sorted(project._presets),
        "jobs": len(project._jobs),
        "page": project._world.page,
    }


def _timeline(timeline: Timeline) -> Any:
    tracks = [(track.enabled, track.locked, [_item(one) for one in track.items]) for track in timeline._tracks]
    return timeline._name, timeline._first, dict(timeline._settings), timeline._grade, tracks


def _item(item: TimelineItem) -> Any:
    """A take selector with one take looks like none."""
    media: PoolItem | None = item._media
    takes = [(take[0]._name, take[1], take[2]) for take in item._takes] if len(item._takes) > 1 else []
    return {
        "id": item._id,
        "name": item._name,
        "media": None if media is None else (media._name, media._path),
        "frames": (item._start, item._duration, item._left, item._speed),
        "enabled": item._enabled,
        "colour": item._colour,
        "grade": item._grade,
        "look": dict(item._look),
        "markers": {frame: dict(one) for frame, one in item._markers.items()},
        "takes": takes,
        "selected": item._selected if takes else 0,
    }
