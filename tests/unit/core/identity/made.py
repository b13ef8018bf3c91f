"""A small identity without any net: smooth texture, canonical shape, one made-up photo."""

from __future__ import annotations

import datetime

import cv2
import numpy as np

from faceplate.face import FaceTexture
from faceplate.faces import topology
from faceplate.identity.file import IdentityFile, PhotoRecord, build_identity
from faceplate.provenance.consent import Consent

CONSENT = Consent(
    "Jane Doe", "Jane Doe", datetime.date(2026, 3, 1), "Moonrise", "shots 10 to 40", datetime.date(2027, 3, 1)
)


def photo(seed: int = 1, name: str = "jane_01.jpg") -> PhotoRecord:
    """A record with a 64 px crop of smooth noise and the canonical face as landmarks."""
    noise = np.random.default_rng(seed).random((64, 64, 3), np.float32)
    code = (cv2.GaussianBlur(noise, (0, 0), 4) * 65535).astype(np.uint16)
    points = np.zeros((478, 3), np.float32)
    points[:468] = topology.canonical() * 48 + [32, 32, 0]
    points[468:] = points[6]
    png = cv2.imencode(".png", code)[1].tobytes()
    return PhotoRecord(name, "ab" * 32, (640, 480), "sRGB (default)", 210.5, -3.25, 0.4, png, 1.0, points)


def identity_file(consent: Consent | None = CONSENT, name: str = "jane", size: int = 64) -> IdentityFile:
    """A complete identity with two photos and one embedding."""
    ramp = np.linspace(0.05, 0.6, size, dtype=np.float32)
    colour = np.broadcast_to(ramp[:, None, None] * np.array([1.0, 0.7, 0.5], np.float32), (size, size, 3))
    texture = FaceTexture(colour.astype(np.float16), np.full((size, size), 0.75, np.float16), 210.5)
    vector = np.full(512, 512**-0.5, np.float32)
    photos = [photo(1), photo(2, "jane_02.jpg")]
    return build_identity(name, texture, topology.canonical().copy(), photos, consent, {"recogniser": vector})
