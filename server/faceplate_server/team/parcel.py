"""What a job needs on a team server: which of its files both machines see, which are sent, and what may come back.

A path inside a folder of `[paths]` is passed on under its name there; every other file is sent by its content. Nothing
is guessed: a shared file is compared by size and hash, and a job whose files cannot be sent is refused here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, cast

from faceplate.errors import InputError, ManifestError, SidecarError
from faceplate.faces.sidecar import read_sidecar, sidecar_path
from faceplate.job import FINISHED
from faceplate.jobs.hashes import HashCache
from faceplate.jobs.manifest import read_records
from faceplate.jobs.plan import exposure_frames
from faceplate.jobs.reporting import MANIFEST_FILE
from faceplate.jobs.spec import job_folder
from faceplate.media.sequence import ImageSequence, is_pattern, open_sequence, output_path
from faceplate_client import wire

from ..errors import Refused
from ..job_files import below, file_of
from ..roots import Roots
from . import link
from .rewrite import SENT, PathMap, is_frame_of, rewritten

_MOST_NAMES = link.MOST_FILES


@dataclass(eq=False)
class Parcel:
    """A job, as it is sent.

    Attributes:
        message: the submission with the team server's paths; its slots are still this machine's.
        files: path as it is named there, to (hash, size, kind, file here).
        gone: paths that are not there.
        listings: folder to the names in it.
        shared: path there to (hash, size).
        back: files and folders that the team server may send.
        frames_back: pattern of the frames that it may send.
    """

    message: Any
    files: dict[str, tuple[str, int, str, Path]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    listings: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, tuple[str, int]] = field(default_factory=dict)
    back: set[Path] = field(default_factory=set)
    frames_back: str = ""

    def head(self) -> dict[str, Any]:
        """The fields of the `job` head that are about files."""
        return {
            "files": [[path, content, size, kind] for path, (content, size, kind, _) in self.files.items()],
            "gone": sorted(self.gone - self.files.keys()),
            "listings": [[folder, names] for folder, names in self.listings.items()],
            "shared": [[path, content, size] for path, (content, size) in self.shared.items()],
        }

    def blobs(self) -> dict[str, Path]:
        """Files here, by hash."""
        return {content: path for content, _, _, path in self.files.values()}

    def place(self, name: str, roots: Roots) -> Path:
        """Where a file that comes back belongs.

        Raises:
            Refused: the job did not ask for it, or it lies outside the roots.
        """
        path = Path(here(name))
        asked = any(path == one or path.is_relative_to(one) for one in self.back)
        if not asked and not (self.frames_back and is_frame_of(self.frames_back, path)):
            raise Refused("forbidden_path", f"the team server sends {path}, which the job does not make")
        return roots.check(path)


def there(path: str | PurePath) -> str:
    """A path of this machine as the link has it: slashes, and a drive as its first part."""
    text = PurePath(path).as_posix()
    return text if text.startswith("/") else "/" + text


def here(name: str) -> str:
    """A path of the link as this machine has it."""
    return name[1:] if os.name == "nt" and name[2:3] == ":" else name


class Packer:
    """Makes parcels. May be used from several threads.

    Args:
        roots: what jobs may touch here.
        paths: folders that both machines have.
    """

    def __init__(self, roots: Roots, paths: PathMap) -> None:
        self.roots = roots
        self.paths = paths
        self._hashes = HashCache()

    def pack(self, message: Any) -> Parcel:
        """The parcel of a submission.

        Raises:
            Refused: a path outside the roots, or a path that cannot be sent.
            InputError: a file is absent or cannot be read.
        """
        return _Packing(self, message).run()

    def hash(self, path: Path) -> str:
        """SHA-256 of a file, computed again when it changed."""
        return self._hashes.get(path)


class _Packing:
    def __init__(self, packer: Packer, message: Any) -> None:
        self._packer = packer
        self._message = message
        self._parcel = Parcel(message)

    def run(self) -> Parcel:
        message = self._message
        if isinstance(message, wire.SubmitFrame):
            self._frame(message)
        elif isinstance(message, wire.SubmitRange):
            self._range(message)
        else:
            self._analyse(message)
        self._parcel.message = rewritten(message, self._there, lambda slot: slot)
        return self._parcel

    # The three kinds of job

    def _frame(self, message: wire.SubmitFrame) -> None:
        self._people(message)
        if message.faces is not None:
            self._input(message.faces)
        if isinstance(message.plate, wire.FileRef):
            self._shot(message.plate.pattern, message.plate.frame, message)
        elif message.source is not None:
            self._shot(message.source, None, message)
        if message.holdout is not None and isinstance(message.holdout.matte, wire.FileRef):
            self._input(file_of(message.holdout.matte))
        if isinstance(message.output, wire.FileRef):
            self._result(file_of(message.output))

    def _shot(self, pattern: str, number: int | None, message: wire.SubmitFrame) -> None:
        """What decides one frame of a shot: its file, the first one, its sidecar, the frames that show its light."""
        sequence = self._open(pattern)
        if self._is_shared(pattern):
            self._share(sequence.path(sequence.frames[0]))
            return
        frames = sequence.frames
        wanted = {frames[0], *([number] if number is not None else [])}
        sidecar = sidecar_path(pattern) if message.faces is None else Path(message.faces)
        self._optional(sidecar_path(pattern), "input")
        wanted |= _light(sidecar, sequence, message.frame if number is None else number)
        for frame in sorted(wanted):
            if frame in sequence.files:
                self._input(sequence.path(frame))
        self._listing(sequence)

    def _range(self, message: wire.SubmitRange) -> None:
        self._people(message)
        self._sequence(message.plate)
        if not self._is_shared(message.plate):
            self._optional(sidecar_path(self._open(message.plate).pattern), "input")
        if message.faces is not None:
            self._input(message.faces)
        if message.holdout is not None:
            if not isinstance(message.holdout.matte, wire.FileRef):
                raise Refused("input", "the hold-out of a range has to be files", hint="send its pattern")
            self._sequence(message.holdout.matte.pattern)
        if self._is_shared(message.output):
            return
        folder = job_folder(message.output)
        self._parcel.back.add(folder)
        self._packer.roots.check(message.output)
        for path in below(folder):
            self._add(path, "state")
        for path in _finished(folder, message.output):
            self._add(path, "output")
        if not is_pattern(message.output):
            self._result(Path(message.output))
        else:
            self._parcel.frames_back = message.output

    def _analyse(self, message: wire.SubmitAnalyse) -> None:
        self._sequence(message.plate)
        sidecar = message.sidecar or str(sidecar_path(self._open(message.plate).pattern))
        if not self._is_shared(sidecar):
            self._optional(Path(sidecar), "state")
            self._result(Path(sidecar))
        if message.pictures is not None and not self._is_shared(message.pictures):
            self._packer.roots.check(message.pictures)
            self._parcel.back.add(Path(message.pictures))

    # Files

    def _there(self, path: str) -> str:
        self._packer.roots.check(path)
        shared = self._packer.paths.there(path)
        return shared if shared is not None else SENT + there(path)

    def _is_shared(self, path: str) -> bool:
        return self._packer.paths.there(path) is not None

    def _open(self, pattern: str) -> ImageSequence:
        self._packer.roots.check(pattern)
        return open_sequence(pattern)

    def _people(self, message: Any) -> None:
        for one in message.assignments:
            self._input(one.identity)

    def _sequence(self, pattern: str) -> None:
        """All files of a sequence; of a shared one the first is compared."""
        sequence = self._open(pattern)
        if self._is_shared(pattern):
            self._share(sequence.path(sequence.frames[0]))
            return
        for path in dict.fromkeys(sequence.files.values()):
            self._input(path)
        self._listing(sequence)

    def _input(self, path: str | Path) -> None:
        if not Path(path).is_file():
            self._packer.roots.check(path)  # the job itself says what is wrong with it, as it does here
            self._optional(Path(path), "input")
        elif self._is_shared(os.fspath(path)):
            self._share(Path(path))
        else:
            self._add(Path(path), "input")

    def _optional(self, path: Path, kind: str) -> None:
        if self._is_shared(os.fspath(path)):
            return
        if path.is_file():
            self._add(path, kind)
        else:
            self._parcel.gone.add(there(path))

    def _result(self, path: Path) -> None:
        if not self._is_shared(os.fspath(path)):
            self._packer.roots.check(path)
            self._parcel.back.add(path)

    def _share(self, path: Path) -> None:
        self._packer.roots.check(path)
        name = self._packer.paths.there(os.fspath(path))
        assert name is not None
        self._parcel.shared[name] = self._packer.hash(path), path.stat().st_size

    def _add(self, path: Path, kind: str) -> None:
        self._packer.roots.check(path)
        name = there(path)
        if not link.is_path(name):
            raise Refused("forbidden_path", f"{path} is not in its shortest form", hint="send the path without ..")
        content = self._packer.hash(path)
        self._parcel.files[name] = content, path.stat().st_size, kind, path

    def _listing(self, sequence: ImageSequence) -> None:
        folder = sequence.path(sequence.frames[0]).parent
        names = sorted(os.listdir(folder))
        if len(names) > _MOST_NAMES:
            raise InputError(
                f"{folder} holds {len(names)} files",
                expected=f"at most {_MOST_NAMES} in a folder whose files are sent to a team server",
                hint="move the shot into a folder of its own, or use shared storage ([paths])",
            )
        self._parcel.listings[there(folder)] = names


def _finished(folder: Path, output: str) -> Iterator[Path]:
    """Results that an earlier run of the job left."""
    try:
        records = read_records(folder / MANIFEST_FILE)
    except ManifestError:
        return  # absent, or damaged, which the job itself says
    for frame, record in records.items():
        path = output_path(output, frame)
        if record.state in FINISHED and path.is_file():
            yield path


def _light(sidecar: Path, sequence: ImageSequence, frame: int) -> set[int]:
    """The frames that decide the exposure of the faces in a frame, as the sidecar has them."""
    if not sidecar.is_file():
        return set()
    try:
        shot = read_sidecar(sidecar)
    except SidecarError:
        return set()  # the job itself says what is wrong with it
    only_files = cast("Any", SimpleNamespace(sequence=sequence))
    tracks = [track for track in shot.tracks if frame in track.observations]
    return {number for track in tracks for number in exposure_frames(only_files, track)}
