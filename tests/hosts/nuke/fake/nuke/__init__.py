"""A stand-in for Nuke's Python, written from its documentation and from what people met: see `README.md` beside it.

Only what Faceplate's plug-in could touch; what a script must not do fails here as it fails there.
"""

from __future__ import annotations

import copy as _copy
import sys
import threading
import traceback
from typing import Any

from . import pixels
from . import script as _script
from .document import APP
from .document import Document as _Document
from .knobs import CONSTANT as CONSTANT
from .nodes import Node, make_root, selected_in

NUKE_VERSION_STRING = "15.1v3"
WRITE_ALL, WRITE_NON_DEFAULT_ONLY, TO_SCRIPT, WRITE_USER_KNOB_DEFS = 1, 2, 4, 8
GUI = True
rawArgs: list[str] = []


class CancelledError(Exception):
    """What some calls raise when the artist cancels."""


class Undo:
    """Steps of undo."""

    @staticmethod
    def begin(name: str = "") -> None:
        APP.before_change(name)
        APP.open_step += 1

    @staticmethod
    def end() -> None:
        assert APP.open_step, "Undo.end without begin"
        APP.open_step -= 1

    @staticmethod
    def disable() -> None:
        APP.check_thread()
        APP.undo_off += 1

    @staticmethod
    def enable() -> None:
        assert APP.undo_off, "Undo.enable without disable"
        APP.undo_off -= 1

    @staticmethod
    def undo() -> str:
        name, APP.document = APP.undo_stack.pop()
        return name


class ProgressTask:
    """The window with a bar; it goes with its last reference."""

    def __init__(self, title: str) -> None:
        self.title, self.messages, self.percents, self.cancelled = title, [], [], False
        APP.meters.append(self)

    def setMessage(self, text: str) -> None:
        self.messages.append(str(text))

    def setProgress(self, percent: int) -> None:
        assert isinstance(percent, int)
        assert 0 <= percent <= 100
        self.percents.append(percent)

    def isCancelled(self) -> bool:
        return self.cancelled


class _Menu:
    def __init__(self, name: str) -> None:
        self._name = name

    def addCommand(self, path: str, call: Any = None, *rest: Any, **more: Any) -> None:
        APP.menus.setdefault(self._name, {})[path] = call


def menu(name: str) -> _Menu:
    assert APP.gui, "there are no menus in a terminal"
    return _Menu(name)


def reset(*, gui: bool = True) -> None:
    """A new program with an empty script; for tests."""
    global GUI
    APP.reset(gui=gui)
    GUI = gui
    make_root()


def root() -> Node:
    APP.check_thread()
    return Node(0)


def toNode(name: str) -> Node | None:
    owner: Node | None = Node(0)
    for part in str(name).split("."):
        owner = owner.node(part) if owner is not None else None
    return owner


def allNodes() -> list[Node]:
    return Node(0).nodes()


def selectedNodes() -> list[Node]:
    return [Node(uid) for uid in selected_in(0)]


def selectedNode() -> Node:
    found = selectedNodes()
    if not found:
        raise ValueError("no node selected")
    return found[0]


def thisNode() -> Node | None:
    return Node(APP.this) if APP.this is not None else None


def delete(node: Node) -> None:
    APP.before_change("delete")
    gone = [node._uid]
    while gone:
        uid = gone.pop()
        gone += [one.uid for one in APP.document.nodes.values() if one.owner == uid]
        APP.document.nodes.pop(uid, None)
    for one in APP.document.nodes.values():
        one.inputs[:] = [uid if uid in APP.document.nodes else 0 for uid in one.inputs]


def nodePaste(path: str) -> None:
    """Gives None in some versions, so here too; what came is selected, nothing else is."""
    APP.before_change("paste")
    with open(path, encoding="utf-8") as file:
        made = _script.read(file.read(), 0)
    for node in allNodes():
        node.setSelected(node._uid in made)


def scriptReadText(text: str) -> None:
    APP.before_change("read text")
    _script.read(text, 0)


def scriptName() -> str:
    if not APP.document.path:
        raise RuntimeError("script has not been saved")
    return APP.document.path


def scriptOpen(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, APP.document = APP.document, _Document()
    make_root()
    try:
        _script.read(text, 0)
    except RuntimeError:
        APP.document = before
        raise
    APP.document.path = path


def scriptSaveAs(path: str, overwrite: int = 0) -> None:
    import os

    if os.path.exists(path) and not overwrite:
        raise RuntimeError(f"{path} exists")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(_script.write(APP.document) + "\n")
    except OSError as error:
        raise RuntimeError(str(error)) from error
    APP.document.path = path


def scriptText() -> str:
    """The script as it would be saved; for tests."""
    return _script.write(APP.document)


def views() -> list[str]:
    return str(Node(0).data.knobs["views"].value).split()


def frame(number: int | None = None) -> int:
    if number is not None:
        APP.frame = number
    return APP.frame


def execute(node: Any, start: int, end: int, incr: int = 1, views: list[str] | None = None) -> None:
    """Render, both ends included. Not from callbacks, not while something renders; a disabled node does nothing."""
    APP.check_thread()
    if APP.executing or APP.in_callback:
        raise RuntimeError("I'm already executing something else")
    found = toNode(node) if isinstance(node, str) else node
    assert found is not None
    APP.executing += 1
    try:
        for number in range(start, end + 1, incr):
            if APP.cancel_at == number:
                raise RuntimeError("Cancelled")
            APP.call_back("beforeFrameRender")
            if found.data.knobs["disable"].value:
                continue
            for view in views or [pixels.first_view()]:
                pixels.write(found.data, number, view)
                APP.executed.append((found.fullName(), number, view))
            APP.call_back("afterFrameRender")
    finally:
        APP.executing -= 1


def executeInMainThread(call: Any, args: Any = (), kwargs: Any = None) -> None:
    args = args if isinstance(args, tuple) else (args,)
    with APP.lock:
        APP.waiting.append(lambda: call(*args, **(kwargs or {})))


def executeInMainThreadWithResult(call: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What fails prints its reason and gives None; from the main thread it would wait for itself."""
    if threading.current_thread() is APP.main:
        raise RuntimeError("executeInMainThreadWithResult called from the main thread: it would wait for ever")
    done, answer = threading.Event(), []

    def work() -> None:
        try:
            answer.append(call(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {})))
        except Exception:
            traceback.print_exc()
            answer.append(None)
        done.set()

    executeInMainThread(work)
    done.wait()
    return answer[0]


def message(text: str) -> None:
    assert APP.gui, "nobody would see it, and the farm would wait"
    APP.check_edit()
    APP.messages.append(text)


def ask(text: str) -> bool:
    assert APP.gui, "nobody would answer, and the farm would wait"
    APP.check_edit()
    APP.messages.append(text)
    return APP.answer


def tprint(*words: Any) -> None:
    sys.stderr.write(" ".join(map(str, words)) + "\n")


def addKnobChanged(call: Any, **options: Any) -> None:
    APP.callbacks.setdefault("knobChanged", []).append(call)


def addBeforeFrameRender(call: Any, **options: Any) -> None:
    APP.callbacks.setdefault("beforeFrameRender", []).append(call)


def addOnScriptClose(call: Any, **options: Any) -> None:
    APP.callbacks.setdefault("onScriptClose", []).append(call)


def addAutolabel(call: Any, args: Any = (), kwargs: Any = None, nodeClass: str = "*") -> None:
    APP.callbacks.setdefault("autolabel", []).append(call)


def labelOf(node: Node) -> str | None:
    """What a node's label is drawn from; for tests. Nothing may be changed in it."""
    before, APP.this = APP.this, node._uid
    APP.in_callback += 1
    try:
        said = [call() for call in APP.callbacks.get("autolabel", ())]
    finally:
        APP.this = before
        APP.in_callback -= 1
    return next((one for one in said if one is not None), None)


def snapshot() -> Any:
    """Everything of the script that an artist could see; for tests."""
    return {
        uid: (Node(uid).fullName(), one.cls, list(one.inputs), _copy.deepcopy(Node(uid).facts()))
        for uid, one in APP.document.nodes.items()
    }


def shownFile(node: Node, number: int, view: str = "") -> str:
    """The file that a node shows at a frame; for tests."""
    return pixels.shown(node.data, number, view or pixels.first_view())


def picture(node: Node, number: int, view: str = "") -> pixels.Image:
    """What a node gives at a frame; for tests."""
    return pixels.render(node.data, number, view or pixels.first_view())


def create(cls: str, *inputs: Any, **values: Any) -> Node:
    """Make a node; for tests."""
    from .nodes import make

    APP.before_change("create")
    stack = [one._uid if one is not None else 0 for one in reversed(inputs)]
    uid = make(cls, 0, [f"inputs {len(inputs)}"], stack)
    node = Node(uid)
    for name, value in values.items():
        if name == "name":
            node.setName(value)
        else:
            node[name].setValue(value)
    return node


reset()
