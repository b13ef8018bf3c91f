"""What the menu's entries and the command line do: apply, refresh, remove, batch, check.

An action runs on a worker thread and lends its calls to this one, on which alone Resolve is touched; meanwhile the
window lives, and Cancel stops it after the frame at work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from faceplate_client import __version__, actions
from faceplate_client.connection import find
from faceplate_client.errors import ClientError, NoClips, ServerNotFound
from faceplate_client.host import Clip, Scope
from faceplate_client.outcome import BatchOutcome
from faceplate_client.task import Servers, Session, Task

from . import api
from .batch import CURRENT, EVERY, Batch, Order, Report
from .edition import edition_of
from .host import ResolveHost
from .settings import Settings, load, save, settings_file
from .talk import Console, Dialogs, Talk, Window, words_of

T = TypeVar("T")
_TICK_S = 0.03
CANCELLED, FAILED = 130, 2


class Commands:
    """The commands, for one running Resolve.

    Args:
        application: Resolve.
        talk: with the artist.
        path: of the settings file.
    """

    def __init__(self, application: api.Application, talk: Talk, path: Path) -> None:
        self._application = application
        self._talk = talk
        self._path = path
        self._window: Window | None = None
        self._task: Task[Any] | None = None

    def run(self, name: str) -> int:
        """One command by its name; the exit code. Errors are told, not raised."""
        commands: dict[str, Callable[[], int]] = {
            "apply": self.apply,
            "refresh": self.refresh,
            "remove": self.remove,
            "batch": self.batch,
            "check": self.check,
        }
        try:
            return commands[name]()
        except ClientError as error:
            self._talk.tell(words_of(error))
            return FAILED

    def apply(self) -> int:
        """Results for the clips selected on the timeline, or the one under the playhead."""
        settings = load(self._path)
        clips = self._host(settings).clips(Scope.SELECTED)
        if not clips:
            raise NoClips("no clip is selected, and none is under the playhead")
        chosen = self._talk.ask(settings, about(clips))
        if chosen is None:
            return CANCELLED
        save(chosen, self._path)
        recipe, manner, host = chosen.recipe(), chosen.manner(), self._host(chosen)
        clips = host.clips(Scope.SELECTED)
        outcome = self._act(host, chosen, lambda session: actions.apply(session, clips, recipe, manner))
        return self._ended(outcome)

    def refresh(self) -> int:
        """Do again what has changed of the results of the selected clips."""
        settings = load(self._path)
        host = self._host(settings)
        results = self._results(host)
        if not results:
            raise NoClips("the selected clips have no result", hint="Faceplate Apply makes one")
        return self._ended(self._act(host, settings, lambda session: actions.refresh(session, results)))

    def remove(self) -> int:
        """Take the results of the selected clips out."""
        settings = load(self._path)
        host = self._host(settings)
        results = self._results(host)
        if not results:
            raise NoClips("the selected clips have no result", hint="select a clip that Faceplate has worked on")
        session = Session(host, settings.servers(start=False))
        removed = actions.remove(session, tuple(reversed(results)))
        self._talk.tell(f"Faceplate: {removed} removed; the files stay")
        return 0

    def _results(self, host: ResolveHost) -> Sequence[Any]:
        ids = {clip.id for clip in host.clips(Scope.SELECTED)}
        return tuple(one for one in host.results() if one.clip_id in ids)

    def batch(self) -> int:
        """All marked clips of the current timeline, or of all; then a render job where a preset is named."""
        settings = load(self._path)
        edition_of(self._application)
        marks = f"clips of the colour {settings.mark_colour}, or with a marker named faceplate"
        chosen = self._talk.ask(settings, f"Batch: {marks}, of {'every' if settings.all_timelines else 'the'} timeline")
        if chosen is None:
            return CANCELLED
        save(chosen, self._path)
        order = Order(chosen, EVERY if chosen.all_timelines else CURRENT, chosen.preset)
        report = self.run_batch(order)
        self._talk.tell(report.text)
        return report.exit_code

    def run_batch(self, order: Order) -> Report:
        """A batch as it is ordered; asks nothing."""
        self._window = self._talk.window("Faceplate Batch")
        try:
            return Batch(self._application, order, self._drive, self._listen, self._pump).run()
        finally:
            self._window.close()
            self._window = None

    def check(self) -> int:
        """Say what runs here, and whether a server answers."""
        edition = edition_of(self._application)
        settings = load(self._path)
        lines = [f"Faceplate {__version__} in {edition.product} {edition.text}", f"settings: {self._path}"]
        code = 0
        try:
            info = find(settings.servers(start=False).place)
            lines.append(f"server: runs at {info.address}")
        except ServerNotFound as error:
            lines.append(f"server: {words_of(error)}")
            code = 3
        self._talk.tell("\n".join(lines))
        return code

    # Running

    def _host(self, settings: Settings) -> ResolveHost:
        return ResolveHost(self._application, settings.choices(), listener=self._listen, pump=self._pump)

    def _act(self, host: ResolveHost, settings: Settings, action: Callable[[Session], BatchOutcome]) -> BatchOutcome:
        """Run an action behind a window; where no server runs, offer to start one."""
        self._window = self._talk.window("Faceplate")
        try:
            try:
                return self._drive(host, settings.servers(start=False), action)
            except ServerNotFound as error:
                if not self._talk.confirm(f"{error}\nStart the Faceplate server?"):
                    raise
            return self._drive(host, settings.servers(start=True), action)
        finally:
            self._window.close()
            self._window = None

    def _drive(self, host: ResolveHost, servers: Servers, action: Callable[[Session], T]) -> T:
        task = Task(host, servers, action)
        self._task = task
        task.start()
        try:
            while task.tick():
                self._pump()
                time.sleep(_TICK_S)
        except BaseException:
            task.close()
            raise
        return task.result()

    def _pump(self) -> None:
        if self._window is None or self._task is None:
            return
        self._window.show(self._task.progress)
        if not self._window.step():
            self._task.cancel()

    def _listen(self, progress: Any) -> bool:
        if progress is not None and self._window is not None:
            self._window.show(progress)
        return True

    def _ended(self, outcome: BatchOutcome) -> int:
        self._talk.tell(told(outcome))
        return outcome.exit_code


def about(clips: Sequence[Clip]) -> str:
    """What the dialog says of the clips."""
    lines = [f"{len(clips)} clip{'s' if len(clips) > 1 else ''}"]
    lines += [f"{clip.name}: Resolve renders it first ({clip.processed})" for clip in clips if clip.processed]
    lines += [f"{clip.name}: frames {clip.used}" for clip in clips if not clip.processed]
    return "\n".join([*lines[:8], *(["..."] if len(lines) > 8 else [])])


def told(outcome: BatchOutcome) -> str:
    """How an action went, clip by clip."""
    lines = [outcome.text, *outcome.notes]
    for one in outcome.clips:
        if one.error is not None:
            lines.append(f"{one.clip}: {words_of(one.error)}")
        lines += [f"{one.clip}: frame {frame} failed: {why}" for frame, why in list(one.failed.items())[:5]]
        lines += [f"{one.clip}: {note}" for note in one.notes]
    return "\n".join(dict.fromkeys(lines))


def menu(name: str, application: Any, fusion: Any, bmd: Any) -> int:
    """An entry of Workspace > Scripts.

    Args:
        name: of the command.
        application: the global `resolve` of a script.
        fusion: its global `fusion`.
        bmd: its global `bmd`.
    """
    path = settings_file()
    console = Console(path)
    if application is None:
        console.tell("Faceplate: Resolve gave this script no access. Run it from Workspace > Scripts, in Studio.")
        return FAILED
    try:
        edition_of(application)
    except ClientError as error:
        console.tell(words_of(error))  # a dialog would be one of Studio's calls
        return FAILED
    talk: Talk
    try:
        talk = Dialogs(fusion, bmd, path)
    except ClientError:
        talk = console
    return Commands(application, talk, path).run(name)
