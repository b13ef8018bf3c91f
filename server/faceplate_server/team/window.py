"""How many bytes may be on their way at once, so that nothing queues up in front of a ping or an interactive frame."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_LEAST, _FIRST, _MOST = 1 << 17, 1 << 18, 1 << 24
_QUICK_S, _SLOW_S = 0.1, 0.3
_LOOK_S = 0.1


class Window:
    """Bytes sent and not yet answered. May be used from several threads.

    It follows the link: answers within a tenth of a second let it grow, answers after three tenths make it shrink, so
    that a slow line holds some 0.3 s of data and a fast one is filled. Memory on both sides is bounded by it.
    """

    def __init__(self) -> None:
        self.limit = _FIRST
        self._on_the_way = 0
        self._urgent = 0
        self._sent: deque[tuple[float, int]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def take(self, size: int, *, urgent: bool, given_up: Callable[[], bool]) -> bool:
        """Wait until `size` bytes may be sent; False when the caller gave up or the connection is gone.

        Whoever is urgent goes first. A piece larger than the window goes when nothing else is on its way.
        """
        with self._changed:
            self._urgent += urgent
            try:
                while not self._closed and not given_up():
                    fits = self._on_the_way == 0 or self._on_the_way + size <= self.limit
                    if fits and (urgent or not self._urgent):
                        self._on_the_way += size
                        self._sent.append((time.monotonic(), size))
                        return True
                    self._changed.wait(_LOOK_S)
                return False
            finally:
                self._urgent -= urgent
                self._changed.notify_all()

    def answered(self, size: int) -> bool:
        """The other side is through with `size` bytes; False when it never had as many."""
        with self._changed:
            if size > self._on_the_way:
                return False
            self._on_the_way -= size
            while size > 0 and self._sent:
                at, part = self._sent.popleft()
                if part > size:
                    self._sent.appendleft((at, part - size))
                size -= part
                self._follow(time.monotonic() - at, part)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """The connection is gone: nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _follow(self, delay: float, size: int) -> None:
        if delay < _QUICK_S:
            self.limit = min(_MOST, self.limit + size // 4)
        elif delay > _SLOW_S:
            self.limit = max(_LEAST, self.limit - size // 2)
