"""What people choose from, as the wire has it: tracks of a shot, identities of a folder."""

from __future__ import annotations

import datetime
from pathlib import Path

from faceplate.faces.sidecar import read_sidecar
from faceplate.jobs.pictures import list_identities, track_pictures
from faceplate.jobs.spec import Workbench
from faceplate.plate import open_plate
from faceplate_client import wire

from .errors import clean
from .roots import Roots

_MOST = 1000
_LABEL = 200


def tracks_of(
    message: wire.SubmitAnalyse, sidecar: Path, bench: Workbench, roots: Roots
) -> tuple[wire.TrackFound, ...]:
    """The tracks in the sidecar of an analysis, with pictures where the message asks for them.

    Raises:
        Refused: the pictures' folder lies outside the roots.
        InputError: the sidecar cannot be read, or a picture cannot be written.
    """
    folder = None if message.pictures is None else roots.check(message.pictures)
    plate = None if folder is None else open_plate(message.plate, bench.config, message.input_space)
    return tuple(
        wire.TrackFound(
            id=one.track.id,
            label=clean(one.track.label)[:_LABEL],
            first=one.track.first,
            last=one.track.last,
            frames=len(one.track.observations),
            weak=one.weak,
            width_px=one.width_px,
            best=one.best,
            picture=None if one.picture is None else str(one.picture),
        )
        for one in track_pictures(read_sidecar(sidecar), plate, folder)[:_MOST]
    )


def identities_in(message: wire.ListIdentities, roots: Roots) -> wire.Identities:
    """The answer to `list_identities`.

    Raises:
        Refused: a folder outside the roots.
        InputError: the folder cannot be read, or a picture cannot be written.
    """
    folder = roots.check(message.folder)
    pictures = None if message.pictures is None else roots.check(message.pictures)
    today = datetime.datetime.now().astimezone().date()
    people = list_identities(folder, message.project, today, pictures)
    return wire.Identities(
        message.id,
        tuple(
            wire.Person(
                str(one.path),
                clean(one.name)[:_LABEL],
                one.state,
                clean(one.text)[:1000],
                None if one.picture is None else str(one.picture),
            )
            for one in people[:_MOST]
        ),
    )
