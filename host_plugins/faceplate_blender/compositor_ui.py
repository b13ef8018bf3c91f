# SPDX-License-Identifier: GPL-3.0-or-later
"""Faceplate in the compositor: Add > Faceplate, its settings in the sidebar, live frames and processed ranges.

A group has the same settings as a scene, kept in its tree, so that they are copied, appended and animated with it.
"""

from __future__ import annotations

from typing import Any

import bpy
from bpy.props import BoolProperty, PointerProperty

from faceplate_client import actions
from faceplate_client.errors import ClientError, NoClips
from faceplate_client.host import Clip, Scope
from faceplate_client.job_record import Recipe
from faceplate_client.outcome import BatchOutcome
from faceplate_client.task import Servers, Session

from . import nodes, preferences
from .compositor import CompositorHost
from .live import Effects, Handlers
from .operators import Action, ClipsWorking, FindingFaces
from .panels import CATEGORY, draw_faces, draw_settings, draw_track, draw_work, invoking
from .settings import FaceplateSettings
from .state import STATE
from .strips import RECORD
from .words import draw_words, said

_TREE = "CompositorNodeTree"


def live_recipe(scene: Any, tree: Any) -> Recipe | None:
    """The recipe of a group whose frames are made live, None for another.

    Raises:
        BadClip: no identity is chosen.
    """
    if not tree.faceplate_live or RECORD in tree:
        return None
    return CompositorHost(scene.name).recipe(nodes.clip_id(tree))


def _servers() -> Servers:
    if STATE.servers is not None:
        return STATE.servers
    servers: Servers = preferences.of(bpy.context).servers()
    return servers


def _folder() -> str:
    if STATE.results:
        return STATE.results
    return str(preferences.of(bpy.context).output_root)


EFFECTS = Effects(_servers, live_recipe, _folder)
HANDLERS = Handlers(EFFECTS)


def _live_changed(tree: Any, context: Any) -> None:
    """The artist switched a group: it gives its result or the plate, at once."""
    if nodes.is_group(tree) and RECORD not in tree:
        nodes.set_switch(tree, on=tree.faceplate_live)
        if tree.faceplate_live and not bpy.app.background:
            EFFECTS.frame(context.scene)


class _InCompositor:
    """Of operators and panels: where they are, and what they work on."""

    @classmethod
    def poll(cls, context: Any) -> bool:
        """In the compositor."""
        return in_compositor(context)

    def host(self, context: Any) -> CompositorHost:
        """The groups of the scene."""
        return CompositorHost(context.scene.name, preferences.of(context).output_root, STATE.keep_progress)


def _selected(host: CompositorHost) -> tuple[Clip, ...]:
    clips = host.clips(Scope.SELECTED)
    if not clips:
        raise NoClips("no Faceplate group is selected", hint="select one in the compositor")
    return clips


class FACEPLATE_OT_add_group(_InCompositor, bpy.types.Operator):
    """Add a Faceplate group, behind the selected Image or Movie Clip node where there is one"""

    bl_idname = "faceplate.add_group"
    bl_label = "Faceplate"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012

    def execute(self, context: Any) -> set[str]:
        """Into the tree that the editor shows."""
        host = CompositorHost(context.scene.name)
        try:
            group = host.add(behind_selected=True)
        except ClientError as error:
            self.report({"ERROR"}, said(error))
            return {"CANCELLED"}
        settings = context.scene.faceplate
        tree = host.tree(group)
        for name in ("identity", "track", "track_number", "project", "commercial"):
            if settings.is_property_set(name):
                setattr(tree.faceplate, name, getattr(settings, name))
        tree.faceplate_live = bool(tree.faceplate.identity)
        return {"FINISHED"}


class FACEPLATE_OT_process_range(_InCompositor, ClipsWorking, bpy.types.Operator):
    """Make the selected Faceplate groups' frames into EXR files, which the groups read from then on"""

    bl_idname = "faceplate.process_range"
    bl_label = "Process Range"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]

    def action(self, context: Any, host: Any) -> Action:
        """`actions.apply` with each group's own settings; a group that has a result is refreshed with them."""
        clips = _selected(host)
        recipes = [host.recipe(clip.id) for clip in clips]
        placed = {one.clip_id: one for one in host.results()}

        def process(session: Session) -> BatchOutcome:
            outcomes = []
            for clip, recipe in zip(clips, recipes):
                if clip.id in placed:
                    outcomes.append(actions.refresh(session, [placed[clip.id]], recipe))
                else:
                    outcomes.append(actions.apply(session, [clip], recipe))
            return BatchOutcome(tuple(one for outcome in outcomes for one in outcome.clips))

        return process


class FACEPLATE_OT_find_group_faces(_InCompositor, FindingFaces, bpy.types.Operator):
    """Find and follow the faces of the active group's plate: live frames become as steady as processed ones"""

    bl_idname = "faceplate.find_group_faces"
    bl_label = "Find Faces"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]

    def action(self, context: Any, host: Any) -> Action:
        """`actions.analyse` of the plate."""
        clip = _selected(host)[0]
        self._where = (host.scene_name, clip.id)
        return lambda session: actions.analyse(session, clip)


class FACEPLATE_OT_live_again(_InCompositor, bpy.types.Operator):
    """Stop reading files: the selected Faceplate groups are live again, or give the plate; the files stay"""

    bl_idname = "faceplate.live_again"
    bl_label = "Remove Result"
    bl_options = {"REGISTER"}  # noqa: RUF012

    def execute(self, context: Any) -> set[str]:
        """No server is needed."""
        host = CompositorHost(context.scene.name)
        results = [one for one in host.results() if one.id in host.selected_ids()]
        if not results:
            self.report({"ERROR"}, "no selected group reads a result. Select one in the compositor")
            return {"CANCELLED"}
        with host.undo_step("Faceplate: Remove Result"):
            for result in results:
                host.remove(result)
        return {"FINISHED"}


class FACEPLATE_PT_compositor(_InCompositor, bpy.types.Panel):
    """The active group."""

    bl_label = "Faceplate"
    bl_space_type = "NODE_EDITOR"
    bl_region_type = "UI"
    bl_category = CATEGORY

    def draw(self, context: Any) -> None:
        """Identity, live, range, and what failed."""
        layout = self.layout
        tree = active_group(context)
        if tree is None:
            draw_words(layout, "Select a Faceplate group, or the plate's node and add one:", "INFO")
            layout.operator("faceplate.add_group", icon="ADD", text="Add Faceplate")
            return
        layout.prop(tree.faceplate, "identity")
        draw_track(layout, tree.faceplate)
        draw_faces(layout, context.scene.name, nodes.clip_id(tree), tree.faceplate, tree.name)
        invoking(layout).operator("faceplate.find_group_faces", icon="VIEWZOOM")
        if RECORD in tree:
            layout.label(text="Reads the files of a processed range", icon="IMAGE_DATA")
        else:
            layout.prop(tree, "faceplate_live", toggle=True, icon="PLAY")
        row = invoking(layout, row=True)
        row.operator("faceplate.process_range", icon="RENDER_ANIMATION")
        if RECORD in tree:
            row.operator("faceplate.live_again", icon="X")
        draw_live(layout, context.scene.name, tree.name)
        draw_work(layout)


class FACEPLATE_PT_compositor_settings(bpy.types.Panel):
    """How the face is put in."""

    bl_label = "Settings"
    bl_space_type = "NODE_EDITOR"
    bl_region_type = "UI"
    bl_category = CATEGORY
    bl_parent_id = "FACEPLATE_PT_compositor"
    bl_options = {"DEFAULT_CLOSED"}  # noqa: RUF012

    @classmethod
    def poll(cls, context: Any) -> bool:
        """For a group."""
        return in_compositor(context) and active_group(context) is not None

    def draw(self, context: Any) -> None:
        """All settings of the group."""
        draw_settings(self.layout, active_group(context).faceplate)


def draw_live(layout: Any, scene: str, group: str) -> None:
    """How the last live frame went, and which failed."""
    shown = EFFECTS.groups.get((scene, group))
    if shown is None or shown.last is None:
        return
    last = shown.last
    if last.error is not None:
        draw_words(layout, str(last.error), "ERROR")
        draw_words(layout, last.error.hint, "INFO")
    else:
        layout.label(text=f"Frame {last.frame}: {last.state}, {sum(last.ms.values()):.0f} ms", icon="CHECKMARK")
    if shown.failed:
        numbers = ", ".join(map(str, sorted(shown.failed)[:20]))
        draw_words(layout, f"Slates in frames {numbers}", "ERROR")


def draw_add(menu: Any, context: Any) -> None:
    """The entry in the compositor's Add menu."""
    if in_compositor(context):
        menu.layout.separator()
        menu.layout.operator("faceplate.add_group", icon="COMMUNITY")


def active_group(context: Any) -> Any:
    """The tree of the active node where that is a Faceplate group, else None."""
    node = context.active_node
    tree = node.node_tree if node is not None and node.type == "GROUP" else None
    return tree if nodes.is_group(tree) else None


def in_compositor(context: Any) -> bool:
    """Whether the editor is a compositor; without an editor, for scripts, yes."""
    space = context.space_data
    return space is None or getattr(space, "tree_type", "") == _TREE


CLASSES = (
    FACEPLATE_OT_add_group,
    FACEPLATE_OT_process_range,
    FACEPLATE_OT_find_group_faces,
    FACEPLATE_OT_live_again,
    FACEPLATE_PT_compositor,
    FACEPLATE_PT_compositor_settings,
)


def register() -> None:
    """After the classes."""
    tree = bpy.types.CompositorNodeTree
    tree.faceplate = PointerProperty(type=FaceplateSettings)
    tree.faceplate_live = BoolProperty(
        name="Live",
        description="Make each frame when it is shown or rendered; off, the group gives the plate",
        update=_live_changed,
    )
    bpy.types.NODE_MT_add.append(draw_add)
    HANDLERS.install()


def unregister() -> None:
    """Before the classes go."""
    HANDLERS.remove()
    bpy.types.NODE_MT_add.remove(draw_add)
    del bpy.types.CompositorNodeTree.faceplate_live
    del bpy.types.CompositorNodeTree.faceplate
