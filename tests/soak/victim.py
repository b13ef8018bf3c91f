"""A client that is killed: a batch on its way, and frames in its ring all the time.

python -m tests.soak.victim FOLDER PLATE IDENTITY OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path

from faceplate_client import Client, FrameHeader, Place, Ring, find, wire

HEADER = FrameHeader(1920, 1080, colour_space="ACEScg")


def main(folder: str, plate: str, identity: str, output: str) -> None:
    """Work until killed."""
    place = Place(Path(folder))
    person = (wire.Assignment(identity),)
    pixels = bytes(HEADER.nbytes)
    with Client(lambda: find(place), "victim") as client, Ring.create(3, HEADER.nbytes, place.folder) as ring:
        client.submit_range(plate=plate, output=output, frames=None, assignments=person)
        for number in range(1_000_000):
            source = ring.put(HEADER, pixels)
            room = ring.offer(ring.acquire()) if number % 2 else None
            job = client.submit_frame(frame=number, plate=source, output=room, assignments=(), engine="null")
            client.result(job, 60)
            for slot in range(ring.slots):
                ring.release(slot)


if __name__ == "__main__":
    main(*sys.argv[1:])
