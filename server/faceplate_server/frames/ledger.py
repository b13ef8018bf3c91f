"""Single frames on record: who was put on whom, by whose consent, without a line for every frame that a host shows.

A range job has a start and an end in the ledger of its job folder. Hosts ask for frames one at a time, up to many a
second; what they have in common is one entry: connection, plate, output, engine, project, identities with their
consents. Its first frame writes "job started" (or "job refused"), its end "frames ended" with the number of frames:
when the connection ends, when nothing came for ten minutes, or when the server stops. A result that is a file has its
line in the job folder beside it, as a range; one that goes back through memory, or to another machine, in the server's
own ledger.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faceplate.errors import ConsentError, FaceplateError
from faceplate.identity.file import IdentityFile, read_identity
from faceplate.job import Assignment
from faceplate.jobs.analyse import used_models
from faceplate.jobs.engines import check_engine, engine_models, engine_version
from faceplate.jobs.output import make_folder
from faceplate.jobs.people import unchecked
from faceplate.jobs.spec import Workbench, digest, job_folder
from faceplate.provenance.attributes import UsedIdentity
from faceplate.provenance.consent import check_consent
from faceplate.provenance.ledger import LEDGER_NAME, append_entry, record_start
from faceplate_client import wire

from .. import requests
from ..jobs import Job
from ..roots import Roots
from .faces import stamp
from .job import NULL_ENGINE

log = logging.getLogger(__name__)

_QUIET_S = 600.0
_MEMORY = "a frame in memory"


@dataclass
class _Entry:
    path: Path
    job_id: str
    owner: bytes
    user: str | None
    first: int
    last: int
    frames: int
    used: float


@dataclass(frozen=True, eq=False)
class _Known:
    """What the ledger needs of an identity file, without its pictures."""

    used: UsedIdentity
    consent: Any


class FrameLedger:
    """Keeps the record of single frames. May be used from several threads.

    Args:
        path: the server's own ledger.
        roots: files that may be touched.
    """

    def __init__(self, path: Path, roots: Roots) -> None:
        self._path = path
        self._roots = roots
        self._known: dict[tuple[Any, ...], _Known] = {}
        self._open: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def begin(self, job: Job, bench: Workbench) -> None:
        """Before a frame is done: check consent, and write the line where there is none yet.

        Raises:
            ConsentError: refused; that is on record too.
            LicenceError: paid work, and a model's licence forbids that.
            IdentityError: a file cannot be used.
            Refused: a path outside the roots.
            OutputError, ManifestError: the record cannot be written, and then there is no frame.
        """
        message: wire.SubmitFrame = job.message
        if message.engine == NULL_ENGINE or not message.assignments:
            return
        check_engine(message.engine, bench.nets.store, commercial=message.commercial)
        assignments = requests.assignments(message.assignments, self._roots)
        known = [self._identity(one.identity) for one in assignments]
        refusal: ConsentError | None = None
        texts = []
        today = datetime.datetime.now().astimezone().date()
        for one in known:
            try:
                texts.append(check_consent(one.consent, on=today, project=message.project).text)
            except ConsentError as error:
                refusal = refusal or error
        self._note(job, bench, assignments, [one.used for one in known], "; ".join(texts), refusal)
        if refusal is not None:
            raise refusal

    def _identity(self, path: Path) -> _Known:
        if not path.is_file():
            read_identity(path)  # says what is wrong
        key = stamp(path)
        with self._lock:
            found = self._known.get(key)
        if found is None:
            file: IdentityFile = read_identity(path)
            found = _Known(unchecked(file), file.consent)
            with self._lock:
                self._known[key] = found
        return found

    def _note(
        self,
        job: Job,
        bench: Workbench,
        assignments: tuple[Assignment, ...],
        used: list[UsedIdentity],
        reason: str,
        refusal: ConsentError | None,
    ) -> None:
        message: wire.SubmitFrame = job.message
        path, output = self._place(message, bench)
        if path is None:
            return  # no such folder: the job says so
        files = message.plate.pattern if isinstance(message.plate, wire.FileRef) else _MEMORY
        plate = message.source or files
        facts = [job.owner.hex(), job.client, plate, output, message.engine, message.project, str(refusal)]
        pairs = zip(used, assignments, strict=True)
        who = [(one.name, one.content_hash, one.consent_id, str(given.track)) for one, given in pairs]
        key = digest([*facts, who])
        now = time.monotonic()
        with self._lock:
            entry = self._open.get(key)
            if entry is not None:
                entry.frames += refusal is None
                entry.first, entry.last = min(entry.first, message.frame), max(entry.last, message.frame)
                entry.used = now
                return
            # within the lock: the line is on the disk before any frame of it is done
            self._write(
                path,
                job_id=key[:16],
                plate=bench.shown(plate),
                frames=f"single frames, from {message.frame}",
                output=bench.shown(output),
                engine=f"{message.engine} {engine_version(message.engine)}",
                models=(*used_models(bench.nets), *engine_models(message.engine, bench)),
                identities=used,
                settings={name: [list(at) for at in keys] for name, keys in message.settings.items()},
                decision="allow" if refusal is None else "deny",
                reason=reason if refusal is None else str(refusal),
                time=datetime.datetime.now().astimezone(),
                user=bench.user,
            )
            count = int(refusal is None)
            self._open[key] = _Entry(path, key[:16], job.owner, bench.user, message.frame, message.frame, count, now)

    def _write(self, path: Path, **values: Any) -> None:
        make_folder(path.parent)
        record_start(path, **values)

    def _place(self, message: wire.SubmitFrame, bench: Workbench) -> tuple[Path | None, str]:
        if not isinstance(message.output, wire.FileRef):
            return self._path, _MEMORY
        self._roots.check(message.output.pattern)
        if bench.shown(message.output.pattern) != message.output.pattern:
            return self._path, message.output.pattern  # a file that goes back to another machine
        folder = job_folder(message.output.pattern)
        return (folder / LEDGER_NAME if folder.parent.is_dir() else None), message.output.pattern

    def settle(self, connected: Collection[bytes]) -> None:
        """Close the entries of connections that are gone or quiet; in a thread, since that waits for the disk."""
        now = time.monotonic()
        with self._lock:
            ended = [
                key for key, entry in self._open.items() if entry.owner not in connected or now - entry.used > _QUIET_S
            ]
            entries = [self._open.pop(key) for key in ended]
        if entries:
            threading.Thread(target=_close, args=(entries,), name="ledger", daemon=True).start()

    def close(self) -> None:
        """Close all entries."""
        with self._lock:
            entries, self._open = list(self._open.values()), {}
        _close(entries)


def _close(entries: list[_Entry]) -> None:
    for entry in entries:
        if not entry.frames:
            continue
        values: Mapping[str, Any] = {
            "job": entry.job_id,
            "frames": entry.frames,
            "range": f"{entry.first}-{entry.last}",
        }
        try:
            append_entry(entry.path, "frames ended", values, time=datetime.datetime.now().astimezone(), user=entry.user)
        except FaceplateError as error:
            # the frames are delivered and their start is on record: nobody is there any more to be told
            log.warning("the ledger %s lacks the end of %d frames: %s", entry.path, entry.frames, error)
