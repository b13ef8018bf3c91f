"""Made-up but realistic reports, with pictures derived from NASA's astronaut."""

from __future__ import annotations

import functools
import math
from typing import Any

import cv2
import numpy as np

from faceplate.demo.portrait import load_portrait
from faceplate.job import FrameState
from faceplate.provenance.attributes import UsedModel
from faceplate.report.thumbs import matte_thumbnail, thumbnail
from faceplate.report.values import (
    ColourLine,
    FaceRow,
    FrameRow,
    IdentityLine,
    JobReport,
    Thumbnail,
    contact_frames,
)

MODELS = (
    UsedModel("mediapipe_face_detector", "ab" * 32, "Apache-2.0"),
    UsedModel("mediapipe_face_mesh", "cd" * 32, "Apache-2.0"),
    UsedModel("studio_swapper_v3", "ef" * 32, "CC-BY-NC-4.0", commercial=False),
)
JANE = IdentityLine(
    *("jane", "0c" * 32, "track 1", 14, 420.0, "7be1c0ffee420001"),
    "Jane Doe, signed by Jane Doe on 2026-03-01, for Moonrise, valid until 2027-03-01",
    consent_valid=True,
)
RAY = IdentityLine("ray", "1d" * 32, "track 2", 1, 93.0, "no consent record", "no consent record", consent_valid=False)


@functools.cache
def pictures(frame: int) -> Thumbnail:
    """The astronaut, the same with a warmer face, and that face as matte; moves with the frame."""
    shift = 30 * math.sin(frame / 20)
    plate = np.roll(load_portrait()[:288], round(shift), 1)
    matte = np.zeros(plate.shape[:2], np.float32)
    cv2.ellipse(matte, (round(224 + shift), 125), (48, 66), 0, 0, 360, 1.0, -1)
    matte = cv2.GaussianBlur(matte, (0, 0), 5)
    after = plate * (1 + matte[..., None] * np.array([0.25, 0.0, -0.15], np.float32))
    return Thumbnail(frame, thumbnail(plate), thumbnail(after), matte_thumbnail(matte))


def _face(track: int, name: str, frame: int, count: int, noise: np.random.Generator) -> FaceRow:
    phase = frame / max(count, 1) * 2 * math.pi
    filled = track == 1 and 40 <= frame % 400 < 47
    passing = track == 1 and 70 <= frame % 500 < 92
    return FaceRow(
        track=track,
        identity=name,
        origin="filled" if filled else "detected" if frame % 12 == 0 else "tracked",
        score=0.44 if filled else float(np.clip(0.95 - 0.3 * passing + noise.normal(0, 0.015), 0, 1)),
        yaw_deg=35 * math.sin(phase + track) + noise.normal(0, 0.4),
        width_px=(420 if track == 1 else 150) + 70 * math.sin(phase / 2 + track),
        jitter_px=None if frame < 2 else abs(noise.normal(0.12, 0.04)) + (2.4 if frame == 63 and track == 1 else 0),
        matte_area=(0.034 if track == 1 else 0.009) * (1 - 0.5 * passing) * (1 + 0.2 * math.sin(phase)),
        exposure_stops=0.18 * math.sin(3 * phase) + noise.normal(0, 0.01) + 0.3 * (track - 1),
        occluded=0.5 * math.sin((frame % 500 - 70) / 22 * math.pi) if passing else 0.0,
    )


def make_report(count: int = 120, first: int = 1001, *, sheet: bool = True, **changes: Any) -> JobReport:
    """A shot with two faces: some filled, one passing hand, a few frames without output."""
    noise = np.random.default_rng(7)
    rows = []
    for index in range(count):
        faces = [_face(1, "jane", index, count, noise)]
        if count // 4 <= index < count * 4 // 5:
            faces.append(_face(2, "ray" if count < 1000 else "", index, count, noise))
        state, note = FrameState.DONE, ""
        if index % 97 == 23:
            state, note, faces = FrameState.FAILED, "plate.1024.exr: truncated; expected 1080 lines; found 612", []
        elif index % 300 in (100, 101, 102):
            state, faces = FrameState.NO_FACE, []
        elif index % 400 == 110:
            state, note = FrameState.HELD, f"no input; holds frame {first + index - 1}"
        rows.append(FrameRow(first + index, state, tuple(faces), 0.31, note))
    values: dict[str, Any] = {
        "job_id": "3f9c2a17",
        "plate": "MOO_010_0040_plate_v003.####.exr",
        "output": "/shots/moo/010_0040/comp/faceplate_v001/MOO_010_0040_face_v001.####.exr",
        "frame_range": f"{first}-{first + count - 1}",
        "raster": "2048x1152, half float RGBA, pixel aspect 1",
        "engine": "mesh 1",
        "commercial": True,
        "settings": {"strength": [[1001, 0.0], [1010, 1.0]], "matte_soften": [[0, 0.08]]},
        "colours": (
            ColourLine("plate", "ACEScg", "file tag", "colorInteropID lin_ap1_scene"),
            ColourLine("output", "ACEScg", "plate"),
            ColourLine("photos of ray", "sRGB Encoded Rec.709 (sRGB)", "default", "Untagged JPEG.", assumed=True),
        ),
        "identities": (JANE, RAY),
        "models": MODELS,
        "versions": {"Faceplate": "0.1.0", "Python": "3.11.7", "onnxruntime": "1.23.0", "OpenEXR": "3.5.3"},
        "device": "AMD EPYC, 2 cores",
        "provider": "CPUExecutionProvider",
        "started": "2026-11-30T20:14:05+00:00",
        "ended": "2026-11-30T20:15:01+00:00",
        "wall_seconds": 0.42 * count,
        "timings": {"read": 0.05 * count, "analyse": 0.11 * count, "swap": 0.2 * count, "write": 0.09 * count},
        "rows": tuple(rows),
        "thumbnails": tuple(pictures(frame) for frame in contact_frames([row.frame for row in rows] if sheet else [])),
        "notes": ("12 frames were taken over from an earlier run of this job.",),
        "ledger_hash": "9a" * 32,
    }
    return JobReport(**{**values, **changes})


def single_report() -> JobReport:
    """One picture, one face, all well."""
    face = FaceRow(1, "jane", "detected", 0.97, 4.0, 210.0, None, 0.05, 0.1, 0.0)
    colours = (ColourLine("plate", "ACEScg", "file tag"),)
    return make_report(
        1,
        sheet=False,
        frame_range="1",
        rows=(FrameRow(1, FrameState.DONE, (face,), 0.4),),
        colours=colours,
        identities=(JANE,),
        models=MODELS[:2],
        notes=(),
        settings={},
        thumbnails=(pictures(1),),
    )


def faceless_report() -> JobReport:
    """Thirty frames in which nobody is seen."""
    rows = tuple(FrameRow(frame, FrameState.NO_FACE) for frame in range(1, 31))
    return make_report(30, 1, sheet=False, rows=rows, identities=(), thumbnails=(), notes=())
