"""Calls of Resolve made honest: what it said is not believed, what it did is read back.

Resolve answers None or False where something went wrong, never says what, and sometimes says True and does nothing.
So a write is one call, one look whether it came true, one more try, and then an error that names call and clip.
`hasattr` is always true on its objects; `dir` is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from faceplate_client.errors import HostError

T = TypeVar("T")

TRIES = 2
PAUSE_S = 0.2
"""Seconds before the second."""
MODAL = "if Resolve shows a dialog, answer it: until then its calls fail"


def knows(thing: Any, method: str) -> bool:
    """Whether an object of Resolve has a method in this version."""
    try:
        return method in dir(thing)
    except Exception:
        return False


def asked(call: str, name: str, read: Callable[[], T | None]) -> T:
    """What a call gives.

    Args:
        call: its name, for the error.
        name: of the clip, timeline or project that it is about.
        read: makes it.

    Raises:
        HostError: it gave None, or Resolve raised something.
    """
    try:
        answer = read()
    except HostError:
        raise
    except Exception as error:  # what crosses Resolve's bridge has no common base
        raise HostError(f"{call} failed for {name!r}", found=f"{type(error).__name__}: {error}", hint=MODAL) from error
    if answer is None:
        raise HostError(f"{call} gave nothing for {name!r}", hint=MODAL)
    return answer


def maybe(read: Callable[..., T], *words: Any) -> T | None:
    """What a call gives, None where Resolve raised something."""
    try:
        return read(*words)
    except Exception:  # as above
        return None


def done(
    call: str,
    name: str,
    write: Callable[[], Any],
    came_true: Callable[[], bool],
    *,
    kind: type[HostError] = HostError,
    hint: str = MODAL,
) -> None:
    """Make a call that changes something, and see that it did; tried twice.

    Args:
        call: its name, for the error.
        name: of the clip, timeline or project that it is about.
        write: makes it. Its answer is told in the error and else not believed.
        came_true: whether the document is as it should be.
        kind: of error.
        hint: next step of the artist.

    Raises:
        HostError: of `kind`; it did not come true.
    """
    said: Any = None
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE_S)
        try:
            said = write()
        except HostError:
            raise
        except Exception as error:  # as above
            said = f"{type(error).__name__}: {error}"
        if maybe(came_true):
            return
    raise kind(f"{call} did not take effect for {name!r}", found=f"it answered {said!r}", hint=hint)


def whole(value: Any, default: int | None = None) -> int | None:
    """A frame number or count as Resolve gives it: a number, or a text with one; `default` for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return default
    return round(number) if number == number and abs(number) < 2**53 else default


def rate(value: Any) -> float:
    """Frames a second as Resolve gives them, a number or a text ("24", "23.976", "29.97 DF"); 0.0 for anything else.

    The rounded rates of NTSC come back exact.
    """
    try:
        number = float(str(value).split()[0])
    except (IndexError, ValueError):
        return 0.0
    if not 0 < number < 100_000:
        return 0.0
    exact = round(number) * 1000 / 1001
    return exact if abs(number - exact) < 0.006 and abs(number - round(number)) > 0.001 else number
