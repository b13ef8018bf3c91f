"""What a script holds, as data that can be copied whole: that is what undo brings back."""

from __future__ import annotations

import copy
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class KnobData:
    """One knob.

    Attributes:
        kind: "text", "file", "int", "number", "switch", "pulldown", "button", "link", "label", "box", "tab".
        curves: keys (frame, value) by view, "" for all.
        by_view: values of views that were split off.
        facts: label, entries, code, target, tooltip, flags.
        is_user: added to the node, so that a script has to define it.
    """

    name: str
    kind: str
    value: Any
    default: Any
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    by_view: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    is_user: bool = False


@dataclass
class NodeData:
    """One node; `owner` is the group that it is in."""

    uid: int
    cls: str
    owner: int
    knobs: dict[str, KnobData]
    inputs: list[int] = field(default_factory=list)


@dataclass
class Document:
    """A script."""

    nodes: dict[int, NodeData] = field(default_factory=dict)
    path: str = ""
    next_uid: int = 1


class Application:
    """Everything of the program that is not the script."""

    def __init__(self) -> None:
        self.main = threading.main_thread()
        self.reset()

    def reset(self, *, gui: bool = True) -> None:
        self.document = Document()
        self.gui = gui
        self.frame = 1
        self.executing = 0
        self.in_callback = 0
        self.undo_stack: list[tuple[str, Document]] = []
        self.open_step = 0
        self.undo_off = 0
        self.waiting: list[Callable[[], Any]] = []
        self.lock = threading.Lock()
        self.messages: list[str] = []
        self.answer = True
        self.meters: list[Any] = []
        self.cancel_at: int | None = None
        self.executed: list[tuple[str, int, str]] = []
        self.callbacks: dict[str, list[Callable[..., Any]]] = {}
        self.menus: dict[str, dict[str, Any]] = {}
        self.this: int | None = None
        self.printed: list[str] = []
        self.colour_spaces: list[str] = ["default (linear)", "linear", "sRGB", "rec709", "Cineon", "AlexaV3LogC"]

    def check_thread(self) -> None:
        assert threading.current_thread() is self.main, "a node or knob was touched off the main thread"

    def check_edit(self) -> None:
        self.check_thread()
        if self.executing or self.in_callback:
            raise RuntimeError("I'm already executing something else")

    def before_change(self, name: str = "change") -> None:
        """Remember the script for undo, once a step."""
        self.check_edit()
        if not self.undo_off and not self.open_step:
            self.undo_stack.append((name, copy.deepcopy(self.document)))

    def call_back(self, kind: str, *words: Any) -> None:
        for call in self.callbacks.get(kind, ()):
            self.in_callback += 1
            try:
                call(*words)
            finally:
                self.in_callback -= 1

    def pump(self) -> int:
        """One turn of the event loop: what other threads asked for. How many calls were made."""
        self.check_thread()
        with self.lock:
            calls, self.waiting = self.waiting, []
        for call in calls:
            try:
                call()
            except Exception:  # Nuke prints it, and goes on
                self.printed.append(traceback.format_exc())
        return len(calls)


APP = Application()
