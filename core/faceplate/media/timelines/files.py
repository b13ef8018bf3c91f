"""Opens timelines of the formats that OpenTimelineIO and its adapters read, and says what they leave out."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ...errors import FaceplateError, InputError
from ..atomic import output_error
from ..file_hash import file_hash
from . import edl, fcp7
from .uses import timeline_rate

Kind = Literal["otio", "otioz", "aaf", "fcp7", "fcpx", "edl"]

KINDS = MappingProxyType(
    {".otio": "otio", ".otioz": "otioz", ".aaf": "aaf", ".xml": "fcp7", ".fcpxml": "fcpx", ".edl": "edl"}
)
_TITLES = MappingProxyType(
    {"otio": "OTIO", "otioz": "OTIOZ", "aaf": "AAF", "fcp7": "FCP7 XML", "fcpx": "FCPXML", "edl": "EDL"}
)
_DROP_RATES = (Fraction(30000, 1001), Fraction(60000, 1001))
_LARGEST = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A timeline on disk.

    Attributes:
        path: of the file.
        kind: of it.
        timeline: what it holds, `otio.schema.Timeline`.
        base: folder to which relative media paths belong.
        notes: what the user should know about how it was read.
        drop: its timecode is drop frame.
    """

    path: Path
    kind: Kind
    timeline: Any
    base: Path
    notes: tuple[str, ...] = ()
    drop: bool = False

    @property
    def title(self) -> str:
        """Name of its format."""
        return _TITLES[self.kind]


def need_otio() -> None:
    """Raise InputError, naming the extra, where OpenTimelineIO or an adapter is not installed."""
    try:
        import opentimelineio as otio

        names = set(otio.adapters.available_adapter_names())
        import otio_fcpx_xml_adapter  # noqa: F401
    except ImportError as error:
        raise _lacking(str(error)) from error
    lacking = {"otio_json", "otioz", "AAF", "fcp_xml", "fcpx_xml", "cmx_3600"} - names
    if lacking:
        raise _lacking(f"OpenTimelineIO without {', '.join(sorted(lacking))}")


def _lacking(found: str) -> InputError:
    return InputError(
        "timelines need OpenTimelineIO and its adapters",
        expected="the extra `timelines`",
        found=found,
        hint='pip install "faceplate[timelines]"',
    )


def open_timeline(
    path: Path, rate: Fraction | None = None, name: str | None = None, unpack: Path | None = None
) -> Document:
    """Read a timeline.

    Args:
        path: `.otio`, `.otioz`, `.aaf`, `.xml` (Final Cut Pro 7, or FCPXML by its content), `.fcpxml`, `.edl`.
        rate: frames a second, for an EDL, which does not say.
        name: of the timeline, where the file holds several.
        unpack: folder below which the media of an `.otioz` are unpacked; None leaves them in the file.

    Returns:
        The document.

    Raises:
        InputError: absent, damaged, of another format, or several timelines and no name.
    """
    need_otio()
    kind = _kind(path)
    try:
        found, notes = _read(path, kind, rate)
    except FaceplateError:
        raise
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply", hint="check the file in the editor that made it") from error
    except Exception as error:  # what the adapters raise is of every kind; their parsers meet anything
        raise InputError(
            f"{path} cannot be read as {_TITLES[kind]}",
            found=f"{type(error).__name__}: {error}",
            hint="export the timeline again; OTIO is read best",
        ) from error
    timeline = _only(path, found, name)
    base = _unpacked(path, unpack) if kind == "otioz" and unpack else path.parent
    return Document(path, kind, timeline, base, tuple(notes), _is_drop(path, kind, timeline))


def _is_drop(path: Path, kind: Kind, timeline: Any) -> bool:
    """Whether timecode is drop frame: as the document says, else as OTIO has it, at the rates that know it."""
    if timeline_rate(timeline) not in _DROP_RATES:
        return False
    if kind == "edl":
        return edl.is_drop(read_text(path))
    if kind == "fcp7":
        code = timeline.metadata.get("fcp_xml", {}).get("timecode", {})
        return str(code.get("displayformat", "")).upper() == "DF"
    return True


def _unpacked(path: Path, folder: Path) -> Path:
    """The content of an `.otioz` below a folder, unpacked once; a killed run leaves nothing that passes for it."""
    place = folder / f"otioz-{file_hash(path)[:12]}"
    if place.is_dir():
        return place
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".faceplate-tmp-", dir=folder) as temporary,
            zipfile.ZipFile(path) as file,
        ):
            file.extractall(temporary)
            os.replace(temporary, place)
            os.mkdir(temporary)  # for the context to remove
    except (OSError, zipfile.BadZipFile) as error:
        if isinstance(error, OSError):
            raise output_error(place, error) from error
        raise InputError(f"{path} is damaged", found=str(error), hint="export the timeline again") from error
    return place


def _kind(path: Path) -> Kind:
    kind: Any = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"{path} is no timeline",
            expected=", ".join(KINDS),
            found=path.suffix or "no extension",
            hint="export the timeline as OTIO",
        )
    try:
        with path.open("rb") as file:
            head = file.read(4096)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot read {path}", found=error.strerror, hint="check the path") from error
    if size > _LARGEST:
        raise InputError(f"{path} is too large for a timeline", found=f"{size >> 20} MiB")
    if kind == "fcp7" and b"<fcpxml" in head:
        kind = "fcpx"
    found: Kind = kind
    return found


def _read(path: Path, kind: Kind, rate: Fraction | None) -> tuple[Any, list[str]]:
    import opentimelineio as otio

    if kind == "otio":
        return otio.adapters.read_from_file(str(path), "otio_json"), []
    if kind == "otioz":
        return otio.adapters.read_from_file(str(path), "otioz"), []
    if kind == "aaf":
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            found = otio.adapters.read_from_file(str(path), "AAF")
        return found, [f"AAF: {line}" for line in said.getvalue().splitlines() if line.strip()]
    text = read_text(path)
    if kind == "fcpx":
        from .fcpx import Reader

        reader = Reader(text)
        return reader.to_otio(), reader.notes
    if kind == "fcp7":
        found = otio.adapters.read_from_string(fcp7.prepare(text), "fcp_xml")
        for each in timelines(found):
            fcp7.finish(each)
        return found, []
    if rate is None:
        raise InputError(
            f"{path} is an EDL, which does not say its frame rate",
            expected="--rate",
            hint="give the timeline's rate, e.g. --rate 24 or --rate 23.976",
        )
    found = otio.adapters.read_from_string(edl.prepare(text), "cmx_3600", rate=float(rate))
    return found, edl.finish(found, rate)


def read_text(path: Path) -> str:
    """The text of a timeline file, whatever its encoding.

    Raises:
        InputError: no text.
    """
    data = path.read_bytes()
    for encoding in ("utf-8-sig", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig", "latin-1"):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(encoding)
    raise InputError(f"{path} is no text", hint="export the timeline again")


def timelines(found: Any) -> Sequence[Any]:
    """The timelines in what an adapter gave."""
    import opentimelineio as otio

    if isinstance(found, otio.schema.Timeline):
        return [found]
    if isinstance(found, otio.schema.SerializableCollection):
        return [each for each in found if isinstance(each, otio.schema.Timeline)]
    return []


def _only(path: Path, found: Any, name: str | None) -> Any:
    all_of_them = timelines(found)
    fitting = [each for each in all_of_them if name is None or each.name == name]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(each.name or "(without a name)" for each in all_of_them[:8])
    if not all_of_them:
        raise InputError(f"{path} holds no timeline", found=type(found).__name__, hint="export the timeline as OTIO")
    raise InputError(
        f"{path} holds {len(all_of_them)} timelines" if name is None else f"{path} holds no timeline called {name!r}",
        expected="one, or --timeline NAME",
        found=names,
    )
