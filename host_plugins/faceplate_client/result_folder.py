"""Where results lie: one folder a clip, in it one folder a version, never written over.

ROOT/PROJECT/CLIP/v001/CLIP.v001.####.exr          the result; .mov or another where the clip says so
                       CLIP.v001.faceplate/        the server's report, manifest, ledger
                       CLIP.v001.record.json       the job record
                       bake/CLIP.####.exr          what the host rendered, where it had to
                  faces/CLIP-1a2b3c4d.faces.json   what analysis found, for all versions of this clip and source
                  faces/CLIP-1a2b3c4d/track-1.png
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import FolderFailed, FramesMissing
from .frame_maths import as_text
from .host import Clip
from .private import try_lock

_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
_VERSION = re.compile(r"v(\d{3,9})", re.ASCII)
_LONGEST = 80
_DIGITS = "####"
_EXR_MAGIC = b"\x76\x2f\x31\x01"


def safe_name(text: str) -> str:
    """A file name on every system, without signs that stand for a frame number; "clip" where nothing is left."""
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)
    kept = re.sub("__+", "_", kept).strip("._- ")
    encoded = kept.encode("utf-8", "ignore")[:_LONGEST]
    kept = encoded.decode("utf-8", "ignore").rstrip("._- ") or "clip"
    return f"{kept}_" if kept.split(".")[0].casefold() in _RESERVED else kept


@dataclass(frozen=True)
class VersionFolder:
    """The files of one version of one clip.

    Attributes:
        folder: of this version; exists.
        stem: of its files' names.
        ending: of the result's.
    """

    folder: Path
    stem: str
    ending: str = f".{_DIGITS}.exr"

    @property
    def pattern(self) -> str:
        """Of the result."""
        return str(self.folder / f"{self.stem}{self.ending}")

    @property
    def record(self) -> Path:
        """The job record."""
        return self.folder / f"{self.stem}.record.json"

    @property
    def bake_pattern(self) -> str:
        """Of what the host renders."""
        return str(self.folder / "bake" / f"{self.stem}.bake.{_DIGITS}.exr")


def clip_folder(root: Path, project: str, clip: Clip) -> Path:
    """The folder of all versions of a clip; not made."""
    return root / safe_name(project) / safe_name(clip.name)


def versions(folder: Path) -> list[tuple[int, Path]]:
    """The version folders of a clip that exist, oldest first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [(int(match[1]), folder / name) for name in names if (match := _VERSION.fullmatch(name))]
    return sorted(found)


def new_version(root: Path, project: str, clip: Clip, *, beside: Path | None = None) -> VersionFolder:
    """Make the next version's folder.

    Args:
        root: where results go.
        project: name of the document.
        clip: whose result.
        beside: folder of another view of the same clip, to lie in the same version.

    Raises:
        FolderFailed: it cannot be made.
    """
    if beside is not None:
        return named(beside, clip)
    folder = clip_folder(root, project, clip)
    number = max((number for number, _ in versions(folder)), default=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            number += 1
            try:
                (folder / f"v{number:03d}").mkdir()
            except FileExistsError:  # another host was faster
                continue
            return named(folder / f"v{number:03d}", clip)
    except OSError as error:
        raise FolderFailed(f"cannot make a result folder in {folder}", found=error.strerror or str(error)) from error


def named(folder: Path, clip: Clip) -> VersionFolder:
    """The files of a clip in a version folder."""
    view = f".{safe_name(clip.view)}" if clip.view else ""
    return VersionFolder(folder, f"{safe_name(clip.name)}{view}.{folder.name}", _ending(clip))


def of_record(path: Path, clip: Clip | None = None) -> VersionFolder:
    """The version folder of a job record, whatever its clip is called now; without `clip`, that of EXR files."""
    folder = VersionFolder(path.parent, path.name[: -len(".record.json")])
    return folder if clip is None else VersionFolder(folder.folder, folder.stem, _ending(clip))


def _ending(clip: Clip) -> str:
    """A movie becomes a .mov: its codec is then one that is good enough, whatever the source's."""
    if not clip.own_format or clip.needs_bake:
        return f".{_DIGITS}.exr"
    return f".{_DIGITS}{Path(clip.source).suffix}" if "#" in Path(clip.source).name else ".mov"


class Holds:
    """Versions that this run works on, so that another program leaves them alone; let go of at its end.

    A folder that takes no locks (a share without them, one that is read-only) holds nobody off.
    """

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def take(self, files: VersionFolder) -> bool:
        """Hold a version; False when another program does."""
        path = files.folder / f".{files.stem}.lock"
        if path in self._held:
            return True
        try:
            # not a private file: a team refreshes each other's results
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True
        try:
            free = try_lock(descriptor)
        except OSError:
            free = True
        if free:
            self._held[path] = descriptor
        else:
            os.close(descriptor)
        return free

    def __enter__(self) -> Holds:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()


def faces_file(root: Path, project: str, clip: Clip, *, baked: bool) -> Path:
    """The sidecar of a clip, for all versions; another source, another file. Its folder is made.

    Raises:
        FolderFailed: it cannot be made.
    """
    facts = "\0".join((clip.id, clip.view, "baked" if baked else clip.source))
    digest = hashlib.sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()
    folder = clip_folder(root, project, clip) / "faces"
    make_folder(folder)
    return folder / f"{safe_name(clip.name)}-{digest[:8]}.faces.json"


def make_folder(folder: Path) -> None:
    """Make a folder and those above it.

    Raises:
        FolderFailed: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderFailed(f"cannot make the folder {folder}", found=error.strerror or str(error)) from error


def file_of(pattern: str, frame: int) -> Path:
    """The file of a frame, as the server names it."""
    head, tail = os.path.split(pattern)
    return Path(head) / tail.replace(_DIGITS, f"{frame:0{len(_DIGITS)}d}")


def is_whole(path: Path) -> bool:
    """Whether a result file is there, and begins as an EXR does if it is one."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            return magic == _EXR_MAGIC if path.suffix == ".exr" else bool(magic)
    except OSError:
        return False


def missing_files(pattern: str, frames: Iterable[int]) -> tuple[int, ...]:
    """The frames that have no whole file."""
    return tuple(frame for frame in frames if not is_whole(file_of(pattern, frame)))


def check_files(pattern: str, frames: Iterable[int]) -> None:
    """Prove that every file is there.

    Raises:
        FramesMissing: one is not; a host would show the untouched plate in its place.
    """
    missing = missing_files(pattern, frames)
    if missing:
        raise FramesMissing(f"{pattern} lacks {len(missing)} frames", found=as_text(missing)[:200])
