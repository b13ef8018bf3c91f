"""The command line's own connection to a server: a DEALER with deadlines."""

from __future__ import annotations

import secrets
import time
from typing import Any, TypeVar

import zmq

from faceplate import __version__, errors
from faceplate.errors import FaceplateError, InputError, ResourceError
from faceplate_client import wire
from faceplate_client.connection import ConnectionInfo

T = TypeVar("T")
_ANSWER_S = 5.0
_NOT_THE_INPUT = ("device", "resource", "stopping", "deadline", "limit", "unauthorised", "internal")


class Asker:
    """A connection that has said hello.

    Args:
        info: of the server.
        name: for its log.
        answer_s: seconds that each answer may take.

    Raises:
        InputError: the address is another machine's, or none.
        ResourceError: nobody answers.
        FaceplateError: the server refuses.
    """

    def __init__(self, info: ConnectionInfo, name: str, answer_s: float = _ANSWER_S) -> None:
        check_near(info.address)
        self.info = info
        self._answer_s = answer_s
        self._prefix = secrets.token_hex(4)
        self._count = 0
        self._context = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.linger = 200
        try:
            self._dealer.connect(info.address)
            hello = wire.Hello(wire.PROTOCOL_MIN, wire.PROTOCOL_MAX, name, __version__, info.token)
            self._protocol = 1
            self.send(hello)
            self.welcome = self._expect(wire.Welcome, None)
            self._protocol = self.welcome.protocol
        except zmq.ZMQError as error:
            self.close()
            raise InputError(
                f"{info.address} is no address of a server",
                expected="ipc:///PATH or tcp://HOST:PORT",
                found=str(error),
            ) from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.send(wire.Bye())
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._dealer.close()
        self._context.term()

    def next_id(self) -> str:
        """A request's name that is never used again."""
        self._count += 1
        return f"{self._prefix}-{self._count}"

    def send(self, message: Any) -> None:
        """Queue a message.

        Raises:
            InputError: a value that the wire does not take.
        """
        try:
            self._dealer.send(wire.encode(message, self._protocol))
        except wire.WireError as error:
            raise InputError(error.message, expected=error.expected, found=error.found) from error

    def ask(self, message: Any, answer: type[T]) -> T:
        """Send a request and wait for its answer; what else comes meanwhile is dropped."""
        self.send(message)
        return self._expect(answer, message.id)

    def receive(self, seconds: float) -> Any:
        """The next message, None when there is none in time.

        Raises:
            ResourceError: the server says what this version does not understand.
        """
        if not self._dealer.poll(max(0, round(seconds * 1000))):
            return None
        try:
            return wire.decode(b"".join(self._dealer.recv_multipart()))
        except wire.WireError as error:
            raise ResourceError(
                f"the server at {self.info.address} speaks another language", found=str(error), hint="update both sides"
            ) from error

    def _expect(self, answer: type[T], request: str | None) -> T:
        end = time.monotonic() + self._answer_s
        while (left := end - time.monotonic()) > 0:
            got = self.receive(left)
            if isinstance(got, wire.Error) and got.id in (request, None):
                raise rebuilt(got)
            if isinstance(got, answer) and getattr(got, "id", None) == request:
                return got
        raise ResourceError(
            f"the server at {self.info.address} does not answer within {self._answer_s:g} s",
            hint="`faceplate status` shows whether it lives",
        )


def check_near(address: str) -> None:
    """Refuse an address of another machine: what goes over this connection is not encrypted.

    Raises:
        InputError: it is one.
    """
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    if not address.startswith("tcp://") or host in ("localhost", "127.0.0.1", "::1"):
        return
    raise InputError(
        f"{address} is another machine's",
        expected="a server of this machine",
        hint="start a local server that sends its jobs there: faceplate serve --upstream tcp://HOST:PORT",
    )


def rebuilt(answer: wire.Error | wire.Failure) -> FaceplateError:
    """The server's error as the command line knows it: of the same type, with the same exit code."""
    kind = getattr(errors, answer.type, None)
    if not (isinstance(kind, type) and issubclass(kind, FaceplateError)):
        kind = ResourceError if answer.code in _NOT_THE_INPUT else InputError
    return kind(answer.message, expected=answer.expected, found=answer.found, hint=answer.hint)
