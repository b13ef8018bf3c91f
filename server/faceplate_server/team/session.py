"""One client's connection to a team server: its jobs, given to the server as if a host of this machine sent them."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faceplate.errors import FaceplateError
from faceplate.jobs.hashes import HashCache
from faceplate.jobs.spec import job_folder
from faceplate_client import wire
from faceplate_client.errors import ClientError

from ..errors import Refused, to_message
from ..job_files import file_of
from ..roots import Roots
from . import link
from .job import TeamJob
from .keys import TeamClient
from .rewrite import FRAME, ROOM, SENT, is_frame_of, rewritten
from .rooms import Room, RoomPool, read_header
from .session_results import Results
from .spool import Spool
from .streams import Outbox, Post, Sink

log = logging.getLogger(__name__)

_SYNC_S = 2.0
_MOST_STREAMS = 1000
_MOST_UNREAD = 1 << 26
"""Bytes that may wait here: several windows, more than an honest client has on its way."""


class Session:
    """The jobs of one connection.

    Args:
        client: who it is, by its key.
        spool: of all clients.
        rings: folder of the server's frame rings.
        limits: of the server.
        colour: fingerprint of its OCIO configuration.
        post: sends to the client; from any thread.
        ask: sends to this machine's server, as this client; from any thread.
    """

    def __init__(
        self,
        client: TeamClient,
        spool: Spool,
        rings: Path,
        limits: wire.Limits,
        colour: str,
        post: Post,
        ask: Callable[[Any], None],
    ) -> None:
        self.client = client
        self.dead = False
        self._limits = limits
        self._colour = colour
        self._post = post
        self._ask = ask
        self._roots = Roots(map(Path, client.roots))
        self._spool = spool.folder
        self._tree = spool.tree(client.name)
        self._contents = self._tree.contents
        self._rooms = RoomPool(rings, limits.frame_bytes)
        self._outbox = Outbox(post, self._file_failed, f"to {client.name}")
        self._results = Results(self._tree, self._outbox)
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._prefix = secrets.token_hex(4)
        self._count = 0
        self._unread = 0
        self._lock = threading.Lock()
        self._jobs: dict[str, TeamJob] = {}
        self._by_inner: dict[str, TeamJob] = {}
        self._sinks: dict[int, tuple[TeamJob | None, Sink]] = {}
        self._hashes = HashCache()
        self._tree_bytes = json.dumps(os.fspath(self._tree.root))[1:-1].encode("ascii")
        self._thread = threading.Thread(target=self._work, name=f"from {client.name}", daemon=True)
        self._thread.start()

    # From the gateway's thread

    def heard(self, kind: str, head: dict[str, Any], body: bytes) -> None:
        """A message of the client, other than hello.

        Raises:
            wire.Malformed: it breaks the rules of the talk.
        """
        with self._lock:
            self._unread += len(body)
            if self._unread > _MOST_UNREAD:
                raise wire.Malformed("more comes than may be on its way")
        if kind == "ack":
            if not self._outbox.window.answered(head["bytes"]):
                raise wire.Malformed("more was answered than was sent")
        elif kind in ("job", "open", "data", "say"):
            handler = {"job": self._job, "open": self._open, "data": self._data, "say": self._said}[kind]
            self._inbox.put(lambda: self._read(handler, head, body))
        else:
            raise wire.Malformed(f"{kind} is sent by team servers only")

    def told(self, message: Any) -> None:
        """A message of this machine's server."""
        self._inbox.put(lambda: self._from_server(message))

    def close(self) -> None:
        """The connection is gone, or not wanted any more."""
        self.dead = True
        self._outbox.close()
        self._inbox.put(None)

    # In the session's thread

    def _work(self) -> None:
        while (step := self._inbox.get()) is not None and not self.dead:
            try:
                step()
            except (Refused, wire.WireError, FaceplateError, ClientError, OSError) as error:
                log.warning("client %s: %s", self.client.name, error)
                self._say("", to_message(None, _mapped(error)))
            except Exception as error:
                # one client's message must not end the gateway for the others; told, and logged with its trace
                log.exception("a message of client %s met a fault", self.client.name)
                self._say("", to_message(None, error))
        for _, sink in self._sinks.values():
            sink.drop()
        for job in list(self._jobs.values()):
            self._forget(job)
        self._rooms.close()
        self._tree.close()

    def _read(self, handler: Callable[[dict[str, Any], bytes], None], head: dict[str, Any], body: bytes) -> None:
        with self._lock:
            self._unread -= len(body)
        handler(head, body)

    def _job(self, head: dict[str, Any], body: bytes) -> None:
        message = wire.decode(body)
        if (
            not isinstance(message, (wire.SubmitFrame, wire.SubmitRange, wire.SubmitAnalyse))
            or message.id != head["id"]
        ):
            raise wire.Malformed("a job has no submission in it")
        try:
            self._take(message, head)
        except (Refused, wire.WireError, FaceplateError, ClientError, OSError) as error:
            self._end(message.id, error)

    def _take(self, message: Any, head: dict[str, Any]) -> None:
        if message.id in self._jobs:
            raise Refused("input", f"job {message.id} is there already", hint="give each job an id of its own")
        if len(self._jobs) >= self._limits.jobs:
            raise Refused("limit", f"{len(self._jobs)} jobs of this client are open", hint="wait for some of them")
        if head["colour"] != self._colour:
            raise Refused(
                "input",
                "local and team server have different OCIO configurations: colours would depend on the machine",
                hint="start both with the same $OCIO",
            )
        self._count += 1
        job = TeamJob(message.id, f"{self._prefix}-{self._count}", message, head)
        rewritten(message, self._path, lambda slot: slot)  # refuses paths before anything is sent
        for path, content, size in head["shared"]:
            self._check_shared(path, content, size)
        self._contents.pin(job.contents)
        self._jobs[job.id] = self._by_inner[job.inner] = job
        for room, size, header in head["frames"]:
            job.frames.append(self._rooms.take(max(room, size)))
            job.frames[-1].header = read_header(header, size)
        job.rooms = [self._rooms.take(size) for size in head["rooms"]]
        job.waiting = set(range(len(job.frames)))
        job.missing = {content for content in job.contents if not self._contents.has(content)}
        self._post(link.encode("want", {"id": job.id, "hashes": sorted(job.missing)}))
        self._start_if_whole(job)

    def _check_shared(self, path: str, content: str, size: int) -> None:
        """The client means a file that both machines see: it has to be the same file."""
        real = self._roots.check(path)
        if not real.is_file() or real.stat().st_size != size or self._hashes.get(real) != content:
            raise Refused(
                "not_found",
                f"the team server does not have the client's file at {path}",
                expected=f"{size} bytes, SHA-256 {content[:12]}...",
                found="another file" if real.is_file() else "no file",
                hint="correct [paths] in the local server's configuration, or take it out: then files are sent",
            )

    def _path(self, path: str) -> str:
        """A path of a submission as it is on this machine.

        Raises:
            Refused: outside the client's tree and roots.
        """
        if path.startswith(SENT + "/"):
            return os.fspath(self._tree.inside(path[len(SENT) :]))
        try:
            checked = self._roots.check(path)
        except Refused as refused:
            hint = (
                f"take it out of [paths], or on the team server: faceplate keys allow {self.client.name} KEY --root DIR"
            )
            raise Refused(refused.code, refused.message, expected=refused.expected, hint=hint) from refused
        if Path(os.path.realpath(checked)).is_relative_to(os.path.realpath(self._spool)):
            raise Refused("forbidden_path", f"{path} lies in the spool", hint="send the file with the job")
        return os.fspath(checked)

    def _start_if_whole(self, job: TeamJob) -> None:
        if job.started or job.missing or job.waiting:
            return
        job.started = True
        for folder, names in job.head["listings"]:
            self._tree.keep_only(folder, names)
        for path in job.head["gone"]:
            self._tree.remove(path)
        for path, content, _, kind in job.head["files"]:
            self._tree.place(path, content, kind)
        self._make_room(job)
        inner = rewritten(job.message, self._path, lambda slot: self._room(job, slot).hand_over())
        self._ask(dataclasses.replace(inner, id=job.inner))

    def _make_room(self, job: TeamJob) -> None:
        """Folders for what the job makes, without links of earlier jobs, which may have read what this one writes."""
        brought = [path for path, *_ in job.head["files"]]
        for name in ("output", "sidecar", "pictures"):
            path = getattr(job.message, name, None)
            pattern = path.pattern if isinstance(path, wire.FileRef) else path
            if not isinstance(pattern, str) or not pattern.startswith(SENT + "/"):
                continue
            target = os.fspath(self._tree.inside(pattern[len(SENT) :]))
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            self._tree.clear(Path(target).parent, partial(is_frame_of, target), brought)
            for folder in (Path(target), job_folder(target)):
                self._tree.clear(folder, lambda _: True, brought)

    def _room(self, job: TeamJob, slot: wire.SlotRef) -> Room:
        rooms = {FRAME: job.frames, ROOM: job.rooms}.get(slot.generation, [])
        if slot.slot >= len(rooms):
            raise wire.Malformed("a submission names a slot that did not come with it")
        return rooms[slot.slot]

    # Streams of the client

    def _open(self, head: dict[str, Any], _: bytes) -> None:
        job = self._jobs.get(head["job"])
        if head["stream"] in self._sinks or len(self._sinks) >= _MOST_STREAMS:
            raise wire.Malformed("a stream's number is used twice, or there are too many")
        if job is None:
            return  # it ended meanwhile: its pieces are answered and dropped
        sink = self._sink(job, head)
        self._sinks[head["stream"]] = job, sink
        if sink.is_whole:
            self._arrived(head["stream"])

    def _sink(self, job: TeamJob, head: dict[str, Any]) -> Sink:
        if head["what"] == "frame":
            place, size = head["place"], head["size"]
            wanted = job.frames[place].header if place in job.waiting else None
            if wanted is None or wanted.nbytes != size:
                raise wire.Malformed("a frame comes that the job did not announce")
            return Sink(head, room=job.frames[place].memory(size))
        if head["what"] != "blob" or job.contents.get(head["hash"]) != head["size"]:
            raise wire.Malformed("a file comes that the job did not announce")
        return Sink(head, path=self._contents.new_file())

    def _data(self, head: dict[str, Any], body: bytes) -> None:
        job, sink = self._sinks.get(head["stream"], (None, None))
        try:
            if job is not None and sink is not None and sink.take(head["code"], body, head["size"]):
                self._arrived(head["stream"])
        except (Refused, wire.WireError, FaceplateError, OSError) as error:
            self._sinks.pop(head["stream"])
            assert job is not None
            assert sink is not None
            sink.drop()
            self._end(job.id, error)
        finally:
            self._post(link.encode("ack", {"bytes": len(body) + link.PIECE_COST}))

    def _arrived(self, stream: int) -> None:
        job, sink = self._sinks.pop(stream)
        assert job is not None
        sink.finish()
        if sink.path is None:
            job.waiting.discard(sink.head["place"])
        else:
            self._contents.keep(sink.path, sink.head["hash"])
            job.missing.discard(sink.head["hash"])
        if job.id in self._jobs:
            self._start_if_whole(job)

    # What the client says

    def _said(self, _: dict[str, Any], body: bytes) -> None:
        message = wire.decode(body)
        if isinstance(message, wire.Cancel):
            self._cancel(message)
        elif isinstance(message, (wire.Ping, wire.Status)):
            self._ask(message)
        else:
            refused = Refused("unauthorised", "this message is for a server of the same machine", hint="send jobs only")
            self._say("", to_message(getattr(message, "id", None), refused))

    def _cancel(self, message: wire.Cancel) -> None:
        job = self._jobs.get(message.id)
        if job is None:
            return
        if job.started:
            self._ask(wire.Cancel(job.inner))
        else:
            self._outbox.drop(job.id)
            self._say(job.id, wire.Cancelled(job.id, 0))
            self._forget(job)

    # What this machine's server says

    def _from_server(self, message: Any) -> None:
        if isinstance(message, wire.Pong):
            self._say("", message)
            return
        if isinstance(message, wire.StatusReply):
            mine = tuple(
                dataclasses.replace(state, id=self._by_inner[state.id].id, client=self.client.name)
                for state in message.jobs
                if state.id in self._by_inner
            )
            self._say("", dataclasses.replace(message, jobs=mine, clients=1))
            return
        job = self._by_inner.get(getattr(message, "id", None) or "")
        if job is None or isinstance(message, wire.Accepted):
            return
        if isinstance(message, wire.FrameResult):
            self._results.send_frames(job, message)
        if isinstance(message, (wire.Partial, wire.FrameResult)) and isinstance(message.output, wire.FileRef):
            self._results.send_file(job, file_of(message.output), frame=True)
        if isinstance(message, wire.ENDS) or time.monotonic() - job.synced > _SYNC_S:
            self._results.send_folder(job, message, self._path)
            job.synced = time.monotonic()
        self._say(job.id, dataclasses.replace(message, id=job.id), urgent=job.urgent)
        if isinstance(message, wire.ENDS):
            self._forget(job)

    # Ends

    def _say(self, lane: str, message: Any, *, urgent: bool = True) -> None:
        """Queue a message behind what its job sends; "" for those that wait for nothing."""
        data = wire.encode(message).replace(self._tree_bytes, b"")
        parts = link.encode("say", None, data)
        if lane:
            self._outbox.put(lane, parts, urgent=urgent)
        else:
            self._post(parts)

    def _end(self, job: str, error: BaseException) -> None:
        """End a job with an error."""
        known = self._jobs.get(job)
        if known is not None:
            if known.started:
                self._ask(wire.Cancel(known.inner))
            self._outbox.drop(job)
            self._forget(known)
        log.info("job %s of client %s ended: %s", job, self.client.name, error)
        self._say(job, to_message(job, _mapped(error)))

    def _file_failed(self, job: str, error: BaseException) -> None:
        self._inbox.put(lambda: self._end(job, error))

    def _forget(self, job: TeamJob) -> None:
        if self._jobs.pop(job.id, None) is None:
            return
        self._by_inner.pop(job.inner, None)
        self._contents.unpin(job.contents)
        for room in (*job.frames, *job.rooms):
            room.release()
        for number, (owner, sink) in list(self._sinks.items()):
            if owner is job:
                del self._sinks[number]
                sink.drop()
        for path in job.told:
            path.unlink(missing_ok=True)


def _mapped(error: BaseException) -> BaseException:
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return Refused("resource", "the team server cannot keep the job's files", found=reason, hint="see its disk")
    return error
