"""A batch: all marked clips of one timeline or more, then render jobs with a named preset.

What went wrong with one clip or timeline does not stop the others. Where a render is asked for that starts at once, its
files are looked for on the disk: a job that says it is complete proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from faceplate_client import actions
from faceplate_client.errors import BadFrames, ClientError, HostError, NoClips
from faceplate_client.host import Progress, Scope
from faceplate_client.job_record import Recipe
from faceplate_client.outcome import BatchOutcome
from faceplate_client.result_folder import make_folder, safe_name
from faceplate_client.task import Servers, Session

from . import api, pool
from .calls import asked, done, maybe
from .host import ResolveHost, open_project
from .settings import Settings

T = TypeVar("T")
CURRENT, EVERY = "", "*"
UNTITLED = "Untitled Project"
"""A project without a name cannot be saved; without a window Resolve would wait for ever."""
_POLL_S = 0.2


@dataclass(frozen=True)
class Order:
    """What is asked for.

    Attributes:
        settings: of the artist.
        timeline: name of one, CURRENT or EVERY.
        preset: render preset, "" for no render.
        folder: where the render goes; None for the settings', else `render` in the result folder.
        start: start the render and wait for it, rather than leave the job in the queue.
        save: save the project at the end.
        servers: which server.
    """

    settings: Settings
    timeline: str = CURRENT
    preset: str = ""
    folder: Path | None = None
    start: bool = False
    save: bool = False
    servers: Servers | None = None


@dataclass
class TimelineReport:
    """How a timeline went.

    Attributes:
        name: of the timeline.
        outcome: of its clips; None where none is marked.
        error: why it failed as a whole.
        job: id of its render job, "" for none.
        files: that its render wrote.
    """

    name: str
    outcome: BatchOutcome | None = None
    error: ClientError | None = None
    job: str = ""
    files: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 done, 1 clips, frames or the render failed, 130 stopped."""
        code = 0 if self.outcome is None else self.outcome.exit_code
        return code if code == 130 or self.error is None else 1

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        error = self.error
        return {
            "timeline": self.name,
            "clips": None if self.outcome is None else self.outcome.to_json(),
            "error": None if error is None else {"message": str(error), "hint": error.hint},
            "render_job": self.job,
            "render_files": self.files,
        }


@dataclass
class Report:
    """How a batch went."""

    timelines: list[TimelineReport] = field(default_factory=list)
    saved: bool = False

    @property
    def exit_code(self) -> int:
        """The worst of the timelines'."""
        codes = [one.exit_code for one in self.timelines]
        return 130 if 130 in codes else max(codes, default=0)

    @property
    def text(self) -> str:
        """For people."""
        lines = []
        for one in self.timelines:
            words = "no marked clip" if one.outcome is None else one.outcome.text
            lines.append(f"{one.name}: {words}" + (", render job added" if one.job else ""))
            if one.error is not None:
                lines.append(f"{one.name}: {one.error}\n{one.error.hint}")
            for clip in one.outcome.clips if one.outcome is not None else ():
                if clip.error is not None:
                    lines.append(f"{clip.clip}: {clip.error}\n{clip.error.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """For a report file."""
        return {
            "format": "faceplate resolve batch",
            "version": 1,
            "exit_code": self.exit_code,
            "saved": self.saved,
            "timelines": [one.to_json() for one in self.timelines],
        }


class Drive(Protocol):
    """Runs an action behind whatever shows it."""

    def __call__(self, host: ResolveHost, servers: Servers, action: Callable[[Session], T]) -> T:
        """What the action gives."""
        ...


class Batch:
    """One run.

    Args:
        application: Resolve.
        order: what is asked for.
        drive: runs actions.
        listener: told how far they are.
        pump: called while a render goes on.
    """

    def __init__(
        self,
        application: api.Application,
        order: Order,
        drive: Drive,
        listener: Callable[[Progress | None], bool],
        pump: Callable[[], None],
    ) -> None:
        self._application = application
        self._order = order
        self._drive = drive
        self._listener = listener
        self._pump = pump

    def run(self) -> Report:
        """All timelines; the one that was current is current again at the end.

        Raises:
            HostError: there is no such timeline, preset or identity; nothing was done.
            ConnectionFailed: no server; nothing was rendered.
        """
        project = open_project(self._application)
        before, page = maybe(project.GetCurrentTimeline), maybe(self._application.GetCurrentPage)
        chosen = self._timelines(project)
        self._check_preset(project)
        settings = self._order.settings
        recipe = settings.recipe() if settings.identity else None  # without one, results that are there are refreshed
        report = Report()
        try:
            for timeline in chosen:
                report.timelines.append(self._timeline(project, timeline, recipe))
                if report.exit_code == 130:
                    break
        finally:
            if before is not None:
                maybe(pool.show, project, before)
            if page not in (None, ""):
                maybe(self._application.OpenPage, page)
        if self._order.save:
            self._save(project, report)
        return report

    def _timelines(self, project: api.Project) -> list[api.Timeline]:
        there = list(pool.timelines(project))
        if self._order.timeline == EVERY:
            return there
        if self._order.timeline == CURRENT:
            current = maybe(project.GetCurrentTimeline)
            if current is None:
                raise HostError(f"no timeline is open in project {project.GetName()!r}", hint="open one, or name one")
            return [current]
        named = [one for one in there if one.GetName() == self._order.timeline]
        if not named:
            raise HostError(
                f"project {project.GetName()!r} has no timeline {self._order.timeline!r}",
                expected=", ".join(one.GetName() for one in there),
            )
        return named

    def _check_preset(self, project: api.Project) -> None:
        presets = [str(one) for one in maybe(project.GetRenderPresetList) or ()]
        if self._order.preset and self._order.preset not in presets:
            raise HostError(
                f"there is no render preset {self._order.preset!r}",
                expected=", ".join(presets) or "a preset",
                hint="save one on the Deliver page; names are as they stand there",
            )

    def _timeline(self, project: api.Project, timeline: api.Timeline, recipe: Recipe | None) -> TimelineReport:
        settings = self._order.settings
        report = TimelineReport(timeline.GetName())
        servers = self._order.servers or settings.servers(start=True)
        try:
            host = ResolveHost(
                self._application, settings.choices(), str(timeline.GetUniqueId()), self._listener, self._pump
            )
            manner = settings.manner()
            try:
                report.outcome = self._drive(
                    host, servers, lambda session: actions.batch(session, Scope.MARKED, recipe, manner)
                )
            except NoClips:
                report.outcome = None
            if self._order.preset and report.exit_code == 0:
                self._render(project, timeline, host, report)
        except (HostError, BadFrames) as error:
            report.error = error
        return report

    def _render(self, project: api.Project, timeline: api.Timeline, host: ResolveHost, report: TimelineReport) -> None:
        order, name = self._order, timeline.GetName()
        folder = order.folder or (
            Path(os.path.expanduser(order.settings.render_folder)).absolute()
            if order.settings.render_folder
            else host.project().folder / safe_name(host.project().name) / "render"
        )
        make_folder(folder)
        pool.show(project, timeline)
        if not maybe(project.LoadRenderPreset, order.preset):
            raise HostError(f"Project.LoadRenderPreset({order.preset!r}) answered no for {name!r}")
        wanted = {"SelectAllFrames": True, "TargetDir": str(folder), "CustomName": safe_name(name)}
        if not maybe(project.SetRenderSettings, wanted):
            raise HostError(f"Project.SetRenderSettings answered no for {name!r}", found=f"{wanted}")
        report.job = asked("Project.AddRenderJob", name, lambda: project.AddRenderJob() or None)
        if order.start:
            self._wait(project, folder, report)

    def _wait(self, project: api.Project, folder: Path, report: TimelineReport) -> None:
        before = _files(folder)
        if not maybe(project.StartRendering, [report.job], False):
            raise HostError(
                f"Project.StartRendering answered no for {report.name!r}", hint="see whether another render goes on"
            )
        while maybe(project.IsRenderingInProgress):
            self._pump()
            time.sleep(_POLL_S)
        report.files = sorted(path for path, stamp in _files(folder).items() if before.get(path) != stamp)
        status = maybe(project.GetRenderJobStatus, report.job) or {}
        if not report.files or status.get("JobStatus") != "Complete":
            raise HostError(
                f"the render of {report.name!r} did not come to its end",
                expected="files, and a job that is complete",
                found=f"{len(report.files)} files; {status.get('JobStatus')}: {status.get('Error') or 'no reason'}",
                hint="see the Deliver page",
            )

    def _save(self, project: api.Project, report: Report) -> None:
        """Save, and count afterwards: what an append left half done is gone only then.

        Raises:
            HostError: it is not saved, or results are not there any more.
        """
        name = project.GetName()
        if name == UNTITLED:
            raise HostError("the project has no name and cannot be saved", hint="save it in Resolve under a name")
        manager = asked("Resolve.GetProjectManager", name, self._application.GetProjectManager)
        before = self._count(project)
        answers: list[Any] = []
        done(
            "ProjectManager.SaveProject",
            name,
            lambda: answers.append(manager.SaveProject()),
            lambda: answers[-1] is True,
        )
        if (after := self._count(project)) != before:
            raise HostError(
                f"project {name!r} lost results when it was saved", expected=f"{before} results", found=str(after)
            )
        report.saved = True

    def _count(self, project: api.Project) -> int:
        return sum(
            len(ResolveHost(self._application, timeline=str(one.GetUniqueId())).results())
            for one in pool.timelines(project)
        )


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            found[str(path)] = (stat.st_size, stat.st_mtime_ns)
    return found
