"""Every error that the leaf client raises on purpose.

    ClientError
    ├── ConnectionFailed             no server answers at the address
    │   ├── ServerNotFound               no connection file, or its server is gone
    │   ├── ConnectionLost               the peer went away in mid-talk
    │   ├── ServerRestarted              another instance answers: jobs and frames must be sent again
    │   ├── LaunchFailed                 a server was started and did not come up; `log` has its last words
    │   └── UnsafeFile                   a folder or file that others could have written: not trusted
    ├── TimedOut                     a deadline passed
    │   ├── ConnectTimeout               connecting and the handshake
    │   ├── RequestTimeout               one request and its answer
    │   └── TotalTimeout                 a whole job
    ├── ProtocolError                the peer does not speak as agreed
    │   ├── PeerError                    not ZMTP 3, wrong mechanism, frame too large, command out of place
    │   ├── MalformedMessage             no JSON, a field missing, unknown or of the wrong type
    │   ├── UnknownMessage               a type that is not in the table
    │   └── UnsupportedVersion           a protocol version outside the range
    ├── ServerError                  the server answered with an error; `code`, `type`, `job_id` tell which
    ├── WrongThread                  a client object was used from a second thread
    ├── HostError                    the host application and what is in its document
    │   ├── NoClips                      nothing is selected, or nothing that could be worked on
    │   ├── ClipGone                     a clip or result is not in the document any more
    │   ├── BadClip                      a clip that contradicts itself
    │   ├── BadFrames                    frame numbers that make no sense
    │   ├── CannotDo                     this application, edition or version cannot do that
    │   ├── ActionStopped                the application closes while an action runs
    │   ├── BakeFailed                   the host could not render the clip
    │   └── PlaceFailed                  the host did not take the result, or did not let it go
    ├── ResultError                  files of results
    │   ├── FramesMissing                files that should be there are not
    │   ├── FolderFailed                 a result folder cannot be made or written
    │   └── RecordDamaged                a job record or sidecar cannot be read
    └── RingError                    frames in shared memory
        ├── RingNoSpace                  no room for the ring, or no free slot
        ├── RingNoResult                 a slot came back empty
        ├── RingStale                    another generation, use or file than was promised
        ├── RingWrongSize                a frame or file that does not fit
        ├── RingWrongFormat              not a ring, or one of another version
        └── RingWrongState               a slot is in another hand than the call needs

Operating system errors are mapped where they enter; what is left (a wrong argument type) is the caller's mistake.
"""

from __future__ import annotations

from . import wire


class ClientError(Exception):
    """Root of the tree.

    Args:
        message: one sentence, naming the address, file or value at fault.
        expected: what would have been right, or None where the message says it.
        found: what was there instead.
        hint: the artist's next step; each class has one for when none is given.
    """

    default_hint = "see the log of the Faceplate server"

    def __init__(
        self, message: str, *, expected: str | None = None, found: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expected = expected
        self.found = found
        self.hint = hint if hint is not None else self.default_hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        return "; ".join(parts)


class ConnectionFailed(ClientError):
    """No server answers at the address."""

    default_hint = "start the server with `faceplate serve`, or see `faceplate status`"


class ServerNotFound(ConnectionFailed):
    """There is no connection file, or the server that wrote it is gone."""


class ConnectionLost(ConnectionFailed):
    """The peer closed the connection in mid-talk."""

    default_hint = "the server may have stopped: see its log, then send the job again"


class ServerRestarted(ConnectionFailed):
    """The connection is back, but to another instance: it knows nothing of earlier jobs and frames."""

    default_hint = "send the job again; finished frames of a range are kept"


class LaunchFailed(ConnectionFailed):
    """A server was started and did not come up.

    Args:
        log: the last lines of its output.
    """

    default_hint = "run `faceplate serve` in a terminal to see what is wrong"

    def __init__(self, message: str, *, log: str = "", found: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, found=found, hint=hint)
        self.log = log

    def __str__(self) -> str:
        return super().__str__() + (f"\nlast lines of the server's log:\n{self.log}" if self.log else "")


class UnsafeFile(ConnectionFailed):
    """A folder or file belongs to somebody else or is open to others, so that nothing in it is trusted."""

    default_hint = "remove it, or set its mode to 0700 (folder) or 0600 (file)"


class TimedOut(ClientError):
    """A deadline passed."""

    default_hint = "the server is busy or stuck: see `faceplate status`"


class ConnectTimeout(TimedOut):
    """Connecting and the handshake took too long."""


class RequestTimeout(TimedOut):
    """One request was not answered in time."""


class TotalTimeout(TimedOut):
    """A whole job did not end in time."""

    default_hint = "give the job a longer deadline, or fewer frames"


class ProtocolError(ClientError):
    """The peer does not speak as agreed."""

    default_hint = "plug-in and server must come from the same Faceplate release: update both"


class PeerError(ProtocolError):
    """The peer breaks the rules of ZMTP 3.0 with the NULL mechanism, or the size limits."""

    default_hint = "another program listens at this address, or the server needs an update"


class MalformedMessage(ProtocolError):
    """A message that is no JSON object, or has a field missing, too many or of the wrong type."""


class UnknownMessage(ProtocolError):
    """A message type that is not in the table."""


class UnsupportedVersion(ProtocolError):
    """A protocol version outside the range that this side speaks."""


class ServerError(ClientError):
    """The server answered with an error.

    Args:
        answer: the error as it came.
    """

    def __init__(self, answer: wire.Error) -> None:
        super().__init__(answer.message, expected=answer.expected, found=answer.found, hint=answer.hint)
        self.code = answer.code
        self.type = answer.type
        self.job_id = answer.id


class WrongThread(ClientError):
    """A client object was used from another thread than the one that made it."""

    default_hint = "make one client a thread"


class HostError(ClientError):
    """The host application, and what is in its document."""

    default_hint = "see the application's console"


class NoClips(HostError):
    """Nothing is selected, or nothing that could be worked on."""

    default_hint = "select a clip with a picture: a movie, an image sequence, or a node"


class ClipGone(HostError):
    """A clip or result is not in the document any more."""

    default_hint = "select the clip and apply again"


class BadClip(HostError):
    """A clip that contradicts itself."""

    default_hint = "relink the clip's source"


class BadFrames(HostError):
    """Frame numbers that make no sense."""

    default_hint = "give first and last frame, for example 1001-1100"


class CannotDo(HostError):
    """This application, edition or version cannot do that."""

    default_hint = "see the plug-in's notes on what this application can do"


class ActionStopped(HostError):
    """The application closes while an action runs."""

    default_hint = "apply again: finished frames are kept"


class BakeFailed(HostError):
    """The host could not render the clip."""

    default_hint = "render the clip to EXR yourself and use that as the source"


class PlaceFailed(HostError):
    """The host did not take the result, or did not let it go. The files are there."""

    default_hint = "the frames are on disk: see the job record beside them"


class ResultError(ClientError):
    """Files of results."""


class FramesMissing(ResultError):
    """Files that should be there are not."""

    default_hint = "refresh the result: only what is missing is done again"


class FolderFailed(ResultError):
    """A result folder cannot be made or written."""

    default_hint = "choose another output folder in the plug-in's preferences"


class RecordDamaged(ResultError):
    """A job record or sidecar cannot be read."""

    default_hint = "apply again: finished results on disk stay as they are"


class RingError(ClientError):
    """Frames in shared memory."""

    default_hint = "close the frame ring and make a new one"


class RingNoSpace(RingError):
    """No room for the ring in shared memory, or every slot is in use."""

    default_hint = "free shared memory (in containers: --shm-size), or use fewer or smaller slots"


class RingNoResult(RingError):
    """A slot came back from the server without a result."""

    default_hint = "send the frame again"


class RingStale(RingError):
    """The ring or slot is another one than the reference promised."""

    default_hint = "send the frame again"


class RingWrongSize(RingError):
    """A frame that does not fit its slot, or a file whose size contradicts its header."""


class RingWrongFormat(RingError):
    """Not a frame ring, or one of another version."""

    default_hint = ProtocolError.default_hint


class RingWrongState(RingError):
    """A slot is in another hand than the call needs."""

    default_hint = "wait for the job that uses the slot, or cancel it"


_BY_WIRE_ERROR: dict[type[wire.WireError], type[ProtocolError]] = {
    wire.Malformed: MalformedMessage,
    wire.UnknownMessage: UnknownMessage,
    wire.UnsupportedVersion: UnsupportedVersion,
}


def from_wire(error: wire.WireError) -> ProtocolError:
    """The client's error for one that `wire` raised."""
    kind = _BY_WIRE_ERROR.get(type(error), ProtocolError)
    return kind(error.message, expected=error.expected, found=error.found)
