"""An FCPXML again with other media, changed in the document itself: what it says besides stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

from .fcp7 import parse
from .fcpx import fraction
from .files import Document, read_text
from .place import Result, file_url


def rewrite(document: Document, results: Sequence[tuple[Any, Result]]) -> tuple[str, list[tuple[Any, str]]]:
    """The document's text with results in place, and the clips that it cannot say, each with the reason."""
    root = parse(read_text(document.path), comments=True)
    elements = [each for each in root.iter() if isinstance(each.tag, str)]
    resources = root.find("resources")
    assets = {asset.get("id"): asset for asset in root.iter("asset")}
    refused: list[tuple[Any, str]] = []
    made: dict[tuple[str, Any, tuple[int, int]], str] = {}
    changed: dict[int, str] = {}
    for clip, result in results:
        number = clip.metadata.get("fcpx", {}).get("element", -1)
        element = elements[number] if 0 <= number < len(elements) else None
        asset = assets.get(element.get("ref")) if element is not None and number not in changed else None
        if not result.is_movie:
            refused.append((clip, "Final Cut Pro plays no sequences of pictures; run with --to mov"))
            continue
        if number in changed:
            if changed[number] != str((result.path, result.frames)):
                refused.append((clip, "it lies in a compound clip that is used with two parts of its media"))
            continue
        if element is None or asset is None or resources is None:
            refused.append((clip, "the FCPXML has no name for its media"))
            continue
        key = (str(asset.get("id")), result.path, result.frames)
        if key not in made:
            made[key] = _new_asset(resources, asset, result, f"{asset.get('id')}_faceplate_{len(made) + 1}")
        element.set("ref", made[key])
        changed[number] = str((result.path, result.frames))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n'
    return head + ElementTree.tostring(root, encoding="unicode") + "\n", refused


def _new_asset(resources: ElementTree.Element, asset: ElementTree.Element, result: Result, name: str) -> str:
    new = copy.deepcopy(asset)
    new.set("id", name)
    new.set("name", result.path.stem)
    new.attrib.pop("uid", None)
    if new.get("src"):
        new.set("src", file_url(result.path))
    for media in new.findall("media-rep"):
        media.set("src", file_url(result.path))
        media.attrib.pop("sig", None)
        for bookmark in media.findall("bookmark"):
            media.remove(bookmark)
    for bookmark in new.findall("bookmark"):
        new.remove(bookmark)
    begins = fraction(asset.get("start")) + (result.frames[0] - result.first) / result.count
    new.set("start", _seconds(begins))
    new.set("duration", _seconds(result.length / result.count))
    resources.insert(list(resources).index(asset) + 1, new)
    return name


def _seconds(value: Fraction) -> str:
    return f"{value.numerator}s" if value.denominator == 1 else f"{value.numerator}/{value.denominator}s"
