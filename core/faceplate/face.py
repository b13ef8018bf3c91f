"""Faces as values: landmarks, detections, what was seen of one face in one frame, and its track over the shot.

All frozen, `eq=False` where arrays are inside. Points are plate pixels (see `frame`); z is in the same pixels,
growing away from the camera, with the zero near the centre of the head (MediaPipe's convention).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float32]
Cover = NDArray[np.uint8]

MESH_POINTS = 478
"""Points of the dense mesh: 468 of the face, then 5 of each iris."""


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """One face found by a detector.

    Attributes:
        centre: (x, y) plate px.
        size: (width, height) plate px of the upright box, along the face's own axes.
        score: 0..1.
        keypoints: (6, 2) float32 plate px: right eye, left eye, nose tip, mouth centre, right and left ear tragion
            (the subject's right and left).
        angle_deg: in-plane rotation of the head, clockwise on screen, -180..180; 0 is upright.
    """

    centre: tuple[float, float]
    size: tuple[float, float]
    score: float
    keypoints: Points
    angle_deg: float


class Origin(StrEnum):
    """How an observation came about."""

    DETECTED = "detected"
    TRACKED = "tracked"
    FILLED = "filled"
    EDITED = "edited"


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One face in one frame.

    Attributes:
        frame: frame number.
        landmarks: (478, 3) float32, plate px, smoothed over the track.
        score: presence confidence 0..1 of the landmark net; for a filled frame the lower of its neighbours'.
        origin: detected in this frame, tracked from a neighbour, filled between two, or edited by hand.
        yaw_deg: head turned to the subject's left is positive, -90..90.
        cover: (96, 96) uint8 in canonical face UV, 255 where something lies in front of the face, steadied over the
            frames around (`faces.occluders`); None where the analysis has not looked.
    """

    frame: int
    landmarks: Points
    score: float
    origin: Origin
    yaw_deg: float
    cover: Cover | None = None

    @property
    def width_px(self) -> float:
        """Extent of the 468 face points along the face's own horizontal axis (through the outer eye corners), px."""
        face = self.landmarks[:468, :2]
        axis = self.landmarks[263, :2] - self.landmarks[33, :2]
        axis = axis / max(float(np.hypot(*axis)), 1e-6)
        along = face @ axis
        return float(along.max() - along.min())


@dataclass(frozen=True, slots=True, eq=False)
class Appearance:
    """What a track's face usually looks like: the reference against which occluders show.

    Attributes:
        median: (96, 96, 3) float32, canonical face UV (`faces.topology`), log2 of linear Rec.709 light, each frame
            brought to zero mean over the skin; NaN where the face was never seen.
        spread: (96, 96) float32, robust deviation (1.4826 MAD, mean of channels) over the frames, same unit.
    """

    median: NDArray[np.float32]
    spread: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One face through the shot.

    Attributes:
        id: number unique in the shot, from 1, never re-used; what a job assigns an identity to.
        observations: by frame number, in frame order.
        appearance: reference for occluders, None when the track is too short for one.
        label: a name a person gave it, or "".
    """

    id: int
    observations: Mapping[int, Observation]
    appearance: Appearance | None = None
    label: str = ""

    @property
    def first(self) -> int:
        """First frame number."""
        return next(iter(self.observations))

    @property
    def last(self) -> int:
        """Last frame number."""
        return next(reversed(list(self.observations)))

    @property
    def weight(self) -> float:
        """How much of the shot the face fills: sum over frames of its width in px."""
        return sum(seen.width_px for seen in self.observations.values())


@dataclass(frozen=True, slots=True, eq=False)
class FaceTexture:
    """A person's skin in canonical face UV, merged from photos.

    Attributes:
        colour: (S, S, 3) float16, linear light, Rec.709 primaries, >= 0, about 0.18 in mid skin; filled smoothly where
            `coverage` is 0 so that filtering never drags in black.
        coverage: (S, S) float16 0..1, how far a texel is known skin, brow, eye or lip; 0 on hair, glasses
            rims, hands, background and what no photo shows.
        detail_px: width of the face in the photos, px: the resolution that the texture really has.
    """

    colour: NDArray[np.float16]
    coverage: NDArray[np.float16]
    detail_px: float


@dataclass(frozen=True, slots=True, eq=False)
class Portrait:
    """The face of one photo, for engines that look at pictures of the person.

    Attributes:
        png: 16-bit RGB PNG, sRGB-encoded.
        white: linear Rec.709 light that its code 65535 stands for, > 0.
        landmarks: (478, 3) float32, px of the picture.
        yaw_deg: head turn, as in `Observation`.
        width_px: of the face in the photo.
    """

    png: bytes
    white: float
    landmarks: Points
    yaw_deg: float
    width_px: float


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """A person to put into plates, as an engine sees it. `identity.file` reads and writes the file and the consent.

    Attributes:
        name: as the artist calls it.
        content_hash: hex digest of all that decides the picture; goes into manifests and headers.
        texture: for engines that work on the mesh.
        shape: (468, 3) float32, the person's face in canonical pose and unit width (see `faces.topology.canonical`).
        embeddings: unit vectors by recogniser id, (512,) float32 each; empty where no recogniser was installed.
        portraits: the photos, in the order given when it was made; `content_hash` knows them by their landmarks.
    """

    name: str
    content_hash: str
    texture: FaceTexture
    shape: Points
    embeddings: Mapping[str, NDArray[np.float32]]
    portraits: tuple[Portrait, ...] = ()
