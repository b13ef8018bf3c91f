"""What nodes give: a small renderer over real EXR files. Boxes are x0 y0 x1 y1 with y down, half-open, as in EXR."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

from .document import APP, NodeData

Box = tuple[int, int, int, int]
_SHORT = {"red": "R", "green": "G", "blue": "B", "alpha": "A"}
_LONG = {short: long for long, short in _SHORT.items()}
_SKIPPED = ("channels", "compression", "dataWindow", "displayWindow", "lineOrder", "pixelAspectRatio", "type")


@dataclass
class Image:
    """A picture: planes by Nuke's channel names over `box`, in a raster."""

    channels: dict[str, Any]
    box: Box
    raster: tuple[int, int, float]
    metadata: dict[str, Any] = field(default_factory=dict)


def first_view() -> str:
    return str(APP.document.nodes[0].knobs["views"].value).split()[0]


def below(node: NodeData, index: int = 0) -> NodeData | None:
    """What is wired in; of an Input node, what is wired into its group; of a group, its output."""
    if node.cls == "Input":
        group = APP.document.nodes[node.owner]
        number = int(node.knobs["number"].value)
        return below(group, number)
    uid = node.inputs[index] if index < len(node.inputs) else 0
    return APP.document.nodes.get(uid) if uid else None


def inner(node: NodeData) -> NodeData:
    """A group's Output node."""
    return next(one for one in APP.document.nodes.values() if one.owner == node.uid and one.cls == "Output")


def value(node: NodeData, name: str, frame: float, view: str) -> Any:
    from .nodes import Node

    return Node(node.uid)[name].at(frame, view)


def chosen(node: NodeData, frame: float, view: str) -> NodeData | None:
    """Where a node gets its picture from, for nodes that change nothing at this frame."""
    if node.cls == "Group":
        return inner(node)
    if node.knobs["disable"].value or node.cls in ("Dot", "NoOp", "Input", "Output", "Write", "Viewer"):
        return below(node)
    if node.cls == "Switch":
        return below(node, round(value(node, "which", frame, view)))
    return None


def file_number(node: NodeData, frame: float) -> int | None:
    """The number that a Read node reads at a frame; None where it gives black."""
    knobs = node.knobs
    first, last = int(knobs["first"].value), int(knobs["last"].value)
    mode, said = knobs["frame_mode"].value, str(knobs["frame"].value)
    number = int(frame)
    if mode == "start at" and said:
        number = first + int(frame) - int(said)
    elif mode == "expression" and said:
        number = int(eval(said, {"__builtins__": {}}, {"frame": frame, "floor": math.floor}))
    for edge, outside, limit in (("before", number < first, first), ("after", number > last, last)):
        if outside:
            if knobs[edge].value == "black":
                return None
            assert knobs[edge].value == "hold"
            number = limit
    return number


def path_of(file: str, number: int, view: str) -> str:
    """A file knob's text as Nuke resolves it: what stands in brackets is run, here to nothing."""
    if re.search(r"(?<!\\)\$", file):
        raise RuntimeError(f"can't read {file!r}: no such variable")
    file = re.sub(r"(?<!\\)\[.*?\]", "", file)
    file = re.sub(r"\\(.)", r"\1", file)
    file = file.replace("%V", view).replace("%v", view[:1])
    file = re.sub(r"%0(\d+)d", lambda match: f"{number:0{match[1]}d}", file)
    return re.sub(r"#+", lambda match: f"{number:0{len(match[0])}d}", file)


def shown(node: NodeData | None, frame: float, view: str) -> str:
    """The file that is seen at a frame, "" for none or black."""
    while node is not None and node.cls != "Read":
        node = chosen(node, frame, view) or below(node)
    if node is None:
        return ""
    number = file_number(node, frame)
    return "" if number is None else path_of(str(node.knobs["file"].value), number, view)


def frames(node: NodeData) -> tuple[int, int]:
    if node.cls == "Read":
        first, last = int(node.knobs["first"].value), int(node.knobs["last"].value)
        said = str(node.knobs["frame"].value)
        if node.knobs["frame_mode"].value == "start at" and said:
            return int(said), int(said) + last - first
        return first, last
    under = chosen(node, 1, first_view()) or below(node)
    root = APP.document.nodes[0].knobs
    return frames(under) if under is not None else (int(root["first_frame"].value), int(root["last_frame"].value))


def raster(node: NodeData, frame: float, view: str) -> tuple[int, int, float]:
    return _extent(node, frame, view)[0]


def box(node: NodeData, frame: float, view: str) -> Box:
    return _extent(node, frame, view)[1]


def _extent(node: NodeData | None, frame: float, view: str) -> tuple[tuple[int, int, float], Box]:
    """Raster and box from the head of a file, so that no picture has to be made."""
    width, height, aspect = (float(one) for one in str(APP.document.nodes[0].knobs["format"].value).split())
    nothing = ((int(width), int(height), aspect), (0, 0, int(width), int(height)))
    if node is None:
        return nothing
    if node.cls == "Read":
        number = file_number(node, frame)
        if number is None:
            number = int(node.knobs["first"].value)
        path = path_of(str(node.knobs["file"].value), number, view)
        found = _head(path) if os.path.isfile(path) else nothing
        other = str(node.knobs["format"].value).split()  # as an artist chose it over the file's
        return ((int(other[0]), int(other[1]), float(other[2])), found[1]) if other else found
    at = frame - int(node.knobs["time_offset"].value) if node.cls == "TimeOffset" else frame
    return _extent(chosen(node, at, view) or below(node), at, view)


def _head(path: str) -> tuple[tuple[int, int, float], Box]:
    try:
        import OpenEXR
    except ImportError:  # in a Python without packages: the client's own reader of heads
        import pathlib
        import sys

        reader = next(one for name, one in sys.modules.items() if name.endswith("faceplate_client.exr_head"))
        found = reader.read_head(pathlib.Path(path))
        assert found is not None
        return (*found.size, 1.0), (0, 0, *found.size)
    with OpenEXR.File(path, header_only=True) as file:
        head = file.header()
        (x0, y0), (x1, y1) = head["displayWindow"]
        (a, b), (c, d) = head["dataWindow"]
        size = (int(x1 - x0 + 1), int(y1 - y0 + 1), float(head.get("pixelAspectRatio", 1.0)))
        return size, (int(a), int(b), int(c) + 1, int(d) + 1)


def render(node: NodeData, frame: float, view: str) -> Image:
    """The picture of a node; RuntimeError as Nuke says it."""
    import numpy as np

    if node.cls == "Read":
        return _read(node, frame, view)
    passed = chosen(node, frame, view)
    if passed is not None:
        return render(passed, frame, view)
    if node.cls == "TimeOffset":
        frame = frame - int(node.knobs["time_offset"].value)
    elif node.cls == "FrameHold":
        frame = int(node.knobs["first_frame"].value)
    under = below(node)
    if under is None:
        size, extent = _extent(None, frame, view)
        return Image({}, extent, size)
    image = render(under, frame, view)
    if node.cls == "Grade":
        white = np.float32(value(node, "white", frame, view))
        planes = {n: p * white if n.startswith("rgba.") and n != "rgba.alpha" else p for n, p in image.channels.items()}
        return replace(image, channels=planes)
    if node.cls == "Crop":
        return _cropped(image, node.knobs["box"].value)
    return image


def _cropped(image: Image, sides: list[float]) -> Image:
    height = image.raster[1]
    x0, y0, x1, y1 = image.box
    cut = (
        max(x0, int(sides[0])),
        max(y0, height - int(sides[3])),
        min(x1, int(sides[2])),
        min(y1, height - int(sides[1])),
    )
    planes = {n: p[cut[1] - y0 : cut[3] - y0, cut[0] - x0 : cut[2] - x0] for n, p in image.channels.items()}
    return replace(image, channels=planes, box=cut)


def _read(node: NodeData, frame: float, view: str) -> Image:
    import numpy as np
    import OpenEXR

    number = file_number(node, frame)
    if number is None:
        size, extent = _extent(node, frame, view)
        black = np.zeros((extent[3] - extent[1], extent[2] - extent[0]), np.float32)
        return Image({f"rgba.{name}": black for name in _SHORT}, extent, size)
    path = path_of(str(node.knobs["file"].value), number, view)
    if not os.path.isfile(path):
        raise RuntimeError(f"{node.knobs['name'].value}: {path}: Read error: No such file or directory")
    size, extent = _head(path)
    with OpenEXR.File(path, separate_channels=True) as file:
        planes = {_nuke_name(name): np.asarray(one.pixels) for name, one in file.channels().items()}
        metadata = {f"exr/{name}": one for name, one in file.header().items() if name not in _SKIPPED}
    if (
        not node.knobs["raw"].value
        and "linear" not in node.knobs["colorspace"].value
        and "ACEScg" not in node.knobs["colorspace"].value
    ):
        planes = {n: p * 2 if n.startswith("rgba.") else p for n, p in planes.items()}  # another space: it shows
    return Image(planes, extent, size, metadata)


def _nuke_name(name: str) -> str:
    layer, dot, channel = name.rpartition(".")
    return f"{layer if dot else 'rgba'}.{_LONG.get(channel, channel)}"


def _exr_name(name: str) -> str:
    layer, _, channel = name.rpartition(".")
    channel = _SHORT.get(channel, channel)
    return channel if layer == "rgba" else f"{layer}.{channel}"


def write(node: NodeData, frame: int, view: str) -> str:
    """What a Write node does; the path. In proxy mode it writes small pictures, as Nuke does."""
    import numpy as np
    import OpenEXR

    knobs = node.knobs
    under = below(node)
    if under is None:
        raise RuntimeError(f"{knobs['name'].value}: no input")
    image = render(under, frame, view)
    if APP.document.nodes[0].knobs["proxy"].value:
        small = {n: np.ascontiguousarray(p[::2, ::2]) for n, p in image.channels.items()}
        x0, y0, x1, y1 = image.box
        image = replace(
            image,
            channels=small,
            box=(x0 // 2, y0 // 2, x0 // 2 + (x1 - x0 + 1) // 2, y0 // 2 + (y1 - y0 + 1) // 2),
            raster=(image.raster[0] // 2, image.raster[1] // 2, image.raster[2]),
        )
    assert knobs["file_type"].value == "exr"
    if not knobs["raw"].value:
        image = replace(image, channels={n: p * 0.5 for n, p in image.channels.items()})
    path = path_of(str(knobs["file"].value), frame, view)
    if not os.path.isdir(os.path.dirname(path)):
        raise RuntimeError(f"{path}: the folder is not there")
    kind = np.float16 if knobs["datatype"].value == "16 bit half" else np.float32
    wanted = ("rgba.",) if knobs["channels"].value in ("rgb", "rgba") else ("",)
    planes = {
        _exr_name(name): np.ascontiguousarray(plane.astype(kind))
        for name, plane in image.channels.items()
        if name.startswith(wanted)
    }
    views = str(APP.document.nodes[0].knobs["views"].value).split()
    if "%V" not in str(knobs["file"].value) and view != views[0]:
        planes = {f"{view}.{name}": plane for name, plane in planes.items()}  # as one file of several views has them
    x0, y0, x1, y1 = image.box
    head: dict[str, Any] = {
        "compression": OpenEXR.ZIPS_COMPRESSION,
        "type": OpenEXR.scanlineimage,
        "dataWindow": (np.array([x0, y0], np.int32), np.array([x1 - 1, y1 - 1], np.int32)),
        "displayWindow": (
            np.array([0, 0], np.int32),
            np.array([image.raster[0] - 1, image.raster[1] - 1], np.int32),
        ),
        "pixelAspectRatio": image.raster[2],
    }
    if knobs["metadata"].value == "all metadata":
        head |= {name[4:]: one for name, one in image.metadata.items() if name.startswith("exr/")}
    OpenEXR.File(head, planes).write(path)
    return path
