"""A Final Cut Pro 7 XML again with other media, changed in the document itself: what else it says stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .fcp7 import parse, retime_of
from .files import Document, read_text
from .place import Result, file_url
from .times import exact_rate, timecode_text

_TICKS = 254_016_000_000
"""Premiere's ticks a second."""


def rewrite(document: Document, results: Sequence[tuple[Any, Result]]) -> tuple[str, list[tuple[Any, str]]]:
    """The document's text with results in place, and the clips that it cannot say, each with the reason."""
    root = parse(read_text(document.path), comments=True)
    items = {item.get("id"): item for item in root.iter("clipitem") if item.get("id")}
    whole = {each.get("id"): each for each in root.iter("file") if each.get("id") and len(each)}
    refused: list[tuple[Any, str]] = []
    made: dict[tuple[str, Path, tuple[int, int]], str] = {}
    for clip, result in results:
        item = items.get(clip.metadata.get("fcp_xml", {}).get("@id"))
        file = item.find("file") if item is not None else None
        definition = whole.get(file.get("id")) if file is not None else None
        if item is None or file is None or definition is None:
            refused.append((clip, "the XML has no name for it"))
            continue
        shift = result.frames[0] - result.first
        if reason := _why_not(item, shift, clip, result):
            refused.append((clip, reason))
            continue
        key = (str(file.get("id")), result.path, result.frames)
        new = made.get(key)
        if new is None:
            new = made[key] = f"{file.get('id')}-faceplate-{len(made) + 1}"
            replacement = _file(definition, new, result, shift)
        else:
            replacement = ElementTree.Element("file", {"id": new})
        place = list(item).index(file)
        item.remove(file)
        item.insert(place, replacement)
        _shift(item, shift, result.count)
        _set(item, "duration", str(result.length))
    _define_again(root, whole)
    return '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE xmeml>\n' + _text(root), refused


def _text(root: ElementTree.Element) -> str:
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _why_not(item: ElementTree.Element, shift: int, clip: Any, result: Result) -> str:
    if exact_rate(clip.trimmed_range().start_time.rate) != result.count:
        return "the XML counts it in another rate than its media"
    effect = retime_of(item)
    if effect is None or not shift:
        return ""
    if any(each.findtext("parameterid") == "graphdict" for each in effect.findall("parameter")):
        return "the graph of its retime counts from the beginning of the whole file, of which a part was rendered"
    spent = _number(item, "out") - _number(item, "in")
    shown = _number(item, "end") - _number(item, "start")
    return "its in point counts retimed frames of the whole file" if abs(spent - shown) <= 1 else ""


def _file(definition: ElementTree.Element, name: str, result: Result, shift: int) -> ElementTree.Element:
    file = copy.deepcopy(definition)
    file.set("id", name)
    first = result.path if result.is_movie else result.picture(result.frames[0])
    _set(file, "name", first.name)
    _set(file, "pathurl", file_url(first))
    _set(file, "duration", str(result.length))
    code = file.find("timecode")
    if code is not None and code.find("frame") is not None:
        begins = int(_number(code, "frame")) + shift
        _set(code, "frame", str(begins))
        drop = (code.findtext("displayformat") or "").upper() == "DF"
        _set(code, "string", timecode_text(begins / result.count, result.count, drop=drop))
    media = file.find("media")
    if media is not None and not result.is_movie:
        for sound in media.findall("audio"):
            media.remove(sound)
    return file


def _shift(item: ElementTree.Element, shift: int, count: Fraction) -> None:
    """`in` and `out` count from the first frame of the file, which is a later one now."""
    for tag, unit in (
        ("in", Fraction(1)),
        ("out", Fraction(1)),
        ("pproTicksIn", _TICKS / count),
        ("pproTicksOut", _TICKS / count),
    ):
        text = item.findtext(tag)
        if text is not None and not text.strip().startswith("-"):
            moved = Fraction(text.strip()) - shift * unit
            _set(item, tag, str(round(moved)) if moved.denominator == 1 or unit != 1 else f"{float(moved):g}")


def _define_again(root: ElementTree.Element, whole: dict[str | None, ElementTree.Element]) -> None:
    """Files whose definition went with a replaced clip are defined where they are next used."""
    seen: set[str | None] = set()
    for file in root.iter("file"):
        name = file.get("id")
        if len(file):
            seen.add(name)
        elif name in whole and name not in seen:
            file.extend(copy.deepcopy(list(whole[name])))
            seen.add(name)


def _number(element: ElementTree.Element, tag: str) -> Fraction:
    return Fraction((element.findtext(tag) or "0").strip())


def _set(element: ElementTree.Element, tag: str, text: str) -> None:
    found = element.find(tag)
    if found is None:
        found = ElementTree.SubElement(element, tag)
    found.text = text
