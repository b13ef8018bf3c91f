# SPDX-License-Identifier: Apache-2.0
"""What the group's buttons and the menus do. Buttons are pressed on the main thread, outside of Nuke's callbacks.

With a window an action runs on a thread of its own: what it asks of the script is done by the main thread between
redraws, a second thread shows Nuke's progress window and hears its Cancel. Without one it runs where it is called.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faceplate_client import __version__
from faceplate_client.client import Client
from faceplate_client.errors import BadClip, ClientError, NoClips, ServerNotFound
from faceplate_client.frame_maths import Span
from faceplate_client.host import Progress
from faceplate_client.outcome import Analysis, BatchOutcome
from faceplate_client.task import Session, Task, run

from . import application, graph, knobs, work
from .api import Node
from .host import RUNNING as RUNNING_WORD
from .host import NukeHost
from .servers import load_settings

POLL_S = 0.1
_LONG_S, _REST = 0.02, 20.0
"""Nuke asks for labels at every redraw: where one takes longer than this, so many times as long is let pass."""
_STATES: dict[str, tuple[float, float, str]] = {}
"""States of groups by name: when they were told, how long it took, what."""
Action = Callable[[Session], Any]


@dataclass
class Running:
    """The action at work; there is one at a time.

    Attributes:
        task: on its thread.
        group: full name, "" for all.
        watcher: the thread that shows how far it is.
    """

    task: Task[Any] | None = None
    group: str = ""
    watcher: threading.Thread | None = None


RUNNING = Running()


def press(button: str, group: str) -> None:
    """A button of a group was pressed: do it, and say what is wrong and what to do."""
    try:
        _BUTTONS[button](group)
    except ClientError as error:
        application.say(said(error))


def start(here: NukeHost, group: str, action: Action, ended: Callable[[Any], None]) -> None:
    """Run an action and hand on what it gives; offers to start a server where none runs.

    Args:
        here: that the action was made with.
        group: full name, "" for all or none.
        action: what to do.
        ended: told what it gives.

    Raises:
        ClientError: it cannot begin; the script is as it was.
    """
    if RUNNING.task is not None:
        application.say("Faceplate is at work: wait, or press Cancel.")
        return
    settings = load_settings()
    servers = settings.servers()
    try:
        servers.find()
    except ServerNotFound:
        if not servers.start and application.has_window():
            if not application.asked("No Faceplate server is running. Start it?"):
                return
            servers = settings.servers(start=True)
    if not application.has_window():
        ended(run(here, servers, action))
        return
    # the worker may not call the script itself: it has the main thread do so, which comes when it is free
    task: Task[Any] = Task(here, servers, action, wake=lambda: application.later(lambda: task.tick()))
    RUNNING.task, RUNNING.group = task, group
    task.start()
    RUNNING.watcher = threading.Thread(
        target=_watch, args=(here, task, group, ended), name="faceplate meter", daemon=True
    )
    RUNNING.watcher.start()


def _watch(here: NukeHost, task: Task[Any], group: str, ended: Callable[[Any], None]) -> None:
    """On a thread of its own: the progress window, and the label of the group."""
    meter = application.meter("Faceplate")
    shown = ""
    while not task.ended and RUNNING.task is task:
        progress = task.progress
        meter.setMessage(progress.text)
        meter.setProgress(percent(progress))
        if meter.isCancelled():
            task.cancel()
        words = f"{RUNNING_WORD} {progress.step} {progress.done} of {progress.total}"
        if group and words != shown:
            shown = words
            application.later(partial(_show_state, here, task, group, words))
        time.sleep(POLL_S)
    del meter  # closes the window
    application.later(lambda: finish(here, task, group, ended))


def _show_state(here: NukeHost, task: Task[Any], group: str, words: str) -> None:
    """On the main thread, where it may come late."""
    if RUNNING.task is task:
        here.set_state(group, words)


def finish(here: NukeHost, task: Task[Any], group: str, ended: Callable[[Any], None]) -> None:
    """On the main thread, when the action has ended; nothing where its script was closed before."""
    if RUNNING.task is not task:
        return
    RUNNING.task, RUNNING.group, RUNNING.watcher = None, "", None
    try:
        if group:
            here.set_state(group, here.state(group))
        ended(task.result())
    except ClientError as error:
        application.say(said(error))
    except Exception as error:
        application.say(
            f"Faceplate stopped by a fault of its own: {type(error).__name__}: {error}.\nThe Script Editor has more."
        )
        raise


def close() -> None:
    """The script is closed or Nuke ends: stop, and ask nothing more of the script."""
    task, RUNNING.task, RUNNING.group = RUNNING.task, None, ""
    _STATES.clear()
    if task is not None:
        task.close()


def percent(progress: Progress) -> int:
    """For the bar."""
    return max(0, min(100, 100 * progress.done // progress.total)) if progress.total else 0


# Buttons


def process_range(group: str) -> None:
    """Make the group's range."""
    here = NukeHost()
    start(here, group, work.process(here, group), tell)


def process_frame(group: str) -> None:
    """Make the frame that the viewer stands at."""
    here, frame = NukeHost(), application.current_frame()
    start(here, group, work.process(here, group, Span(frame, frame)), tell)


def cancel(group: str) -> None:
    """Stop the action at work after its frame."""
    if RUNNING.task is None:
        application.say("Faceplate is not at work.")
    else:
        RUNNING.task.cancel()


def reload(group: str) -> None:
    """Read the result's files again."""
    NukeHost().read_again(group)


def reveal(group: str) -> None:
    """Open the folder of the result."""
    placed = [one for one in NukeHost().results() if one.clip_id == group]
    if not placed:
        raise NoClips(f"{group} has no result", hint="press Process Range")
    folder = str(Path(placed[0].pattern).parent)
    program = {"win32": "explorer", "darwin": "open"}.get(sys.platform, "xdg-open")
    try:
        subprocess.Popen([program, folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError:
        application.say(folder)


def remove(group: str) -> None:
    """Take the result out; needs no server."""
    here = NukeHost()
    placed = [one for one in here.results() if one.clip_id == group]
    if not placed:
        raise NoClips(f"{group} has no result", hint="nothing has to be removed")
    with here.undo_step("Faceplate: Remove"):
        for one in placed:
            here.remove(one)


def find_faces(group: str) -> None:
    """Find the faces, and say their numbers."""
    here = NukeHost()
    start(here, group, work.find_faces(here, group), tell_faces)


def check(group: str) -> None:
    """Ask the server how it is."""
    here = NukeHost()
    name = here.about().name

    def ask(session: Session) -> str:
        with Client(session.servers.find, name) as client:
            status, pong = client.status(), client.ping()
            version = client.welcome.server_version
        devices = ", ".join(f"{one.name} by {one.provider}" for one in status.devices)
        words = f"{'ready' if pong.ready else 'starting'}, version {version}" + (f", {devices}" if devices else "")
        return words if version == __version__ else f"{words}; this plug-in is {__version__}: update both"

    start(here, "", ask, lambda words: application.say(f"Faceplate server: {words}"))


_BUTTONS: dict[str, Callable[[str], None]] = {
    "process_frame": process_frame,
    "process_range": process_range,
    "cancel": cancel,
    "reload": reload,
    "reveal": reveal,
    "remove": remove,
    "find_faces": find_faces,
    "check": check,
}


# Menus


def add() -> None:
    """Put a group behind the selected node."""
    try:
        application.add_group()
    except ClientError as error:
        application.say(said(error))


def process_all() -> None:
    """Make the ranges of all groups of the script, one after the other."""
    here = NukeHost()
    try:
        names = here.group_names()
        if not names:
            raise NoClips("the script has no Faceplate group", hint="Tab, Faceplate")
        start(here, "", work.process_each(here, names), tell)
    except ClientError as error:
        application.say(said(error))


def install() -> None:
    """Menus and labels of a Nuke with a window."""
    entries = (
        ("Nodes", "Faceplate/Faceplate", add),
        ("Nuke", "Render/Faceplate/Process All Groups", process_all),
        ("Nuke", "Render/Faceplate/Check Server", lambda: press("check", "")),
    )
    application.install(entries, label, close)


def label(node: Node) -> str | None:
    """A group's label with its state as it is now; None for nodes that are not ours. Reads, and changes nothing."""
    if not knobs.is_ours(node):
        return None
    at_work = RUNNING.task is not None and RUNNING.group == node.fullName()
    return f"{node.name()}\n{node[knobs.STATE].value() if at_work else _state(node)}"


def _state(node: Node) -> str:
    """The state as it is now, or as it was a while ago where the graph above is so large that it takes long to tell."""
    began, name = time.thread_time(), node.fullName()
    when, cost, state = _STATES.get(name, (0.0, 0.0, ""))
    if cost > _LONG_S and time.monotonic() - when < cost * _REST:
        return state
    try:
        knobs.check(node)
        state = graph.state_of(node, application.surroundings())
    except BadClip:
        state = "made by another plug-in"
    _STATES[name] = (time.monotonic(), time.thread_time() - began, state)
    return state


# Words


def said(error: ClientError) -> str:
    """An error with its next step."""
    return f"{error}.\n{error.hint[:1].upper()}{error.hint[1:]}." if error.hint else str(error)


def tell(outcome: BatchOutcome) -> None:
    """Say how it went, where there is something to say: a result that is done is seen."""
    lines = [f"{one.clip}: {said(one.error)}" for one in outcome.clips if one.error is not None]
    for one in outcome.clips:
        lines += [f"{one.clip}, frame {frame}: {why}" for frame, why in list(one.failed.items())[:5]]
    if outcome.exit_code == 130:
        lines.append("What is done is kept: process again to go on.")
    elif outcome.exit_code and not any(one.error for one in outcome.clips):
        lines.append("These frames show a slate. Process again to make them anew.")
    if lines:
        application.say("\n".join([outcome.text, *lines]))


def tell_faces(found: Analysis) -> None:
    """Say which faces there are."""
    if found.cancelled:
        application.say("Faceplate: stopped; find faces again to go on.")
        return
    lines = [
        f"{track.id}: {track.label or 'face'}, frames {track.first}-{track.last}, about {track.width_px:.0f} px wide"
        for track in found.tracks
    ]
    pictures = next((str(Path(track.picture).parent) for track in found.tracks if track.picture), "")
    lines += [f"Their pictures are in {pictures}"] if pictures else []
    application.say(
        "\n".join(["Faceplate found these faces:", *lines] if found.tracks else ["Faceplate found no face."])
    )
