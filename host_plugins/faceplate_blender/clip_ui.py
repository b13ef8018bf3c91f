# SPDX-License-Identifier: GPL-3.0-or-later
"""Faceplate in the Clip Editor: faces become tracks, and tracks that an artist moved correct the faces.

The faces are those of the strips and compositor groups that read the same files, so that a corrected track is what
their next refresh uses.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty

from faceplate_client import actions, tracks
from faceplate_client.errors import ClientError, NoClips
from faceplate_client.host import Clip
from faceplate_client.outcome import Analysis
from faceplate_client.result_folder import faces_file

from . import clip_tracks, preferences
from .compositor import CompositorHost
from .host import BlenderHost, only_movie_clip, scene_names
from .operators import Action, Working
from .panels import CATEGORY, draw_track, draw_work, invoking
from .state import STATE
from .words import said

User = tuple[BlenderHost, Clip]


def users_of(context: Any, source: clip_tracks.Source) -> list[User]:
    """The strips and groups of all scenes whose files a movie clip shows."""
    found: list[User] = []
    folder = preferences.of(context).output_root
    for scene in scene_names():
        for kind in (BlenderHost, CompositorHost):
            host = kind(scene, folder, STATE.keep_progress)
            found += [(host, clip) for clip in host.readable() if clip.source and _same(clip.source, source.path)]
    return found


def sidecar_of(user: User) -> Path:
    """Where a user's faces are, or will be."""
    host, clip = user
    project = host.project()
    return faces_file(project.folder, project.name, clip, baked=False)


class _WithClip:
    """Of operators: the movie clip of the editor, or for a script the only one."""

    @classmethod
    def poll(cls, context: Any) -> bool:
        """With a clip."""
        return clip_of(context) is not None

    def source(self, context: Any) -> clip_tracks.Source:
        """What the clip reads."""
        clip = clip_of(context)
        return clip_tracks.source_of(clip, os.path.normpath(bpy.path.abspath(clip.filepath, library=clip.library)))

    def users(self, context: Any) -> list[User]:
        """Whose faces these are.

        Raises:
            NoClips: nobody's.
        """
        found = users_of(context, self.source(context))
        if not found:
            raise NoClips(
                f"no strip or Faceplate group reads the files of {clip_of(context).name}",
                hint="add the plate to the timeline, or wire it into a Faceplate group",
            )
        return found


class FACEPLATE_OT_import_tracks(_WithClip, Working, bpy.types.Operator):
    """Make tracks of the faces in this clip, finding them first where that was not done; moves existing ones back"""

    bl_idname = "faceplate.import_tracks"
    bl_label = "Faces to Tracks"

    start_server: BoolProperty(options={"SKIP_SAVE"})  # type: ignore[valid-type]

    def host(self, context: Any) -> BlenderHost:
        """That of the first user."""
        return self.users(context)[0][0]

    def action(self, context: Any, host: BlenderHost) -> Action:
        """`actions.analyse`, which does nothing where all is known."""
        clip = self.users(context)[0][1]
        return lambda session: actions.analyse(session, clip)

    def ended(self, context: Any, value: Analysis) -> set[str]:
        """Into the clip."""
        if value.cancelled:
            self.report({"WARNING"}, "Faceplate: stopped; call again to go on")
            return {"CANCELLED"}
        clip, settings = clip_of(context), context.scene.faceplate
        wanted = settings.track_number if settings.track == "NUMBER" else None
        try:
            faces, source = tracks.read(value.sidecar), self.source(context)
            with self.host(context).undo_step("Faceplate: Faces to Tracks"):
                names = clip_tracks.put_in(clip, source, faces, wanted)
        except ClientError as error:
            return self.fail(error)
        self.report({"INFO"}, f"Faceplate: {len(names)} tracks")
        return {"FINISHED"}


class FACEPLATE_OT_correct_faces(_WithClip, bpy.types.Operator):
    """Let the faces follow the tracks that were moved; the next refresh of their results uses them"""

    bl_idname = "faceplate.correct_faces"
    bl_label = "Tracks to Faces"

    def execute(self, context: Any) -> set[str]:
        """No server is needed."""
        frames = 0
        try:
            source = self.source(context)
            for user in self.users(context):
                sidecar = sidecar_of(user)
                if not sidecar.is_file():
                    continue
                changed = clip_tracks.corrections(clip_of(context), source, tracks.read(sidecar))
                for face, places in changed.items():
                    tracks.correct(sidecar, face, places)
                frames += sum(len(places) for places in changed.values())
        except ClientError as error:
            self.report({"ERROR"}, said(error))
            return {"CANCELLED"}
        if not frames:
            self.report({"INFO"}, "Faceplate: no track was moved")
            return {"CANCELLED"}
        number = f"{frames} frame{'s' * (frames != 1)}"
        self.report({"INFO"}, f"Faceplate: {number} corrected; refresh their results")
        return {"FINISHED"}


class FACEPLATE_PT_clip(bpy.types.Panel):
    """Faces and tracks."""

    bl_label = "Faceplate"
    bl_space_type = "CLIP_EDITOR"
    bl_region_type = "UI"
    bl_category = CATEGORY

    @classmethod
    def poll(cls, context: Any) -> bool:
        """With a clip."""
        return clip_of(context) is not None

    def draw(self, context: Any) -> None:
        """There and back."""
        layout = self.layout
        draw_track(layout, context.scene.faceplate)
        invoking(layout).operator("faceplate.import_tracks", icon="IMPORT")
        layout.operator("faceplate.correct_faces", icon="EXPORT")
        draw_work(layout)


CLASSES = (FACEPLATE_OT_import_tracks, FACEPLATE_OT_correct_faces, FACEPLATE_PT_clip)


def clip_of(context: Any) -> Any:
    """The movie clip that the editor shows; without a Clip Editor, for scripts, the file's only one."""
    space = context.space_data
    if space is not None and space.type == "CLIP_EDITOR":
        return space.clip
    return only_movie_clip()


def _same(one: str, other: str) -> bool:
    return os.path.normcase(os.path.normpath(one)) == os.path.normcase(os.path.normpath(other))
