"""The contact sheet of a timeline: every face of every source, to say who it is. One HTML file that needs nothing else.

With a script the page writes the people file anew as somebody chooses, to be saved in its place; without one it shows
which line of the file each picture stands for.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import jinja2
import numpy as np
from numpy.typing import NDArray

from .thumbs import thumbnail

FACE_WIDTH, FRAME_WIDTH = 128, 320
_QUALITY = 85


@dataclass(frozen=True, slots=True, eq=False)
class ContactTrack:
    """One face of a source.

    Attributes:
        track: its number.
        person: who it is by the people file; "?" for nobody yet.
        identity: name of the file that takes the person's place, "" for none.
        frames: where it is seen, in words.
        width_px: its mean width.
        picture: JPEG of the face, empty where the frame could not be read.
    """

    track: int
    person: str
    identity: str
    frames: str
    width_px: float
    picture: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ContactShot:
    """One source.

    Attributes:
        name: as in the people file.
        plate: the files.
        clips: names of the clips that show it.
        picture: JPEG of a whole frame with numbers at its faces, empty where none could be read.
        tracks: the faces.
        problem: why no faces are known, "" where they are.
    """

    name: str
    plate: str
    clips: Sequence[str]
    picture: bytes
    tracks: Sequence[ContactTrack]
    problem: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ContactSheet:
    """The page's content.

    Attributes:
        timeline: name of the file.
        people_file: name of the people file beside the page.
        people_text: its text.
        people: (person, identity file or "") of the people file.
        shots: the sources.
    """

    timeline: str
    people_file: str
    people_text: str
    people: Sequence[tuple[str, str]]
    shots: Sequence[ContactShot]


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("faceplate.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["jpeg"] = lambda data: "data:image/jpeg;base64," + base64.b64encode(data).decode("ascii")
    return environment


def render_contact(sheet: ContactSheet) -> str:
    """The page. Names and paths come from files that anyone may have made; they are text and nothing else in it."""
    unknown = sum(track.person == "?" for shot in sheet.shots for track in shot.tracks)
    faces = sum(len(shot.tracks) for shot in sheet.shots)
    page = (
        _environment()
        .get_template("contact.html.j2")
        .render(sheet=sheet, unknown=unknown, faces=faces, text={"name": sheet.people_file, "text": sheet.people_text})
    )
    return page.encode("utf-8", errors="backslashreplace").decode("utf-8")


def face_picture(linear: NDArray[np.float32]) -> bytes:
    """JPEG of a face.

    Args:
        linear: (h, w, 3) float32, linear light, Rec.709 primaries.
    """
    return _jpeg(linear, FACE_WIDTH, ())


def frame_picture(linear: NDArray[np.float32], boxes: Sequence[tuple[int, float, float, float, float]]) -> bytes:
    """JPEG of a whole frame with a numbered box at each face.

    Args:
        linear: (h, w, 3) float32, linear light, Rec.709 primaries.
        boxes: (track, x0, y0, x1, y1) in pixels of `linear`.
    """
    return _jpeg(linear, FRAME_WIDTH, boxes)


def _jpeg(linear: NDArray[np.float32], width: int, boxes: Sequence[tuple[int, float, float, float, float]]) -> bytes:
    small = cv2.imdecode(np.frombuffer(thumbnail(linear, width), np.uint8), cv2.IMREAD_COLOR)
    assert small is not None
    scale = small.shape[1] / linear.shape[1]
    for track, *corners in boxes:
        x0, y0, x1, y1 = (round(value * scale) for value in corners)
        cv2.rectangle(small, (x0, y0), (x1, y1), (60, 200, 255), 1, cv2.LINE_AA)
        place = (max(x0, 0) + 3, y0 - 4 if y0 > 18 else y0 + 16)
        for colour, thick in (((0, 0, 0), 4), ((60, 200, 255), 2)):
            cv2.putText(small, str(track), place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, thick, cv2.LINE_AA)
    return bytes(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1].tobytes())
