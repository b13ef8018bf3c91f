"""Nodes: what Nuke's Python shows of them."""

from __future__ import annotations

from typing import Any

from . import pixels
from .document import APP, KnobData, NodeData
from .knobs import Knob
from .script import facts, knob_lines, set_from_text

_COMMON: tuple[tuple[str, str, Any], ...] = (
    ("name", "text", ""),
    ("label", "text", ""),
    ("help", "text", ""),
    ("note_font_size", "number", 11.0),
    ("tile_color", "text", "0x0"),
    ("xpos", "int", 0.0),
    ("ypos", "int", 0.0),
    ("selected", "switch", False),
    ("disable", "switch", False),
    ("useLifetime", "switch", False),
    ("lifetimeStart", "number", 0.0),
    ("lifetimeEnd", "number", 0.0),
)
_FRAMES = ("frame_mode", "pulldown", "expression", ["expression", "start at", "offset"])
_EDGES = ["hold", "loop", "bounce", "black"]
_OWN: dict[str, tuple[tuple[Any, ...], ...]] = {
    "Root": (
        ("first_frame", "int", 1.0),
        ("last_frame", "int", 100.0),
        ("fps", "number", 24.0),
        ("proxy", "switch", False),
        ("colorManagement", "pulldown", "OCIO", ["Nuke", "OCIO"]),
        ("OCIO_config", "text", "aces_1.2"),
        ("customOCIOConfigPath", "file", ""),
        ("workingSpaceLUT", "text", "ACES - ACEScg"),
        ("format", "text", "2048 1556 1"),
        ("views", "text", "main"),
        ("project_directory", "file", ""),
    ),
    "Read": (
        ("file", "file", ""),
        ("first", "int", 1.0),
        ("last", "int", 1.0),
        ("origfirst", "int", 1.0),
        ("origlast", "int", 1.0),
        ("origset", "switch", False),
        ("before", "pulldown", "hold", _EDGES),
        ("after", "pulldown", "hold", _EDGES),
        _FRAMES,
        ("frame", "text", ""),
        ("on_error", "pulldown", "error", ["error", "black", "checkerboard", "nearest frame"]),
        ("colorspace", "pulldown", "default (linear)", None),
        ("raw", "switch", False),
        ("premultiplied", "switch", False),
        ("reload", "button", None),
        (
            "localizationPolicy",
            "pulldown",
            "from auto-localize path",
            ["on", "off", "on demand", "from auto-localize path"],
        ),
        ("file_type", "text", ""),
        ("format", "text", ""),
    ),
    "Write": (
        ("file", "file", ""),
        ("channels", "text", "rgb"),
        ("file_type", "pulldown", "", ["", "exr", "dpx", "tiff", "png"]),
        ("datatype", "pulldown", "16 bit half", ["16 bit half", "32 bit float"]),
        ("compression", "pulldown", "Zip (1 scanline)", ["none", "Zip (1 scanline)", "Zip (16 scanlines)"]),
        (
            "metadata",
            "pulldown",
            "default metadata",
            [
                "no metadata",
                "default metadata",
                "default metadata and exr/*",
                "all metadata except input/*",
                "all metadata",
            ],
        ),
        ("noprefix", "switch", False),
        ("autocrop", "switch", False),
        ("create_directories", "switch", False),
        ("raw", "switch", False),
        ("colorspace", "pulldown", "default (linear)", None),
        ("views", "text", "main"),
    ),
    "Crop": (("box", "box", [0.0, 0.0, 2048.0, 1556.0]), ("reformat", "switch", False)),
    "Switch": (("which", "number", 0.0),),
    "Grade": (("white", "number", 1.0),),
    "TimeOffset": (("time_offset", "int", 0.0),),
    "FrameHold": (("first_frame", "int", 0.0),),
    "Dot": (),
    "NoOp": (),
    "Input": (("number", "int", 0.0),),
    "Output": (),
    "Group": (),
    "Viewer": (),
}


def _knob(name: str, kind: str, value: Any, values: list[str] | None = None) -> KnobData:
    return KnobData(
        name, kind, value, list(value) if isinstance(value, list) else value, facts={"values": values} if values else {}
    )


def make(cls: str, owner: int, lines: list[str], stack: list[int]) -> int:
    """Make a node from lines of a script; its inputs come from the top of the stack."""
    document = APP.document
    if cls == "Root":
        for line in lines:
            set_from_text(document.nodes[0], line)
        return 0
    if cls not in _OWN:
        raise RuntimeError(f"{cls}: Unknown command")
    knobs = {spec[0]: _knob(*spec) for spec in (*_COMMON, *_OWN[cls])}
    node = NodeData(document.next_uid, cls, owner, knobs)
    document.next_uid += 1
    document.nodes[node.uid] = node
    wanted = 0 if cls in ("Read", "Input") else 1
    for line in lines:
        name, _, value = line.partition(" ")
        if name == "inputs":
            wanted = int(value)
        else:
            set_from_text(node, line)
    for _ in range(wanted):
        node.inputs.append(stack.pop() if stack else 0)
    node.knobs["name"].value = _free_name(node, str(knobs["name"].value) or f"{cls}1")
    stack.append(node.uid)
    return node.uid


def _free_name(node: NodeData, name: str) -> str:
    taken = {
        one.knobs["name"].value for one in APP.document.nodes.values() if one.owner == node.owner and one is not node
    }
    head, number = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    count = int(number or 0)
    while name in taken:
        count += 1
        name = f"{head}{count}"
    return name


def make_root() -> None:
    root = NodeData(0, "Root", -1, {spec[0]: _knob(*spec) for spec in (*_COMMON, *_OWN["Root"])})
    root.knobs["name"].value = "Root"
    APP.document.nodes[0] = root


def selected_in(owner: int) -> list[int]:
    return [n.uid for n in APP.document.nodes.values() if n.owner == owner and n.knobs["selected"].value]


class Format:
    def __init__(self, width: int, height: int, aspect: float) -> None:
        self._facts = (width, height, aspect)

    def width(self) -> int:
        return self._facts[0]

    def height(self) -> int:
        return self._facts[1]

    def pixelAspect(self) -> float:
        return self._facts[2]


class Info:
    def __init__(self, x: float, y: float, w: float, h: float) -> None:
        self._facts = (x, y, w, h)

    def x(self) -> float:
        return self._facts[0]

    def y(self) -> float:
        return self._facts[1]

    def w(self) -> float:
        return self._facts[2]

    def h(self) -> float:
        return self._facts[3]


class FrameRange:
    def __init__(self, first: int, last: int) -> None:
        self._facts = (first, last)

    def first(self) -> int:
        return self._facts[0]

    def last(self) -> int:
        return self._facts[1]


class Node:
    """A node; the object outlives what it stands for."""

    def __init__(self, uid: int) -> None:
        self._uid = uid

    @property
    def data(self) -> NodeData:
        APP.check_thread()
        found = APP.document.nodes.get(self._uid)
        if found is None:
            raise ValueError("A PythonObject is not attached to a node")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._uid == self._uid

    def __hash__(self) -> int:
        return self._uid

    def Class(self) -> str:
        return self.data.cls

    def name(self) -> str:
        return str(self.data.knobs["name"].value)

    def fullName(self) -> str:
        owner = self.data.owner
        return f"{Node(owner).fullName()}.{self.name()}" if owner > 0 else self.name()

    def setName(self, name: str, uncollide: bool = True, updateExpressions: bool = False) -> None:
        APP.before_change("rename")
        self.data.knobs["name"].value = _free_name(self.data, name)

    def __getitem__(self, name: str) -> Knob:
        if name not in self.data.knobs:
            raise NameError(f"knob {name} does not exist")
        return Knob(lambda: self.data, name)

    def knob(self, name: str) -> Knob | None:
        return self[name] if name in self.data.knobs else None

    def knobs(self) -> dict[str, Knob]:
        return {name: self[name] for name in self.data.knobs}

    def input(self, index: int) -> Node | None:
        inputs = self.data.inputs
        return Node(inputs[index]) if index < len(inputs) and inputs[index] else None

    def inputs(self) -> int:
        return len(self.data.inputs)

    def setInput(self, index: int, node: Node | None) -> bool:
        APP.before_change("connect")
        inputs = self.data.inputs
        inputs += [0] * (index + 1 - len(inputs))
        inputs[index] = node._uid if node is not None else 0
        return True

    def setSelected(self, on: bool) -> None:
        self.data.knobs["selected"].value = on

    def nodes(self) -> list[Node]:
        return [Node(one.uid) for one in APP.document.nodes.values() if one.owner == self._uid]

    def node(self, name: str) -> Node | None:
        return next((one for one in self.nodes() if one.name() == name), None)

    def format(self) -> Format:
        return Format(*pixels.raster(self.data, APP.frame, pixels.first_view()))

    def bbox(self) -> Info:
        x0, y0, x1, y1 = pixels.box(self.data, APP.frame, pixels.first_view())
        height = pixels.raster(self.data, APP.frame, pixels.first_view())[1]
        return Info(x0, height - y1, x1 - x0, y1 - y0)

    def frameRange(self) -> FrameRange:
        return FrameRange(*pixels.frames(self.data))

    def channels(self) -> list[str]:
        try:
            return list(pixels.render(self.data, APP.frame, pixels.first_view()).channels)
        except (RuntimeError, ImportError):  # no file, or a Python without packages
            return []

    def metadata(self) -> dict[str, Any]:
        return dict(pixels.render(self.data, APP.frame, pixels.first_view()).metadata)

    def writeKnobs(self, flags: int) -> str:
        return "\n".join(knob_lines(self.data))

    def redraw(self) -> None:
        APP.check_thread()

    def firstFrame(self) -> int:
        return int(self.data.knobs["first_frame"].value)

    def lastFrame(self) -> int:
        return int(self.data.knobs["last_frame"].value)

    def press(self, name: str) -> None:
        """As if a button of the node were pressed: its code runs on the main thread, and is no callback."""
        import nuke

        before, APP.this = APP.this, self._uid
        try:
            exec(self.data.knobs[name].facts["code"], {"nuke": nuke, "__name__": "__main__"})
        finally:
            APP.this = before

    def facts(self) -> dict[str, Any]:
        """Everything, comparable."""
        return facts(self.data)
