"""The jobs of a queue: one file, or a folder of files, read anew as often as asked, so that jobs can be added.

A file is TOML with `[[job]]` tables, JSON (an object, or a list of them), or JSON lines (`.jsonl`). Each job has the
options of `faceplate apply` by their names, and `name`, where the output's should not serve. Relative paths are taken
from the folder in which the file lies.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import FaceplateError, InputError, SettingError
from ..jobs.spec import digest, job_folder
from ..jobs.words import ApplyWords, read_words

SUFFIXES = (".toml", ".json", ".jsonl")
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 80
_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job of a queue, or what is wrong with it.

    Attributes:
        id: file name for its state, the same wherever the queue lies.
        name: for people.
        source: the file it stands in.
        words: with absolute paths; None where it cannot be read.
        error: why, then.
        digest: of the words as written: another one is another job.
    """

    id: str
    name: str
    source: Path
    words: ApplyWords | None
    error: FaceplateError | None
    digest: str


class JobQueue:
    """A queue on disk.

    Args:
        path: file or folder.

    Attributes:
        path: as given.
        home: folder beside the jobs for states, locks and the summary.

    Raises:
        InputError: no such file or folder, or another kind of file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            self.home = path / "faceplate.batch"
        elif path.is_file() and path.suffix.lower() in SUFFIXES:
            self.home = path.with_suffix(".batch")
        else:
            raise InputError(
                f"{path} is no queue",
                expected=f"a folder of job files, or one file: {', '.join(SUFFIXES)}",
                found="another kind of file" if path.exists() else "nothing there",
                hint="the README shows what a job file looks like",
            )
        self._kept: dict[Path, tuple[tuple[int, int], list[QueuedJob]]] = {}

    def jobs(self) -> list[QueuedJob]:
        """All jobs in order: files by name, in a file as they stand. What cannot be read is there with its error.

        Raises:
            InputError: the folder cannot be read; the only file cannot be.
        """
        found: list[QueuedJob] = []
        for file in self._files():
            found += self._of_file(file)
        seen: dict[str, QueuedJob] = {}
        for job in found:
            first = seen.setdefault(job.id, job)
            if first is not job:
                seen[f"{job.id} {len(seen)}"] = _twice(job, first)
        return list(seen.values())

    def _files(self) -> list[Path]:
        if not self.path.is_dir():
            return [self.path]
        try:
            names = sorted(self.path.iterdir(), key=lambda one: one.name)
        except OSError as error:
            raise InputError(f"cannot look into {self.path}", found=error.strerror, hint="check the path") from error
        return [one for one in names if one.suffix.lower() in SUFFIXES and not one.name.startswith(".")]

    def _of_file(self, file: Path) -> list[QueuedJob]:
        try:
            state = file.stat()
        except OSError:
            return []  # taken out of the queue
        stamp = (state.st_size, state.st_mtime_ns)
        kept = self._kept.get(file)
        if kept is None or kept[0] != stamp:
            try:
                jobs = read_jobs(file)
            except InputError as error:
                if kept is None and not self.path.is_dir():
                    raise
                jobs = [] if kept is None else [job for job in kept[1] if job.error is None]
                jobs.append(_broken(file, file.name, error))
            kept = self._kept[file] = stamp, jobs
        return kept[1]


def read_jobs(file: Path) -> list[QueuedJob]:
    """The jobs of one file; one that is wrong has its error.

    Raises:
        SettingError: the file cannot be read at all.
    """
    return [_job(file, number, document) for number, document in enumerate(_documents(file), start=1)]


def _documents(file: Path) -> Iterator[Any]:
    try:
        if file.stat().st_size > _LARGEST:
            raise SettingError(f"{file} is too large for a list of jobs", expected=f"at most {_LARGEST >> 20} MiB")
        text = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read", found=str(error), hint="a job file is text in UTF-8") from error
    if file.suffix.lower() == ".jsonl":
        for line in text.splitlines():
            if line.strip():
                yield _line(line)
        return
    try:
        document = tomllib.loads(text) if file.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{file} cannot be read", found=str(error)[:200], hint="correct that place") from error
    yield from _listed(file, document)


def _line(text: str) -> Any:
    """A value of JSON; an error of JSON stays with its line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return SettingError("a line of the queue is no JSON", found=str(error)[:200], hint="one object a line")


def _listed(file: Path, document: Any) -> list[Any]:
    """TOML: `[[job]]`, or one job at the top; JSON: a list, an object with `job`, or one job."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict) and "job" in document:
        more = sorted(document.keys() - {"job"})
        if more:
            raise SettingError(f"{file} has more than jobs", found=", ".join(more)[:200], hint="put it into a [[job]]")
        return document["job"] if isinstance(document["job"], list) else [document["job"]]
    return [document] if document else []


def _job(file: Path, number: int, document: Any) -> QueuedJob:
    label = f"{file.name}:{number}"
    try:
        if isinstance(document, FaceplateError):
            raise document
        if not isinstance(document, Mapping):
            raise SettingError(f"{label} is no job", expected="a table of options", found=type(document).__name__)
        options = dict(document)
        name = options.pop("name", None)
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise SettingError(f"{label}: the name is no text", found=repr(name)[:100])
        written = read_words(options)
        words = written.below(file.parent.absolute())
        name = name or job_folder(written.output).stem
        mark = hashlib.sha256(written.output.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    except FaceplateError as error:
        return _broken(file, label, error)
    safe = _UNSAFE.sub("_", name)[:_LONGEST_NAME].strip(".") or "job"
    return QueuedJob(f"{safe}-{mark}", name, file, words, None, digest(asdict(written)))


def _broken(file: Path, label: str, error: FaceplateError) -> QueuedJob:
    safe = _UNSAFE.sub("_", label)[:_LONGEST_NAME].strip(".") or "job"
    return QueuedJob(f"{safe}-unreadable", label, file, None, error, "")


def _twice(job: QueuedJob, first: QueuedJob) -> QueuedJob:
    error = SettingError(
        f"{job.name}: another job of the queue writes there too",
        found=f"{first.source.name} and {job.source.name}",
        hint="give each job an output of its own",
    )
    return QueuedJob(f"{job.id}-twice", job.name, job.source, None, error, "")
