"""An identity file in words, for `faceplate identity show`."""

from __future__ import annotations

import datetime

import numpy as np

from ..errors import ConsentError
from ..provenance.consent import check_consent
from .embed import spaces
from .file import IdentityFile


def describe_identity(file: IdentityFile, *, on: datetime.date, project: str | None = None) -> str:
    """Lines of plain text: person, consent as it stands on a day, texture, photos.

    Args:
        file: what `read_identity` gave.
        on: the day for which the consent is judged; a refusal is told, not raised.
        project: see `check_consent`.
    """
    identity, texture = file.identity, file.identity.texture
    try:
        consent = check_consent(file.consent, on=on, project=project).text
    except ConsentError as error:
        consent = f"REFUSED: {error}"
    lines = [
        f"identity  {identity.name}",
        f"hash      {identity.content_hash}",
        f"made by   Faceplate {file.tool_version}",
        f"consent   {consent}",
    ]
    if file.consent is not None:
        record = file.consent
        told = (
            ("scope", record.scope),
            ("kind", record.kind),
            ("territory", record.territory),
            ("notes", record.notes),
        )
        lines.extend(f"          {name}: {text}" for name, text in told if text)
    side, known = texture.colour.shape[0], float(np.mean(texture.coverage, dtype=np.float64))
    lines.append(
        f"texture   {side} x {side}, {texture.detail_px:.0f} px across the face, {known:.0%} of the square known"
    )
    if identity.embeddings:
        lines.append(f"embedded  {', '.join(spaces(identity))}")
    lines.append(f"photos    {len(file.photos)}")
    for photo in file.photos:
        width, height = photo.size
        facts = f"face {photo.face_width_px:.0f} px, yaw {photo.yaw_deg:+.0f}, sharpness {photo.sharpness:.2f}"
        lines.append(f"          {photo.file_name}  {width} x {height}, {facts}, {photo.colour}")
    return "".join(line + "\n" for line in map(_one_line, lines))


def _one_line(text: str) -> str:
    """A record from anywhere must not steer the terminal or forge a line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
