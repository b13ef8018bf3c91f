"""A team server's copies of its clients' files: contents by hash, and for each connection a tree that names them.

    SPOOL/CLIENT/contents/HASH       what the client sent, or what was rendered for it; least recently used go first
    SPOOL/CLIENT/SESSION/...         a tree as on the client's machine: /show/shot/plate.1001.exr -> content

Inputs are links to contents, since a job reads them only; results and the files of a job folder are files of their own,
since a job replaces or appends to them. Each client has contents of its own, so that nobody learns by a hash what
others sent.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faceplate.media.file_hash import file_hash
from faceplate_client.private import private_folder

from ..errors import Refused
from .link import is_path

_CONTENTS = "contents"


class Contents:
    """What one client sent, by SHA-256, on disk within a budget. May be used from several threads.

    Args:
        folder: of the client.
        budget: bytes; contents that an open job needs are kept beyond it.
    """

    def __init__(self, folder: Path, budget: int) -> None:
        private_folder(folder)
        self.folder = private_folder(folder / _CONTENTS)
        self.budget = budget
        self._pinned: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._total = 0
        for left in self.folder.glob(".*"):  # half a file of a connection that was cut
            left.unlink(missing_ok=True)
        self._trim()

    def path(self, content: str) -> Path:
        """Where a content is, or would be."""
        return self.folder / content

    def has(self, content: str) -> bool:
        """Whether it is there; it then counts as used just now."""
        try:
            os.utime(self.path(content))
        except OSError:
            return False
        return True

    def pin(self, sizes: Mapping[str, int]) -> None:
        """Keep contents for a job.

        Raises:
            Refused: open jobs would need more than the budget.
        """
        with self._lock:
            needed = sum({**self._sizes, **sizes}.values())
            if needed > self.budget:
                raise Refused(
                    "limit",
                    "the job's files do not fit the team server's spool",
                    expected=f"at most {self.budget >> 20} MB for all open jobs of a client",
                    found=f"{needed >> 20} MB",
                    hint="shorten the range, use shared storage ([paths]), or raise spool_mb on the team server",
                )
            self._pinned.update(sizes.keys())
            self._sizes.update(sizes)

    def unpin(self, contents: Iterable[str]) -> None:
        """The job has ended."""
        with self._lock:
            self._pinned.subtract(contents)
            self._pinned = +self._pinned
            self._sizes = {name: size for name, size in self._sizes.items() if name in self._pinned}

    def new_file(self) -> Path:
        """A place for a content that is on its way."""
        return self.folder / f".{secrets.token_hex(8)}"

    def keep(self, arrived: Path, content: str) -> None:
        """Take a whole file in, and let the oldest ones go where the budget asks for it.

        Raises:
            Refused: it is not what its hash says.
        """
        found = file_hash(arrived)
        if found != content:
            arrived.unlink()
            hint = "send the job again when nobody writes to the job's files"
            raise Refused("input", "a file changed while it was sent", expected=content, found=found, hint=hint)
        self.adopt(arrived, content)

    def adopt(self, arrived: Path, content: str) -> None:
        """Take in a whole file whose hash is known."""
        size = arrived.stat().st_size
        os.replace(arrived, self.path(content))
        with self._lock:
            self._total += size
        if self._total > self.budget:
            self._trim()

    def _trim(self) -> None:
        with self._lock:
            known = []
            for entry in os.scandir(self.folder):
                state = entry.stat(follow_symlinks=False)
                known.append((state.st_mtime_ns, state.st_size, entry.name))
            self._total = sum(size for _, size, _ in known)
            for _, size, name in sorted(known):
                if self._total <= self.budget:
                    return
                if name not in self._pinned and not name.startswith("."):
                    self.path(name).unlink(missing_ok=True)
                    self._total -= size


class Tree:
    """The files of one connection, as its client names them.

    Args:
        folder: of the client.
        contents: of the client.
    """

    def __init__(self, folder: Path, contents: Contents) -> None:
        self.root = private_folder(folder / f"session-{secrets.token_hex(6)}")
        self.contents = contents

    def inside(self, path: str) -> Path:
        """Where a path of the client's machine lies here.

        Raises:
            Refused: it is no path in its shortest form, so that it might lead outside.
        """
        if not is_path(path):
            raise Refused("forbidden_path", f"{path!r} is no whole path", hint="send the whole path, without ..")
        return self.root / path[1:]

    def place(self, path: str, content: str, kind: str) -> None:
        """Put a content where the client has it: "input" as a link, "output" and "state" as a file of its own."""
        target, source = self.inside(path), self.contents.path(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "input":
            if target.is_symlink() and os.readlink(target) == os.fspath(source):
                return  # the same link: whoever keeps the file warm by its time of change may go on
            fresh = target.with_name(f".{secrets.token_hex(8)}")
            fresh.symlink_to(source)
            os.replace(fresh, target)
            return
        target.unlink(missing_ok=True)
        if kind == "output":
            os.link(source, target)  # results are replaced, never written into
        else:
            shutil.copyfile(source, target)

    def remove(self, path: str) -> None:
        """Forget a file that the client does not have, or no more."""
        target = self.inside(path)
        if target.is_symlink() or target.is_file():
            target.unlink()

    def clear(self, folder: Path, names: Callable[[Path], bool], keep: Iterable[str]) -> None:
        """Remove links where a job will write: it would write through them into a content.

        Args:
            folder: of this tree, with all below it.
            names: says which files the job may write.
            keep: paths that the job brings itself.
        """
        kept = {self.inside(path) for path in keep}
        for top, _, files in os.walk(folder):
            for name in files:
                path = Path(top) / name
                if path.is_symlink() and path not in kept and names(path):
                    path.unlink()

    def keep_only(self, folder: str, names: Iterable[str]) -> None:
        """Forget the files of a folder that the client has no more."""
        place, known = self.inside(folder), set(names)
        if place.is_dir():
            for entry in list(os.scandir(place)):
                if entry.name not in known and (entry.is_symlink() or entry.is_file()):
                    os.unlink(entry.path)

    def shorten(self, text: str) -> str:
        """A path here as the client has it; others as they are."""
        prefix = os.fspath(self.root)
        return text.removeprefix(prefix) if text.startswith(prefix + "/") else text

    def close(self) -> None:
        """Remove the tree; a job that still works on it ends with an error that nobody hears."""
        shutil.rmtree(self.root, ignore_errors=True)


class Spool:
    """The copies of all clients.

    Args:
        folder: on a disk; made, private.
        budget: bytes of each client.
    """

    def __init__(self, folder: Path, budget: int) -> None:
        self.folder = private_folder(folder)
        self._budget = budget
        self._contents: dict[str, Contents] = {}
        for left in folder.glob("*/session-*"):  # of a server that was killed
            shutil.rmtree(left, ignore_errors=True)

    def contents(self, client: str) -> Contents:
        """Of one client; the same object for all its connections."""
        if client not in self._contents:
            self._contents[client] = Contents(self.folder / client, self._budget)
        return self._contents[client]

    def tree(self, client: str) -> Tree:
        """A new tree for a connection of a client."""
        return Tree(self.folder / client, self.contents(client))


TEAM = "team client "
"""Begins the name under which the jobs of a team's client are queued."""


@dataclass(frozen=True)
class TeamView:
    """How the jobs of a team's clients are written into ledger, report and sidecar: as on their own machines.

    Attributes:
        spool: folder of their files, None where the server has no clients of other machines.
    """

    spool: Path | None = None

    def seen(self, client: str) -> tuple[Callable[[str], str], str | None]:
        """How paths of a client's job are written, and who the ledger says it was; None for this server's user."""
        if self.spool is None or not client.startswith(TEAM):
            return str, None
        return partial(shown_path, self.spool), client.removeprefix(TEAM)


def shown_path(spool: Path, path: str) -> str:
    """A path inside any connection's tree as its client has it; others as they are. For ledger, report and sidecar."""
    prefix = os.fspath(spool) + "/"
    if not path.startswith(prefix):
        return path
    parts = path[len(prefix) :].split("/", 2)
    return "/" + parts[2] if len(parts) == 3 and parts[1].startswith("session-") else path
