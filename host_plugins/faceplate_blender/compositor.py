# SPDX-License-Identifier: GPL-3.0-or-later
"""The compositor as the actions see it: `faceplate_client.host.Host` for the Faceplate groups of one scene.

A group is a clip: its plate is what is wired into it (`nodes.py`). Results come as pixels (`live.py`) or, for a
processed range, as files that the group's Image node reads; in both cases the plate stays wired, and taking the result
away gives it back.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import bpy

from faceplate_client import slate
from faceplate_client.errors import BadClip, CannotDo, ClipGone, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Feature, HostAbout, Placed, PlaceMode, Result, Scope, Tag
from faceplate_client.job_record import Recipe
from faceplate_client.result_folder import check_files
from faceplate_client.slot_header import FrameHeader, FrameType

from . import colours, nodes
from .host import BlenderHost, working_space
from .placing import file_of
from .settings import recipe_of
from .shim import Api
from .strips import BATCH, JOB, RECORD, UNDO

RGBA = ("R", "G", "B", "A")
NAME = "Faceplate"


class CompositorHost(BlenderHost):
    """The Faceplate groups in one scene's compositor. Args: see `BlenderHost`."""

    def about(self) -> HostAbout:
        """Blender, which reads and shows pixels here."""
        features = frozenset({Feature.PIXELS_IN, Feature.PIXELS_OUT, Feature.UNDO})
        return HostAbout("blender", ".".join(map(str, bpy.app.version)), features, (PlaceMode.NODE,))

    # What there is

    def clips(self, scope: Scope) -> tuple[Clip, ...]:
        """The groups of the scene over its frame range, so far as they have a plate that the server can read."""
        found = []
        for node in self._groups():
            wanted = {Scope.SELECTED: node.select, Scope.MARKED: bool(node.node_tree.get(BATCH)), Scope.ALL: True}
            if wanted[scope]:
                found.append(self.clip(nodes.clip_id(node.node_tree)))
        return tuple(found)

    def clip(self, clip_id: str, view: str = "") -> Clip:
        """The group over those of the scene's frames in which its plate runs.

        Raises:
            ClipGone: the group is not in the compositor any more.
            BadClip: it has no plate that the server can read.
        """
        scene = self._scene()
        return self._node_reader().over(self._plated(clip_id), Span(scene.frame_start, scene.frame_end))

    def at(self, clip_id: str, frame: int) -> Clip | None:
        """The group's plate at one timeline frame, None where it shows nothing; for live frames.

        Raises:
            ClipGone, BadClip: as `clip`.
        """
        return self._node_reader().at(self._plated(clip_id), frame)

    def results(self, job: str | None = None) -> tuple[Placed, ...]:
        """Groups that read files."""
        trees = [node.node_tree for node in self._groups() if RECORD in node.node_tree]
        return tuple(self._placed_in(tree) for tree in trees if job in (None, tree[JOB]))

    # What is changed

    def selected_ids(self) -> frozenset[str]:
        """Ids of the selected groups."""
        return frozenset(nodes.clip_id(node.node_tree) for node in self._groups() if node.select)

    def recipe(self, clip_id: str) -> Recipe:
        """What the artist set for a group; with all layers, which the compositor can use.

        Raises:
            ClipGone: it is not in the compositor any more.
            BadClip: no identity is chosen.
        """
        settings = self._group(clip_id).node_tree.faceplate
        return replace(recipe_of(settings, self.keyed_settings(clip_id)), layers=())

    def keyed_settings(self, clip_id: str = "") -> dict[str, tuple[tuple[int, float], ...]]:
        """Values of a group's animated settings, by timeline frame of the scene."""
        scene = self._scene()
        return self._keyed(self._group(clip_id).node_tree, Span(scene.frame_start, scene.frame_end))

    def add(self, name: str = NAME, *, behind_selected: bool = False) -> str:
        """Put a new group into the scene's compositor, which is made where there is none; the clip's id.

        Args:
            name: of the group.
            behind_selected: wire it between the selected Image or Movie Clip node and what that goes to.
        """
        scene = self._scene()
        tree = bpy.data.node_groups.new(name, "CompositorNodeTree")
        nodes.build(tree, _new_picture(tree))
        parent = compositor_tree(scene, self.api, make=True)
        node = parent.nodes.new("CompositorNodeGroup")
        node.node_tree = tree
        node.name = node.label = tree.name
        node.width = 200
        if behind_selected:
            nodes.insert_behind(parent, node)
        return nodes.clip_id(tree)

    def bake(self, clip: Clip, frames: Span, pattern: str) -> Generator[int, None, None]:
        """Not a feature of groups."""
        raise CannotDo(f"{clip.name} cannot be rendered by itself", hint="wire an Image or Movie Clip node into it")

    def place(self, clip: Clip, result: Result) -> Placed:
        """Let the group read the files, at the frames where its plate shows theirs."""
        tree = self._group(clip.id).node_tree
        check_files(result.pattern, result.files)
        picture = bpy.data.images.load(file_of(result.pattern, result.used.first))
        names = picture.colorspace_settings.bl_rna.properties["name"].enum_items.keys()
        space = colours.from_server(result.colour_space, result.interop_id, frozenset(names))
        if space is None:
            bpy.data.images.remove(picture)
            raise PlaceFailed(
                f"Blender has no colour space for the result of {clip.name!r}",
                found=result.colour_space,
                hint="set $OCIO for Blender and the server, or choose another working space",
            )
        picture.colorspace_settings.name = space
        picture.source = "SEQUENCE"
        picture.name = result.name
        if RECORD not in tree:
            live = nodes.part(tree, nodes.RESULT).image
            tree[UNDO] = json.dumps({"picture": live.name if live else "", "on": nodes.switch_is_on(tree)})
            if live is not None:
                live.use_fake_user = True  # nothing holds it while the group reads files
        node = nodes.part(tree, nodes.RESULT)
        node.image = picture
        node.frame_start, node.frame_duration = result.start, len(result.used)
        node.frame_offset = result.used.first - 1
        node.use_cyclic, node.use_auto_refresh = False, True
        nodes.connect(tree)
        nodes.set_switch(tree, on=True)
        tree[JOB], tree[RECORD] = result.tag.job, result.tag.record
        return self._placed_in(tree)

    def reload(self, placed: Placed) -> None:
        """Read the files anew."""
        nodes.part(self._group(placed.id).node_tree, nodes.RESULT).image.reload()

    def remove(self, placed: Placed) -> None:
        """Give the group back its plate, or its live picture."""
        try:
            tree = self._group(placed.id).node_tree
        except ClipGone as error:
            raise PlaceFailed(f"{placed.id} is not in the compositor any more") from error
        if RECORD not in tree:
            raise PlaceFailed(f"{tree.name} reads no result any more", hint="nothing has to be removed")
        before = json.loads(tree[UNDO])
        node = nodes.part(tree, nodes.RESULT)
        picture = node.image
        node.image = bpy.data.images.get(before["picture"])
        node.frame_start, node.frame_duration, node.frame_offset = 1, 1, 0
        nodes.connect(tree)
        if node.image is not None:
            node.image.use_fake_user = False
        nodes.set_switch(tree, on=before["on"])
        if picture is not None and picture.users == 0:
            bpy.data.images.remove(picture)
        for name in (JOB, RECORD, UNDO):
            del tree[name]

    # Pixels

    def layout(self, clip: Clip) -> FrameHeader:
        """Of a plate without a file: RGBA float, bottom row first."""
        image = self._plate_image(clip)
        return FrameHeader(image.size[0], image.size[1], RGBA, FrameType.FLOAT, clip.colour_space or "", bottom_up=True)

    def read_pixels(self, clip: Clip, into: memoryview) -> None:
        """Copy the plate's pixels."""
        flat = into.cast("f")
        try:
            self._plate_image(clip).pixels.foreach_get(flat)
        finally:
            flat.release()

    def result_layout(self, clip: Clip) -> FrameHeader:
        """RGBA float in the working space, bottom row first."""
        return FrameHeader(1, 1, RGBA, FrameType.FLOAT, working_space(self.api), bottom_up=True)

    def show_pixels(self, clip: Clip, header: FrameHeader, pixels: memoryview) -> None:
        """Put pixels into the group's picture.

        Raises:
            PlaceFailed: the group reads files, or has lost its picture.
        """
        self._show(self._group(clip.id).node_tree, header, pixels)

    def clear(self, clip_id: str) -> None:
        """Show nothing, as the plate does in frames that it does not have."""
        tree = self._group(clip_id).node_tree
        picture = self._picture(tree)
        picture.pixels.foreach_set(array("f", bytes(len(picture.pixels) * 4)))
        picture.update()
        picture.update_tag()

    def own_pictures(self) -> None:
        """Give groups a picture that is theirs: a copy of a group comes with the first one's, which both would draw in.

        To be called before a render: within one, Blender notices another picture from the next frame on.
        """
        for node in self._groups():
            tree = node.node_tree
            if RECORD in tree or nodes.RESULT not in tree.nodes:
                continue
            result = tree.nodes[nodes.RESULT]
            if result.image is None or (result.image.users > 1 and _drawn_in_by_others(tree, result.image)):
                result.image = _new_picture(tree)
                nodes.connect(tree)

    def slate(self, clip_id: str) -> None:
        """Show the slate in the size of the plate, or of the render where that is not known."""
        group = self._group(clip_id)
        size = self._size(group)
        header = FrameHeader(*size, RGBA, FrameType.FLOAT, bottom_up=True)
        pixels = memoryview(bytearray(header.nbytes))
        slate.fill(header, pixels)
        self._show(group.node_tree, header, pixels)

    def tree(self, clip_id: str) -> Any:
        """The node tree of a group, which has its settings.

        Raises:
            ClipGone: the group is not in the compositor any more.
        """
        return self._group(clip_id).node_tree

    # Within

    def _size(self, group: Any) -> tuple[int, int]:
        try:
            node = nodes.plate_node(group)
        except BadClip:
            node = None
        plate = None if node is None else (node.image if node.type == "IMAGE" else node.clip)
        if plate is not None and min(plate.size) > 0:
            return int(plate.size[0]), int(plate.size[1])
        render = self._scene().render
        share = render.resolution_percentage / 100
        return max(1, round(render.resolution_x * share)), max(1, round(render.resolution_y * share))

    def _picture(self, tree: Any) -> Any:
        picture = nodes.part(tree, nodes.RESULT).image
        if RECORD in tree or picture is None or picture.source != "GENERATED":
            raise PlaceFailed(
                f"{tree.name} shows files, not live pixels",
                hint="remove its result, or take the image out of its Result node, to see live ones",
            )
        return picture

    def _show(self, tree: Any, header: FrameHeader, pixels: memoryview) -> None:
        picture = self._picture(tree)
        if tuple(picture.size) != (header.width, header.height):
            picture.scale(header.width, header.height)
        flat = pixels.cast("B").cast("f")
        try:
            picture.pixels.foreach_set(flat)
        finally:
            flat.release()
        picture.update()
        picture.update_tag()

    def _groups(self) -> list[Any]:
        return list(nodes.groups(compositor_tree(self._scene(), self.api, make=False)))

    def _group(self, clip_id: str) -> Any:
        for node in self._groups():
            if nodes.clip_id(node.node_tree) == clip_id:
                return node
        raise ClipGone(f"there is no {clip_id.partition(':')[2]!r} in the compositor of scene {self.scene_name!r}")

    def _all_ids(self) -> list[str]:
        return [nodes.clip_id(node.node_tree) for node in self._groups()]

    def _plated(self, clip_id: str) -> Any:
        """A group whose plate is its own; BadClip where a duplicated node shares it."""
        group = self._group(clip_id)
        nodes.check_alone(compositor_tree(self._scene(), self.api, make=False), group)
        return group

    def _plate_image(self, clip: Clip) -> Any:
        node = nodes.plate_node(self._group(clip.id))
        if node is None or node.type != "IMAGE" or node.image is None:
            raise ClipGone(f"the plate of {clip.name} is gone", hint="wire an Image node into it")
        return node.image

    def _node_reader(self) -> nodes.Reader:
        scene = self._scene()
        return nodes.Reader(
            fps=scene.render.fps / scene.render.fps_base,
            studio=bool(os.environ.get("OCIO")),
            absolute=lambda path: os.path.normpath(bpy.path.abspath(path, library=scene.library)),
            working_space=working_space(self.api),
        )

    def _placed_in(self, tree: Any) -> Placed:
        node = nodes.part(tree, nodes.RESULT)
        first = int(node.frame_start)
        return Placed(
            id=nodes.clip_id(tree),
            clip_id=nodes.clip_id(tree),
            view="",
            tag=Tag(tree[JOB], tree[RECORD]),
            pattern=nodes.pattern_of(os.path.normpath(bpy.path.abspath(node.image.filepath))),
            timeline=Span(first, first + int(node.frame_duration) - 1),
        )


def _drawn_in_by_others(tree: Any, picture: Any) -> bool:
    others = (one for one in bpy.data.node_groups if nodes.is_group(one) and one != tree)
    return any(nodes.RESULT in one.nodes and one.nodes[nodes.RESULT].image == picture for one in others)


def _new_picture(tree: Any) -> Any:
    return bpy.data.images.new(f"{tree.name} Result", 1, 1, alpha=True, float_buffer=True)


def group_tree(name: str) -> Any:
    """A group's tree by its name; KeyError where it is gone."""
    return bpy.data.node_groups[name]


def compositor_tree(scene: Any, api: Api, *, make: bool) -> Any:
    """The node tree that a scene is composited with; None where there is none and none is to be made."""
    if not api.compositor_groups:
        if make:
            scene.use_nodes = True
        return scene.node_tree if scene.use_nodes else None
    tree = scene.compositing_node_group
    if tree is None and make:
        tree = bpy.data.node_groups.new(f"{scene.name} Compositing", "CompositorNodeTree")
        tree.interface.new_socket("Image", in_out="OUTPUT", socket_type="NodeSocketColor")
        tree.nodes.new("NodeGroupOutput")
        scene.compositing_node_group = tree
    return tree
