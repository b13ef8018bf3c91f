"""The ledger beside the outputs: who rendered whom, when, by whose consent, and what came out.

`faceplate.ledger.jsonl` is only ever appended to. Each line is one JSON object that carries its number, the hash of
the line before and its own hash, so that a line which is changed, taken out or put in is noticed. (Cutting lines off
the end is not: for that, keep the last hash elsewhere, as the report does.) A last line without its newline is the mark
of a killed process; the next append removes it and says so.
"""

from __future__ import annotations

import datetime
import getpass
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from .. import __version__
from ..errors import ManifestError
from ..media.atomic import output_error
from .attributes import UsedIdentity, UsedModel

LEDGER_NAME = "faceplate.ledger.jsonl"
FIRST = "0" * 64
"""What the first line has in place of the hash of a line before."""

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@dataclass(frozen=True, slots=True)
class LedgerState:
    """A ledger that was found whole.

    Attributes:
        entries: the lines as JSON values, first to last.
        torn: True when the file ends in a line that a killed process left half written.
        last_hash: hash of the last line, `FIRST` for an empty ledger.
    """

    entries: tuple[Mapping[str, Any], ...]
    torn: bool
    last_hash: str


def _canonical(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def _entry(line: bytes, number: int, previous: str) -> dict[str, Any] | None:
    """The entry, or None where the line is not what was once written as line `number` after `previous`."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("number") != number or entry.get("previous") != previous:
        return None
    body = {name: value for name, value in entry.items() if name != "hash"}
    try:
        # The bytes are compared too: a second key of the same name would not show in the values.
        whole = _canonical(entry) == line and hashlib.sha256(_canonical(body)).hexdigest() == entry.get("hash")
    except ValueError:
        return None
    return entry if whole else None


def _parse(data: bytes, path: Path) -> tuple[LedgerState, int]:
    """The state, and how many bytes of the file are whole lines (a whole last line may lack its newline)."""
    *lines, tail = data.split(b"\n")
    entries: list[Mapping[str, Any]] = []
    previous = FIRST
    for number, line in enumerate(lines, 1):
        entry = _entry(line, number, previous)
        if entry is None:
            raise ManifestError(
                f"{path}: line {number} is not as it was written",
                expected="an unbroken chain of hashes",
                found="a line that was changed, removed or put in",
                hint="keep the file as evidence under another name; the next job begins a new ledger",
            )
        entries.append(entry)
        previous = entry["hash"]
    whole = len(data) - len(tail)
    last = _entry(tail, len(lines) + 1, previous) if tail else None
    if last is not None:
        entries.append(last)
        previous, whole = last["hash"], len(data)
    return LedgerState(tuple(entries), torn=bool(tail) and last is None, last_hash=previous), whole


def verify_ledger(path: Path) -> LedgerState:
    """Check every line. A torn last line is no damage and is only reported.

    Raises:
        ManifestError: the file cannot be read, or a line is not as it was written.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"cannot read the ledger {path}", found=error.strerror or str(error)) from error
    return _parse(data, path)[0]


def append_entry(
    path: Path, event: str, values: Mapping[str, Any], *, time: datetime.datetime, user: str | None = None
) -> str:
    """Add one line, after the whole ledger was checked; flushed to the disk. Several processes may append at once.

    Args:
        path: the ledger; made where it is absent, its folder must exist.
        event: what happened, e.g. "job started".
        values: JSON values.
        time: with time zone.
        user: who; None for the user of this process.

    Returns:
        The hash of the new line.

    Raises:
        ManifestError: the ledger was altered.
        OutputError: it cannot be written.
    """
    if time.tzinfo is None:
        raise ValueError("the ledger's times need a time zone")
    try:
        with path.open("a+b") as file:
            _lock(file)
            try:
                return _append(file, path, {"event": event, **values, **_who(time, user)})
            finally:
                _unlock(file)
    except OSError as error:
        raise output_error(path, error) from error


def _who(time: datetime.datetime, user: str | None) -> dict[str, str]:
    moment = time.astimezone(datetime.UTC).isoformat(timespec="seconds")
    return {"time": moment, "user": _user() if user is None else user, "tool": f"Faceplate {__version__}"}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as containers have
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _append(file: IO[bytes], path: Path, values: dict[str, Any]) -> str:
    file.seek(0)
    data = file.read()
    state, whole = _parse(data, path)
    if state.torn:
        file.truncate(whole)
        values["after_torn_line"] = True
    body = {**values, "number": len(state.entries) + 1, "previous": state.last_hash}
    digest = hashlib.sha256(_canonical(body)).hexdigest()
    start = b"" if whole == 0 or data[whole - 1 : whole] == b"\n" else b"\n"
    file.write(start + _canonical({**body, "hash": digest}) + b"\n")
    file.flush()
    os.fsync(file.fileno())
    return digest


def record_start(
    path: Path,
    *,
    job_id: str,
    plate: str,
    frames: str,
    output: str,
    engine: str,
    models: Sequence[UsedModel],
    identities: Sequence[UsedIdentity],
    settings: Mapping[str, Any],
    decision: Literal["allow", "deny"],
    reason: str,
    time: datetime.datetime,
    user: str | None = None,
) -> str:
    """Note that a job was asked for, and whether consent allowed it.

    Args:
        path: the ledger.
        job_id: of the job.
        plate: pattern of the input.
        frames: range as text, e.g. "1001-1100".
        output: pattern of the output.
        engine: name and version.
        models: nets that take part.
        identities: people of the job, with the ids of their consents.
        settings: as `KeyedSettings.to_json`.
        decision: "deny" where a consent was refused.
        reason: text of the check, or of the refusal.
        time: with time zone.
        user: who; None for the user of this process.

    Returns:
        The hash of the new line.

    Raises:
        ManifestError, OutputError: see `append_entry`.
    """
    people = [{"name": p.name, "hash": p.content_hash, "consent": p.consent_id} for p in identities]
    values = {
        "job": job_id,
        "plate": plate,
        "frames": frames,
        "output": output,
        "engine": engine,
        "models": [{"id": m.id, "sha256": m.sha256, "licence": m.licence} for m in models],
        "identities": people,
        "settings": dict(settings),
        "consent": {"decision": decision, "reason": reason},
    }
    return append_entry(path, "job started" if decision == "allow" else "job refused", values, time=time, user=user)


def record_end(
    path: Path,
    *,
    job_id: str,
    state: str,
    output_hashes: Mapping[int, str],
    time: datetime.datetime,
    user: str | None = None,
) -> str:
    """Note how a job ended: state in a word, number of frames, `output_digest`.

    Returns:
        The hash of the new line.

    Raises:
        ManifestError, OutputError: see `append_entry`.
    """
    values = {"job": job_id, "state": state, "frames": len(output_hashes), "outputs": output_digest(output_hashes)}
    return append_entry(path, "job ended", values, time=time, user=user)


def output_digest(output_hashes: Mapping[int, str]) -> str:
    """sha256 (hex) over "frame hash" lines, frames rising: one number that stands for all files of a job."""
    lines = "".join(f"{frame} {output_hashes[frame]}\n" for frame in sorted(output_hashes))
    return hashlib.sha256(lines.encode()).hexdigest()
