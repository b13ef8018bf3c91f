"""Resolve's UIManager and its dispatcher, made up: windows of named elements whose buttons a test presses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Element:
    """A label, field, box or button."""

    def __init__(self, kind: str, attributes: dict[str, Any], children: list[Element] | None = None) -> None:
        self.kind = kind
        self.ID = attributes.get("ID", "")
        self.Text = attributes.get("Text", "")
        self.Checked = attributes.get("Checked", False)
        self.children = children or []

    def walk(self) -> list[Element]:
        return [self, *(one for child in self.children for one in child.walk())]


class UIManager:
    """Makes elements."""

    def __getattr__(self, kind: str) -> Callable[..., Element]:
        def make(first: Any = None, children: Any = None) -> Element:
            attributes, inside = (first, children) if isinstance(first, dict) else ({}, first)
            return Element(kind, attributes, inside)

        return make


class _Handlers:
    def __init__(self) -> None:
        self.Clicked: Any = None
        self.Close: Any = None


class _On:
    def __getattr__(self, name: str) -> _Handlers:
        made = _Handlers()
        setattr(self, name, made)
        return made


class Window:
    """A window."""

    def __init__(self, attributes: dict[str, Any], children: list[Element]) -> None:
        self.ID = attributes["ID"]
        self.title = attributes["WindowTitle"]
        self.items = {one.ID: one for child in children for one in child.walk() if one.ID}
        self.On = _On()
        self.shown = False

    def GetItems(self) -> dict[str, Element]:
        return self.items

    def Show(self) -> None:
        self.shown = True

    def Hide(self) -> None:
        self.shown = False


class Dispatcher:
    """Runs windows: `act` is what the artist does in each of them.

    Args:
        act: given a window, returns the ID of the button that is pressed; "" closes the window.
        steps: given a progress window, returns whether Cancel is pressed in this step.
    """

    def __init__(self, act: Callable[[Window], str], steps: Callable[[Window], bool] = lambda window: False) -> None:
        self._act = act
        self._steps = steps
        self.windows: list[Window] = []
        self.left = 0
        self.StepLoop: Any = self._step

    def AddWindow(self, attributes: dict[str, Any], children: list[Element]) -> Window:
        self.windows.append(Window(attributes, children))
        return self.windows[-1]

    def RunLoop(self) -> None:
        before = self.left
        window = self.windows[-1]
        assert window.shown
        for _ in range(10):
            pressed = self._act(window)
            if pressed:
                getattr(window.On, pressed).Clicked({"who": pressed})
            else:
                getattr(window.On, window.ID).Close({})
            if self.left > before:
                return
        raise AssertionError("no button ended the window")

    def ExitLoop(self) -> None:
        self.left += 1

    def _step(self) -> None:
        for window in self.windows:
            if window.ID == "FaceplateProgress" and window.shown and self._steps(window):
                window.On.No.Clicked({})


class Bmd:
    """The module `bmd` of a script."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def UIDispatcher(self, ui: Any) -> Dispatcher:
        return self._dispatcher
