"""`nuke -t SCRIPT.py WORDS...` and `nuke -x SCRIPT.nk FIRST-LAST` with the stand-in; Python 3.9, standard library.


As Nuke does it: the folders of NUKE_PATH go on the path and their init.py runs; `sys.argv` loses a frame range at its
end, `nuke.rawArgs` keeps it; the script runs as __main__ without __file__; -x renders every Write that is switched on.
"""

from __future__ import annotations

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import nuke


def plug_ins() -> None:
    for folder in filter(None, os.environ.get("NUKE_PATH", "").split(os.pathsep)):
        sys.path.append(folder)
        start = os.path.join(folder, "init.py")
        with open(start, encoding="utf-8") as file:
            exec(compile(file.read(), start, "exec"), {"__file__": start, "__name__": "init"})


def renders(path: str, first: int, last: int) -> None:
    nuke.scriptOpen(path)
    waiting = nuke.allNodes()
    while waiting:
        node = waiting.pop(0)
        waiting += node.nodes()
        if node.Class() == "Write" and not node["disable"].value():
            nuke.execute(node, first, last)


def main() -> None:
    mode, script, *words = sys.argv[1:]
    nuke.reset(gui=False)
    nuke.rawArgs[:] = ["nuke", mode, script, *words]
    plug_ins()
    if mode == "-x":
        first, _, last = words[0].partition("-")
        renders(script, int(first), int(last or first))
        return
    kept = words[:-1] if words and re.fullmatch(r"-?\d+(--?\d+)?", words[-1]) else words
    sys.argv = [script, *kept]
    with open(script, encoding="utf-8") as file:
        code = compile(file.read(), script, "exec")
    exec(code, {"__name__": "__main__"})


main()
