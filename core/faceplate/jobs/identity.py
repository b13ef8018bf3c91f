"""Making and showing identity files, with the workbench's nets."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from ..demo.person import PHOTOS
from ..errors import IdentityError, OutputError
from ..faces.nets import FaceNets
from ..identity.file import MAX_NAME, IdentityFile, read_identity, write_identity
from ..identity.photos import PhotoRefusal, make_identity, photo_tools
from ..identity.text import describe_identity
from ..provenance.consent import read_consent
from .recognise import recognisers
from .spec import Workbench


@dataclass(frozen=True, slots=True, eq=False)
class MadeIdentity:
    """An identity file that was written.

    Attributes:
        path: where.
        file: what is in it.
        refusals: photos that were not used, with the reason.
    """

    path: Path
    file: IdentityFile
    refusals: tuple[PhotoRefusal, ...]


def make_identity_file(
    name: str, photos: Sequence[Path], consent: Path | None, path: Path, bench: Workbench
) -> MadeIdentity:
    """Make an identity from photos and write it.

    Args:
        name: what to call the person.
        photos: files, one face each.
        consent: TOML file with the record, or None.
        path: to write, ends with .fpid.
        bench: nets and colour configuration.

    Raises:
        IdentityError: no photo can be used, or the consent file is wrong.
        OutputError: `path` cannot be written, or is one of the photos.
    """
    if path.suffix.lower() != ".fpid":
        raise OutputError(f"{path} is no name for an identity", expected="a name that ends with .fpid", hint="see -o")
    if not (name.strip() and name.isprintable() and len(name) <= MAX_NAME):
        raise IdentityError(
            "an identity needs a name",
            expected=f"one line of 1 to {MAX_NAME} characters",
            found=repr(name[:MAX_NAME]),
            hint="give the person's name first, then the photos",
        )
    record = read_consent(consent) if consent else None
    if record is None and path.exists() and read_identity(path).consent is not None:
        raise OutputError(
            f"{path} holds a consent record, and the new identity would not",
            hint="give --consent again, or write another file with -o",
        )
    tools = photo_tools(FaceNets.load(bench.nets), bench.config, recognisers=recognisers(bench.nets))
    file, refusals = make_identity(name, photos, record, tools)
    write_identity(path, file)
    return MadeIdentity(path, file, refusals)


def make_demo_identity(path: Path, bench: Workbench) -> MadeIdentity:
    """The demonstration's fictional person, with a consent record that says so; see `make_identity_file`."""
    with as_file(files("faceplate.demo").joinpath("data")) as data:
        photos = [data / name for name in PHOTOS]
        return make_identity_file("demo person", photos, data / "person_consent.toml", path, bench)


def show_identity_file(path: Path) -> str:
    """An identity file in words, its consent judged for today.

    Raises:
        IdentityError: it cannot be read.
    """
    return describe_identity(read_identity(path), on=datetime.date.today())
