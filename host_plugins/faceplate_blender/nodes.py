# SPDX-License-Identifier: GPL-3.0-or-later
"""The Faceplate group of the compositor: what is in it, which plate it is wired to, and which file that shows when.

    Image (plate) ──► Switch ──► Image        Off: the plate, as long as there is no result
    Faceplate Result ─►┘                      On: what `render_pre` puts in, or the files of a processed range

Works on node trees that it is given and imports nothing of Blender. A group has a tree of its own, whose name is the
clip's id and whose custom properties say what it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from faceplate_client.errors import BadClip, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip

from . import colours
from .strips import lone_number

MARK = "faceplate_node"
"""Custom property of a group's tree: version of its layout."""
VERSION = 1
RESULT, SWITCH = "Faceplate Result", "Faceplate Switch"
_NUMBER = re.compile(r"([0-9]+)(?=[^0-9]*$)")


def build(tree: Any, picture: Any) -> None:
    """Fill an empty compositor tree with a group's nodes, the switch at off.

    Args:
        tree: new.
        picture: float image that shows live results.
    """
    tree[MARK] = VERSION
    tree.interface.new_socket("Image", in_out="INPUT", socket_type="NodeSocketColor")
    tree.interface.new_socket("Image", in_out="OUTPUT", socket_type="NodeSocketColor")
    plate, out = tree.nodes.new("NodeGroupInput"), tree.nodes.new("NodeGroupOutput")
    result, switch = tree.nodes.new("CompositorNodeImage"), tree.nodes.new("CompositorNodeSwitch")
    result.name = result.label = RESULT
    switch.name = switch.label = SWITCH
    result.image = picture
    off, _ = _switched(switch)
    tree.links.new(plate.outputs[0], off)
    tree.links.new(switch.outputs[0], out.inputs[0])
    connect(tree)
    for node, x, y in ((plate, -400, 100), (result, -400, -100), (switch, -100, 0), (out, 150, 0)):
        node.location = (x, y)
    set_switch(tree, on=False)


def connect(tree: Any) -> None:
    """Wire the Result node after its image was changed: Blender makes its outputs anew, by the layers of the file.

    Layers beside the picture (matte, face, ...) are outputs of the group as long as the files have them.
    """
    result, switch = part(tree, RESULT), part(tree, SWITCH)
    out = next(node for node in tree.nodes if node.type == "GROUP_OUTPUT")
    _, on = _switched(switch)
    outputs = {socket.name: socket for socket in result.outputs if socket.enabled}
    tree.links.new(outputs.get("Combined") or outputs["Image"], on)
    wanted = {name: socket for name, socket in outputs.items() if name not in ("Combined", "Image", "Alpha")}
    # by name and one at a time: Blender frees what is removed, and what a script still holds with it
    there = {item.name for item in tree.interface.items_tree if item.in_out == "OUTPUT"} - {"Image"}
    for name in there - wanted.keys():
        items = tree.interface.items_tree
        tree.interface.remove(next(one for one in items if one.in_out == "OUTPUT" and one.name == name))
    for name, socket in wanted.items():
        if name not in there:
            kind = "NodeSocketColor" if socket.type == "RGBA" else "NodeSocketFloat"
            tree.interface.new_socket(name, in_out="OUTPUT", socket_type=kind)
        tree.links.new(socket, out.inputs[name])


def part(tree: Any, name: str) -> Any:
    """A node of a group by its name, RESULT or SWITCH.

    Raises:
        PlaceFailed: somebody removed or renamed it.
    """
    if name not in tree.nodes:
        raise PlaceFailed(
            f"{tree.name} has lost its node {name!r}", hint="undo that, or take the group out and add a new one"
        )
    return tree.nodes[name]


def _switched(switch: Any) -> tuple[Any, Any]:
    off, on = [socket for socket in switch.inputs if socket.type == "RGBA"]
    return off, on


def is_group(tree: Any) -> bool:
    """Whether a tree is one of ours."""
    return tree is not None and MARK in tree


def set_switch(tree: Any, *, on: bool) -> None:
    """Let the group give its result (on) or the plate (off)."""
    switch = part(tree, SWITCH)
    if "Switch" in switch.inputs:
        switch.inputs["Switch"].default_value = on
    else:  # 4.2
        switch.check = on


def switch_is_on(tree: Any) -> bool:
    """Whether the group gives its result."""
    switch = part(tree, SWITCH)
    return bool(switch.inputs["Switch"].default_value if "Switch" in switch.inputs else switch.check)


def groups(tree: Any) -> Iterator[Any]:
    """The nodes of a compositor tree that are Faceplate groups, those within other groups too; each tree once."""
    seen: set[str] = set()
    for node in _all_groups(tree):
        if node.node_tree.name not in seen:
            seen.add(node.node_tree.name)
            yield node


def _all_groups(tree: Any) -> Iterator[Any]:
    seen: set[str] = set()
    waiting = [tree] if tree is not None else []
    while waiting:
        for node in waiting.pop().nodes:
            inner = node.node_tree if node.type == "GROUP" else None
            if is_group(inner):
                yield node
            elif inner is not None and inner.name not in seen:
                seen.add(inner.name)
                waiting.append(inner)


def check_alone(tree: Any, group: Any) -> None:
    """Refuse a group that a duplicated node shares: there is one picture in it, which cannot be that of two plates.

    Args:
        tree: of the scene's compositor.
        group: node in it.

    Raises:
        BadClip: another node of the same group has another plate.
    """
    for other in _all_groups(tree):
        if other == group or other.node_tree != group.node_tree or not other.inputs[0].is_linked:
            continue
        if plate_node(other) != plate_node(group):
            raise BadClip(
                f"the nodes {group.name!r} and {other.name!r} are one group with two plates",
                hint="press the number beside the group's name in one of them, so that it gets a group of its own",
            )


def insert_behind(tree: Any, group: Any) -> None:
    """Wire a new group between the selected plate and what that goes to; alone where no plate is selected."""
    plates = [node for node in tree.nodes if node.select and node.type in ("IMAGE", "MOVIECLIP")]
    for node in tree.nodes:
        node.select = node == group
    tree.nodes.active = group
    if len(plates) != 1:
        return
    plate = plates[0]
    out = plate.outputs[0]
    for link in list(out.links):
        tree.links.new(group.outputs[0], link.to_socket)
    tree.links.new(out, group.inputs[0])
    group.location = (plate.location[0] + plate.width + 40, plate.location[1])


def plate_node(group: Any) -> Any:
    """The Image or Movie Clip node that a group's plate comes from, reroutes passed; None where there is none.

    Raises:
        BadClip: something else is wired in, whose pixels no script can reach.
    """
    socket = group.inputs[0]
    while socket.is_linked and not socket.links[0].is_muted:
        link = socket.links[0]
        node = link.from_node
        if node.type == "REROUTE":
            socket = node.inputs[0]
            continue
        if node.type in ("IMAGE", "MOVIECLIP") and not node.mute:
            _check_picture(group, node, link.from_socket)
            return node
        raise BadClip(
            f"{group.node_tree.name}: the plate has to come straight from an Image or Movie Clip node",
            found=f"{'muted ' if node.mute else ''}{node.bl_label} node {node.name!r}",
            hint="put Faceplate first, behind the plate; grade, blur and so on come after it",
        )
    return None


def _check_picture(group: Any, node: Any, socket: Any) -> None:
    """The server reads the picture of a file: not its alpha, another layer, or one of two eyes."""
    if socket.name not in ("Image", "Combined"):
        raise BadClip(
            f"{group.node_tree.name}: the plate has to be the picture of {node.name!r}",
            found=f"its output {socket.name!r}",
            hint="wire its Image or Combined output; a face goes into a picture, not into a matte",
        )
    stereo = node.type == "IMAGE" and node.image is not None and (node.image.use_multiview or node.has_views)
    if stereo:
        raise BadClip(
            f"the image {node.image.name!r} is stereo",
            hint="open each eye's files as an image of its own, without Use Multi-View, and give each its group",
        )


@dataclass(frozen=True)
class Reader:
    """What is needed to read nodes.

    Attributes:
        fps: of the scene.
        studio: whether $OCIO is set.
        absolute: path of Blender's to an absolute one.
        working_space: of Blender's own float pixels, as the server calls it.
    """

    fps: float
    studio: bool
    absolute: Callable[[str], str]
    working_space: str

    def over(self, group: Any, frames: Span) -> Clip:
        """The clip of a group's plate over those of the timeline frames in which it runs forward, or is still.

        Raises:
            BadClip: as `at`, or the plate has no frame there.
        """
        node = plate_node(group)
        runs = frames if node is None else frames.meet(self._runs(node) or frames)
        first = None if runs is None else self.at(group, runs.first)
        last = None if runs is None else self.at(group, runs.last)
        if first is None or last is None:
            raise BadClip(
                f"the plate of {group.node_tree.name} shows nothing in frames {frames}", hint="see its offset"
            )
        if not first.source or first.used == last.used:
            return first
        used = Span(first.used.first, last.used.last)
        return replace(first, used=used, media=used)

    def at(self, group: Any, frame: int) -> Clip | None:
        """The clip of a group's plate at a timeline frame; None where the plate shows nothing then.

        An Image node holds its first and last file and may run in circles, so the clip is true for this frame alone.

        Raises:
            BadClip: no plate, or one that the server cannot read.
        """
        node = plate_node(group)
        if node is None:
            raise BadClip(f"{group.node_tree.name} has no plate", hint="wire an Image or Movie Clip node into it")
        if node.type == "MOVIECLIP":
            return self._movie_clip(group, node, frame)
        if node.image is None:
            raise BadClip(f"the Image node {node.name!r} has no image", hint="open the plate in it")
        return self._image(group, node, frame)

    def _image(self, group: Any, node: Any, frame: int) -> Clip:
        image = node.image
        size = (int(image.size[0]), int(image.size[1]))
        if image.source in ("SEQUENCE", "MOVIE"):
            number = image_frame(frame, node.frame_start, node.frame_duration, node.frame_offset, node.use_cyclic)
            path = self.absolute(image.filepath)
            source = path if image.source == "MOVIE" else pattern_of(path)
            return self._clip(group, frame, Span(number, number), source, size, self._space(image))
        if image.source == "FILE" and not image.is_dirty and image.packed_file is None:
            path = self.absolute(image.filepath)
            number = lone_number(os.path.basename(path))
            return self._clip(group, frame, Span(number, number), path, size, self._space(image))
        if image.source in ("FILE", "GENERATED"):
            # painted, packed or made by a script: its pixels are all there is
            return Clip(
                id=clip_id(group.node_tree),
                name=group.node_tree.name,
                start=frame,
                used=Span(frame, frame),
                size=size,
                colour_space=self.working_space if image.is_float else self._space(image),
                fps=self.fps,
                has_pixels=True,
            )
        raise BadClip(
            f"the image {image.name!r} cannot be a plate", found=image.source.lower(), hint="use a file or a sequence"
        )

    def _movie_clip(self, group: Any, node: Any, frame: int) -> Clip | None:
        clip = node.clip
        if clip is None:
            raise BadClip(f"the Movie Clip node {node.name!r} has no clip", hint="open the plate in it")
        path = self.absolute(clip.filepath)
        number = frame - clip.frame_start + clip.frame_offset
        if number < 0 or (number >= clip.frame_duration and number >= _length(clip, path)):
            return None
        size = (int(clip.size[0]), int(clip.size[1]))
        first = 1
        if clip.source == "SEQUENCE":
            first = first_number(path)
            path = pattern_of(path)
        return self._clip(group, frame, Span(first + number, first + number), path, size, self._space(clip))

    def _clip(self, group: Any, frame: int, used: Span, source: str, size: tuple[int, int], space: str) -> Clip:
        return Clip(
            id=clip_id(group.node_tree),
            name=group.node_tree.name,
            start=frame,
            used=used,
            media=used,
            source=source,
            size=size,
            colour_space=space,
            fps=self.fps,
        )

    def _runs(self, node: Any) -> Span | None:
        """Timeline frames in which a plate node shows one file after the other; None for a still."""
        if node.type == "MOVIECLIP" and node.clip is not None:
            clip = node.clip
            first = int(clip.frame_start - clip.frame_offset)
            return Span(first, first + _length(clip, self.absolute(clip.filepath)) - 1)
        if node.type == "IMAGE" and node.image is not None and node.image.source in ("SEQUENCE", "MOVIE"):
            return Span(int(node.frame_start), int(node.frame_start + node.frame_duration) - 1)
        return None

    def _space(self, data: Any) -> str:
        name = data.colorspace_settings.name
        space = colours.to_server(name, studio=self.studio)
        if space is None:
            raise BadClip(
                f"the plate {data.name!r} is in a colour space that the server does not know",
                found=name,
                hint="choose another space for it, or set $OCIO for Blender and the server",
            )
        return space


def _length(clip: Any, path: str) -> int:
    """Files of a movie clip, holes counted: Blender's own number ends at the first one, its pictures do not."""
    length = int(clip.frame_duration)
    if clip.source != "SEQUENCE":
        return length
    first, pattern = first_number(path), pattern_of(path)
    last = first + length - 1
    for name in os.listdir(os.path.dirname(path)) if os.path.isdir(os.path.dirname(path)) else ():
        if _NUMBER.search(os.path.splitext(name)[0]) and pattern_of(name) == os.path.basename(pattern):
            last = max(last, first_number(name))
    return last - first + 1


def clip_id(tree: Any) -> str:
    """Names of node groups are unique in a file."""
    return f"node:{tree.name}"


def image_frame(frame: int, start: int, duration: int, offset: int, cyclic: bool) -> int:
    """The file number (movie: frame) that an Image node shows at a timeline frame, as Blender 4.2 to 5.2 do."""
    number = frame - start + 1
    if cyclic:
        return (number - 1) % duration + 1 + offset
    return min(max(number, 0), duration) + offset


def first_number(path: str) -> int:
    """The number of a file of a sequence, the last one of its name.

    Raises:
        BadClip: no number in the name.
    """
    found = _NUMBER.search(os.path.splitext(os.path.basename(path))[0])
    if found is None:
        raise BadClip(
            f"{os.path.basename(path)} has no frame number", hint="open it as a single image, or rename the files"
        )
    return int(found[1])


def pattern_of(path: str) -> str:
    """A file of a sequence with "#" for the digits of its number; raises as `first_number`."""
    first_number(path)
    folder, name = os.path.split(path)
    stem, ending = os.path.splitext(name)
    return os.path.join(folder, _NUMBER.sub(lambda match: "#" * len(match[1]), stem) + ending)
