"""How the commands talk with the artist: a dialog and a progress window of Resolve's own, or lines in the console.

Resolve's UIManager exists in Studio; a script that runs without a window, from outside, or in a version that lacks it
uses the console. A file named `cancel` beside the settings file stops an action everywhere: the menu's Faceplate Cancel
makes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import Any, Protocol

from faceplate_client.errors import ClientError, HostError
from faceplate_client.host import Progress

from .calls import maybe
from .settings import Settings

TITLE = "Faceplate"
FACES = ("main", "all")
WIDTH, HEIGHT = 560, 330


class Window(Protocol):
    """What shows how far an action is."""

    def show(self, progress: Progress) -> None:
        """Show it."""
        ...

    def step(self) -> bool:
        """Let the window live; False where the artist wants to stop."""
        ...

    def close(self) -> None:
        """Take it away."""
        ...


class Talk(Protocol):
    """A way to talk with the artist."""

    def ask(self, settings: Settings, about: str) -> Settings | None:
        """Let the artist set what to make; None where they change their mind."""
        ...

    def confirm(self, question: str) -> bool:
        """A question with yes or no."""
        ...

    def tell(self, text: str) -> None:
        """Say something."""
        ...

    def window(self, title: str) -> Window:
        """A progress window."""
        ...


def words_of(error: ClientError) -> str:
    """An error for people."""
    return f"{error}\n{error.hint}"


class Stop:
    """The file that stops an action."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with contextlib.suppress(OSError):
            path.unlink()

    def __bool__(self) -> bool:
        return self.path.exists()


class Console:
    """Lines in the console; asks nobody but at a terminal.

    Args:
        settings: path of the settings file, which is named where it has to be written by hand.
        lines: shown one by one; None for standard output.
    """

    def __init__(self, settings: Path, lines: Any = None, *, answers: Any = None) -> None:
        self._settings = settings
        self._out = lines if lines is not None else sys.stdout
        self._in = answers if answers is not None else sys.stdin

    def ask(self, settings: Settings, about: str) -> Settings | None:
        """What the settings file says; at a terminal the identity is asked for where it says none."""
        self.tell(about)
        if not settings.identity and self._at_terminal():
            settings = dataclasses.replace(settings, identity=self._answer("Identity file (.fpid): "))
        if not settings.identity:
            self.tell(f'There is no dialog here. Write {self._settings}: {{"identity": "/path/to/someone.fpid"}}')
            return None
        return settings

    def confirm(self, question: str) -> bool:
        """Asked at a terminal, else yes: whoever starts a script without a window has nobody to ask."""
        return not self._at_terminal() or self._answer(f"{question} [y/n] ").strip().casefold().startswith("y")

    def tell(self, text: str) -> None:
        """Print it."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def window(self, title: str) -> Window:
        """A line for each step, no more than one in ten frames."""
        return _Lines(self, Stop(self._settings.with_name("cancel")))

    def _at_terminal(self) -> bool:
        return bool(maybe(self._in.isatty))

    def _answer(self, question: str) -> str:
        self._out.write(question)
        self._out.flush()
        return str(self._in.readline()).strip()


class _Lines:
    def __init__(self, console: Console, stop: Stop) -> None:
        self._console = console
        self._stop = stop
        self._told: tuple[object, ...] = ()

    def show(self, progress: Progress) -> None:
        now = (progress.step, progress.number, progress.done * 10 // max(progress.total, 1), progress.failed)
        if now != self._told:
            self._told = now
            self._console.tell(progress.text)

    def step(self) -> bool:
        return not self._stop

    def close(self) -> None:
        return


class Dialogs:
    """Resolve's own dialogs.

    Args:
        fusion: Resolve's Fusion object.
        bmd: the module that Resolve gives its scripts.
        settings: path of the settings file.

    Raises:
        HostError: this Resolve has no UIManager.
    """

    def __init__(self, fusion: Any, bmd: Any, settings: Path) -> None:
        self._fusion = fusion
        self._settings = settings
        self._ui: Any = getattr(fusion, "UIManager", None)
        make = getattr(bmd, "UIDispatcher", None)
        self._dispatcher: Any = maybe(make, self._ui) if self._ui is not None and callable(make) else None
        if self._dispatcher is None:
            raise HostError("this Resolve has no dialogs for scripts")

    def ask(self, settings: Settings, about: str) -> Settings | None:
        """The dialog; None where it was closed or cancelled."""
        window = self._dialog(settings, about)
        found = window.GetItems()

        def browse(event: Any) -> None:
            path = maybe(self._fusion.RequestFile, found["Identity"].Text)
            if path:
                found["Identity"].Text = str(path)

        window.On.Browse.Clicked = browse
        if self._wait(window, ("OK", "No")) != "OK":
            return None
        try:
            return _from_dialog(settings, found)
        except ValueError as error:
            raise HostError("a number in the dialog is none", found=str(error), hint="correct it, try again") from error

    def _dialog(self, settings: Settings, about: str) -> Any:
        ui = self._ui
        return self._dispatcher.AddWindow(
            {"ID": "Faceplate", "WindowTitle": TITLE, "Geometry": [300, 200, WIDTH, HEIGHT]},
            [
                ui.VGroup(
                    {"Spacing": 6},
                    [
                        ui.Label({"ID": "About", "Text": about, "WordWrap": True, "Weight": 0}),
                        self._row(
                            "Identity",
                            ui.LineEdit(
                                {"ID": "Identity", "Text": settings.identity, "PlaceholderText": "someone.fpid"}
                            ),
                            ui.Button({"ID": "Browse", "Text": "Browse...", "Weight": 0}),
                        ),
                        self._row("Face", ui.LineEdit({"ID": "Track", "Text": str(settings.track)})),
                        self._row(
                            "Strength, handles",
                            ui.LineEdit({"ID": "Strength", "Text": f"{settings.settings.get('strength', 1.0):g}"}),
                            ui.LineEdit({"ID": "Handles", "Text": str(settings.handles)}),
                        ),
                        self._row("Source space", ui.LineEdit({"ID": "Space", "Text": settings.input_space})),
                        self._row("Result folder", ui.LineEdit({"ID": "Folder", "Text": settings.folder})),
                        ui.CheckBox(
                            {"ID": "Above", "Text": "On the track above, not as takes", "Checked": settings.above}
                        ),
                        ui.CheckBox(
                            {"ID": "Bake", "Text": "Let Resolve render the source first", "Checked": settings.bake}
                        ),
                        ui.HGroup(
                            {"Weight": 0},
                            [ui.Button({"ID": "OK", "Text": "Apply"}), ui.Button({"ID": "No", "Text": "Cancel"})],
                        ),
                    ],
                )
            ],
        )

    def _wait(self, window: Any, buttons: tuple[str, ...]) -> str:
        """Show a window until one of its buttons is pressed; "" where it was closed."""
        answer: list[str] = []

        def end(name: str) -> Any:
            def handler(event: Any) -> None:
                answer.append(name)
                self._dispatcher.ExitLoop()

            return handler

        for name in buttons:
            getattr(window.On, name).Clicked = end(name)
        window.On.Faceplate.Close = end("")
        window.Show()
        self._dispatcher.RunLoop()
        window.Hide()
        return answer[0] if answer else ""

    def _row(self, name: str, *things: Any) -> Any:
        label = self._ui.Label({"Text": name, "MinimumSize": [130, 20], "Weight": 0})
        return self._ui.HGroup({"Weight": 0}, [label, *things])

    def confirm(self, question: str) -> bool:
        """Yes or no."""
        return self._short(question, ("OK", "Yes"), ("No", "No"))

    def tell(self, text: str) -> None:
        """A window with a text, and the same in the console."""
        sys.stdout.write(f"{text}\n")
        self._short(text, ("OK", "Close"))

    def _short(self, text: str, *buttons: tuple[str, str]) -> bool:
        ui, dispatcher = self._ui, self._dispatcher
        made = [ui.Button({"ID": name, "Text": said}) for name, said in buttons]
        label = ui.TextEdit({"ID": "Text", "Text": text, "ReadOnly": True})
        window = dispatcher.AddWindow(
            {"ID": "Faceplate", "WindowTitle": TITLE, "Geometry": [320, 260, WIDTH, 200]},
            [ui.VGroup([label, ui.HGroup({"Weight": 0}, made)])],
        )
        return self._wait(window, tuple(name for name, _ in buttons)) == "OK"

    def window(self, title: str) -> Window:
        """A window with a bar of text and Cancel; lines in the console where this version cannot step its windows."""
        stop = Stop(self._settings.with_name("cancel"))
        step = getattr(self._dispatcher, "StepLoop", None)
        if not callable(step):
            return _Lines(Console(self._settings), stop)
        return _Progress(self._ui, self._dispatcher, title, stop)


def _from_dialog(settings: Settings, found: Any) -> Settings:
    track: Any = str(found["Track"].Text).strip() or "main"
    if track not in FACES:
        track = int(track)
    values = {**settings.settings, "strength": float(str(found["Strength"].Text).strip() or 1.0)}
    if values["strength"] == 1.0:
        del values["strength"]
    return dataclasses.replace(
        settings,
        identity=str(found["Identity"].Text).strip(),
        track=track,
        settings=values,
        handles=max(0, int(str(found["Handles"].Text).strip() or 0)),
        input_space=str(found["Space"].Text).strip(),
        folder=str(found["Folder"].Text).strip(),
        above=bool(found["Above"].Checked),
        bake=bool(found["Bake"].Checked),
    )


class _Progress:
    def __init__(self, ui: Any, dispatcher: Any, title: str, stop: Stop) -> None:
        self._dispatcher = dispatcher
        self._stop = stop
        self._cancelled = False
        self._window = dispatcher.AddWindow(
            {"ID": "FaceplateProgress", "WindowTitle": title, "Geometry": [340, 280, WIDTH, 110]},
            [
                ui.VGroup(
                    [ui.Label({"ID": "Text", "Text": title}), ui.Button({"ID": "No", "Text": "Cancel", "Weight": 0})]
                )
            ],
        )
        self._items = self._window.GetItems()
        self._window.On.No.Clicked = self._cancel
        self._window.On.FaceplateProgress.Close = self._cancel
        self._window.Show()

    def _cancel(self, event: Any) -> None:
        self._cancelled = True

    def show(self, progress: Progress) -> None:
        self._items["Text"].Text = progress.text

    def step(self) -> bool:
        maybe(self._dispatcher.StepLoop)
        return not (self._cancelled or self._stop)

    def close(self) -> None:
        self._window.Hide()
