"""What a job has done so far: one JSON line a frame, appended as frames finish, so that a kill loses at most one line.

File `manifest.jsonl` in the job folder: the first line is the header (format, version, job id), every other line a
`FrameRecord`; of several lines for one frame the last counts. A last line without its newline is the mark of a kill and
is dropped; any other line that cannot be read is damage and refused. Several runs may add to one file: each line is
written under the job folder's gate (`lock.GATE`), and `Manifest.catch_up` reads what others wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ManifestError
from ..job import FrameState
from ..media.atomic import atomic_write, output_error
from .lock import GATE, file_lock

FORMAT = "faceplate.manifest"
VERSION = 1
_LONGEST = 1 << 20
"""Bytes of a line, at most."""


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One frame of a job.

    Attributes:
        frame: frame number.
        state: how it ended.
        key: hash of everything that decides the output's bytes; another key means stale.
        output: file name, relative to the job's output folder, "" when there is none.
        output_hash: content hash of that file.
        error: the error as `FaceplateError.to_dict` gives it, for a failed frame.
        facts: numbers for the report, by face.
        seconds: time by stage.
    """

    frame: int
    state: FrameState
    key: str
    output: str = ""
    output_hash: str = ""
    error: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def _record(document: Any, line: int, path: Path) -> FrameRecord:
    try:
        record = FrameRecord(**{**document, "state": FrameState(document["state"])})
        if not isinstance(record.frame, int) or not isinstance(record.key, str):
            raise TypeError("frame is a number and key a text")
    except (TypeError, KeyError, ValueError) as error:
        raise ManifestError(
            f"{path}: line {line} is no frame record",
            found=str(error),
            hint=f"delete {path} to render all frames again",
        ) from error
    return record


class Manifest:
    """The frames of one job, in memory and on disk.

    Args:
        path: the .jsonl file; made when absent.
        job_id: id of the job that now runs. A file with another id is kept: its records are stale by their keys.

    Raises:
        ManifestError: the file exists and is damaged.
    """

    def __init__(self, path: Path, job_id: str) -> None:
        self.path = path
        self.records: dict[int, FrameRecord] = {}
        self._seen = (0, 0)
        with self._gate():
            if path.exists():
                self.records = read_records(path)
            self._rewrite(job_id)
            self._seen = self._state()

    def _gate(self) -> AbstractContextManager[object]:
        return file_lock(self.path.with_name(GATE))

    def _state(self) -> tuple[int, int]:
        """(inode, size): another one means that others wrote."""
        try:
            state = self.path.stat()
        except OSError:
            return 0, 0  # whoever writes or reads it next says why
        return state.st_ino, state.st_size

    def _rewrite(self, job_id: str) -> None:
        """Start compact: a header, then the last line of each frame; replaced in one step."""
        header = {"format": FORMAT, "version": VERSION, "job": job_id}
        lines = [json.dumps(header), *(_line(record) for _, record in sorted(self.records.items()))]
        with atomic_write(self.path) as temporary:
            temporary.write_text("\n".join(lines) + "\n", "utf-8")

    def add(self, record: FrameRecord) -> None:
        """Append one frame. The line is on its way to the disk when this returns."""
        with self._gate():
            self._catch_up()
            self.records[record.frame] = record
            try:
                with self.path.open("ab") as file:
                    file.truncate(file.tell() - _torn(self.path))
                    file.write(_line(record).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise output_error(self.path, error) from error
            self._seen = self._state()

    def catch_up(self) -> bool:
        """Take in what other runs have finished since; True where there was something."""
        if self._state() == self._seen:
            return False
        with self._gate():
            return self._catch_up()

    def _catch_up(self) -> bool:
        inode, size = self._state()
        if (inode, size) in (self._seen, (0, 0)):
            return False
        grown = inode == self._seen[0] and size > self._seen[1]
        self.records |= self._appended(self._seen[1]) if grown else read_records(self.path)
        self._seen = inode, size
        return True

    def _appended(self, begin: int) -> dict[int, FrameRecord]:
        """The records after what was seen, which ended with a whole line."""
        try:
            with self.path.open("rb") as file:
                file.seek(begin)
                lines = file.read().decode("utf-8", "replace").split("\n")[:-1]
        except OSError as error:
            raise ManifestError(f"{self.path} cannot be read", found=str(error)) from error
        records = (_record(_parsed(line, number, self.path), number, self.path) for number, line in enumerate(lines, 1))
        return {record.frame: record for record in records}


def _torn(path: Path) -> int:
    """Bytes after the last newline: what a killed run left of its line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LONGEST))
        tail = file.read()
    return len(tail) - (tail.rfind(b"\n") + 1)


def _line(record: FrameRecord) -> str:
    return json.dumps(asdict(record), sort_keys=True, allow_nan=True)


def _parsed(line: str, number: int, path: Path) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # no JSON, a number of 5,000 digits, [[[[...
        hint = f"delete {path} to render all frames again"
        raise ManifestError(f"{path}: line {number} is damaged", found=str(error), hint=hint) from error


def read_records(path: Path) -> dict[int, FrameRecord]:
    """The last record of each frame in a manifest file.

    Raises:
        ManifestError: unreadable, not a manifest, another version, or a damaged line before the last one.
    """
    hint = f"delete {path} to render all frames again"
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path} cannot be read", found=str(error), hint=hint) from error
    lines = text.split("\n")
    if lines[-1] != "":
        lines = lines[:-1]  # torn by a kill
    records: dict[int, FrameRecord] = {}
    for number, line in enumerate((line for line in lines if line), start=1):
        document = _parsed(line, number, path)
        if number == 1:
            if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
                raise ManifestError(
                    f"{path} is not a manifest of this version", expected=f"{FORMAT} {VERSION}", hint=hint
                )
            continue
        record = _record(document, number, path)
        records[record.frame] = record
    return records
