"""Values of fields: each codec takes a JSON value and the field's name, and gives the Python value or raises Malformed.

`dump` is the way back and checks the same things, so that neither side can send what the other must refuse. A field may
be younger than the protocol (`since`): it is not there in messages of an earlier version, and has its default then.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Callable, NoReturn

from .errors import Malformed

MAX_DEPTH = 12
"""Deepest nesting of objects and lists."""
MAX_ITEMS = 100_000

Convert = Callable[[Any, str, int], Any]
"""Takes a value, the field's name, and the protocol version that is spoken."""


@dataclass(frozen=True)
class Codec:
    """The two ways of one kind of value."""

    load: Convert
    dump: Convert


def refuse(where: str, expected: str, value: object) -> NoReturn:
    """Raise Malformed for a field."""
    # Python 3.11 and later refuse to print very long integers
    shown = "a huge integer" if type(value) is int and value.bit_length() > 256 else repr(value)
    found = shown if len(shown) <= 60 else shown[:57] + "..."
    raise Malformed(f"field {where} is wrong", where=where, expected=expected, found=found)


def same(check: Callable[[Any, str], Any]) -> Codec:
    """A value that is the same in JSON and in Python."""

    def convert(value: Any, where: str, _: int) -> Any:
        return check(value, where)

    return Codec(convert, convert)


def integer(low: int, high: int) -> Codec:
    """An integer in low..high; True and False are none."""

    def check(value: Any, where: str) -> int:
        if type(value) is not int or not low <= value <= high:
            refuse(where, f"an integer in {low}..{high}", value)
        return value

    return same(check)


def number(low: float, high: float) -> Codec:
    """A finite number in low..high."""

    def check(value: Any, where: str) -> float:
        # NaN fails both comparisons; a huge integer compares without becoming a float first
        if type(value) not in (int, float) or not low <= value <= high:
            refuse(where, f"a finite number in {low:g}..{high:g}", value)
        return float(value)

    return same(check)


_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_PATH = re.compile("[\ud800-\udc7f\udd00-\udfff\0]")


def text(longest: int, shortest: int = 0, forbidden: re.Pattern[str] = _SURROGATE) -> Codec:
    """Text of so many characters without any of `forbidden`."""

    def check(value: Any, where: str) -> str:
        if type(value) is not str or not shortest <= len(value) <= longest or forbidden.search(value):
            refuse(where, f"text of {shortest}..{longest} characters", value)
        return value

    return same(check)


def _switch(value: Any, where: str) -> bool:
    if type(value) is not bool:
        refuse(where, "true or false", value)
    return value


def choice(*words: str) -> Codec:
    """One of a few words."""

    def check(value: Any, where: str) -> str:
        if type(value) is not str or value not in words:
            refuse(where, "one of " + ", ".join(words), value)
        return value

    return same(check)


def maybe(inner: Codec) -> Codec:
    """A value or None."""

    def load(value: Any, where: str, version: int) -> Any:
        return None if value is None else inner.load(value, where, version)

    def dump(value: Any, where: str, version: int) -> Any:
        return None if value is None else inner.dump(value, where, version)

    return Codec(load, dump)


def many(inner: Codec, longest: int = MAX_ITEMS) -> Codec:
    """A list, in Python a tuple."""

    def check(value: Any, where: str, kinds: tuple[type, ...]) -> None:
        if type(value) not in kinds or len(value) > longest:
            refuse(where, f"a list of at most {longest}", value)

    def load(value: Any, where: str, version: int) -> tuple[Any, ...]:
        check(value, where, (list,))
        return tuple(inner.load(item, f"{where}[{place}]", version) for place, item in enumerate(value))

    def dump(value: Any, where: str, version: int) -> list[Any]:
        check(value, where, (list, tuple))
        return [inner.dump(item, f"{where}[{place}]", version) for place, item in enumerate(value)]

    return Codec(load, dump)


def table(inner: Codec, longest: int = 1000) -> Codec:
    """An object whose names are free; read-only in Python."""
    name = text(200)

    def convert(value: Any, where: str, version: int, way: Convert) -> dict[str, Any]:
        if not isinstance(value, Mapping) or len(value) > longest:
            refuse(where, f"an object of at most {longest} names", value)
        return {name.load(key, where, version): way(item, f"{where}.{key}", version) for key, item in value.items()}

    def load(value: Any, where: str, version: int) -> Mapping[str, Any]:
        return MappingProxyType(convert(value, where, version, inner.load))

    def dump(value: Any, where: str, version: int) -> dict[str, Any]:
        return convert(value, where, version, inner.dump)

    return Codec(load, dump)


def _json(value: Any, where: str, depth: int = 0) -> Any:
    """Plain JSON values, as they are: for facts that the wire does not interpret."""
    if value is None or type(value) is bool:
        return value
    if type(value) is str and not _SURROGATE.search(value):
        return value
    if type(value) is int and abs(value) < 1 << 53:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if depth < MAX_DEPTH - 4 and type(value) in (list, tuple):
        return [_json(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value)]
    if depth < MAX_DEPTH - 4 and isinstance(value, Mapping):
        return {NAME.load(key, where, 0): _json(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    refuse(where, "plain JSON of finite numbers", value)


def _track(value: Any, where: str) -> int | str:
    if type(value) is int:
        return int(COUNT.load(value, where, 0))
    return str(choice("main", "all").load(value, where, 0))


def _key(value: Any, where: str) -> tuple[int, float]:
    if type(value) not in (list, tuple) or len(value) != 2:
        refuse(where, "[frame, value]", value)
    return FRAME.load(value[0], where, 0), REAL.load(value[1], where, 0)


NAME = text(200, 1)
WORDS = text(4000)
ID = text(64, 1)
PATH = text(4096, 1, _NO_PATH)
FRAME = integer(-(1 << 31), (1 << 31) - 1)
COUNT = integer(0, (1 << 53) - 1)
REAL = number(-1e300, 1e300)
POSITIVE = number(0.0, 1e300)
BOOL = same(_switch)
TRACK = same(_track)
_KEYS = many(Codec(lambda value, where, _: _key(value, where), lambda value, where, _: list(_key(value, where))))
SETTINGS = table(_KEYS)
FACTS = table(same(_json))
SECONDS = table(POSITIVE)


def nothing() -> Mapping[str, Any]:
    """An empty read-only mapping."""
    return MappingProxyType({})


def f(codec: Codec, since: int = 1, **default: Any) -> Any:
    """A dataclass field with its codec, and the protocol version that it came with (then it needs a default)."""
    return field(metadata={"codec": codec, "since": since}, **default)


def record(kind: type, tag: tuple[str, str] | None = None) -> Codec:
    """The codec of a dataclass; `tag` is a constant extra field of its JSON object."""
    # looked up at the first use, since a decorator runs before the dataclass has its fields
    known_by_version: dict[int, dict[str, Codec]] = {}

    def codecs(version: int) -> dict[str, Codec]:
        if version not in known_by_version:
            known_by_version[version] = {
                spec.name: spec.metadata["codec"] for spec in fields(kind) if spec.metadata["since"] <= version
            }
        return known_by_version[version]

    def load(value: Any, where: str, version: int) -> Any:
        if type(value) is not dict:
            refuse(where or "message", "an object", value)
        prefix = where + "." if where else ""
        known = codecs(version)
        for name in value:
            if name not in known and not (tag and name == tag[0]):
                raise Malformed(f"field {prefix}{name[:60]} is not known", where=prefix + name[:60])
        for name in known:
            if name not in value:
                raise Malformed(f"field {prefix}{name} is missing", where=prefix + name)
        return kind(**{name: codec.load(value[name], prefix + name, version) for name, codec in known.items()})

    def dump(value: Any, where: str, version: int) -> dict[str, Any]:
        if type(value) is not kind:
            refuse(where or "message", kind.__name__, value)
        prefix = where + "." if where else ""
        out: dict[str, Any] = {tag[0]: tag[1]} if tag else {}
        for name, codec in codecs(version).items():
            out[name] = codec.dump(getattr(value, name), prefix + name, version)
        return out

    return Codec(load, dump)


def either(tag: str, kinds: Mapping[str, type]) -> Codec:
    """One of several dataclasses, told by the field `tag`."""
    by_word = {word: record(kind, (tag, word)) for word, kind in kinds.items()}
    by_kind = {kind: by_word[word] for word, kind in kinds.items()}

    def load(value: Any, where: str, version: int) -> Any:
        word = value.get(tag) if type(value) is dict else None
        if type(word) is not str or word not in by_word:
            refuse(where, f"an object whose {tag} is one of " + ", ".join(by_word), value)
        return by_word[word].load(value, where, version)

    def dump(value: Any, where: str, version: int) -> Any:
        if type(value) not in by_kind:
            refuse(where, "one of " + ", ".join(kind.__name__ for kind in by_kind), value)
        return by_kind[type(value)].dump(value, where, version)

    return Codec(load, dump)
