# SPDX-License-Identifier: GPL-3.0-or-later
"""What the buttons and menu entries do. A script calls the same operators and gets them done when they return.

`execute` runs an action to its end on this thread: for scripts, batches and tests. `invoke` starts it on a worker and
stays modal: a timer lends the worker Blender's data between redraws, Esc stops after the current frame, the status bar
counts. Operators push no undo step of their own: `BlenderHost.undo_step` makes exactly one.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import bpy
from bpy.props import BoolProperty, IntProperty, StringProperty

from faceplate_client import __version__, actions
from faceplate_client.client import Client, Timeouts
from faceplate_client.errors import ClientError, NoClips, ServerNotFound
from faceplate_client.host import Placed, Progress, Scope
from faceplate_client.outcome import Analysis, BatchOutcome, Manner
from faceplate_client.task import Session, Task, run

from . import preferences
from .compositor import group_tree
from .host import BlenderHost, scene_of
from .settings import recipe_of
from .state import NOT_RUNNING, STATE
from .words import said

TICK_S = 0.05
_PATIENCE_S = 10.0
Action = Callable[[Session], Any]


if TYPE_CHECKING:

    class _Operator:
        """What Blender gives an operator."""

        bl_idname: str

        def report(self, kind: set[str], message: str) -> None: ...

else:
    _Operator = object  # an annotation would be taken for a property


class Working(_Operator):
    """Shared by the operators that do something on the server.

    A class that uses it says what is to be done (`action`) and what is said at the end (`ended`).
    """

    bl_options = {"REGISTER"}  # noqa: RUF012 - as Blender has it

    def host(self, context: Any) -> BlenderHost:
        """What the action works on."""
        return BlenderHost(scene_of(context).name, preferences.of(context).output_root, STATE.keep_progress)

    def action(self, context: Any, host: BlenderHost) -> Action:
        """What is to be done; reads the scene now, since it runs elsewhere. ClientError where it cannot be."""
        raise NotImplementedError

    def ended(self, context: Any, value: Any) -> set[str]:
        """Say how it went; the operator's result."""
        raise NotImplementedError

    def execute(self, context: Any) -> set[str]:
        """Do it now."""
        try:
            host = self.host(context)
            action = self.action(context, host)
            value = run(host, preferences.of(context).servers(start=self.starts_server), action)
        except ClientError as error:
            return self.fail(error)
        finally:
            STATE.progress = None
        return self.ended(context, value)

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Start it, and watch over it."""
        if STATE.task is not None:
            self.report({"ERROR"}, "Faceplate is at work: wait, or stop it with Esc")
            return {"CANCELLED"}
        try:
            host = self.host(context)
            action = self.action(context, host)
            servers = preferences.of(context).servers(start=self.starts_server)
            if not servers.start:
                servers.find()  # looks at a file; nobody waits
        except ServerNotFound:
            return self.offer_server(context)
        except ClientError as error:
            return self.fail(error)
        STATE.task = Task(host, servers, action)
        STATE.task.start()
        manager = context.window_manager
        self._timer = manager.event_timer_add(TICK_S, window=context.window)
        manager.modal_handler_add(self)
        manager.progress_begin(0, 1)
        return {"RUNNING_MODAL"}

    def modal(self, context: Any, event: Any) -> set[str]:
        """Between events: lend the worker Blender's data; Esc stops it."""
        task = STATE.task
        if task is None:  # the add-on was disabled or another file opened
            self.finish(context)
            return {"CANCELLED"}
        if event.type == "ESC" and event.value == "PRESS":
            task.cancel()
            STATE.stopping = True
            self.tell(context, STATE.progress)
            return {"RUNNING_MODAL"}
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        if task.tick():
            self.tell(context, STATE.progress)
            return {"PASS_THROUGH"}
        self.finish(context)
        try:
            value = task.result()
        except ClientError as error:
            return self.fail(error)
        STATE.served()
        return self.ended(context, value)

    def cancel(self, context: Any) -> None:
        """Blender ends the operator: another file is opened, or it quits."""
        if STATE.task is not None:
            STATE.task.close()
        self.finish(context)

    def finish(self, context: Any) -> None:
        """Give back what invoke took."""
        STATE.task, STATE.progress, STATE.stopping = None, None, False
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)
        redraw(context)

    def tell(self, context: Any, progress: Progress | None) -> None:
        """How far it is, in the status bar and at the mouse."""
        if progress is None:
            return
        what = "stopping after this frame" if STATE.stopping else "Esc stops after this frame and keeps what is done"
        context.workspace.status_text_set(f"{progress.text}   ({what})")
        if progress.total:
            context.window_manager.progress_update(progress.done / progress.total)
        redraw(context)

    @property
    def starts_server(self) -> bool:
        """Whether a missing server is started without a question."""
        return bool(getattr(self, "start_server", False))

    def offer_server(self, context: Any) -> set[str]:
        """No server runs: a menu that starts one and goes on."""
        name = self.bl_idname

        def draw(menu: Any, context: Any) -> None:
            menu.layout.operator_context = "INVOKE_DEFAULT"
            menu.layout.operator(name, text="Start it and go on", icon="PLAY").start_server = True
            menu.layout.label(text="Add-on preferences: Start When Needed does so without asking")

        context.window_manager.popup_menu(draw, title="No Faceplate server is running", icon="QUESTION")
        return {"CANCELLED"}

    def fail(self, error: ClientError) -> set[str]:
        """Say what is wrong and what to do."""
        self.report({"ERROR"}, said(error))
        return {"CANCELLED"}


class ClipsWorking(Working):
    """Those that end with results of clips."""

    def ended(self, context: Any, value: BatchOutcome) -> set[str]:
        """Each clip that failed with its reason and next step, then the sum."""
        for clip in value.clips:
            for frame, why in list(clip.failed.items())[:3]:
                self.report({"WARNING"}, f"{clip.clip}, frame {frame}: {why}")
            for note in clip.notes:
                self.report({"INFO"}, f"{clip.clip}: {note}")
        errors = [f"{clip.clip}: {said(clip.error)}" for clip in value.clips if clip.error is not None]
        if errors:
            self.report({"ERROR"}, "\n".join(errors))
        elif value.exit_code == 130:
            self.report({"WARNING"}, f"{value.text}. What is done is kept: apply again to go on")
        elif value.exit_code:
            self.report({"WARNING"}, f"{value.text}; they show a slate. Refresh does them again")
        else:
            self.report({"INFO"}, value.text)
        return {"FINISHED"} if any(clip.placed is not None for clip in value.clips) else {"CANCELLED"}


class FACEPLATE_OT_apply(ClipsWorking, bpy.types.Operator):
    """Replace the face in the selected strips: results come as EXR strips above, the sources are muted"""

    bl_idname = "faceplate.apply"
    bl_label = "Apply to Selected Strips"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]
    marked: BoolProperty(  # type: ignore[valid-type]
        name="Marked Strips", description="All strips that are marked, not the selected ones", options={"SKIP_SAVE"}
    )

    def action(self, context: Any, host: BlenderHost) -> Action:
        """`actions.apply` with the scene's settings."""
        clips = host.clips(Scope.MARKED if self.marked else Scope.SELECTED)
        if not clips:
            raise NoClips("no strip is marked" if self.marked else "no movie or image strip is selected")
        recipe = recipe_of(scene_of(context).faceplate, host.keyed_settings())
        manner = Manner(place_partial=preferences.of(context).place_partial)
        return lambda session: actions.apply(session, clips, recipe, manner)


class FACEPLATE_OT_refresh(ClipsWorking, bpy.types.Operator):
    """Do again what has changed of results: plate, trim, identity, corrected tracks, failed frames; nothing else"""

    bl_idname = "faceplate.refresh"
    bl_label = "Refresh Results"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]
    use_settings: BoolProperty(  # type: ignore[valid-type]
        name="With These Settings",
        description="Use the panel's settings from now on, not those that the result was made with",
        options={"SKIP_SAVE"},
    )

    def action(self, context: Any, host: BlenderHost) -> Action:
        """`actions.refresh` of the chosen results."""
        results = chosen(host)
        recipe = recipe_of(scene_of(context).faceplate, host.keyed_settings()) if self.use_settings else None
        manner = Manner(place_partial=preferences.of(context).place_partial)
        return lambda session: actions.refresh(session, results, recipe, manner)


class FindingFaces(Working):
    """Those that end with faces to choose from."""

    _where: tuple[str, str]

    def ended(self, context: Any, value: Analysis) -> set[str]:
        """Keep the faces for the panel."""
        if value.cancelled:
            self.report({"WARNING"}, "Faceplate: stopped; find faces again to go on")
            return {"CANCELLED"}
        STATE.keep_faces(*self._where, value)
        for note in value.notes:
            self.report({"INFO"}, note)
        if not value.tracks:
            self.report({"WARNING"}, "Faceplate: no face was found; the plate would stay as it is")
        else:
            number = len(value.tracks)
            self.report({"INFO"}, f"Faceplate: {number} face{'s' * (number != 1)}")
        return {"FINISHED"}


class FACEPLATE_OT_find_faces(FindingFaces, bpy.types.Operator):
    """Find and follow the faces of the active strip, to choose one by its picture"""

    bl_idname = "faceplate.find_faces"
    bl_label = "Find Faces"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]

    def action(self, context: Any, host: BlenderHost) -> Action:
        """`actions.analyse` of the active strip."""
        clip = host.active_clip()
        if clip is None:
            raise NoClips("no movie or image strip is active")
        self._where = (host.scene_name, clip.id)
        handles = scene_of(context).faceplate.handles
        return lambda session: actions.analyse(session, clip, handles=handles)


class FACEPLATE_OT_check(Working, bpy.types.Operator):
    """Ask the server whether it is there, which version it is, and what it works on"""

    bl_idname = "faceplate.check"
    bl_label = "Check"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]

    def action(self, context: Any, host: BlenderHost) -> Action:
        """Connect, and ask for its state."""
        name = host.about().name
        STATE.server = NOT_RUNNING

        def ask(session: Session) -> str:
            # a machine that renders answers late, and nobody waits for this but a worker
            with Client(session.servers.find, name, Timeouts(connect_s=_PATIENCE_S, request_s=_PATIENCE_S)) as client:
                status, pong = client.status(), client.ping()
                version = client.welcome.server_version
            devices = ", ".join(one.name for one in status.devices)
            text = f"{'ready' if pong.ready else 'starting'}, {version}" + (f" on {devices}" if devices else "")
            return text if version == __version__ else f"{text}; this add-on is {__version__}: update both"

        return ask

    def ended(self, context: Any, value: str) -> set[str]:
        """Show it beside the button."""
        STATE.server = value
        self.report({"INFO"}, f"Faceplate server: {value}")
        return {"FINISHED"}


class FACEPLATE_OT_remove(bpy.types.Operator):
    """Take results out and restore their sources exactly; files stay on disk"""

    bl_idname = "faceplate.remove"
    bl_label = "Remove Results"
    bl_options = {"REGISTER"}  # noqa: RUF012

    def execute(self, context: Any) -> set[str]:
        """No server is needed."""
        host = BlenderHost(scene_of(context).name)
        try:
            results = chosen(host)
            with host.undo_step("Faceplate: Remove"):
                for result in results:
                    host.remove(result)
        except ClientError as error:
            self.report({"ERROR"}, said(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Faceplate: {len(results)} removed; the files stay in {results[0].pattern}")
        return {"FINISHED"}


class FACEPLATE_OT_choose_face(bpy.types.Operator):
    """Put the identity on this face"""

    bl_idname = "faceplate.choose_face"
    bl_label = "Choose Face"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012

    track: IntProperty(min=0)  # type: ignore[valid-type]
    group: StringProperty()  # type: ignore[valid-type]

    def execute(self, context: Any) -> set[str]:
        """Into the settings of the scene, or of a group of the compositor."""
        settings = (group_tree(self.group) if self.group else scene_of(context)).faceplate
        settings.track, settings.track_number = "NUMBER", self.track
        return {"FINISHED"}


class FACEPLATE_OT_mark(bpy.types.Operator):
    """Mark the selected strips for batches, or take the mark away where all have it"""

    bl_idname = "faceplate.mark"
    bl_label = "Mark for Batch"
    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012

    def execute(self, context: Any) -> set[str]:
        """On the strips."""
        host = BlenderHost(scene_of(context).name)
        try:
            number, marked = host.mark_selected()
        except ClientError as error:
            self.report({"ERROR"}, said(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Faceplate: {number} strips {'marked' if marked else 'not marked any more'}")
        return {"FINISHED"}


CLASSES = (
    FACEPLATE_OT_apply,
    FACEPLATE_OT_refresh,
    FACEPLATE_OT_find_faces,
    FACEPLATE_OT_check,
    FACEPLATE_OT_remove,
    FACEPLATE_OT_choose_face,
    FACEPLATE_OT_mark,
)


def chosen(host: BlenderHost) -> tuple[Placed, ...]:
    """Results that are selected, or whose source is.

    Raises:
        NoClips: none is.
    """
    selected = host.selected_ids()
    found = tuple(one for one in host.results() if one.id in selected or one.clip_id in selected)
    if not found:
        raise NoClips("no result is selected", hint="select a result of Faceplate, or the strip below it")
    return found


def redraw(context: Any) -> None:
    """Let the panels show where the action is."""
    for area in _areas(context):
        area.tag_redraw()


def _areas(context: Any) -> Iterable[Any]:
    return context.screen.areas if context.screen is not None else ()
