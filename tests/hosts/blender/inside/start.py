"""Run one function inside bpy and say how it ended: python start.py REQUEST.json

The request names module, function and arguments; the answer goes into a file beside it, since Blender itself prints on
standard output. The process ends by `os._exit`: Blender 4.2 and 4.5 do not survive a normal end with handlers left.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

MODULE = "bl_ext.user_default.faceplate"


def main() -> int:
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.path[:0] = [str(Path(__file__).parent), *request["paths"]]
    # what a newer Blender says about words of older ones is an error in words that are ours
    warnings.simplefilter("error", DeprecationWarning)
    faulthandler.enable()
    import bpy

    answer = {"error": None, "value": None}
    try:
        if request["enable"]:
            assert bpy.ops.preferences.addon_enable(module=MODULE) == {"FINISHED"}
        function = getattr(importlib.import_module(request["module"]), request["function"])
        answer["value"] = function(**request["arguments"])
    except BaseException:
        answer["error"] = traceback.format_exc()
    Path(sys.argv[1]).with_suffix(".answer").write_text(json.dumps(answer), "utf-8")
    for handlers in (getattr(bpy.app.handlers, name) for name in dir(bpy.app.handlers)):
        if isinstance(handlers, list):
            handlers.clear()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if answer["error"] is None else 1)


if __name__ == "__main__":
    main()
