"""What a job asks for: settings that may be keyed by frame, who becomes whom, where it goes.

All values are frozen and check themselves when built, so that a wrong setting fails before a frame is read.
"""

from __future__ import annotations

import bisect
import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from .errors import SettingError

MissingPolicy = Literal["error", "skip", "hold"]
FailedPolicy = Literal["none", "plate"]
"""What a movie is of which a frame failed: there is none, or the plate stands in."""


class FrameState(StrEnum):
    """How a frame of a job ended."""

    DONE = "done"
    NO_FACE = "no face"
    HELD = "held"
    SKIPPED = "skipped"
    FAILED = "failed"


FINISHED = frozenset({FrameState.DONE, FrameState.NO_FACE, FrameState.HELD})
"""States that leave an output file."""


def _setting(default: float | bool, low: float, high: float, doc: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "doc": doc})


@dataclass(frozen=True, slots=True)
class SwapSettings:
    """The settings of one face in one frame. Fractions of the face mean of `Observation.width_px`.

    Raises:
        SettingError: a value lies outside its range.
    """

    strength: float = _setting(1.0, 0.0, 1.0, "how much of the change is applied; 0 gives the plate bit for bit")
    shape: float = _setting(0.0, 0.0, 1.0, "how far the face takes the identity's proportions")
    colour: float = _setting(1.0, 0.0, 1.0, "how far the identity's colour follows the plate's light")
    detail: float = _setting(1.0, 0.0, 1.0, "how far sharpness and grain follow the plate's")
    keep_eyes: bool = _setting(True, 0, 1, "keep the plate's eyes")
    keep_mouth: bool = _setting(True, 0, 1, "keep the plate's inner mouth; always where the photos' lips are closed")
    occluders: bool = _setting(True, 0, 1, "keep out what is in front of the face, as far as it is recognised")
    matte_grow: float = _setting(0.0, -0.2, 0.1, "move the matte's edge, fraction of the face width, outwards positive")
    matte_soften: float = _setting(0.05, 0.0, 0.3, "width of the matte's soft edge, fraction of the face width")
    yaw_fade_from: float = _setting(50.0, 0.0, 90.0, "head turn in degrees at which the change begins to fade")
    yaw_fade_to: float = _setting(75.0, 0.0, 90.0, "head turn in degrees at which the change is gone")
    boost: float = _setting(0.0, 0.0, 4.0, "neural engines: crops a side for one face, 0 by the face's size")
    reference_paste: bool = _setting(False, 0, 1, "neural engines: blend as InsightFace does, for comparison")
    restore: float = _setting(0.8, 0.0, 1.0, "restorers: how much of their change is taken")
    fidelity: float = _setting(0.5, 0.0, 1.0, "CodeFormer: 0 the most beautiful, 1 the most faithful")
    expression: float = _setting(0.0, 0.0, 1.0, "LivePortrait: how far the face takes the plate's expression again")
    age_years: float = _setting(0.0, -60.0, 60.0, "age editors: years that are added, below 0 taken away")
    age_now: float = _setting(40.0, 5.0, 95.0, "age editors: age of the person, years")
    edit_brows: float = _setting(0.0, -1.0, 1.0, "LivePortrait: direction of the eyebrows")
    edit_eyes: float = _setting(0.0, -1.0, 1.0, "LivePortrait: eyes closed to open")
    edit_gaze_x: float = _setting(0.0, -1.0, 1.0, "LivePortrait: gaze to the picture's left or right")
    edit_gaze_y: float = _setting(0.0, -1.0, 1.0, "LivePortrait: gaze down or up")
    edit_lips: float = _setting(0.0, -1.0, 1.0, "LivePortrait: lips closed to open")
    edit_grim: float = _setting(0.0, -1.0, 1.0, "LivePortrait: the mouth's middle up or down")
    edit_pout: float = _setting(0.0, -1.0, 1.0, "LivePortrait: lips in or forward")
    edit_purse: float = _setting(0.0, -1.0, 1.0, "LivePortrait: lips wide or narrow")
    edit_smile: float = _setting(0.0, -1.0, 1.0, "LivePortrait: corners of the mouth down or up")
    edit_mouth_x: float = _setting(0.0, -1.0, 1.0, "LivePortrait: mouth to the picture's left or right")
    edit_mouth_y: float = _setting(0.0, -1.0, 1.0, "LivePortrait: mouth down or up")
    edit_pitch: float = _setting(0.0, -1.0, 1.0, "LivePortrait: head down or up")
    edit_yaw: float = _setting(0.0, -1.0, 1.0, "LivePortrait: head to one side or the other")
    edit_roll: float = _setting(0.0, -1.0, 1.0, "LivePortrait: head tilted to one side or the other")

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            low, high = spec.metadata["low"], spec.metadata["high"]
            if not (isinstance(value, int | float) and low <= value <= high):
                raise SettingError(
                    f"setting {spec.name} is out of range",
                    expected=f"{low}..{high}",
                    found=str(value),
                    hint=spec.metadata["doc"],
                )
        if self.yaw_fade_to <= self.yaw_fade_from:
            raise SettingError(
                "yaw_fade_to must lie above yaw_fade_from",
                found=f"{self.yaw_fade_from} to {self.yaw_fade_to}",
                hint="the change fades between the two head turns",
            )


SETTING_FIELDS: Mapping[str, dataclasses.Field[Any]] = MappingProxyType(
    {spec.name: spec for spec in dataclasses.fields(SwapSettings)}
)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A value over time: constant before the first key and after the last, linear between (switches: held).

    Attributes:
        keys: ((frame, value), ...), at least one, frames rising.
        held: True for switches, whose value holds until the next key.
    """

    keys: tuple[tuple[int, float], ...]
    held: bool = False

    def __post_init__(self) -> None:
        frames = [frame for frame, _ in self.keys]
        if not frames or sorted(set(frames)) != frames:
            raise SettingError(
                "keys must be rising frame numbers, each once",
                found=str(frames),
                hint="for example strength=1001:0,1010:1",
            )

    def at(self, frame: int) -> float:
        """The value in `frame`."""
        after = bisect.bisect_right([key for key, _ in self.keys], frame)
        if after == 0:
            return self.keys[0][1]
        if after == len(self.keys) or self.held:
            return self.keys[after - 1][1]
        (left, a), (right, b) = self.keys[after - 1], self.keys[after]
        return a + (b - a) * (frame - left) / (right - left)


def _parse_value(name: str, text: str) -> float:
    spec = SETTING_FIELDS[name]
    word = text.strip().lower()
    if isinstance(spec.default, bool) and word in ("on", "off", "true", "false", "yes", "no"):
        return float(word in ("on", "true", "yes"))
    try:
        return float(word)
    except ValueError as error:
        raise SettingError(
            f"setting {name} has a value that is no number", found=repr(text), hint=spec.metadata["doc"]
        ) from error


def check_setting_name(name: str) -> None:
    """Raise SettingError with near names unless `name` is a setting."""
    if name not in SETTING_FIELDS:
        near = difflib.get_close_matches(name, SETTING_FIELDS, n=3, cutoff=0.4)
        raise SettingError(
            f"no setting is called {name!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else f"settings are {', '.join(SETTING_FIELDS)}",
        )


def parse_setting(name: str, value: object) -> Keyed:
    """One setting as text (`"0.5"`, `"on"`, `"1001:0,1010:1"`), number, switch or mapping of frame to value.

    Raises:
        SettingError: unknown name, not a number, value out of range, keys not rising.
    """
    check_setting_name(name)
    if isinstance(value, Mapping):
        pairs = [(str(frame), str(key)) for frame, key in value.items()]
    elif isinstance(value, str) and ":" in value:
        pairs = [(frame, key) for frame, _, key in (part.partition(":") for part in value.split(","))]
    else:
        pairs = [("0", str(value))]
    try:
        keys = tuple((int(frame), _parse_value(name, key)) for frame, key in pairs)
    except ValueError as error:
        raise SettingError(
            f"setting {name} has a key that is no frame number",
            found=str(value),
            hint=f"for example {name}=1001:0,1010:1",
        ) from error
    spec = SETTING_FIELDS[name]
    for _, number in keys:
        if not spec.metadata["low"] <= number <= spec.metadata["high"]:
            raise SettingError(
                f"setting {name} is out of range",
                expected=f"{spec.metadata['low']}..{spec.metadata['high']}",
                found=str(number),
                hint=spec.metadata["doc"],
            )
    return Keyed(keys, held=isinstance(spec.default, bool))


@dataclass(frozen=True, slots=True)
class KeyedSettings:
    """Settings over the shot; those not named have their default.

    Attributes:
        values: by setting name.
    """

    values: Mapping[str, Keyed] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name in self.values:
            check_setting_name(name)
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> KeyedSettings:
        """From names and values as `parse_setting` takes them."""
        return cls({name: parse_setting(name, value) for name, value in values.items()})

    def at(self, frame: int) -> SwapSettings:
        """The settings in `frame`."""
        sampled: dict[str, Any] = {}
        for name, keyed in self.values.items():
            value = keyed.at(frame)
            sampled[name] = value != 0 if isinstance(SETTING_FIELDS[name].default, bool) else value
        return SwapSettings(**sampled)

    def to_json(self) -> dict[str, list[list[float]]]:
        """JSON values that `from_json` takes back: name to [[frame, value], ...]."""
        return {name: [[frame, value] for frame, value in keyed.keys] for name, keyed in sorted(self.values.items())}

    @classmethod
    def from_json(cls, document: Mapping[str, list[list[float]]]) -> KeyedSettings:
        """The inverse of `to_json`."""
        return cls.parse({name: {int(frame): value for frame, value in keys} for name, keys in document.items()})


@dataclass(frozen=True, slots=True)
class Assignment:
    """One track, or a rule that picks tracks, becomes one identity.

    Attributes:
        identity: path of the .fpid file.
        track: a track id; "main" for the face that fills most of the shot (and after a cut the one that fills most of
            what follows); "all" for every track; "auto" for the tracks that a recogniser says are one person.
        like: of "auto", the .fpid of the person who is in the plate; None for the identity itself.
    """

    identity: Path
    track: int | Literal["main", "all", "auto"] = "main"
    like: Path | None = None

    @property
    def who(self) -> str:
        """What stands after the @ on the command line."""
        return str(self.track if self.like is None else self.like)


@dataclass(frozen=True, slots=True)
class HoldOut:
    """A matte of what must stay the plate: 1 keeps the plate, 0 lets the change through.

    Attributes:
        pattern: file or sequence, same raster as the plate.
        layer: EXR layer or channel to read; "" takes alpha, else the first channel.
    """

    pattern: str
    layer: str = ""
