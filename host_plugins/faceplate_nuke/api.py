# SPDX-License-Identifier: Apache-2.0
"""Nuke's nodes and knobs, as far as this plug-in uses them.

Own types, since those of types-nuke 13.2 do not serve here: `Node.__getitem__` gives the bare `Knob`, which has neither
`value` nor `setValue` with arguments; most methods of knobs are `(*args) -> Any`, so that nothing would be checked;
`Knob.animation` and `hasExpression` are known of arrays only; `Node.bbox` is an Info whose numbers are methods. What
Nuke gives is cast to these types in `application.py` and `host.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Curve(Protocol):
    """`nuke.AnimationCurve`."""

    def setKey(self, frame: float, value: float) -> Any:
        """A key; what it returns is the key."""
        ...

    def keys(self) -> Sequence[Any]:
        """The keys; each has x and y."""
        ...

    def removeKey(self, keys: Sequence[Any]) -> None:
        """Take keys away."""
        ...

    def evaluate(self, frame: float) -> float:
        """Its value at a frame."""
        ...

    def changeInterpolation(self, keys: Sequence[Any], kind: int) -> None:
        """How these keys go on to the next."""
        ...


class Knob(Protocol):
    """`nuke.Knob` and those that follow from it; not every kind has every method."""

    def value(self) -> Any:
        """Now: a number, a text, the name of a pulldown's entry. A file knob's text as it is written."""
        ...

    def setValue(self, value: Any, *where: Any) -> Any:
        """Set it."""
        ...

    def getValueAt(self, frame: float) -> Any:
        """At a frame, of numbers and switches."""
        ...

    def evaluate(self) -> str | None:
        """Of files and of some texts: with expressions resolved, and in files the current frame's number. None where
        nothing is in it."""
        ...

    def isAnimated(self) -> bool:
        """Whether it has keys; whether an expression counts is not written down."""
        ...

    def hasExpression(self) -> bool:
        """Whether it has an expression."""
        ...

    def setAnimated(self, *where: Any) -> Any:
        """Give it a curve."""
        ...

    def clearAnimated(self, *where: Any) -> Any:
        """Take its curves."""
        ...

    def animation(self, index: int, view: str = ...) -> Curve | None:
        """Its curve, None where it has none."""
        ...

    def splitView(self, view: str) -> Any:
        """Give a view its own value."""
        ...

    def unsplitView(self, view: str) -> Any:
        """Give it the others' value again."""
        ...

    def toScript(self) -> str:
        """As a script has it."""
        ...

    def fromScript(self, text: str) -> Any:
        """Set it as a script does, with its keys."""
        ...

    def values(self) -> Sequence[str]:
        """Entries of a pulldown."""
        ...

    def execute(self) -> None:
        """Press it."""
        ...

    def fromUserText(self, text: str) -> Any:
        """Of file knobs: as if an artist had typed it, with the range behind the name."""
        ...


class Format(Protocol):
    """`nuke.Format`."""

    def width(self) -> int:
        """Width of the whole raster, px."""
        ...

    def height(self) -> int:
        """Height of the whole raster, px."""
        ...

    def pixelAspect(self) -> float:
        """Width / height of a pixel."""
        ...


class FrameRange(Protocol):
    """`nuke.FrameRange`: both ends are in it."""

    def first(self) -> int:
        """First frame."""
        ...

    def last(self) -> int:
        """Last frame."""
        ...


class Node(Protocol):
    """`nuke.Node`, and a group where one is meant."""

    def Class(self) -> str:
        """Kind of node."""
        ...

    def name(self) -> str:
        """Name in its group."""
        ...

    def fullName(self) -> str:
        """With the names of the groups that it is in: "Group1.Faceplate1"."""
        ...

    def __getitem__(self, name: str) -> Knob:
        """A knob; NameError where there is none."""
        ...

    def knob(self, name: str) -> Knob | None:
        """A knob, None where there is none."""
        ...

    def knobs(self) -> Mapping[str, Knob]:
        """All of them."""
        ...

    def input(self, index: int) -> Node | None:
        """What is wired in, None where nothing is."""
        ...

    def setInput(self, index: int, node: Node | None) -> bool:
        """Wire it."""
        ...

    def inputs(self) -> int:
        """The number of inputs in use."""
        ...

    def format(self) -> Format:
        """Raster of what it gives."""
        ...

    def channels(self) -> Sequence[str]:
        """Names of the channels that it gives."""
        ...

    def frameRange(self) -> FrameRange:
        """Frames that it has."""
        ...

    def nodes(self) -> Sequence[Node]:
        """Of a group: what is in it."""
        ...

    def node(self, name: str) -> Node | None:
        """Of a group: one node in it, None where it is not there."""
        ...

    def writeKnobs(self, flags: int) -> str:
        """Its knobs as a script has them."""
        ...

    def redraw(self) -> None:
        """Draw it again."""
        ...


class Root(Node, Protocol):
    """`nuke.root()`."""

    def firstFrame(self) -> int:
        """Of the script."""
        ...

    def lastFrame(self) -> int:
        """Of the script."""
        ...


class Meter(Protocol):
    """`nuke.ProgressTask`, of which types-nuke knows no arguments."""

    def setMessage(self, text: str) -> None:
        """The line above the bar."""
        ...

    def setProgress(self, percent: int) -> None:
        """0 to 100."""
        ...

    def isCancelled(self) -> bool:
        """Whether the artist pressed Cancel."""
        ...
