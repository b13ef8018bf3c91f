"""Frame ranges and image sequences on disk.

Ranges and the listing of a folder come from fileseq. Placeholders are read here: fileseq takes digits before a
placeholder ("take2####.exr") for a frame range.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fileseq.constants import PAD_STYLE_HASH1
from fileseq.exceptions import MaxSizeException
from fileseq.filesequence import FileSequence
from fileseq.frameset import FrameSet

from ..errors import MissingFrameError, SequenceError
from .formats import FORMATS

_PLACEHOLDER = re.compile(r"(#+)|(@+)|%(?:0([0-9]+))?d|\$F([0-9]*)")
_NUMBER = re.compile(r"-?[0-9]+")
# The frame in "x.1001", "x_1001", "x-1001" and "1001"; -5 in "x.-0005"; none in "x_v002", which is a version.
_TRAILING_NUMBER = re.compile(r"(?<![0-9vV])((?:(?<![A-Za-z0-9])-)?[0-9]+)$")

# Where a name holds several, the frame is the one that stands alone: "take@2.####.exr".
_ALONE = re.compile(rf"(?<![^._-])(?:{_PLACEHOLDER.pattern})(?=[._-]|$)")
_MOST_DIGITS = 99
_LARGEST = 2**31
"""Frame numbers lie below it: headers keep them in 32 bits, and what is larger is a date or a serial number."""

MOST_FRAMES = 10_000_000
"""Longest shot and longest range: what is longer is a slip, and would fill the memory with numbers."""

_RANGE_HINT = "for example 1001-1100, 1001-1100x2 or 1001-1010,1050"


def parse_frame_range(text: str) -> tuple[int, ...]:
    """Frame numbers of a range like "1001-1100x2,1105", rising, each once.

    A step is "x2" or, as in Open Job Description, ":2". Frames may be negative: "-5--2".

    Raises:
        SequenceError: empty, not a range, fractions of a frame, more than 10 million frames.
    """
    try:
        frames = FrameSet(text.replace(":", "x"))
        numbers = sorted({int(frame) for frame in frames})
    except (ValueError, ArithmeticError) as error:
        large = isinstance(error, MaxSizeException)
        raise SequenceError(
            f"{text!r} is no frame range" if not large else f"the frame range {text!r} is too large",
            expected="at most 10 million frames" if large else "numbers and ranges",
            hint=_RANGE_HINT,
        ) from error
    if not numbers or frames.hasSubFrames():
        found = "fractions of a frame" if numbers else "no frame"
        raise SequenceError(f"{text!r} is no frame range", found=found, hint=_RANGE_HINT)
    return tuple(numbers)


@dataclass(frozen=True, slots=True)
class ImageSequence:
    """The files of a sequence, as they lie on the disk.

    Attributes:
        pattern: with a placeholder, or the path of the only file.
        files: by frame number, rising; at least one.
    """

    pattern: str
    files: Mapping[int, Path]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))

    @property
    def frames(self) -> tuple[int, ...]:
        """Frame numbers on disk, rising."""
        return tuple(self.files)

    @property
    def holes(self) -> tuple[int, ...]:
        """Frame numbers between the first and the last that have no file."""
        numbers = self.frames
        return tuple(number for number in range(numbers[0], numbers[-1] + 1) if number not in self.files)

    @property
    def extension(self) -> str:
        """Lower case, with the dot: ".exr"."""
        return Path(self.pattern).suffix.lower()

    def path(self, frame: int) -> Path:
        """The file of `frame`.

        Raises:
            MissingFrameError: it is not on the disk.
        """
        if frame not in self.files:
            raise MissingFrameError(
                f"frame {frame} of {self.pattern} is missing",
                expected=str(output_path(self.pattern, frame)),
                found=f"frames {_summary(self.frames)}",
                hint="render the frame, narrow the range, or let the job skip or hold missing frames",
            )
        return self.files[frame]


def is_pattern(pattern: str) -> bool:
    """True when the file name has a placeholder for the frame: "####", "@@@@", "%04d", "$F4"."""
    return _PLACEHOLDER.search(os.path.basename(pattern)) is not None


def without_number(name: str) -> str:
    """A file name without its placeholder."""
    if not is_pattern(name):
        return name
    before, _, after = split_pattern(name)
    return before + after


def output_path(pattern: str, frame: int) -> Path:
    """The path of `frame`; `pattern` itself when it has no placeholder. Negative frames are written as printf does.

    Raises:
        SequenceError: more than one placeholder.
    """
    if not is_pattern(pattern):
        return Path(pattern)
    before, width, after = split_pattern(os.path.basename(pattern))
    return Path(os.path.dirname(pattern)) / f"{before}{frame:0{width}d}{after}"


def open_sequence(pattern: str | os.PathLike[str]) -> ImageSequence:
    """Find the files of a sequence.

    Args:
        pattern: a pattern ("####" or "@@@@": one sign a digit; "%04d"; "$F4"), a single file, or a folder that holds
            exactly one sequence. A single file is one frame with the number at the end of its name (x.1001.exr is
            frame 1001); without a number, with a version (x_v002.exr) or a date (x_20251130123456.exr), it is frame 1.

    Raises:
        SequenceError: nothing there, several sequences in the folder, more than one placeholder, impossible numbers.
    """
    text = os.fspath(pattern)
    path = Path(text)
    # A file whose very name contains a placeholder sign is meant literally. (Path.is_file raises for too long names.)
    if os.path.isfile(path):
        return ImageSequence(text, {_lone_number(path): path})
    if os.path.isdir(path):
        return _only_sequence(path)
    if is_pattern(text):
        return _match(text)
    raise SequenceError(
        f"there is no file {text}",
        hint="check the path; for a whole sequence write its number as ####, for example shot.####.exr",
    )


def split_pattern(name: str) -> tuple[str, int, str]:
    """(text before the number, digits, text after) of a file name with one placeholder.

    Raises:
        SequenceError: none, or several.
    """
    found = list(_PLACEHOLDER.finditer(name))
    if len(found) > 1:
        found = list(_ALONE.finditer(name)) or found
    if len(found) != 1:
        raise SequenceError(
            f"{name!r} has {len(found)} placeholders", expected="one", hint="write the frame number once, as ####"
        )
    hashes, ats, printf, houdini = found[0].groups()
    width = len(hashes or ats or "") or int((printf or houdini or "1")[:9])
    if width > _MOST_DIGITS:
        raise SequenceError(
            "the frame number is too wide",
            expected=f"at most {_MOST_DIGITS} digits",
            found=str(width),
            hint="write one # for each digit, as ####",
        )
    return name[: found[0].start()], width, name[found[0].end() :]


def _match(pattern: str) -> ImageSequence:
    folder = Path(os.path.dirname(pattern) or ".")
    before, width, after = split_pattern(os.path.basename(pattern))
    files = {}
    for name in _listing(folder):
        middle = name[len(before) : len(name) - len(after)]
        if not (name.startswith(before) and name.endswith(after) and _NUMBER.fullmatch(middle)):
            continue
        number = int(middle)
        # printf counts the sign of a negative frame into the width, Nuke does not.
        if middle in (f"{number:0{width}d}", f"-{-number:0{width}d}" if number < 0 else ""):
            files[number] = Path(os.path.dirname(pattern)) / name
    for number in files:
        if abs(number) >= _LARGEST:
            raise SequenceError(
                f"{files[number]} has no usable frame number",
                expected=f"less than {_LARGEST}",
                found=str(number),
                hint="move the file away if it does not belong to the shot, else number the frames anew",
            )
    if not files:
        raise SequenceError(
            f"no file matches {pattern}",
            found=f"{len(_listing(folder))} other files in the folder",
            hint="check the folder, the name and the number of digits (one # a digit)",
        )
    return ImageSequence(pattern, files)


def _listing(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise SequenceError(
            f"cannot look into the folder {folder}", found=error.strerror, hint="check the path"
        ) from error


def _only_sequence(folder: Path) -> ImageSequence:
    _listing(folder)  # fileseq reports an unreadable folder as an empty one
    groups: dict[tuple[str, str, bool], list[FileSequence]] = {}
    for group in FileSequence.findSequencesOnDisk(str(folder), pad_style=PAD_STYLE_HASH1):
        if group.extension().lower() in FORMATS:
            key = (group.basename(), group.extension(), group.frameSet() is not None)
            groups.setdefault(key, []).append(group)
    names = sorted(_name(*key, members) for key, members in groups.items())
    if len(names) == 1:
        return open_sequence(folder / names[0])
    listing = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise SequenceError(
        f"the folder {folder} holds {'several image sequences' if names else 'no image sequence'}",
        expected="exactly one",
        found=listing or "no image",
        hint=f"name one of them: {folder / names[0]}" if names else "check the path",
    )


def _name(before: str, after: str, numbered: bool, members: list[FileSequence]) -> str:
    """The file name of a lone file, or the pattern of a sequence (which fileseq splits by the number of digits)."""
    if not numbered or sum(len(member) for member in members) == 1:
        return os.path.basename(members[0][0])
    # A negative frame counts its sign as a digit more, so the narrowest is the padding.
    return before + "#" * min(max(1, member.zfill()) for member in members) + after


def _lone_number(path: Path) -> int:
    match = _TRAILING_NUMBER.search(path.stem)
    number = int(match[1]) if match else 1
    return number if abs(number) < _LARGEST else 1


def _summary(frames: tuple[int, ...]) -> str:
    return str(FrameSet(frames[:100_000]))[:200]
