"""What every output file says about itself, as plain header attributes that survive other tools as text.

No clock and no path of this run goes in: the same job gives the same bytes. Times are in the ledger and the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import __version__

DIGITAL_SOURCE_TYPE = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
"""IPTC's word for a recorded picture with parts made by a trained model."""


@dataclass(frozen=True, slots=True)
class UsedModel:
    """A net that took part.

    Attributes:
        id: in the catalogue.
        sha256: of the file that ran, hex.
        licence: SPDX identifier, or the words of its card.
        commercial: whether that licence allows paid work.
    """

    id: str
    sha256: str
    licence: str = ""
    commercial: bool = True


@dataclass(frozen=True, slots=True)
class UsedIdentity:
    """A person who was put in.

    Attributes:
        name: as in the identity file.
        content_hash: of the identity, hex.
        consent_id: as `consent.consent_id` gives it: an id, or "no consent record".
    """

    name: str
    content_hash: str
    consent_id: str


def settings_hash(settings: Mapping[str, object]) -> str:
    """16 hex digits over JSON values (`KeyedSettings.to_json`), whatever their order."""
    canonical = json.dumps(settings, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def output_attributes(
    *,
    job_id: str,
    engine: str,
    engine_version: str,
    models: Sequence[UsedModel],
    identities: Sequence[UsedIdentity],
    settings: str,
    plate_frame: int | None,
) -> dict[str, str | int | float]:
    """The attributes of one output frame; `colorInteropID` is the writer's business.

    Args:
        job_id: of the job.
        engine: name of the engine.
        engine_version: of the engine.
        models: all nets that took part, detectors included; listed by id.
        identities: all people of the job, in its order, whether or not they are in this frame.
        settings: `settings_hash` of the job.
        plate_frame: number of the plate's frame, None for a lone picture.

    Returns:
        Names begin with "faceplate/"; at most 31 characters, the limit of old EXR readers, up to 99 entries.
    """
    values: dict[str, str | int | float] = {
        "faceplate/tool": f"Faceplate {__version__}",
        "faceplate/jobId": job_id,
        "faceplate/engine": f"{engine} {engine_version}",
        "faceplate/settingsHash": settings,
        "faceplate/digitalSourceType": DIGITAL_SOURCE_TYPE,
    }
    if plate_frame is not None:
        values["faceplate/plateFrame"] = plate_frame
    for number, model in enumerate(sorted(set(models), key=lambda used: (used.id, used.sha256)), 1):
        values[f"faceplate/model{number}"] = f"{model.id} sha256:{model.sha256}"
    for number, person in enumerate(dict.fromkeys(identities), 1):
        values[f"faceplate/identity{number}/name"] = person.name
        values[f"faceplate/identity{number}/hash"] = person.content_hash
        values[f"faceplate/identity{number}/consent"] = person.consent_id
    return {name: _header_text(value) if isinstance(value, str) else value for name, value in values.items()}


def _header_text(text: str) -> str:
    """Headers end a text at its first NUL and tools print it raw, so control characters become a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
