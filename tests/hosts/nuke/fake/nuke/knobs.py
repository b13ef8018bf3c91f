"""Knobs, with the ways in which Nuke's own surprise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from .document import APP, KnobData, NodeData

CONSTANT = 1


class Key:
    """One key of a curve."""

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y = x, y


class AnimationCurve:
    """Keys of one view."""

    def __init__(self, knob: Knob, view: str) -> None:
        self._knob, self._view = knob, view

    def setKey(self, frame: float, value: float) -> Key:
        APP.before_change("set key")
        keys = dict(self._knob.data.curves[self._view])
        keys[float(frame)] = float(value)
        self._knob.data.curves[self._view] = sorted(keys.items())
        return Key(frame, value)

    def keys(self) -> list[Key]:
        return [Key(*key) for key in self._knob.data.curves[self._view]]

    def removeKey(self, keys: list[Key]) -> None:
        APP.before_change("remove keys")
        gone = {key.x for key in keys}
        self._knob.data.curves[self._view] = [key for key in self._knob.data.curves[self._view] if key[0] not in gone]

    def evaluate(self, frame: float) -> float:
        return float(self._knob.at(frame, self._view))

    def changeInterpolation(self, keys: list[Key], kind: int) -> None:
        assert kind == CONSTANT


class Knob:
    """A knob of a node; the node may be gone when it is used."""

    def __init__(self, find: Callable[[], NodeData], name: str) -> None:
        self._find, self._name = find, name

    @property
    def data(self) -> KnobData:
        APP.check_thread()
        return self._find().knobs[self._name]

    def name(self) -> str:
        return self.data.name

    def value(self) -> Any:
        data = self.data
        if data.kind == "link":
            return None  # a link gives its target's value in some versions only
        if data.kind in ("int", "number"):
            return float(self._at(APP.frame, ""))
        return data.value

    def getValueAt(self, frame: float) -> float:
        return float(self._at(frame, ""))

    def at(self, frame: float, view: str) -> Any:
        """For rendering: the value in a view."""
        return self._at(frame, view)

    def _at(self, frame: float, view: str) -> Any:
        data = self.data
        if data.facts.get("expression"):
            return eval(data.facts["expression"], {"__builtins__": {}}, {"frame": frame})
        key = view if view in data.curves else ""
        if view in data.by_view and view not in data.curves:
            return data.by_view[view]
        keys = data.curves.get(key, [])
        if not keys:
            return data.value
        # true to constant keys: the last one that was reached
        reached = [value for x, value in keys if x <= frame]
        return reached[-1] if reached else keys[0][1]

    def setValue(self, value: Any, *where: Any) -> bool:
        data = self.data
        if data.kind == "pulldown" and data.facts.get("values") and value not in data.facts["values"]:
            if not isinstance(value, int):
                raise TypeError(f"{value!r} is no entry of {self._name}")
            value = data.facts["values"][value]
        APP.before_change(f"set {self._name}")
        data = self.data
        if data.kind == "box" and where:
            data.value = [*data.value[: where[0]], float(value), *data.value[where[0] + 1 :]]
        elif len(where) == 3 and where[2]:
            data.by_view[where[2]] = float(value)
        elif data.kind == "switch":
            data.value = bool(value)
        elif data.kind in ("int", "number"):
            data.value = float(value)
        else:
            data.value = value
        APP.call_back("knobChanged")
        return True

    def __getattr__(self, name: str) -> Any:
        """A text that was added to a node may be a String_Knob, which cannot evaluate; a file always can."""
        if name == "evaluate" and self.data.kind == "file":
            return self._evaluate
        raise AttributeError(f"{type(self).__name__} object has no attribute {name!r}")

    def _evaluate(self) -> str | None:
        """For the current frame, whose number takes the place of %04d and ####."""
        from .pixels import first_view, path_of

        return path_of(str(self.data.value or ""), APP.frame, first_view()) or None

    def isAnimated(self) -> bool:
        """By keys; whether an expression counts is not written down, so here it does not."""
        return any(self.data.curves.values())

    def hasExpression(self, index: int = -1) -> bool:
        return bool(self.data.facts.get("expression"))

    def setExpression(self, text: str, *where: Any) -> bool:
        APP.before_change("set expression")
        self.data.facts = {**self.data.facts, "expression": text}
        return True

    def fromScript(self, text: str) -> None:
        from .script import set_from_text

        APP.before_change(f"set {self._name}")
        self.data.curves.clear()
        set_from_text(self._find(), f"{self._name} {text}")

    def setAnimated(self, *where: Any) -> bool:
        APP.before_change("animate")
        now = self._at(APP.frame, _view(where))
        self.data.curves.setdefault(_view(where), [(float(APP.frame), float(now))])
        return True

    def clearAnimated(self, *where: Any) -> bool:
        APP.before_change("clear animation")
        if where:
            self.data.curves.pop(_view(where), None)
        else:
            self.data.curves.clear()
        return True

    def animation(self, index: int, view: str = "") -> AnimationCurve | None:
        return AnimationCurve(self, view) if view in self.data.curves else None

    def splitView(self, view: str) -> None:
        APP.before_change("split view")
        self.data.by_view.setdefault(view, self.data.value)

    def unsplitView(self, view: str) -> None:
        APP.before_change("unsplit view")
        self.data.by_view.pop(view, None)
        self.data.curves.pop(view, None)

    def toScript(self) -> str:
        from .script import written

        return written(self.data)

    def values(self) -> list[str]:
        return list(self.data.facts.get("values") or APP.colour_spaces)

    def execute(self) -> None:
        APP.check_edit()
        data = self.data
        data.facts["pressed"] = data.facts.get("pressed", 0) + 1

    def fromUserText(self, text: str) -> None:
        """The name, and behind it the range, which goes into first and last."""
        APP.before_change("set file")
        match = re.fullmatch(r"(.*) (\d+)-(\d+)", text)  # of negative numbers nothing is written down
        node = self._find()
        node.knobs["file"].value = match[1] if match else text
        if match and "first" in node.knobs:
            for name, number in (
                ("first", match[2]),
                ("last", match[3]),
                ("origfirst", match[2]),
                ("origlast", match[3]),
            ):
                node.knobs[name].value = float(number)


def _view(where: tuple[Any, ...]) -> str:
    return str(where[1]) if len(where) > 1 else ""


TYPES = {
    1: "text",
    2: "file",
    3: "int",
    4: "pulldown",
    6: "switch",
    7: "number",
    20: "tab",
    22: "button",
    26: "label",
    41: "link",
}
_NONE: dict[str, Any] = {"text": "", "file": "", "int": 0.0, "number": 0.0, "switch": False}


def user_knob(words: list[str]) -> KnobData:
    """From the words of `addUserKnob {...}`; an unknown word is a mistake in the text."""
    kind, name = TYPES[int(words[0])], words[1]
    facts: dict[str, Any] = {"flags": []}
    rest = words[2:]
    while rest:
        word = rest.pop(0)
        if word in ("l", "t", "T", "M"):
            facts[{"l": "label", "t": "tooltip", "T": "code", "M": "values"}[word]] = rest.pop(0)
        elif word == "R":
            facts["range"] = (float(rest.pop(0)), float(rest.pop(0)))
        elif word[0] in "+-" and word[1:] in ("STARTLINE", "INVISIBLE"):
            facts["flags"].append(word)
        else:
            raise RuntimeError(f"addUserKnob {name}: {word!r} is nothing that Nuke knows")
    if "values" in facts:
        facts["raw_values"] = facts["values"]
        from .script import words_of

        facts["values"] = [one for one in words_of(facts["values"]) if one]
    default = facts["values"][0] if kind == "pulldown" else _NONE.get(kind)
    return KnobData(name, kind, default, default, facts=facts, is_user=True)


def numbers(text: str) -> float:
    """A number as a script has it."""
    return {"true": 1.0, "false": 0.0}.get(text, math.nan) if text in ("true", "false") else float(text)
