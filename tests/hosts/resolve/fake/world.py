"""What all objects of the made-up Resolve share: its version, its traps, and how it is made to misbehave.

Written from what is documented and what others measured on real ones. Standard library alone, so that it runs in every
Python that Resolve may bring.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SINCE: dict[str, tuple[int, ...]] = {
    "Timeline.GetSelectedClips": (21, 0, 4),
    "TimelineItem.GetSourceStartFrame": (19, 0),
    "TimelineItem.GetSourceEndFrame": (19, 0),
}
"""Methods that older versions do not have."""
SPACES = frozenset(
    {"ACEScg", "ACES2065-1", "Rec.709 (Scene)", "Rec.709 Gamma 2.4", "sRGB", "Sony S-Gamut3.Cine/S-Log3", "Some Camera"}
)


@dataclass
class World:
    """One running Resolve.

    Attributes:
        product: edition.
        version: as numbers.
        counts_from_number: whether source frames of a sequence are counted from its first file's number rather than 0.
        take_end_exclusive: whether the end of a take is the frame after its last.
        track_index: whether a track can be put between others.
        page: that is open; None with -nogui.
        modal: a dialog is open, as after one of Studio's calls in the free edition: calls fail until it is closed.
        faults: "Timeline.DeleteClips" to how it fails ("false", "none", "lie", "raise") and how often.
        calls: names of all calls.
        polls_a_frame: how often a render has to be looked at before it goes on by a frame.
        spaces: names of colour spaces that can be set.
        frames_of: how many frames a movie has.
    """

    product: str = "DaVinci Resolve Studio"
    version: tuple[int, ...] = (21, 0, 4)
    counts_from_number: bool = False
    take_end_exclusive: bool = True
    track_index: bool = True
    page: str | None = "color"
    modal: bool = False
    faults: dict[str, list[Any]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    polls_a_frame: int = 1
    spaces: frozenset[str] = SPACES
    frames_of: Callable[[str], int] = len

    def __post_init__(self) -> None:
        self.thread = threading.get_ident()
        self._ids = itertools.count(1)

    def new_id(self) -> str:
        return f"uid-{next(self._ids):04d}"

    def fail(self, call: str, how: str, times: int = 1 << 30) -> None:
        """Let a call fail from now on."""
        self.faults[call] = [how, times]


def _guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *words: Any, **options: Any) -> Any:
        world: World = self._world
        assert threading.get_ident() == world.thread, f"{name} off the thread that owns Resolve"
        world.calls.append(name)
        if world.modal:
            return None
        fault = world.faults.get(name)
        if fault is not None and fault[1] > 0:
            fault[1] -= 1
            if fault[0] == "raise":
                raise RuntimeError("the bridge is gone")
            return {"false": False, "none": None, "lie": True}[fault[0]]
        return method(self, *words, **options)

    return call


class Remote:
    """An object on Resolve's side of the bridge: `hasattr` is always true, `dir` tells the truth."""

    _kind = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._kind = cls._kind or cls.__name__
        for name, value in list(vars(cls).items()):
            if name[0].isupper() and callable(value):
                setattr(cls, name, _guarded(f"{cls._kind}.{name}", value))

    def __init__(self, world: World) -> None:
        self._world = world
        self._id = world.new_id()

    def __getattribute__(self, name: str) -> Any:
        if name[0].isupper():
            world, kind = object.__getattribute__(self, "_world"), object.__getattribute__(self, "_kind")
            if world.version < SINCE.get(f"{kind}.{name}", ()):
                return None
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return None

    def __dir__(self) -> list[str]:
        names = [name for name in object.__dir__(self) if name[0].isupper()]
        return [name for name in names if self._world.version >= SINCE.get(f"{self._kind}.{name}", ())]

    def GetUniqueId(self) -> str:
        return self._id
