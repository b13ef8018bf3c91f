"""Faces as tracks of a movie clip, moved by hand, and back."""

from __future__ import annotations

import glob
import os
from typing import Any

import bpy
import scenes


def there_and_back(plates: str, server: str, identity: str, out: str) -> Any:
    """Apply, import tracks, move two markers, correct, refresh: which files changed."""
    preferences = bpy.context.preferences.addons[scenes.MODULE].preferences
    preferences.server_folder, preferences.output_root = server, out
    files = scenes.files_in(plates)
    clip = bpy.data.movieclips.load(files[0])
    width, height = clip.size
    scene = scenes.fresh(width, height)
    strip = scenes.add_sequence(scene.sequence_editor, files, 2, 11, "plate")
    scene.faceplate.identity = identity
    told: dict[str, Any] = {"size": [width, height]}
    assert bpy.ops.faceplate.import_tracks() == {"FINISHED"}
    tracks = clip.tracking.objects.active.tracks
    told["tracks"] = sorted(track.name for track in tracks)
    told["markers"] = {
        track.name: [[marker.frame, *marker.co] for marker in track.markers if not marker.mute] for track in tracks
    }
    told["sidecar"] = glob.glob(os.path.join(glob.escape(out), "**", "*.faces.json"), recursive=True)
    scenes.select(strip)
    assert bpy.ops.faceplate.apply() == {"FINISHED"}

    def stamps() -> dict[str, list[int]]:
        found = sorted(glob.glob(os.path.join(glob.escape(out), "**", "v001", "*.exr"), recursive=True))
        return {os.path.basename(path): [os.stat(path).st_mtime_ns, os.stat(path).st_ino] for path in found}

    before = stamps()
    assert bpy.ops.faceplate.correct_faces() == {"CANCELLED"}  # nothing was moved
    tracks["Faceplate 1 chin"].markers.find_frame(2).co[1] -= 6 / height
    tracks["Faceplate 1 nose tip"].markers.find_frame(3).co[0] += 4 / width
    tracks["Faceplate 1 forehead"].markers.find_frame(1).mute = True
    assert bpy.ops.faceplate.correct_faces() == {"FINISHED"}
    result = next(one for one in scenes.strips(scene) if one.name != "plate")
    scenes.select(result)
    assert bpy.ops.faceplate.refresh() == {"FINISHED"}
    after = stamps()
    told["changed"] = [name for name in before if before[name] != after[name]]
    told["files"] = sorted(after)
    assert bpy.ops.faceplate.import_tracks() == {"FINISHED"}  # again: what was corrected is what there is
    told["chin"] = list(tracks["Faceplate 1 chin"].markers.find_frame(2).co)
    return told
