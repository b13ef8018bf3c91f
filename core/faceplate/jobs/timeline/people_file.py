"""Who becomes whom over a whole timeline: one TOML file that people edit and later runs add to.

A track of a shot is a person; a person becomes an identity, or stays. What somebody wrote is never changed: the file is
edited line by line, new lines are put in, and only values that still are what the program wrote follow it when it
changes its mind. So comments, order and spelling stay.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import SettingError
from ...media.atomic import atomic_write

UNKNOWN = "?"
"""Value of a track that nobody has said anything about."""

_HEAD = """\
# Who becomes whom in {timeline}. The pictures are on the page {page} beside this file.
# What you change here stays; new shots and tracks are added by the next run of faceplate render.
#
# people: a person and the identity that takes their place, e.g. anna = "jane.fpid"; "" leaves the person as she is.
# shots:  for each track of a source the person it shows; "?" is nobody yet and stays as it is.

[people]
"""
_LINE = re.compile(r"""^(\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)(\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*')(.*)$""")
_BARE = re.compile(r"[A-Za-z0-9_-]+")

Tracks = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class People:
    """What the file says.

    Attributes:
        people: identity file by person, "" for one who stays.
        shots: person by shot and track.
    """

    people: Mapping[str, str] = field(default_factory=dict)
    shots: Tracks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the program would write.

    Attributes:
        people: as in `People`.
        shots: likewise.
        remarks: for the end of a track's line, by shot and track.
    """

    people: Mapping[str, str]
    shots: Tracks
    remarks: Tracks = field(default_factory=dict)


def read_people(path: Path) -> People:
    """Read the file; an absent one says nothing.

    Raises:
        SettingError: no TOML, or not of this form.
    """
    if not path.exists():
        return People()
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read", found=str(error), hint="check the file") from error
    return _parse(text, path)


def _parse(text: str, path: Path) -> People:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(
            f"{path} cannot be read as TOML", found=str(error), hint='a line is: 1 = "name", or name = "file.fpid"'
        ) from error
    unknown = [key for key in document if key not in ("people", "shots")]
    if unknown:
        raise SettingError(f"{path} has a part {unknown[0]!r}", expected="[people] and [shots.NAME]")
    people, shots = document.get("people", {}), document.get("shots", {})
    if not isinstance(people, dict) or not isinstance(shots, dict):
        raise SettingError(f"{path} is not of its form", expected="[people] and [shots.NAME]")
    for name, value in people.items():
        if not isinstance(value, str):
            raise SettingError(
                f"{path}: {name} has no identity", expected='a text, e.g. "jane.fpid"', found=repr(value)
            )
    found: dict[str, dict[int, str]] = {}
    for shot, tracks in shots.items():
        if not isinstance(tracks, dict):
            raise SettingError(f"{path}: the shot {shot} is no table", expected=f'[shots."{shot}"]')
        for track, value in tracks.items():
            if not track.isdecimal() or not isinstance(value, str):
                raise SettingError(
                    f"{path}: shot {shot} has a wrong line",
                    expected='a track and a person, e.g. 1 = "anna"',
                    found=f"{track} = {value!r}",
                )
            found.setdefault(shot, {})[int(track)] = value
    return People(people, found)


def identities(people: People, path: Path, shots: Sequence[str]) -> dict[str, dict[int, Path]]:
    """The identity file of each track that becomes somebody, by shot.

    Args:
        people: as read.
        path: of the file; relative identities lie beside it.
        shots: of the timeline; others in the file are ignored.

    Raises:
        SettingError: a track is a person that the file does not know.
    """
    found: dict[str, dict[int, Path]] = {}
    for shot in shots:
        for track, person in people.shots.get(shot, {}).items():
            if person in ("", UNKNOWN):
                continue
            if person not in people.people:
                near = difflib.get_close_matches(person, people.people, n=2)
                raise SettingError(
                    f"{path}: track {track} of {shot} is {person!r}, and no such person is in [people]",
                    hint=f"did you mean {' or '.join(near)}?" if near else f'add a line: {_key(person)} = "FILE.fpid"',
                )
            file = people.people[person]
            if file:
                found.setdefault(shot, {})[track] = path.parent / file
    return found


def update_people(path: Path, suggestion: Suggestion, memory: Path, *, timeline: str, page: str) -> People:
    """Bring the file up to date and say what it says then.

    Args:
        path: of the file; made where absent.
        suggestion: what the program would write.
        memory: file that keeps what it wrote last.
        timeline: name of the timeline, for a new file.
        page: name of the page with the pictures, likewise.

    Raises:
        SettingError: the file is not of its form, or written so that a line cannot be put in.
        OutputError: it cannot be written.
    """
    before = read_people(path)
    text = path.read_text("utf-8") if path.exists() else _HEAD.format(timeline=timeline, page=page)
    wrote = _remembered(memory)
    lines = text.split("\n")
    for name, file in suggestion.people.items():
        _settle(lines, ("people",), name, file, before.people.get(name), wrote.get("people", {}).get(name), "")
    for shot, tracks in suggestion.shots.items():
        remarks = suggestion.remarks.get(shot, {})
        old = {str(track): value for track, value in before.shots.get(shot, {}).items()}
        last = wrote.get("shots", {}).get(shot, {})
        for track, person in tracks.items():
            key = str(track)
            _settle(lines, ("shots", shot), key, person, old.get(key), last.get(key), remarks.get(track, ""))
    after = "\n".join(lines)
    result = _parse(after, path)
    if after != text or not path.exists():
        with atomic_write(path) as temporary:
            temporary.write_text(after, "utf-8")
    _remember(memory, suggestion, wrote)
    return result


def _settle(
    lines: list[str], table: tuple[str, ...], key: str, value: str, now: str | None, last: str | None, remark: str
) -> None:
    """One value: put in where it is new, followed where it is still what was written last, else left alone."""
    if now is None:
        if last is None:
            _insert(lines, table, key, value, remark)
        return  # somebody took the line out
    if now == last and value != now:
        _replace(lines, table, key, value)


def _replace(lines: list[str], table: tuple[str, ...], key: str, value: str) -> None:
    for index in _body(lines, table) or ():
        match = _LINE.match(lines[index])
        if match and _plain(match[2]) == key:
            lines[index] = f"{match[1]}{match[2]}{match[3]}{_quoted(value)}{match[5]}"
            return


def _insert(lines: list[str], table: tuple[str, ...], key: str, value: str, remark: str) -> None:
    body = _body(lines, table)
    line = f"{_key(key)} = {_quoted(value)}" + (f"  # {remark}" if remark else "")
    if body is None:
        while lines and not lines[-1].strip():
            lines.pop()
        lines += [
            "",
            f"[{'.'.join(part if not index else _quoted(part) for index, part in enumerate(table))}]",
            line,
            "",
        ]
        return
    at = body.stop
    while at > body.start and not lines[at - 1].strip():
        at -= 1
    lines.insert(at, line)
    if at == len(lines) - 1:
        lines.append("")


def _body(lines: Sequence[str], table: tuple[str, ...]) -> range | None:
    """Where the lines of a table are; None where it has no header of its own."""
    start: int | None = None
    for index, line in enumerate(lines):
        if not line.lstrip().startswith("["):
            continue
        if start is not None:
            return range(start, index)
        if _header(line) == table:
            start = index + 1
    return None if start is None else range(start, len(lines))


def _header(line: str) -> tuple[str, ...]:
    try:
        found: Any = tomllib.loads(line)
    except ValueError:
        return ()
    names: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        name, found = next(iter(found.items()))
        names.append(name)
    return tuple(names)


def _plain(key: str) -> str:
    return str(next(iter(tomllib.loads(f"{key} = 0")))) if key[0] in "\"'" else key


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _remembered(memory: Path) -> Mapping[str, Any]:
    """What was written last; nothing where that was lost: then every value counts as somebody's own."""
    try:
        found = json.loads(memory.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(memory: Path, suggestion: Suggestion, wrote: Mapping[str, Any]) -> None:
    shots = {**wrote.get("shots", {})}
    for shot, tracks in suggestion.shots.items():
        shots[shot] = {**shots.get(shot, {}), **{str(track): person for track, person in tracks.items()}}
    document = {"people": {**wrote.get("people", {}), **suggestion.people}, "shots": shots}
    with atomic_write(memory) as temporary:
        temporary.write_text(json.dumps(document, indent=1, sort_keys=True), "utf-8")
