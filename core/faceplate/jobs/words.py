"""The options of `faceplate apply` as text, wherever they come from: a command line, a queue, a farm's task.

Imports little, since the command line reads it before it knows what it is asked for.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from ..errors import SettingError
from ..job import SETTING_FIELDS, Assignment, FailedPolicy, HoldOut, KeyedSettings, MissingPolicy

if TYPE_CHECKING:
    from .spec import ApplyJob, MovieOutput

PATHS = ("plate", "output", "faces", "holdout", "settings")
"""Fields that name files; those of `identity` do too."""


@dataclass(frozen=True, slots=True)
class ApplyWords:
    """A job in the words of `faceplate apply`, which explains them; an underscore here is a dash there.

    Attributes:
        plate: file, folder, movie or pattern.
        output: file, movie or pattern.
        identity: FILE.fpid[@TRACK], one or several.
        restore: id of a restorer that follows the engine's swapper and editors.
        matte: ids of nets that say where the face is.
        edit: ID or ID:KEY=VALUE of editors, in the order in which they work.
        set: KEY=VALUE or KEY=FRAME:VALUE,FRAME:VALUE.
    """

    plate: str
    output: str
    identity: tuple[str, ...]
    frames: str | None = None
    engine: str = "mesh"
    restore: str | None = None
    matte: tuple[str, ...] = ()
    edit: tuple[str, ...] = ()
    input_space: str | None = None
    input_matrix: str | None = None
    input_range: str | None = None
    faces: str | None = None
    holdout: str | None = None
    layers: str | None = None
    set: tuple[str, ...] = ()
    settings: str | None = None
    missing: str = "error"
    project: str | None = None
    commercial: bool = False
    codec: str | None = None
    alpha: str = "straight"
    fps: str | None = None
    output_space: str | None = None
    failed: str = "none"
    no_movie: bool = False

    def job(self) -> ApplyJob:
        """The job.

        Raises:
            SettingError: a word that is none of its option's values.
        """
        from ..deliver import parse_layers
        from .spec import ApplyJob

        return ApplyJob(
            plate=self.plate,
            output=self.output,
            assignments=tuple(parse_assignment(text) for text in self.identity),
            frames=self.frames,
            engine=self._engine(),
            input_space=self.input_space,
            input_matrix=self.input_matrix,
            input_range=self.input_range,
            faces=None if self.faces is None else Path(self.faces),
            holdout=parse_holdout(self.holdout),
            layers=parse_layers(self.layers),
            settings=parse_settings(
                [*self.set, *self._edits()], None if self.settings is None else Path(self.settings)
            ),
            missing=parse_missing(self.missing),
            commercial=self.commercial,
            project=self.project,
            movie=self._movie(),
        )

    def _engine(self) -> str:
        """The engine with what goes with it, as `jobs.engines` reads it."""
        editors = dict.fromkeys(one.partition(":")[0] for one in self.edit)
        return "+".join([self.engine, *editors, *([self.restore] if self.restore else []), *self.matte])

    def _edits(self) -> list[str]:
        """Settings that `--edit ID:KEY=VALUE` sets: `edit_KEY`, or KEY where that is a setting."""
        pairs = [pair for one in self.edit if (pair := one.partition(":")[2])]
        return [pair if pair.partition("=")[0] in SETTING_FIELDS else f"edit_{pair}" for pair in pairs]

    def _movie(self) -> MovieOutput:
        made = parse_movie(self.codec, self.alpha, self.fps, self.output_space)
        return dataclasses.replace(made, failed=parse_failed(self.failed), deferred=self.no_movie)

    def arguments(self) -> list[str]:
        """The words of the command line that mean the same, without the program and `apply`."""
        found = [self.plate, "-o", self.output]
        for spec in dataclasses.fields(self)[2:]:
            value, option = getattr(self, spec.name), "--" + spec.name.replace("_", "-")
            if value is True:
                found.append(option)
            elif isinstance(value, tuple):
                found += [word for one in value for word in (option, one)]
            elif value and value != spec.default:
                found += [option, value]
        return found

    def below(self, folder: Path) -> ApplyWords:
        """The same with relative paths taken from `folder`."""
        changed: dict[str, Any] = {
            name: _below(folder, value) for name in PATHS if (value := getattr(self, name)) is not None
        }
        return dataclasses.replace(self, identity=tuple(_below(folder, one) for one in self.identity), **changed)


def _below(folder: Path, text: str) -> str:
    """A path from a folder, its ".." taken out where no link stands before them."""
    joined = os.path.join(folder, text)
    plain = os.path.normpath(joined)
    return plain if os.path.realpath(plain) == os.path.realpath(joined) else joined


FIELDS: Mapping[str, dataclasses.Field[Any]] = {spec.name: spec for spec in dataclasses.fields(ApplyWords)}


def read_words(document: Mapping[str, Any]) -> ApplyWords:
    """A job from a table of TOML or an object of JSON. Names are those of the options, with dashes or underscores.

    `identity`, `set`, `matte` and `edit` take a text or a list; `set` also a table of values, or of frames and values.

    Raises:
        SettingError: an unknown name, a value of the wrong kind, or plate, output or identity is lacking.
    """
    found: dict[str, Any] = {}
    for given, value in document.items():
        name = given.replace("-", "_")
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, n=2, cutoff=0.5)
            raise SettingError(
                f"a job has no option {given!r}",
                hint=f"did you mean {' or '.join(near)}?" if near else "faceplate apply --help lists the options",
            )
        if name in found:
            raise SettingError(f"the option {given!r} is there twice")
        found[name] = _value(name, value)
    lacking = [name for name in ("plate", "output", "identity") if not found.get(name)]
    if lacking:
        raise SettingError(
            f"the job has no {' and no '.join(lacking)}", hint="every job needs plate, output and identity"
        )
    return ApplyWords(**found)


def _value(name: str, value: Any) -> Any:
    default = FIELDS[name].default
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
        return value
    if name == "identity" or default == ():
        return _texts(name, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and name in ("fps", "frames"):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if name == "set" and isinstance(value, Mapping):
        return tuple(f"{key}={_keys(one)}" for key, one in value.items())
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        raise _wrong(name, value, "a text or a list of texts" + (" or a table" if name == "set" else ""))
    return tuple(values)


def _keys(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{frame}:{_keys(one)}" for frame, one in value.items())
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _wrong(name: str, value: Any, expected: str) -> SettingError:
    return SettingError(f"the option {name!r} of a job has a wrong value", expected=expected, found=repr(value)[:100])


def parse_assignment(text: str) -> Assignment:
    """`FILE.fpid`, `FILE.fpid@TRACK`, `FILE.fpid@main`, `FILE.fpid@all`, `FILE.fpid@auto` or
    `FILE.fpid@OTHER.fpid`."""
    parts = re.fullmatch(r"(.+?\.fpid)(@)(.+)", text, re.IGNORECASE)
    file, mark, track = parts.groups() if parts else text.rpartition("@")
    if not mark or os.path.exists(text):
        return Assignment(Path(text))
    if track == "main":
        return Assignment(Path(file), "main")
    if track == "all":
        return Assignment(Path(file), "all")
    if track == "auto":
        return Assignment(Path(file), "auto")
    if track.lower().endswith(".fpid"):
        return Assignment(Path(file), "auto", Path(track))
    if track.isdecimal():
        return Assignment(Path(file), int(track))
    raise SettingError(
        f"--identity {text}: {track!r} is no track",
        expected="a track number, main, all, auto or the .fpid of who is in the plate after the @",
        hint="faceplate analyse PLATE lists the tracks",
    )


def parse_holdout(text: str | None) -> HoldOut | None:
    """`PATTERN` or `PATTERN:LAYER`; a drive letter is no pattern."""
    if text is None:
        return None
    pattern, colon, layer = text.rpartition(":")
    if not colon or len(pattern) < 2 or "/" in layer or "\\" in layer:
        return HoldOut(text)
    return HoldOut(pattern, layer)


def parse_settings(pairs: list[str], file: Path | None) -> KeyedSettings:
    """The settings file, then `KEY=VALUE` words over it.

    Raises:
        SettingError: unreadable file, unknown names, values out of range.
    """
    values: dict[str, Any] = _read_settings(file) if file else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingError(f"--set {pair}: no value", hint="write --set KEY=VALUE, e.g. --set strength=0.8")
        values[name.strip()] = value
    return KeyedSettings.parse(values)


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # no Unicode, no TOML, a number of 5,000 digits, [[[[...
        raise SettingError(
            f"{file} cannot be read as settings",
            found=str(error),
            hint='lines such as strength = 0.8, or strength = "1001:0,1010:1" for keys',
        ) from error


def parse_missing(text: str) -> MissingPolicy:
    """error, skip or hold."""
    return cast("MissingPolicy", _one_of("missing", text, get_args(MissingPolicy)))


def parse_failed(text: str) -> FailedPolicy:
    """none or plate."""
    return cast("FailedPolicy", _one_of("failed", text, get_args(FailedPolicy)))


def _one_of(option: str, text: str, values: tuple[str, ...]) -> str:
    if text not in values:
        expected = " or ".join([", ".join(values[:-1]), values[-1]])
        raise SettingError(f"--{option} {text} is unknown", expected=expected)
    return text


def parse_movie(codec: str | None, alpha: str, fps: str | None, space: str | None) -> MovieOutput:
    """How a movie is written.

    Raises:
        SettingError: a word that is none of its values.
    """
    from ..media.movies.codecs import codec_named
    from .spec import MovieOutput

    if codec is not None:
        codec_named(codec)
    _one_of("alpha", alpha, ("straight", "premultiplied"))
    rate = None
    if fps is not None:
        try:
            rate = Fraction(fps)
        except (ValueError, ZeroDivisionError) as error:
            raise SettingError(f"--fps {fps} is no rate", hint="for example 24, 25 or 24000/1001") from error
        if not 0 < rate <= 1000:
            raise SettingError(f"--fps {fps} is no rate", expected="more than 0, at most 1000 frames a second")
        rate = _exact(rate)
    return MovieOutput(codec, "premultiplied" if alpha == "premultiplied" else "straight", rate, space)


def _exact(rate: Fraction) -> Fraction:
    """23.976, 29.97 and 59.94 mean the rates of NTSC."""
    for whole in (24, 30, 48, 60, 120):
        if abs(rate - Fraction(whole * 1000, 1001)) < Fraction(1, 1000):
            return Fraction(whole * 1000, 1001)
    return rate
