# SPDX-License-Identifier: Apache-2.0
"""Process the groups of a script in a terminal or on a farm; `batch.py` is how it is called."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from faceplate_client.connection import Place
from faceplate_client.errors import (
    BadFrames,
    ClientError,
    ConnectionFailed,
    HostError,
    NoClips,
    ProtocolError,
    TimedOut,
)
from faceplate_client.frame_maths import Span, from_text
from faceplate_client.host import Progress
from faceplate_client.job_record import write_whole
from faceplate_client.outcome import BatchOutcome, ClipOutcome
from faceplate_client.result_folder import make_folder
from faceplate_client.task import Servers, Session

from . import application, work
from .host import NukeHost
from .servers import ServerSettings, load_settings

FORMAT = "faceplate nuke report"


class BadWords(Exception):
    """A command line that is no order; `argparse` would end Nuke with its own exit code."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadWords(message)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The order.

    Raises:
        BadWords: it is none.
    """
    parser = _Parser(prog="batch.py", description="Process all Faceplate groups of a script.", add_help=False)
    parser.add_argument("script", help="the .nk file")
    parser.add_argument("--frames", default="", help="for example 1001-1100; default: each group's range")
    parser.add_argument("--group", action="append", default=[], help="full name; may be repeated; default: all")
    parser.add_argument("--save", default="", help="write the script with its results to this file")
    parser.add_argument("--report", default="", help="JSON file; default: faceplate/report.json beside the script")
    parser.add_argument("--json", action="store_true", help="one JSON object a line on standard output")
    parser.add_argument("--no-start", action="store_true", help="do not start a server where none runs")
    parser.add_argument("--server-folder", default="", help="folder in which the server leaves its address")
    parser.add_argument("--server-name", default="", help="name of the server")
    parser.add_argument("--server-command", default="", help="JSON list: how a server is started")
    return parser.parse_args(list(words))


def words_behind(script: str, raw: Sequence[str], stripped: Sequence[str]) -> list[str]:
    """The words behind our own script on the command line, all of them: Nuke takes a frame range at the end away.

    Args:
        script: path of `batch.py`.
        raw: `nuke.rawArgs`.
        stripped: `sys.argv`, the fallback.
    """
    name = os.path.basename(script)
    for index, word in enumerate(raw):
        if os.path.basename(word) == name:
            return list(raw[index + 1 :])
    return list(stripped[1:])


def frames_of(text: str) -> Span | None:
    """First to last frame, None for each group's own.

    Raises:
        BadFrames: no range.
    """
    if not text:
        return None
    numbers = from_text(text)
    if len(numbers) != numbers[-1] - numbers[0] + 1:
        raise BadFrames("a range without holes is needed", expected="1001-1100", found=text)
    return Span(numbers[0], numbers[-1])


def servers_of(asked: argparse.Namespace, settings: ServerSettings) -> Servers:
    """Which server; it is started unless the order says no."""
    servers = settings.servers(start=not asked.no_start)
    place, command = servers.place, servers.command
    if asked.server_folder or asked.server_name:
        place = Place(Path(asked.server_folder) if asked.server_folder else None, asked.server_name or settings.name)
    if asked.server_command:
        command = _command(asked.server_command)
    return Servers(place=place, start=servers.start, command=command)


def _command(text: str) -> list[str]:
    """Raises BadWords where it is no list of words."""
    try:
        words = json.loads(text)
    except ValueError as error:
        raise BadWords(f"--server-command is no JSON: {error}") from error
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise BadWords('--server-command has to be a JSON list such as ["faceplate", "serve"]')
    return words


class Batch:
    """One run.

    Args:
        asked: the order.
        tell: what to do with each event.
        stopped: whether somebody asks to stop.
    """

    def __init__(
        self, asked: argparse.Namespace, tell: Callable[[dict[str, Any]], None], stopped: Callable[[], bool]
    ) -> None:
        self.asked = asked
        self._tell = tell
        self._stopped = stopped
        self._host = NukeHost(self._show)

    def run(self) -> BatchOutcome:
        """Open the script and process its groups; a group that cannot be done does not stop the others.

        Raises:
            HostError: the script or a group that is named is not there.
            ConnectionFailed, TimedOut, ProtocolError: no server; nothing was done.
        """
        script = Path(self.asked.script).absolute()
        if not script.is_file():
            raise HostError(f"there is no script {script}", hint="give the path of a .nk file")
        frames = frames_of(self.asked.frames)
        servers = servers_of(self.asked, load_settings())
        application.open_script(script)
        groups = self._groups()
        servers.find()
        session = Session(self._host, servers)
        outcomes, notes = [], []
        for group in groups:
            if session.is_cancelled:
                outcomes.append(ClipOutcome(group, "cancelled"))
                continue
            try:
                ended = work.process(self._host, group, frames, lasting=bool(self.asked.save))(session)
            except ClientError as error:
                if isinstance(error, (ConnectionFailed, ProtocolError)) and not outcomes:
                    raise
                ended = BatchOutcome((ClipOutcome(group, "failed", error=error),))
            outcomes += ended.clips
            notes += [note for note in ended.notes if note not in notes]
            for one in ended.clips:
                self._tell({"event": "group", **one.to_json()})
        return BatchOutcome(tuple(outcomes), tuple(notes))

    def _groups(self) -> list[str]:
        there = self._host.group_names()
        missing = [name for name in self.asked.group if name not in there]
        if missing:
            raise HostError(
                f"the script has no Faceplate group {missing[0]!r}",
                expected=", ".join(there) or "one",
                found=missing[0],
            )
        if not there:
            raise NoClips(f"{self.asked.script} has no Faceplate group", hint="nothing has to be processed")
        return [name for name in there if not self.asked.group or name in self.asked.group]

    def _show(self, progress: Progress | None) -> bool:
        if progress is not None:
            told = {"step": progress.step, "done": progress.done, "total": progress.total, "clip": progress.clip}
            self._tell({"event": "progress", **told})
        return not self._stopped()


def work_through(script: str) -> int:
    """Do what the command line says; the exit code."""
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _frame: stops.append(got))
    as_json = False

    def tell(event: dict[str, Any]) -> None:
        if as_json:
            sys.stdout.write(json.dumps(event, ensure_ascii=True) + "\n")
            sys.stdout.flush()

    try:
        asked = arguments(words_behind(script, application.raw_arguments(), sys.argv))
        as_json = asked.json
        outcome = Batch(asked, tell, lambda: bool(stops)).run()
        unsaved = _save(asked.save)
        path = _report(asked, outcome, unsaved)
        if unsaved is not None:
            raise unsaved
    except BadWords as error:
        return _fail(tell, "BadInput", str(error), "nuke -t batch.py SCRIPT.nk [--frames 1001-1100] [--json]", 2)
    except ClientError as error:
        no_server = isinstance(error, (ConnectionFailed, TimedOut))
        return _fail(tell, type(error).__name__, str(error), error.hint, 3 if no_server else 2)
    tell({"event": "end", "exit_code": outcome.exit_code, "report": str(path)})
    sys.stderr.write(f"{outcome.text}\n  report {path}\n")
    for one in outcome.clips:
        if one.error is not None:
            sys.stderr.write(f"error: {one.clip}: {one.error}\n  hint: {one.error.hint}\n")
    return outcome.exit_code


def _save(path: str) -> HostError | None:
    """Why the script was not saved where the order says; the report is written all the same."""
    try:
        if path:
            application.save_script(Path(path).absolute())
    except HostError as error:
        return error
    return None


def _report(asked: argparse.Namespace, outcome: BatchOutcome, unsaved: HostError | None) -> Path:
    script = Path(asked.script).absolute()
    path = Path(asked.report) if asked.report else script.parent / "faceplate" / "report.json"
    report = {**outcome.to_json(), "format": FORMAT, "script": str(script), "nuke": NukeHost().about().version}
    report["saved"] = None if unsaved is not None or not asked.save else asked.save
    make_folder(path.parent)
    write_whole(path, json.dumps(report, indent=1, ensure_ascii=False).encode("utf-8"))
    return path


def _fail(tell: Callable[[dict[str, Any]], None], kind: str, message: str, hint: str, code: int) -> int:
    tell({"event": "error", "type": kind, "message": message, "hint": hint, "exit_code": code})
    sys.stderr.write(f"error: {message}\n  hint: {hint}\n")
    return code


def main(script: str) -> None:
    """Do it and leave with the exit code."""
    sys.exit(work_through(script))
