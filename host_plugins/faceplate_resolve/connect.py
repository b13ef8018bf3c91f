"""From outside: Resolve's library, the running application, and one that is started for a batch.

The library is loaded from where Resolve installs it, or from $RESOLVE_SCRIPT_LIB, as the vendor's own module does; so
PYTHONPATH need not be set. Only Studio lets programs in, and only where its preferences say so.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

from faceplate_client.errors import CannotDo, HostError

from . import api
from .calls import asked, maybe

LIBRARIES = {
    "linux": ("/opt/resolve/libs/Fusion/fusionscript.so", "/home/resolve/libs/Fusion/fusionscript.so"),
    "darwin": (
        "/Applications/DaVinci Resolve/DaVinci Resolve.app/Contents/Libraries/Fusion/fusionscript.so",
        "/Applications/DaVinci Resolve Studio.app/Contents/Libraries/Fusion/fusionscript.so",
    ),
    "win32": (r"C:\Program Files\Blackmagic Design\DaVinci Resolve\fusionscript.dll",),
}
PROGRAMS = {
    "linux": "/opt/resolve/bin/resolve",
    "darwin": "/Applications/DaVinci Resolve/DaVinci Resolve.app/Contents/MacOS/Resolve",
    "win32": r"C:\Program Files\Blackmagic Design\DaVinci Resolve\Resolve.exe",
}
_NAME = "fusionscript"
POLL_S = 1.0
"""Seconds between two questions whether Resolve answers."""


def system_of(platform: str) -> str:
    """`sys.platform` as the tables here have it."""
    return platform if platform in ("win32", "darwin") else "linux"


def library(
    platform: str = sys.platform,
    environment: Mapping[str, str] = os.environ,
    exists: Callable[[str], bool] = os.path.isfile,
) -> str:
    """Path of Resolve's scripting library.

    Args:
        platform: as `sys.platform`.
        environment: variables.
        exists: whether a file is there.

    Raises:
        CannotDo: it is not there.
    """
    said = environment.get("RESOLVE_SCRIPT_LIB")
    candidates = (said,) if said else LIBRARIES[system_of(platform)]
    for path in candidates:
        if exists(path):
            return path
    raise CannotDo(
        "Resolve's scripting library is not there",
        expected=" or ".join(candidates),
        hint="install DaVinci Resolve Studio on this machine, or name the library in RESOLVE_SCRIPT_LIB",
    )


def load(path: str) -> Any:
    """Load the library.

    Raises:
        CannotDo: this Python cannot.
    """
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    folder = str(PureWindowsPath(path).parent if os.name == "nt" else PurePosixPath(path).parent)
    try:
        if hasattr(os, "add_dll_directory"):
            os.add_dll_directory(folder)
        loader = importlib.machinery.ExtensionFileLoader(_NAME, path)
        spec = importlib.util.spec_from_loader(_NAME, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except (ImportError, OSError) as error:
        raise CannotDo(
            f"this Python cannot load {path}",
            found=str(error),
            hint="use a 64-bit Python of the version that this Resolve supports (3.9 to 3.12 before 21.1)",
        ) from error
    sys.modules[_NAME] = module
    return module


def running(module: Any) -> api.Application | None:
    """The application that runs, None where none answers."""
    return cast("api.Application | None", maybe(module.scriptapp, "Resolve"))


def connect(module: Any) -> api.Application:
    """The running application.

    Raises:
        CannotDo: none answers.
    """
    application = running(module)
    if application is None:
        raise CannotDo(
            "no Resolve answers",
            hint="start DaVinci Resolve Studio; in its Preferences > System > General set External scripting using: "
            "Local. The free edition lets no program in",
        )
    return application


def start(
    module: Any, program: str = "", *, window: bool = False, wait_s: float = 240.0
) -> tuple[api.Application, subprocess.Popen[bytes]]:
    """Start Resolve, without its window, and wait until it can be worked with.

    Args:
        module: see `load`.
        program: of Resolve; "" for where it installs itself.
        window: with its window.
        wait_s: seconds that it may take.

    Returns:
        The application, and its process.

    Raises:
        CannotDo: it is not there, or does not come up.
        HostError: it came up without its project database, where nothing works.
    """
    path = program or PROGRAMS[system_of(sys.platform)]
    if not Path(path).is_file():
        raise CannotDo(f"there is no program {path}", hint="give Resolve's program as --resolve")
    words = [path] if window else [path, "-nogui"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise CannotDo(f"{path} ended at once", found=f"exit code {process.returncode}")
        application = running(module)
        version = None if application is None else maybe(application.GetVersionString)
        manager = None if application is None else maybe(application.GetProjectManager)
        if application is not None and manager is not None and version:
            if maybe(manager.GetCurrentDatabase) is None:
                process.terminate()
                raise HostError(
                    "Resolve came up without its project database", hint="end it, start it with its window once"
                )
            return application, process
        time.sleep(POLL_S)
    process.terminate()
    raise CannotDo("Resolve does not come up", found=f"no answer in {wait_s:g} s", hint="start it with its window")


def open_project(application: api.Application, name: str) -> None:
    """Open a project by name; one that is open with changes stays open.

    Raises:
        HostError: it does not open.
    """
    manager = asked("Resolve.GetProjectManager", name, application.GetProjectManager)
    project = maybe(manager.GetCurrentProject)
    if project is not None and project.GetName() == name:
        return
    if maybe(manager.LoadProject, name) is None:
        raise HostError(
            f"Resolve does not open project {name!r}",
            found="another project with changes may be open, or it lies in another folder of the database",
            hint="open it in Resolve, then run this again without --project",
        )
