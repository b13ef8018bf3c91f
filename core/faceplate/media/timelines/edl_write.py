"""An EDL again with other media. It names clips and timecode: results keep their source's timecode, so names change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .edl import Event, events
from .files import Document, read_text
from .place import Result

_FROM, _TO = "FROM CLIP NAME", "TO CLIP NAME"
_PATHS = ("FROM CLIP", "FROM FILE", "SOURCE FILE")


def rewrite(document: Document, results: Sequence[tuple[Any, Result]]) -> tuple[str, list[tuple[Any, str]]]:
    """The document's text with the results' names in it, and the clips that it cannot say, each with the reason."""
    lines = read_text(document.path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = {event.line: event for event in events(lines)}
    new: dict[int, Result] = {}
    refused: list[tuple[Any, str]] = []
    for clip, result in results:
        line = clip.metadata.get("cmx_3600", {}).get("line", -1)
        if line in found:
            new[line] = result
        else:
            refused.append((clip, "the EDL has no name for it"))
    latest: dict[str, Result | None] = {}
    changed: dict[int, list[str]] = {}
    for line, event in found.items():
        changed[line] = _comments(lines, event, latest.get(event.channel), new.get(line))
        latest[event.channel] = new.get(line)
    out: list[str] = []
    skipped = {number for event in found.values() for number in event.comments}
    for number, line in enumerate(lines):
        if number not in skipped:
            out.append(line)
        out += changed.get(number, [])
    return "\n".join(out), refused


def result_name(result: Result) -> str:
    """What an EDL calls a result: its file, or "name.[first-last].exr"."""
    if result.is_movie:
        return result.path.name
    width = result.path.name.count("#")
    first, last = (f"{number:0{width}d}" for number in result.frames)
    return result.path.name.replace("#" * width, f"[{first}-{last}]")


def _comments(lines: Sequence[str], event: Event, outgoing: Result | None, incoming: Result | None) -> list[str]:
    """An event's comments with the new names; as they were where neither of its clips is new."""
    old = [lines[number] for number in event.comments]
    if (outgoing is None and incoming is None) or (incoming is None and not event.is_transition):
        return old
    own = _TO if event.is_transition else _FROM
    given = {own: incoming} if incoming is not None else {}
    if event.is_transition and outgoing is not None:
        given[_FROM] = outgoing
    kept, told = [], set()
    for line in old:
        word = line.strip().lstrip("* ").upper()
        name = next((each for each in (_FROM, _TO) if word.startswith(each)), None)
        path = next((each for each in _PATHS if word.startswith(each + ":")), None)
        if name in given:
            kept.append(f"* {name}: {result_name(given[name])}")
            told.add(name)
        elif path is not None and name is None and not event.is_transition and incoming is not None:
            kept.append(f"* {path}: {incoming.path.parent / result_name(incoming)}")
        else:
            kept.append(line)
    return [f"* {name}: {result_name(result)}" for name, result in given.items() if name not in told] + kept
