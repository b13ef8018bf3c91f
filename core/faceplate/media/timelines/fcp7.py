"""Final Cut Pro 7 XML: retimes, which OTIO's adapter leaves unread, are worked out before it reads the file.

A retimed `clipitem` has a filter "timeremap". With a graph, `in` counts frames of the retimed clip and the graph leads
to the media's frames; the adapter takes it for frames of the media. Here `in` becomes the media frame, and the speed
goes beside the effect, where `finish` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

from ...errors import InputError

SPEED, PROBLEM = "faceplate-speed", "faceplate-problem"
_STRAIGHT = Fraction(1)
"""Most frames by which the keys of one speed may lie off a straight line."""


def prepare(text: str) -> str:
    """The document with retimes worked out, as the adapter reads it.

    Raises:
        InputError: no XML.
    """
    root = parse(text)
    for track in root.iter("track"):
        items = list(track)
        for index, item in enumerate(items):
            if item.tag != "clipitem":
                continue
            _refuse_subclip(item)
            effect = retime_of(item)
            if effect is None:
                continue
            try:
                start, speed = _straight(item, effect)
            except _Unknown as reason:
                ElementTree.SubElement(effect, PROBLEM).text = str(reason)
                continue
            before = items[index - 1] if index else None
            moved = start + (speed - 1) * _head(item, before)
            _set(item, "in", f"{float(moved):.6f}")
            ElementTree.SubElement(effect, SPEED).text = str(speed)
    return ElementTree.tostring(root, encoding="unicode")


def parse(text: str, *, comments: bool = False) -> ElementTree.Element:
    """An XML document; with its comments, whose `tag` is no text, where it is to be written again.

    Raises:
        InputError: none.
    """
    builder = ElementTree.TreeBuilder(insert_comments=comments)
    try:
        return ElementTree.fromstring(text, ElementTree.XMLParser(target=builder))
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError("the timeline is no readable XML", found=str(error), hint="export it again") from error


def finish(timeline: Any) -> None:
    """Give the clips of a document that `prepare` made their time warps."""
    import opentimelineio as otio

    for item in timeline.find_children(descended_from_type=otio.core.Item):
        for index, effect in enumerate(item.effects):
            found: Mapping[str, Any] = effect.metadata.get("fcp_xml", {})
            if SPEED in found:
                speed = Fraction(found[SPEED])
                metadata = {
                    "fcp_xml": {key: value for key, value in found.items() if key != SPEED},
                    "faceplate": {"from": "start"},
                }
                item.effects[index] = otio.schema.LinearTimeWarp("Time Remap", float(speed), metadata=metadata)
            elif PROBLEM in found:
                effect.metadata["faceplate"] = {"retime": found[PROBLEM]}


def _refuse_subclip(item: ElementTree.Element) -> None:
    """Nobody says whether `in` counts from the subclip or from the file."""
    if item.findtext("subclipinfo/startoffset", "0").strip() not in ("", "0"):
        effect = ElementTree.SubElement(ElementTree.SubElement(item, "filter"), "effect")
        ElementTree.SubElement(effect, "name").text = "subclip"
        ElementTree.SubElement(effect, PROBLEM).text = "it is a subclip of a file"


class _Unknown(Exception):
    """Why the speed of a clip cannot be told."""


def retime_of(item: ElementTree.Element) -> ElementTree.Element | None:
    """The effect that retimes a clip item, None where it runs as shot."""
    for each in item.findall("filter"):
        effect = each.find("effect")
        if effect is not None and effect.findtext("effectid") == "timeremap" and each.findtext("enabled") != "FALSE":
            return effect
    return None


def _straight(item: ElementTree.Element, effect: ElementTree.Element) -> tuple[Fraction, Fraction]:
    """(media frame at `in`, media frames a frame)."""
    values = {each.findtext("parameterid"): each for each in effect.findall("parameter")}
    start, end = _number(item, "in"), _number(item, "out")
    keys = _keys(values.get("graphdict"))
    if len(keys) > 1:
        (x0, y0), (x1, y1) = keys[0], keys[-1]
        speed = (y1 - y0) / (x1 - x0)
        if any(abs(y0 + speed * (x - x0) - y) > _STRAIGHT for x, y in keys):
            raise _Unknown("its speed changes over the clip (a speed ramp)")
        return y0 + speed * (start - x0), speed
    given = values.get("speed")
    if given is None:
        raise _Unknown("its retime says no speed")
    speed = _number(given, "value") / 100
    backwards = values.get("reverse")
    if (backwards is not None and backwards.findtext("value") == "TRUE") or speed < 0:
        raise _Unknown("it plays backwards, and the XML does not say from which frame")
    shown, spent = _number(item, "end") - _number(item, "start"), end - start
    if _number(item, "end") < 0 or _number(item, "start") < 0:
        raise _Unknown("it is retimed inside a transition, without the graph that says which frames are shown")
    if abs(spent - shown * speed) <= 1:
        return start, speed  # `in` is a frame of the media
    if abs(spent - shown) <= 1:
        return start * speed, speed  # `in` is a frame of the retimed clip
    raise _Unknown(f"its in and out points do not go with a speed of {float(speed) * 100:g} %")


def _keys(graph: ElementTree.Element | None) -> list[tuple[Fraction, Fraction]]:
    found: dict[Fraction, Fraction] = {}
    for key in graph.findall("keyframe") if graph is not None else ():
        found[_number(key, "when")] = _number(key, "value")
    return sorted(found.items())


def _number(element: ElementTree.Element, tag: str) -> Fraction:
    try:
        return Fraction(element.findtext(tag, "").strip()).limit_denominator(100_000)
    except (ValueError, ZeroDivisionError) as error:
        raise _Unknown(f"{tag} of its retime is no number") from error


def _head(item: ElementTree.Element, before: ElementTree.Element | None) -> Fraction:
    """Frames of the transition at its head, which the adapter adds to `in` as they are."""
    if item.findtext("start") != "-1" or before is None or before.tag != "transitionitem":
        return Fraction(0)
    start, end = _number(before, "start"), _number(before, "end")
    alignment = before.findtext("alignment") or ""
    if alignment.startswith("end"):
        return end - start
    return Fraction(0) if alignment.startswith("start") else Fraction(int((start + end) / 2)) - start


def _set(item: ElementTree.Element, tag: str, text: str) -> None:
    element = item.find(tag)
    if element is not None:
        element.text = text
