"""From a media reference to files on this machine.

A path in a timeline is often that of another machine. It is tried as it stands, then with its beginning exchanged
(`--relink FROM=TO`), then its name is looked for below the media roots; where several fit, the one with the most
folders in common wins, and a tie is no answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

from ..formats import FORMATS, is_movie
from ..sequence import is_pattern, split_pattern
from .folders import Folders, Numbers, pattern_name, split_number, stems

_BRACKET = re.compile(r"\[([0-9]+)-([0-9]+)\]")
_DRIVE = re.compile(r"^/?[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Found:
    """A plate on disk.

    Attributes:
        plate: what `open_plate` takes: a movie, a picture, or a pattern.
        numbers: of a sequence or picture, None for a movie.
        start: frame number at which the reference begins, None where it does not say.
    """

    plate: str
    numbers: Numbers | None
    start: int | None = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why there is no plate.

    Attributes:
        wanted: path or name that was looked for.
        reason: in words.
    """

    wanted: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reference names.

    Attributes:
        path: with "/" between folders; "" where only a name is known.
        names: what the media may be called, without number and extension, the best first.
        start: number of the first picture of a sequence, where the reference says it.
        sequence: the path is one picture of a sequence, or its pattern.
    """

    path: str
    names: tuple[str, ...] = ()
    start: int | None = None
    sequence: bool = False


def url_path(url: str) -> str:
    """The path in a file URL or plain path, with "/" between folders, drive letters kept.

    "file:///a%20b", "file://localhost/a", "file://host/share/a" (a share: "//host/share/a"), "C:\\a", "a/b".
    """
    if _DRIVE.match(url) or "://" not in url:
        return PureWindowsPath(url).as_posix() if _DRIVE.match(url) or url.startswith("\\\\") else url
    parts = urlsplit(url)
    if parts.scheme != "file":
        return url
    query = ("?" + parts.query if parts.query else "") + ("#" + parts.fragment if parts.fragment else "")
    path = unquote(parts.path + query)
    if _DRIVE.match(path):
        return path.lstrip("/")
    return path if parts.netloc in ("", "localhost") else f"//{parts.netloc}{path}"


def wanted(reference: Any, names: Sequence[str]) -> Wanted | None:
    """What a media reference names; None for titles and other things that no file holds.

    Args:
        reference: of OTIO.
        names: what else the media may be called: of the clip, the reel.
    """
    import opentimelineio as otio

    if isinstance(reference, otio.schema.GeneratorReference):
        return None
    if isinstance(reference, otio.schema.ImageSequenceReference):
        base = url_path(reference.target_url_base or "")
        name = f"{reference.name_prefix}{'#' * max(1, reference.frame_zero_padding)}{reference.name_suffix}"
        return Wanted(f"{base.rstrip('/')}/{name}" if base else name, tuple(names), reference.start_frame, True)
    url = getattr(reference, "target_url", None)
    if not url:
        return Wanted("", tuple(name for name in (*names, getattr(reference, "name", "")) if name))
    path = url_path(url)
    folder, name = os.path.split(path)
    bracket = _BRACKET.search(name)
    if bracket:
        start = int(bracket[1])
        return Wanted(os.path.join(folder, _BRACKET.sub("#" * len(bracket[1]), name)), tuple(names), start, True)
    if is_pattern(name) and not is_movie(name):
        return Wanted(path, tuple(names), None, True)
    available = reference.available_range
    parts = split_number(name) if os.path.splitext(name)[1].lower() in FORMATS else None
    if parts is not None and available is not None and available.duration.value > 1:
        # One picture stands for all: the sequence that it begins.
        pattern = parts[0] + "#" * len(parts[1]) + parts[2]
        return Wanted(os.path.join(folder, pattern), tuple(names), int(parts[1]), True)
    return Wanted(path, tuple(names))


@dataclass(slots=True)
class Linker:
    """Finds plates.

    Attributes:
        base: folder of the timeline, for relative paths.
        roots: folders below which media are looked for.
        relink: (beginning of a path, what takes its place).
        without: folder below the roots in which nothing is looked for: that of the results.
    """

    base: Path
    roots: Sequence[Path] = ()
    relink: Sequence[tuple[str, str]] = ()
    without: Path | None = None
    _folders: Folders = field(default_factory=Folders)
    _by_stem: dict[str, list[str]] | None = None

    def find(self, target: Wanted) -> Found | NotFound:
        """The plate that a reference names."""
        for path in self._spellings(target.path) if target.path else ():
            found = self._at(path, target)
            if found is not None:
                return found
        return self._search(target)

    def _spellings(self, path: str) -> list[str]:
        spelled = [path]
        for before, after in self.relink:
            if path.startswith(before):
                spelled.insert(0, after + path[len(before) :])
        return [each if os.path.isabs(each) else str(self.base / each) for each in spelled]

    def _at(self, path: str, target: Wanted) -> Found | None:
        """A plate at a place, None where nothing is."""
        folder, name = Path(os.path.dirname(path)), os.path.basename(path)
        content = self._folders[folder]
        if not target.sequence:
            if is_movie(name):
                return Found(path, None) if name in content.files else None
            return self._picture(folder, name)
        before, _, after = split_pattern(name)
        numbers = content.sequences.get((before, after))
        if numbers is None:
            return None
        return Found(str(folder / pattern_name(before, numbers, after)), numbers, target.start)

    def _picture(self, folder: Path, name: str) -> Found | None:
        content, parts = self._folders[folder], split_number(name)
        if name in content.files:
            return Found(str(folder / name), Numbers(((1, 1),), 1))
        if parts is None or (parts[0], parts[2]) not in content.sequences:
            return None
        number = int(parts[1])
        if content.sequences[parts[0], parts[2]].missing(number, number):
            return None
        return Found(str(folder / name), Numbers(((number, number),), len(parts[1])), number)

    def _search(self, target: Wanted) -> Found | NotFound:
        """By name below the roots."""
        name = os.path.basename(target.path)
        shown = target.path or (target.names[0] if target.names else "no name")
        if not self.roots:
            return NotFound(shown, "it is not there" if target.path else "the timeline names no file")
        if self._by_stem is None:
            self._by_stem = {}
            for root in self.roots:
                for place, content in self._folders.under(root, self.without):
                    for stem, plates in stems(content).items():
                        self._by_stem.setdefault(stem, []).extend(str(place / plate) for plate in plates)
        for wanted_stem, suffix in self._stems(target, name):
            fitting = list(dict.fromkeys(self._by_stem.get(wanted_stem, ())))
            if suffix:
                fitting = [plate for plate in fitting if plate.lower().endswith(suffix)]
            if not fitting:
                continue
            best = _nearest(target.path, fitting)
            if len(best) > 1:
                return NotFound(shown, f"{len(best)} files fit: {', '.join(sorted(best)[:3])}")
            return self._open(best[0], target)
        return NotFound(shown, "it is not there, nor below the media roots")

    @staticmethod
    def _stems(target: Wanted, name: str) -> list[tuple[str, str]]:
        """(stem, extension or "") to look for, the surest first."""
        found = []
        if name:
            stem, suffix = os.path.splitext(name)
            if target.sequence:
                stem = split_pattern(name)[0].rstrip("._- ")
            found.append((stem.lower(), suffix.lower()))
        for other in target.names:
            stem, suffix = os.path.splitext(_BRACKET.sub("", other))
            known = suffix.lower() in FORMATS or is_movie(other)
            found.append(((stem.rstrip("._- ") if known else other).lower(), suffix.lower() if known else ""))
        return found

    def _open(self, plate: str, target: Wanted) -> Found:
        if is_movie(plate):
            return Found(plate, None)
        folder, name = Path(os.path.dirname(plate)), os.path.basename(plate)
        if "#" not in name:
            return Found(plate, Numbers(((1, 1),), 1))
        before, _, after = split_pattern(name)
        return Found(plate, self._folders[folder].sequences[before, after], target.start)


def _nearest(path: str, plates: Sequence[str]) -> list[str]:
    """Those that share most folders, from the end, with a path."""
    parts = Path(path).parent.parts[::-1]

    def common(plate: str) -> int:
        count = 0
        for ours, theirs in zip(Path(plate).parent.parts[::-1], parts, strict=False):
            if ours.lower() != theirs.lower():
                break
            count += 1
        return count

    most = max(map(common, plates))
    return [plate for plate in plates if common(plate) == most]
