"""All figures of the server in one run, against a server of its own."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from faceplate.bench.shot import make_shot
from faceplate.demo.plate import DemoPlateSpec
from faceplate.errors import ResourceError
from faceplate.jobs.analyse import AnalyseJob, run_analyse
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.identity import make_demo_identity
from faceplate.jobs.spec import Workbench
from faceplate_client import Client, Place, find, find_or_start
from faceplate_client.errors import ClientError
from faceplate_client.slot_header import FrameType

from .messages import round_trip
from .ranges import apply_share
from .statistics import Figures
from .transfer import transfer
from .work import Shot, share, under_load

_STOP_S = 60.0


@contextmanager
def own_server(device: str) -> Iterator[Place]:
    """A server beside the user's own, in the same private folder, for as long as the block runs.

    Raises:
        ResourceError: it does not start.
    """
    place = Place(None, f"bench-{secrets.token_hex(4)}")
    words = ["-m", "faceplate", "serve", "--folder", str(place.folder), "--name", place.name, "--device", device]
    try:
        child = find_or_start(place, [sys.executable, *words]).child
    except ClientError as error:
        raise ResourceError(error.message, expected=error.expected, found=error.found, hint=error.hint) from error
    assert child is not None
    try:
        yield place
    finally:
        child.terminate()
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for file in place.folder.glob(f"*-{place.name}.*"):
            file.unlink(missing_ok=True)


def bench_shot(spec: DemoPlateSpec, folder: Path, bench: Workbench) -> Shot:
    """A demo plate, its sidecar and an identity."""
    person = make_demo_identity(folder / "person.fpid", bench)
    made = make_shot(spec, folder / "plate", bench)
    run_analyse(AnalyseJob(made.plate.pattern), bench, lambda _: None, CancelToken())
    number = spec.numbers[len(spec.numbers) // 2]
    frame = made.frames[number]
    height, width, count = frame.pixels.shape
    pixels = np.ones((height, width, 4), np.float32)
    pixels[..., :count] = frame.pixels
    return Shot(made.plate.pattern, number, pixels, frame.colour_space, person.path)


def run_bench(bench: Workbench, folder: Path, device: str) -> Iterator[tuple[str, Figures]]:
    """Measure one figure after another.

    Args:
        bench: to make the plate and the identity with.
        folder: for frames; emptied by the caller.
        device: that the server works on.

    Yields:
        (title, figures).

    Raises:
        ResourceError: the server does not start.
    """
    with own_server(device) as place, Client(lambda: find(place), "bench") as client:
        yield "control message over ipc, there and back", round_trip(client, place.folder)
        for width, height, kind, name in (
            (1920, 1080, FrameType.FLOAT, "float"),
            (4096, 2160, FrameType.HALF, "half"),
        ):
            title = f"{width}x{height} RGBA {name} to the server and back, null engine"
            yield title, transfer(client, place.folder, width, height, kind)
        shot = bench_shot(DemoPlateSpec(frames=48, overscan=0), folder, bench)
        yield "one frame 1920x1080 through shared memory, faces known", share(client, place.folder, shot)
        yield "a further frame of apply 1920x1080, faces known", apply_share(client, bench, shot, folder)
        title = "an interactive frame 1920x1080 while a batch runs"
        with Client(lambda: find(place), "bench batch") as batch:
            yield title, under_load(client, batch, place.folder, shot, str(folder / "out" / "out.####.exr"))
