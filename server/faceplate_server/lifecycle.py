"""From start to stop: one server a user and name, found by its connection file, ready once its nets are warm."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time

from faceplate import __version__
from faceplate.errors import FaceplateError, InputError, ResourceError
from faceplate.jobs.cancel import stop_on_signals
from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo, remove_connection, write_connection
from faceplate_client.slots import sweep

from .config import ServerConfig
from .frames.ledger import FrameLedger
from .handlers import Card, Handlers
from .page.service import StatusPage
from .parent import ParentWatch
from .rings import RingLimits, RingTable, key_of
from .roots import Roots
from .socket_loop import SocketLoop
from .team.ends import make_upstream, open_gateway, team_roots, team_view
from .team.upstream import UpstreamWorker
from .workers.crew import Crew
from .workers.members import CrewPlan
from .workers.start import Process
from .workers.threads import Worker

log = logging.getLogger(__name__)

_SWEEP_S = 5.0
_SWITCH_S = 0.0005
"""How long a working thread may keep the loop's thread from answering; Python's own 5 ms is a third of a frame."""
_SOCKET_PATH = 103
"""Bytes that the path of a Unix socket may have; macOS allows the least."""


class Server:
    """One run of the server, in the main thread.

    Args:
        config: its settings.
        parent: process that it must not outlive, None for none.
        ahead: worker processes that were started already.
    """

    def __init__(self, config: ServerConfig, parent: int | None = None, ahead: list[Process] | None = None) -> None:
        self.config = config
        self.place = config.place
        self._ahead = ahead
        self._parent = None if parent is None else ParentWatch(parent)
        self._stop_wanted = threading.Event()
        self._stop_by: float | None = None
        self._warm = threading.Event()
        self._failure: BaseException | None = None
        self._swept = time.monotonic()
        self._loop: SocketLoop | None = None
        self._handlers: Handlers | None = None
        self._page: StatusPage | None = None

    def stop(self) -> None:
        """Finish the current frames and exit; from any thread or signal handler."""
        self._stop_wanted.set()
        if self._loop is not None:
            self._loop.wake()

    def run(self) -> int:
        """Serve until stopped.

        Returns:
            0, or 1 when frames were still at work at the end of `stop_s`.

        Raises:
            InputError: another server of this name runs, or the socket cannot be made.
            ResourceError, ColourSpaceError: the device or the nets are not available.
            ClientError: the folder is not this user's alone.
        """
        lock = self.place.server_lock()
        if not lock.acquire(1.0):
            raise InputError(
                f"a server called {self.place.name!r} runs already",
                hint="`faceplate status` shows it; --name starts one beside it",
            )
        sys.setswitchinterval(_SWITCH_S)
        with lock, stop_on_signals(self._stop_wanted.is_set, self.stop):
            swept = sweep(self.place.folder)
            log.info("Faceplate %s server %r starts, process %d", __version__, self.place.name, os.getpid())
            if swept:
                log.info("removed %d frame rings of dead clients", len(swept))
            loop = self._bind()
            try:
                return self._serve(loop)
            finally:
                if self._page is not None:
                    self._page.close()
                remove_connection(self.place)
                loop.close()
                self.place.socket.unlink(missing_ok=True)
                if self._parent is not None:
                    self._parent.close()
                log.info("stopped")

    def _bind(self) -> SocketLoop:
        if self.config.transport == "tcp":
            return SocketLoop("tcp://127.0.0.1:*")
        path = self.place.socket
        if len(os.fsencode(path)) > _SOCKET_PATH:
            raise InputError(
                f"the path of the socket is too long: {path}",
                expected=f"at most {_SOCKET_PATH} bytes",
                hint="set a shorter folder in the server's configuration",
            )
        path.unlink(missing_ok=True)  # of a server that was killed: this one holds the lock
        loop = SocketLoop(f"ipc://{path}")
        path.chmod(0o600)
        return loop

    def _serve(self, loop: SocketLoop) -> int:
        config = self.config
        frame_bytes = config.max_frame_mb << 20
        rings = RingTable(self.place.folder, RingLimits(config.max_slots, frame_bytes, config.max_rings))
        roots = Roots(team_roots(config))
        worker = self._worker(rings, roots, loop)
        token = secrets.token_urlsafe(32) if config.transport == "tcp" else ""
        limits = wire.Limits(wire.MAX_BYTES, frame_bytes, config.max_slots, config.max_clients, config.max_jobs)
        card = Card(secrets.token_hex(8), token, limits, tuple(map(str, roots.folders)))
        self._handlers = loop.handlers = Handlers(card, worker, loop.send, self.stop)
        self._loop = loop
        info = ConnectionInfo(
            loop.address,
            token,
            os.getpid(),
            card.instance,
            wire.PROTOCOL_MIN,
            wire.PROTOCOL_MAX,
            time.time(),
        )
        self._page = StatusPage(self.place, self._handlers, config.page_port) if config.page else None
        gateway = open_gateway(config, info, limits)
        write_connection(self.place, info)
        threading.Thread(target=self._warm_up, args=(worker,), name="warm-up", daemon=True).start()
        if gateway is not None:
            gateway.start()
        try:
            loop.run(self._tick)
        finally:
            if gateway is not None:
                gateway.close()
        if self._failure is not None:
            raise self._failure
        ended = worker.close(0.5 if self._handlers.jobs else 5.0)
        if not ended:
            log.error("%d jobs were still at work and are lost", len(self._handlers.jobs))
        return 0 if ended else 1

    def _worker(self, rings: RingTable, roots: Roots, loop: SocketLoop) -> Worker | UpstreamWorker:
        config = self.config
        if config.upstream:
            return make_upstream(config, rings, roots, loop.tell)
        plan = CrewPlan(
            devices=config.devices,
            threads=config.threads,
            nice=config.nice,
            shots=config.shots,
            warm_bytes=config.warm_mb << 20,
            roots=roots.folders,
            folder=rings.folder,
            limits=rings.limits,
        )
        ledger = FrameLedger(config.ledger_path, roots)
        return Worker(
            Crew(plan, self._ahead), rings, roots, ledger, loop.tell, shots=config.shots, team=team_view(config)
        )

    def _warm_up(self, worker: Worker | UpstreamWorker) -> None:
        try:
            worker.warm_up()
        except FaceplateError as error:
            self._failure = error
        except Exception as error:
            log.exception("the server met a fault while it started")
            self._failure = ResourceError(f"the server cannot start: {type(error).__name__}", found=str(error))
        else:
            log.info("ready: %s", worker.summary)
        self._warm.set()
        assert self._loop is not None
        self._loop.wake()

    def _tick(self) -> bool:
        """The loop's pulse: False ends it."""
        handlers, now = self._handlers, time.monotonic()
        assert handlers is not None
        if self._failure is not None:
            return False
        handlers.ready = self._warm.is_set()
        if self._page is not None:
            self._page.look(handlers)
        handlers.stop_late_jobs()
        if now - self._swept > _SWEEP_S:
            self._swept = now
            self._sweep(handlers)
        if not self._stop_wanted.is_set() and self._why_stop(handlers, now):
            self._stop_wanted.set()
        if not self._stop_wanted.is_set():
            return True
        if self._stop_by is None:
            self._stop_by = now + self.config.stop_s
            handlers.stop_all()
        return bool(handlers.jobs) and now < self._stop_by

    def _sweep(self, handlers: Handlers) -> None:
        in_use = [key_of(slot) for job in handlers.jobs.values() for slot in job.slots()]
        for path in handlers.worker.rings.sweep(in_use):
            log.info("removed the frame ring %s of a dead client", path.name)
        if isinstance(handlers.worker, Worker):
            handlers.worker.ledger.settle(handlers.clients.keys())

    def _why_stop(self, handlers: Handlers, now: float) -> bool:
        idle = self.config.idle_s
        if idle and not handlers.jobs and now - handlers.heard > idle:
            log.info("nothing to do for %g s: the server stops", idle)
            return True
        if self._parent is not None and not self._parent.is_alive():
            log.info("process %d is gone: the server stops", self._parent.pid)
            return True
        return False
