"""A TCP line between two programs that can be slowed down, held and cut."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

_PIECE = 16384


class Line:
    """Listens on 127.0.0.3 and passes what comes on to `target`.

    Attributes:
        rate: bytes a second in each direction, 0 for no limit.
        held: nothing passes while it is set.
        passed: bytes that went towards the target.
    """

    def __init__(self, target: tuple[str, int], rate: float = 0.0) -> None:
        self.target = target
        self.rate = rate
        self.held = threading.Event()
        self.passed = 0
        self.connections = 0
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.3", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """As `upstream` takes it."""
        host, port = self._listener.getsockname()
        return f"tcp://{host}:{port}"

    def cut(self) -> None:
        """End all connections; new ones are taken."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target, 5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for end in (near, far):
                # small buffers, so that the line is as slow as it says
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            with self._lock:
                self._ends += [near, far]
                self.connections += 1
            threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, towards: bool) -> None:
        try:
            while data := source.recv(_PIECE):
                while self.held.is_set():
                    time.sleep(0.01)
                if self.rate:
                    time.sleep(len(data) / self.rate)
                target.sendall(data)
                if towards:
                    self.passed += len(data)
        except OSError:
            pass
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
