"""What the command line prints: progress for people, JSON lines for scripts, errors for both."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..errors import FaceplateError, SettingError


class Reporter(Protocol):
    """Where a job's events go. An event is a mapping with the key "event"; see `jobs.events`."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        ...

    def __enter__(self) -> Reporter: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class JsonReporter:
    """One JSON object a line on standard output."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        print(json.dumps(event, default=str), flush=True)

    def __enter__(self) -> JsonReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class TerminalReporter:
    """A progress bar with frame rate and time left on a terminal; plain lines elsewhere."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:>5.1f} frames/s"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._tasks: dict[str, tuple[TaskID, float]] = {}

    def __enter__(self) -> TerminalReporter:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "progress":
                self._advance(event["stage"], event["done"], event["total"])
            case "note":
                self.console.print(f"[dim]{escape(event['text'])}[/dim]")
            case "warning":
                self.console.print(f"[yellow]warning:[/yellow] {escape(event['text'])}")
            case "frame" if event["state"] == "failed":
                error = event["error"]
                self.console.print(f"[red]frame {event['frame']} failed:[/red] {escape(describe(error))}")
            case "done":
                self.console.print(escape(event["text"]))

    def _advance(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = (self._progress.add_task(stage, total=total, rate=0.0), time.monotonic())
        task, started = self._tasks[stage]
        # The first event comes when a frame is done already, so that one does not count.
        rate = (done - 1) / max(time.monotonic() - started, 1e-3)
        self._progress.update(task, completed=done, total=total, rate=rate)
        if done == total and not self.console.is_terminal:
            told = f", {rate:.1f} frames/s" if done > 2 else ""
            self.console.print(f"{stage}: {total} {'frame' if total == 1 else 'frames'}{told}")


class LineReporter:
    """A line for each percent of the whole job, for farm managers that read such lines, and what needs a look.

    Args:
        style: "percent" prints `Progress: 42%`, "openjd" what Open Job Description sessions read.
    """

    _TOP: Mapping[str, float] = MappingProxyType({"analyse": 30.0, "swap": 90.0, "encode": 99.0})
    """Where each stage ends; it begins where the one before ended, or at 0."""

    def __init__(self, style: str) -> None:
        self._words = (
            ("openjd_progress: {:.1f}", "openjd_status: {}") if style == "openjd" else ("Progress: {:.0f}%", "{}")
        )
        self._stage, self._from, self._at, self._told = "", 0.0, 0.0, -1

    def __enter__(self) -> LineReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, event: Mapping[str, Any]) -> None:
        percent, plain = self._words
        match event["event"]:
            case "progress":
                self._advance(event["stage"], event["done"] / max(1, event["total"]))
            case "warning":
                self._print(f"warning: {event['text']}")
            case "frame" if event["state"] == "failed":
                self._print(f"frame {event['frame']} failed: {describe(event['error'])}")
            case "done":
                if event["state"] == "done":
                    self._print(percent.format(100))
                self._print(plain.format(event["text"].splitlines()[0]))

    def _advance(self, stage: str, share: float) -> None:
        if stage != self._stage:
            self._stage, self._from = stage, self._at
        top = max(self._from, self._TOP.get(stage, self._from))
        self._at = self._from + (top - self._from) * share
        if int(self._at) > self._told:
            self._told = int(self._at)
            self._print(self._words[0].format(self._at))

    @staticmethod
    def _print(text: str) -> None:
        print(text, flush=True)


def reporter(*, as_json: bool, progress: str = "bar") -> Reporter:
    """The reporter that `--json` and `--progress` choose.

    Raises:
        SettingError: no such progress.
    """
    if progress not in ("bar", "percent", "openjd"):
        raise SettingError(f"--progress {progress} is unknown", expected="bar, percent or openjd")
    if as_json:
        return JsonReporter()
    return TerminalReporter() if progress == "bar" else LineReporter(progress)


def describe(error: Mapping[str, Any]) -> str:
    """An error's dictionary (`FaceplateError.to_dict`) as one sentence."""
    parts = [str(error["message"])]
    parts += [f"{word} {error[word]}" for word in ("expected", "found") if error.get(word)]
    return "; ".join(parts)


def print_warning(text: str, *, as_json: bool) -> None:
    """Something that the user should know, beside a result that is there."""
    if as_json:
        print(json.dumps({"event": "warning", "text": text}, ensure_ascii=False))
        return
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[yellow]warning:[/yellow] {escape(text)}")


def print_error(error: FaceplateError, *, as_json: bool) -> None:
    """An error with its hint: JSON on standard output, or text on standard error."""
    if as_json:
        print(json.dumps({"event": "error", **error.to_dict(), "exit_code": error.exit_code}))
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[red]error:[/red] {escape(str(error))}")
    if error.hint:
        console.print(f"  hint: {escape(error.hint)}")


def print_lines(lines: Mapping[str, Any], *, as_json: bool, title: str = "") -> None:
    """Facts as "name: value" lines, or as one JSON object."""
    if as_json:
        print(json.dumps(lines, default=str))
        return
    if title:
        print(title)
    width = max((len(name) for name in lines), default=0)
    for name, value in lines.items():
        print(f"  {name:<{width}}  {value}")
    sys.stdout.flush()
