# SPDX-License-Identifier: Apache-2.0
"""Nuke itself: the open script, what is said and asked, other threads, menus.

Beside `host.py` the only file that imports `nuke`. What Nuke gives is cast to the types of `api.py` in these two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import nuke

from faceplate_client.errors import HostError

from . import colours, graph, knobs, placing
from .api import Meter, Node, Root

GROUP_FILE = Path(__file__).with_name("Faceplate.nk")


def surroundings() -> graph.Surroundings:
    """The open script."""
    root = cast(Root, nuke.root())
    return graph.Surroundings(
        root=root,
        fps=float(root["fps"].value()),
        colour=_management(root),
        views=tuple(nuke.views()),
        script_flags=nuke.WRITE_NON_DEFAULT_ONLY | nuke.TO_SCRIPT,
    )


def _management(root: Root) -> colours.Management:
    studio = os.environ.get("OCIO", "")
    ocio = str(root["colorManagement"].value()) == "OCIO"
    config = studio or str(root["OCIO_config"].value())
    if config == "custom":
        config = str(root["customOCIOConfigPath"].evaluate() or "custom")
    return colours.Management(ocio, config, bool(studio), str(root["workingSpaceLUT"].value()))


def script_file() -> Path | None:
    """The script's file, None where it was never saved: Nuke raises then, or says Root."""
    try:
        name = nuke.scriptName()
    except RuntimeError:
        return None
    return Path(name) if name and os.path.isabs(name) else None


@contextmanager
def unrecorded() -> Iterator[None]:
    """What is changed within and changed back is nothing that an artist would undo."""
    nuke.Undo.disable()
    try:
        yield
    finally:
        nuke.Undo.enable()


def has_window() -> bool:
    """Whether somebody looks: not in a terminal, nor on a farm."""
    return bool(nuke.GUI)


def say(text: str) -> None:
    """Tell the artist: a window, or a line where there is none, or none can be opened while Nuke renders."""
    if nuke.GUI:
        try:
            nuke.message(text)
        except RuntimeError:
            nuke.tprint(text)
    else:
        nuke.tprint(text)


def asked(question: str) -> bool:
    """The artist's answer; no where nobody is there."""
    return bool(nuke.GUI and nuke.ask(question))


def current_frame() -> int:
    """The frame that the viewer stands at."""
    return int(nuke.frame())


def meter(title: str) -> Meter:
    """Nuke's progress window; it goes when the object goes. For a thread of its own."""
    return cast(Meter, nuke.ProgressTask(title))


def later(call: Callable[[], Any]) -> None:
    """Have the main thread do it when it is free; returns at once. From other threads only."""
    nuke.executeInMainThread(call)


def open_script(path: Path) -> None:
    """Open a script in a terminal.

    Raises:
        HostError: Nuke cannot.
    """
    try:
        nuke.scriptOpen(str(path))
    except RuntimeError as error:
        raise HostError(
            f"Nuke cannot open {path}", found=str(error).strip(), hint="open it in Nuke and save"
        ) from error


def save_script(path: Path) -> None:
    """Save the open script, over a file of that name too.

    Raises:
        HostError: Nuke cannot.
    """
    try:
        nuke.scriptSaveAs(str(path), 1)
    except RuntimeError as error:
        raise HostError(f"Nuke cannot save {path}", found=str(error).strip(), hint="give another file") from error


def raw_arguments() -> list[str]:
    """All words of the command line: `sys.argv` lacks a frame range at its end, which Nuke takes for its own."""
    return [str(word) for word in nuke.rawArgs]


def add_group() -> str:
    """A new group behind the selected node, as one step of undo; its name.

    Raises:
        HostError: Nuke did not take the text.
    """
    nuke.Undo.begin("Faceplate")
    try:
        nuke.nodePaste(str(GROUP_FILE))
        # what it returns is None in some versions; the new nodes are the selected ones
        new = [cast(Node, node) for node in nuke.selectedNodes() if knobs.is_ours(cast(Node, node))]
        if len(new) != 1:
            raise HostError("Nuke made no Faceplate group", found=f"{len(new)} groups", hint=f"paste {GROUP_FILE}")
        placing.wire(new[0])
        return new[0].fullName()
    except RuntimeError as error:
        raise HostError("Nuke made no Faceplate group", found=str(error).strip()) from error
    finally:
        nuke.Undo.end()


def install(
    entries: Sequence[tuple[str, str, Callable[[], Any]]],
    label: Callable[[Node], str | None],
    closed: Callable[[], Any],
) -> None:
    """Menus (menu, path, call), of which "Nodes" come up with Tab; a label for groups, None from it leaves one to the
    others; and what is done before a script is closed or Nuke ends."""
    for menu, path, call in entries:
        nuke.menu(menu).addCommand(path, call)
    nuke.addAutolabel(lambda: label(cast(Node, nuke.thisNode())), nodeClass="Group")
    nuke.addOnScriptClose(closed)
