"""What a report tells, as frozen values that go to JSON and back. `html.render_html` draws them."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from ..errors import InputError
from ..job import FrameState
from ..provenance.attributes import UsedModel

FORMAT = "faceplate report"
VERSION = 1

T = TypeVar("T")

MAX_THUMBNAILS = 24
"""Pictures on a contact sheet; more are thinned out evenly."""


@dataclass(frozen=True, slots=True)
class FaceRow:
    """One face of one frame.

    Attributes:
        track: id.
        identity: name of who it became, "" where it was left alone.
        origin: "detected", "tracked", "filled" or "edited" (`face.Origin`).
        score: presence confidence 0..1.
        yaw_deg: head turn, as in `Observation`.
        width_px: of the face in the plate.
        jitter_px: rms over the rigid points of the second difference in time, plate px; None at the ends of a track.
        matte_area: share of the frame that this face's final matte covers, 0..1.
        exposure_stops: by how much the change made the skin brighter, in stops; None where nothing changed.
        occluded: share of the core matte that occluders took out, 0..1.
    """

    track: int
    identity: str
    origin: str
    score: float
    yaw_deg: float
    width_px: float
    jitter_px: float | None
    matte_area: float
    exposure_stops: float | None
    occluded: float


@dataclass(frozen=True, slots=True)
class FrameRow:
    """One frame.

    Attributes:
        frame: number.
        state: how it ended.
        faces: in order of track.
        seconds: time spent.
        note: reason of a failure, source of a held frame, or "".
    """

    frame: int
    state: FrameState
    faces: tuple[FaceRow, ...] = ()
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class ColourLine:
    """How one colour space was decided.

    Attributes:
        what: "plate", "output", "hold-out", "photo jane_01.jpg".
        space: canonical name.
        source: who decided: "job", "file tag", "studio rules", "default".
        note: anything to know, or "".
        assumed: True where it is a default and nobody's statement; the report points at it.
    """

    what: str
    space: str
    source: str
    note: str = ""
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class IdentityLine:
    """A person who was put in.

    Attributes:
        name: as in the identity file.
        content_hash: hex.
        tracks: who became this person, in words: "track 2", "main".
        photos: number of photos.
        detail_px: face width in the photos, px.
        consent_id: id, or "no consent record".
        consent: text of the check (`ConsentState.text`).
        consent_valid: False where there is no record.
    """

    name: str
    content_hash: str
    tracks: str
    photos: int
    detail_px: float
    consent_id: str
    consent: str
    consent_valid: bool


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """Pictures of one frame, PNG bytes (`thumbs.py` makes them); all of one size.

    Attributes:
        frame: number.
        before: the plate.
        after: the output.
        matte: the final matte, or None.
    """

    frame: int
    before: bytes
    after: bytes
    matte: bytes | None = None


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that a report tells.

    Attributes:
        job_id: of the job.
        plate: pattern of the input.
        output: pattern of the output.
        frame_range: as asked for, e.g. "1001-1100".
        raster: e.g. "1920x1080, pixel aspect 1".
        engine: name and version.
        commercial: whether the job is paid work.
        settings: as `KeyedSettings.to_json`.
        colours: one line a decision.
        identities: people, in the job's order.
        models: nets that took part.
        versions: of the tool and what it stands on, by name.
        device: name, as the machine calls it.
        provider: what runs the nets, e.g. "CPUExecutionProvider".
        started: ISO 8601 with zone.
        ended: the same.
        wall_seconds: from start to end.
        timings: seconds by stage, summed over frames; stages overlap, so they may exceed the wall time.
        rows: one a frame, frames rising.
        thumbnails: frames rising.
        notes: anything else worth saying, one sentence each.
        weak_below: score under which a face counts as weak.
        ledger_hash: last line of the ledger when the job ended, or "".
    """

    job_id: str
    plate: str
    output: str
    frame_range: str
    raster: str
    engine: str
    commercial: bool
    settings: Mapping[str, Sequence[Sequence[float]]]
    colours: tuple[ColourLine, ...]
    identities: tuple[IdentityLine, ...]
    models: tuple[UsedModel, ...]
    versions: Mapping[str, str]
    device: str
    provider: str
    started: str
    ended: str
    wall_seconds: float
    timings: Mapping[str, float]
    rows: tuple[FrameRow, ...]
    thumbnails: tuple[Thumbnail, ...] = ()
    notes: tuple[str, ...] = ()
    weak_below: float = 0.5
    ledger_hash: str = ""

    def __post_init__(self) -> None:
        for name in ("settings", "versions", "timings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def frames_in(self, *states: FrameState) -> tuple[int, ...]:
        """Frames that ended in one of these states."""
        return tuple(row.frame for row in self.rows if row.state in states)

    @property
    def filled(self) -> tuple[int, ...]:
        """Frames in which a face was filled between two others."""
        return tuple(row.frame for row in self.rows if any(face.origin == "filled" for face in row.faces))

    @property
    def weak(self) -> tuple[int, ...]:
        """Frames in which a face has a score below `weak_below`."""
        return tuple(row.frame for row in self.rows if any(face.score < self.weak_below for face in row.faces))

    def to_json(self) -> dict[str, Any]:
        """JSON values that `from_json` takes back; pictures as base64."""
        values = {spec.name: getattr(self, spec.name) for spec in dataclasses.fields(self)}
        return {"format": FORMAT, "version": VERSION, **{name: _plain(value) for name, value in values.items()}}

    @classmethod
    def from_json(cls, document: Any) -> JobReport:
        """The inverse of `to_json`.

        Raises:
            InputError: not a report, of another version, or with parts of the wrong form.
        """
        if not isinstance(document, dict) or (document.get("format"), document.get("version")) != (FORMAT, VERSION):
            found = f"{document.get('format')} {document.get('version')}" if isinstance(document, dict) else "no object"
            raise InputError("this is no report", expected=f"{FORMAT} {VERSION}", found=found)
        values = {name: value for name, value in document.items() if name not in ("format", "version")}
        try:
            return cls(**{name: _READERS.get(name, _same)(value) for name, value in values.items()})
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise InputError(
                "this report is damaged", found=f"{type(error).__name__}: {error}", hint="run the job's report again"
            ) from error


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {spec.name: _plain(getattr(value, spec.name)) for spec in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _same(value: Any) -> Any:
    return value


def _row(document: Mapping[str, Any]) -> FrameRow:
    faces = tuple(FaceRow(**face) for face in document["faces"])
    return FrameRow(**{**document, "state": FrameState(document["state"]), "faces": faces})


def _thumbnail(document: Mapping[str, Any]) -> Thumbnail:
    pictures = {
        name: None if document[name] is None else base64.b64decode(document[name], validate=True)
        for name in ("before", "after", "matte")
    }
    return Thumbnail(frame=document["frame"], **pictures)  # type: ignore[arg-type]


_READERS: Mapping[str, Any] = {
    "colours": lambda items: tuple(ColourLine(**item) for item in items),
    "identities": lambda items: tuple(IdentityLine(**item) for item in items),
    "models": lambda items: tuple(UsedModel(**item) for item in items),
    "rows": lambda items: tuple(_row(item) for item in items),
    "thumbnails": lambda items: tuple(_thumbnail(item) for item in items),
    "notes": tuple,
}


def thin(items: Sequence[T], limit: int) -> tuple[T, ...]:
    """At most `limit` (2 or more) of the items, evenly spaced, the first and the last among them."""
    if limit >= len(items):
        return tuple(items)
    return tuple(items[round(index * (len(items) - 1) / (limit - 1))] for index in range(limit))


def contact_frames(frames: Sequence[int]) -> tuple[int, ...]:
    """The frames of which a job should keep a `Thumbnail`: known before the job starts, at most `MAX_THUMBNAILS`."""
    return thin(frames, MAX_THUMBNAILS)
