"""`faceplate apply --server`: the job is sent to a running server, and its events come back as if it ran here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from faceplate import __version__
from faceplate.errors import FaceplateError, ResourceError, SettingError
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.events import Emit, note, progress, warning
from faceplate.jobs.reporting import PAGE_FILE
from faceplate.jobs.spec import ApplyJob, JobOutcome
from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo, Place, find
from faceplate_client.errors import ClientError, ServerNotFound

from .ask import Asker, rebuilt

Runner = Callable[[ApplyJob, Emit, CancelToken], JobOutcome]
_POLL_S = 0.1
_SILENCE_S = 5.0


def find_runner(where: str, device: str) -> Runner | None:
    """What runs an apply job on a server.

    Args:
        where: "auto", the server's address, or the private folder of a server.
        device: as the command line has it; a server that works on another one does not do for "auto".

    Returns:
        None where "auto" finds no server that would give the same bytes as this process.

    Raises:
        ResourceError: nobody answers at the address.
    """
    if where != "auto":
        info = _in(Path(where)) if os.path.isdir(where) else _at(where)
        return lambda job, emit, cancel: run_remote(job, info, emit, cancel)
    try:
        info = find(Place())
        with Asker(info, "faceplate apply", 1.0) as asker:
            fits = asker.welcome.server_version == __version__ and _same_device(asker.welcome.devices, device)
    except (ClientError, FaceplateError):
        return None  # none that could be used: the job runs here, which gives the same
    # a server has the environment of its start: another OCIO configuration would give other bytes
    if not fits or os.environ.get("OCIO", "").strip():
        return None
    return lambda job, emit, cancel: run_remote(job, info, emit, cancel)


def _same_device(devices: tuple[wire.Device, ...], asked: str) -> bool:
    if not devices:
        return False
    if asked == "auto":
        from faceplate.models.device import choose_device

        return devices[0].name == str(choose_device(asked))
    return devices[0].name in (asked, f"{asked}:0")


def _in(folder: Path) -> ConnectionInfo:
    """The connection of the server of a folder."""
    try:
        return find(Place(folder.absolute()))
    except ClientError as error:
        raise ResourceError(error.message, expected=error.expected, found=error.found, hint=error.hint) from error


def _at(address: str) -> ConnectionInfo:
    """The connection of an address; the token is that of this user's own server, where it is the one meant."""
    try:
        info = find(Place())
    except ServerNotFound:
        return ConnectionInfo(address)
    except ClientError as error:
        raise ResourceError(error.message, expected=error.expected, found=error.found, hint=error.hint) from error
    return info if info.address == address else ConnectionInfo(address)


def request_of(job: ApplyJob, identifier: str) -> wire.SubmitRange:
    """The message for a job; paths are made absolute, since the server has another current folder.

    Raises:
        SettingError: people are to be recognised, which a server does not do.
    """
    if any(one.track == "auto" for one in job.assignments):
        raise SettingError(
            "a server does not recognise people", hint="do the job in this process, or name tracks: FILE.fpid@TRACK"
        )
    holdout = None
    if job.holdout is not None:
        holdout = wire.HoldOut(wire.FileRef(os.path.abspath(job.holdout.pattern)), job.holdout.layer)
    return wire.SubmitRange(
        id=identifier,
        plate=os.path.abspath(job.plate),
        output=os.path.abspath(job.output),
        frames=job.frames,
        assignments=tuple(
            wire.Assignment(os.path.abspath(one.identity), cast("Any", one.track)) for one in job.assignments
        ),
        settings={
            name: tuple((int(frame), float(value)) for frame, value in keys)
            for name, keys in job.settings.to_json().items()
        },
        layers=job.layers,
        engine=job.engine,
        input_space=job.input_space,
        faces=None if job.faces is None else os.path.abspath(job.faces),
        holdout=holdout,
        missing=job.missing,
        project=job.project,
        commercial=job.commercial,
        movie=_movie_form(job),
    )


def _movie_form(job: ApplyJob) -> wire.MovieForm | None:
    """How the job reads and writes a movie; None where it does not say."""
    made = job.movie
    form = wire.MovieForm(
        made.codec,
        made.alpha,
        None if made.rate is None else str(made.rate),
        made.space,
        job.input_matrix,
        job.input_range,
        made.failed,
        made.deferred,
    )
    return None if form == wire.MovieForm() else form


def run_remote(job: ApplyJob, info: ConnectionInfo, emit: Emit, cancel: CancelToken) -> JobOutcome:
    """Run a job on a server, to its end or until `cancel`.

    Raises:
        FaceplateError: as `jobs.apply.run_apply`; ResourceError also when the server is gone, and then the job can be
            run again, here or there, and goes on where it stopped.
    """
    with Asker(info, "faceplate apply") as asker:
        emit(note(f"the server at {info.address} does the job"))
        run = _Remote(job, asker, emit)
        asker.ask(run.request, wire.Accepted)
        return run.wait(cancel)


class _Remote:
    def __init__(self, job: ApplyJob, asker: Asker, emit: Emit) -> None:
        self.request = request_of(job, asker.next_id())
        self._job = job
        self._asker = asker
        self._emit = emit
        self._failed: dict[int, Mapping[str, Any]] = {}
        self._heard = time.monotonic()
        self._asked = False

    def wait(self, cancel: CancelToken) -> JobOutcome:
        cancelled = False
        while True:
            if cancel.is_cancelled and not cancelled:
                cancelled = True
                self._asker.send(wire.Cancel(self.request.id))
            message = self._asker.receive(_POLL_S)
            if message is None:
                self._check_alive()
                continue
            self._heard, self._asked = time.monotonic(), False
            outcome = self._take(message)
            if outcome is not None:
                return outcome

    def _check_alive(self) -> None:
        silence = time.monotonic() - self._heard
        if silence > 2 * _SILENCE_S:
            raise ResourceError(
                f"the server at {self._asker.info.address} is gone",
                hint="run the same command again: it goes on where the server stopped",
            )
        if silence > _SILENCE_S and not self._asked:
            self._asked = True
            self._asker.send(wire.Ping(self._asker.next_id()))

    def _take(self, message: Any) -> JobOutcome | None:
        if isinstance(message, wire.Error) and message.id in (self.request.id, None):
            raise rebuilt(message)
        if getattr(message, "id", None) != self.request.id:
            return None
        if isinstance(message, wire.Progress):
            self._emit(progress(message.step, message.done, message.total))
        elif isinstance(message, wire.Partial):
            self._frame(message)
        elif isinstance(message, wire.Note):
            self._emit(warning(message.text) if message.level == "warning" else note(message.text))
        elif isinstance(message, wire.Done):
            return self._done(message)
        elif isinstance(message, wire.Cancelled):
            folder = Path(self.request.output).parent
            self._emit(
                {"event": "done", "text": f"cancelled: {message.finished} frames are kept", "state": "cancelled"}
            )
            return JobOutcome("cancelled", {"done": message.finished}, self._failed, folder)
        return None

    def _frame(self, message: wire.Partial) -> None:
        event: dict[str, Any] = {
            "event": "frame",
            "frame": message.frame,
            "state": message.state,
            "seconds": round(message.timings_ms.get("frame", 0.0) / 1e3, 4),
        }
        if isinstance(message.output, wire.FileRef):
            event["output"] = message.output.pattern
        if message.error is not None:
            event["error"] = self._failed[message.frame] = rebuilt(message.error).to_dict()
        self._emit(event)

    def _done(self, message: wire.Done) -> JobOutcome:
        assert message.folder is not None
        folder = Path(message.folder)
        outcome = JobOutcome("done", dict(message.counts), self._failed, folder)
        said = ", ".join(f"{number} {name}" for name, number in message.counts.items()) or "nothing to do"
        page = folder / PAGE_FILE
        self._emit(
            {
                "event": "done",
                "text": f"done: {said}\n  frames  {self._job.output}\n  report  {page}",
                "state": "done",
                "counts": outcome.counts,
                "failed": {str(frame): dict(error) for frame, error in self._failed.items()},
                "folder": str(folder),
                "report": str(page),
            }
        )
        return outcome
