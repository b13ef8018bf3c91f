"""The extension through Blender's own code: installed, used, disabled, removed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import addon_utils
import bpy

MODULE = "bl_ext.user_default.faceplate"


def _handlers() -> dict[str, int]:
    found = {name: getattr(bpy.app.handlers, name) for name in dir(bpy.app.handlers)}
    return {name: len(value) for name, value in found.items() if isinstance(value, list)}


def _classes() -> set[str]:
    return {name for name in dir(bpy.types) if "faceplate" in name.lower()}


def _properties() -> dict[str, list[str]]:
    kinds = ("Scene", "WindowManager", "Object", "NodeTree", "MovieClip", "Image")
    return {kind: sorted(p.identifier for p in getattr(bpy.types, kind).bl_rna.properties) for kind in kinds}


def _files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if "faceplate" in str(path))


def life(archive: str, folder: str) -> Any:
    """From the zip to nothing."""
    before = (_handlers(), _classes(), _properties())
    modules = {name for name in sys.modules if "faceplate" in name}
    done = bpy.ops.extensions.package_install_files(
        filepath=archive,
        directory=os.path.dirname(archive) + "/",
        files=[{"name": os.path.basename(archive)}],
        repo="user_default",
        enable_on_install=True,
    )
    assert done == {"FINISHED"}
    told: dict[str, Any] = {
        "enabled": MODULE in bpy.context.preferences.addons,
        "operators": sorted(name for name in dir(bpy.ops.faceplate) if not name.startswith("_")),
        "panels": sorted(name for name in _classes() if "_PT_" in name),
        "files": len(_files(folder)),
        "error": addon_utils.check(MODULE),
    }
    for _ in range(2):  # a second time finds nothing in its way
        bpy.ops.preferences.addon_disable(module=MODULE)
        assert (_handlers(), _classes(), _properties()) == before
        bpy.ops.preferences.addon_enable(module=MODULE)
        assert MODULE in bpy.context.preferences.addons
    repo = next(i for i, r in enumerate(bpy.context.preferences.extensions.repos) if r.module == "user_default")
    assert bpy.ops.extensions.package_uninstall(repo_index=repo, pkg_id="faceplate") == {"FINISHED"}
    told["left"] = {
        "addon": MODULE in bpy.context.preferences.addons,
        "files": _files(folder),
        "handlers": [name for name, count in _handlers().items() if count != before[0][name]],
        "classes": sorted(_classes() - before[1]),
        "properties": _properties() != before[2],
        "modules": sorted({name for name in sys.modules if "faceplate" in name} - modules),
    }
    return told
