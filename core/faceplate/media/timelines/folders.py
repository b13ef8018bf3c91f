"""What lies in folders: each listed once, its files gathered into movies and sequences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..formats import FORMATS, is_movie
from ..sequence import MOST_FRAMES

_NUMBERED = re.compile(r"(.*?)(-?[0-9]+)(\.[^.]+)", re.DOTALL)
_MOST_DIGITS = 12

Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The frame numbers of a sequence on disk.

    Attributes:
        runs: (first, last) of each stretch without a hole, rising.
        width: digits, the fewest that were seen.
    """

    runs: tuple[Run, ...]
    width: int

    @property
    def first(self) -> int:
        """Lowest number."""
        return self.runs[0][0]

    @property
    def last(self) -> int:
        """Highest number."""
        return self.runs[-1][1]

    def missing(self, first: int, last: int) -> list[Run]:
        """The holes inside a range."""
        found, at = [], first
        for low, high in self.runs:
            if high < at or low > last:
                continue
            if low > at:
                found.append((at, low - 1))
            at = high + 1
        if at <= last:
            found.append((at, last))
        return found


@dataclass(slots=True)
class Folder:
    """One folder's content.

    Attributes:
        files: names of movies and of pictures without a number.
        sequences: numbers by the text before and after.
    """

    files: set[str] = field(default_factory=set)
    sequences: dict[tuple[str, str], Numbers] = field(default_factory=dict)


def runs_of(numbers: list[int]) -> tuple[Run, ...]:
    """Rising numbers as stretches."""
    found: list[Run] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def split_number(name: str) -> tuple[str, str, str] | None:
    """(before, digits, after) of "x.1001.exr"; None for a name without a number before its extension."""
    match = _NUMBERED.fullmatch(name)
    if match is None or len(match[2]) > _MOST_DIGITS:
        return None
    before, digits, after = match.groups()
    if digits.startswith("-") and before and before[-1] not in "._":
        before, digits = before + "-", digits[1:]
    return before, digits, after


def read_folder(folder: Path) -> Folder:
    """List a folder; one that cannot be listed is an empty one, and what is looked for in it is missing."""
    found, numbered = Folder(), dict[tuple[str, str], list[tuple[int, int]]]()
    try:
        names = os.listdir(folder)
    except (OSError, ValueError):  # a path with a zero byte is none
        return found
    for name in names:
        suffix = os.path.splitext(name)[1].lower()
        parts = split_number(name) if suffix in FORMATS else None
        if parts is not None and abs(int(parts[1])) < MOST_FRAMES * 100:
            numbered.setdefault((parts[0], parts[2]), []).append((int(parts[1]), len(parts[1])))
        elif suffix in FORMATS or is_movie(name):
            found.files.add(name)
    for key, members in numbered.items():
        numbers = sorted({number for number, _ in members})
        found.sequences[key] = Numbers(runs_of(numbers), min(width for _, width in members))
    return found


class Folders:
    """Folders that were looked into, and trees that are searched."""

    def __init__(self) -> None:
        self._known: dict[Path, Folder] = {}

    def __getitem__(self, folder: Path) -> Folder:
        if folder not in self._known:
            self._known[folder] = read_folder(folder)
        return self._known[folder]

    def under(self, root: Path, without: Path | None = None) -> Iterator[tuple[Path, Folder]]:
        """A folder and all below it, in a fixed order, but for one folder and what is below that."""
        for place, folders, _ in os.walk(root):
            if without is not None and os.path.realpath(place) == os.path.realpath(without):
                folders.clear()
                continue
            folders.sort()
            folder = self[Path(place)]
            if folder.files or folder.sequences:
                yield Path(place), folder


def stems(folder: Folder) -> Mapping[str, list[str]]:
    """Plates of a folder by what an editor would call them: the name without number and extension, lower case."""
    found: dict[str, list[str]] = {}
    for name in sorted(folder.files):
        found.setdefault(os.path.splitext(name)[0].lower(), []).append(name)
    for (before, after), numbers in sorted(folder.sequences.items()):
        found.setdefault(before.rstrip("._- ").lower(), []).append(pattern_name(before, numbers, after))
    return found


def pattern_name(before: str, numbers: Numbers, after: str) -> str:
    """The file name that `media.sequence` opens as this sequence."""
    return before + "#" * numbers.width + after
