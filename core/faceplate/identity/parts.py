"""The zip behind an identity file: plain parts that cannot run code, read without believing anything they say."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import IdentityError
from ..media.atomic import atomic_write

REMAKE = "copy the file again from where it came, or make the identity anew from the photos"

_MAX_PART_BYTES = 256 << 20
_MAX_TOTAL_BYTES = 2 << 30
_MAX_JSON_BYTES = 8 << 20
_MAX_PARTS = 4000
_PART_NAME = re.compile(
    r"identity\.json|consent\.json|shape\.npy|texture_(colour|coverage)\.npy"
    r"|crops/\d{4}\.png|(landmarks|embeddings)/\d{4}\.npy"
)
# Numpy's own reader evaluates the header as a Python literal; a file from anywhere gets this instead.
_NPY_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<type><f[24])', 'fortran_order': False, "
    rb"'shape': \((?P<shape>\d{1,6}(?:, \d{1,6}){0,3},?)\), \} *\n",
    re.DOTALL,
)
_NPY_FIXED = 10


def require(fine: bool, message: str, *, expected: str | None = None, found: object = None) -> None:
    """Raise IdentityError unless `fine`; what was found is cut to 200 characters."""
    if not fine:
        text = None if found is None else str(found)[:200]
        raise IdentityError(message, expected=expected, found=text, hint=REMAKE)


def dump_json(document: object) -> bytes:
    """JSON in plain ASCII, because a photo's name may hold bytes that are no UTF-8 and still must come back."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True).encode()


def dump_array(array: NDArray[Any]) -> bytes:
    """A float16 or float32 array as .npy, version 1.0."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def write_parts(path: Path, parts: Mapping[str, bytes]) -> None:
    """Write a zip whole or not at all, without clock or user in it: the same parts give the same bytes.

    Raises:
        OutputError: the file cannot be written.
    """
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, data in parts.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".png") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


class PartsReader:
    """The parts of an open zip. Nothing is unpacked to the disk.

    Raises, here and in the methods:
        IdentityError: a part is unknown, absent, packed in another way, too large or of the wrong form.
        And what damaged bytes make the standard library raise; the caller maps it.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        infos = archive.infolist()
        require(len(infos) <= _MAX_PARTS, "too many parts", expected=f"at most {_MAX_PARTS}", found=len(infos))
        self._entries = {info.filename: info for info in infos}
        require(len(self._entries) == len(infos), "parts appear twice")
        for name, info in self._entries.items():
            require(_PART_NAME.fullmatch(name) is not None, "an unknown part", found=repr(name))
            packed = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            require(packed, f"part {name} is packed in an unknown way", found=info.compress_type)
            require(info.file_size <= _MAX_PART_BYTES, f"part {name} is too large", found=f"{info.file_size} bytes")
        total = sum(info.file_size for info in infos)
        require(total <= _MAX_TOTAL_BYTES, "too large", expected=f"at most {_MAX_TOTAL_BYTES} bytes", found=total)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def raw(self, name: str) -> bytes:
        """The bytes of a part."""
        require(name in self._entries, f"part {name} is absent")
        size = self._entries[name].file_size
        with self._archive.open(self._entries[name]) as file:
            data = file.read(size + 1)
        # A reader that stops at the stated size would hide a bomb whose header lies.
        require(len(data) == size, f"part {name} differs from its stated size")
        return data

    def document(self, name: str) -> dict[str, Any]:
        """A JSON object; NaN and infinity are refused."""
        data = self.raw(name)
        require(len(data) <= _MAX_JSON_BYTES, f"part {name} is too large", found=f"{len(data)} bytes")
        document = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        require(isinstance(document, dict), f"part {name} has the wrong form", found=type(document).__name__)
        return dict(document)

    def array(self, name: str) -> NDArray[Any]:
        """A float16 or float32 array, read-only; its numbers are not checked."""
        data = self.raw(name)
        head = _NPY_HEAD.match(data)
        if head is None:
            raise IdentityError(
                f"part {name} is no plain array", expected="what numpy writes for float16 or float32", hint=REMAKE
            )
        (length,) = struct.unpack("<H", head["length"])
        require(head.end() == _NPY_FIXED + length, f"part {name} has a header of another length")
        sides = tuple(int(side) for side in head["shape"].split(b",") if side.strip())
        values = np.frombuffer(data, np.dtype(head["type"].decode()), offset=head.end())
        array: NDArray[Any] = values.reshape(sides)  # a ValueError where the shape does not fit the bytes
        return array
