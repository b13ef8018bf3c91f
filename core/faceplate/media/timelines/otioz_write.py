"""An `.otioz` again with other media: the timeline and every file that it plays, in one archive.

OTIO's own writer bundles no sequences of pictures; the form is its own.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..movies.movie import FIRST_FRAME
from .files import Document
from .linking import url_path

_VERSION, _MEDIA = "1.0.0", "media"


def write(document: Document, target: Path) -> None:
    """Bundle a document's timeline.

    Args:
        document: its timeline's relative paths are below `document.base`.
        target: a file that is there, to be written anew.
    """
    import opentimelineio as otio

    timeline = document.timeline.clone()
    names: dict[Path, str] = {}
    for clip in timeline.find_clips():
        references = dict(clip.media_references())
        for reference in references.values():
            _bundle(reference, document.base, names)
        clip.set_media_references(references, clip.active_media_reference_key)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        file.writestr("version.txt", _VERSION)
        text = otio.adapters.write_to_string(timeline, "otio_json")
        file.writestr("content.otio", text, zipfile.ZIP_DEFLATED)
        for path, name in names.items():
            file.write(path, name)


def _bundle(reference: Any, base: Path, names: dict[Path, str]) -> None:
    """Point a reference into the archive and note the files that go there; one whose files are elsewhere stays."""
    import opentimelineio as otio

    if isinstance(reference, otio.schema.ImageSequenceReference):
        files = list(_pictures(reference, base))
        if not files or not all(file.is_file() for file in files):
            return
        folder = f"{_MEDIA}/{_unique(files[0].parent, names)}"
        names.update({file: f"{folder}/{file.name}" for file in files})
        reference.target_url_base = folder + "/"
    elif isinstance(reference, otio.schema.ExternalReference) and reference.target_url:
        file = base / url_path(reference.target_url)
        if file.is_file():
            name = names.setdefault(file, f"{_MEDIA}/{_unique(file, names)}")
            reference.target_url = name


def _pictures(reference: Any, base: Path) -> Iterator[Path]:
    folder = base / url_path(reference.target_url_base or "")
    for index in range(reference.number_of_images_in_sequence()):
        number = reference.start_frame + index * reference.frame_step
        digits = f"{number:0{reference.frame_zero_padding}d}"
        yield folder / f"{reference.name_prefix}{digits}{reference.name_suffix}"


def _unique(path: Path, names: dict[Path, str]) -> str:
    """A name inside the archive that no other file or folder there has."""
    taken = {name.split("/")[1] for other, name in names.items() if path not in (other, other.parent)}
    name, number = path.name, FIRST_FRAME + 1
    while name in taken:
        name, number = f"{path.stem}_{number}{path.suffix}", number + 1
    return name
