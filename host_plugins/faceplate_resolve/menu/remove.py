"""Workspace > Scripts > Faceplate Remove: take results out. Resolve sets no `__file__` here."""

import os
import sys

HOME = os.path.expanduser("~")
FOLDERS = (
    os.environ.get("FACEPLATE_RESOLVE", ""),
    os.path.join(os.environ.get("APPDATA", ""), "Blackmagic Design/DaVinci Resolve/Support/Fusion/Faceplate"),
    os.path.join(HOME, "Library/Application Support/Blackmagic Design/DaVinci Resolve/Fusion/Faceplate"),
    os.path.join(HOME, ".local/share/DaVinciResolve/Fusion/Faceplate"),
    os.path.join(os.environ.get("PROGRAMDATA", ""), "Blackmagic Design/DaVinci Resolve/Fusion/Faceplate"),
    "/Library/Application Support/Blackmagic Design/DaVinci Resolve/Fusion/Faceplate",
    "/opt/resolve/Fusion/Faceplate",
)
FOUND = next((path for path in FOLDERS if path and os.path.isdir(os.path.join(path, "faceplate_resolve"))), None)
if FOUND is None:
    print("Faceplate is not installed for this user: run `faceplate install resolve`, or set FACEPLATE_RESOLVE")
else:
    sys.path.insert(0, FOUND)
    from faceplate_resolve.commands import menu

    menu("remove", globals().get("resolve"), globals().get("fusion"), globals().get("bmd"))
