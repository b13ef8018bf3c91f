"""All figures in one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..demo.plate import DemoPlateSpec
from ..jobs.identity import make_demo_identity
from ..jobs.spec import Workbench
from .figures import Figures, frame_cost, outside_bits, soak, steadiness, throughput
from .movies import movie_cost
from .shot import make_shot

_COST_RUNS = 9
_THROUGHPUT_RUNS = 2
_MOVIE_RUNS = 2


def run_bench(bench: Workbench, folder: Path, *, soak_frames: int) -> Iterator[tuple[str, Figures]]:
    """Measure one figure after another.

    Args:
        bench: nets, colour, threads.
        folder: for frames, several GB at most for a long soak; emptied by the caller.
        soak_frames: 0 leaves the soak out.

    Yields:
        (title, figures).
    """
    made = make_demo_identity(folder / "person.fpid", bench)
    identity = made.file.identity
    yield "device", {"device": str(bench.nets.device), "reason": bench.nets.device.reason, "threads": bench.threads}
    # Lengths over which full searches come as often as in a long shot.
    for width, height, frames in ((1920, 1080, 48), (4096, 2160, 24)):
        # Zoomed so that the face is 400 px wide in 1920, as the figure is asked for.
        spec = DemoPlateSpec(frames=frames, width=width, height=height, overscan=0, zoom=1.18, sun=False)
        title = f"one frame {width}x{height}, one thread: compute over file I/O"
        yield title, frame_cost(spec, identity, bench, folder / str(width), _COST_RUNS)
    shot = make_shot(DemoPlateSpec(frames=24), folder / "shot", bench)
    still = make_shot(DemoPlateSpec(frames=24, yaw_deg=0.0, sun=False, zoom=1.18), folder / "camera", bench)
    yield "landmarks against truth, 24 frames at 1080p: moving camera, grain", steadiness(still, bench)
    yield "the same with a turning head and a reflection passing over the face", steadiness(shot, bench)
    yield "bits outside the matte, 24 frames at 1080p", outside_bits(shot, made.path, bench, folder)
    longer = make_shot(DemoPlateSpec(frames=48), folder / "longer", bench)
    title = f"throughput, 48 frames at 1080p, {bench.threads} threads"
    yield title, throughput(longer, made.path, bench, folder, _THROUGHPUT_RUNS)
    clip = DemoPlateSpec(frames=40, width=1920, height=1080, overscan=0, zoom=1.18, sun=False)
    title = "a 1080p ProRes 422 HQ movie, each further frame, faces known"
    yield title, movie_cost(clip, made.path, bench, folder / "movies", _MOVIE_RUNS)
    if soak_frames:
        small = make_shot(DemoPlateSpec(frames=12, width=640, height=360, overscan=0), folder / "small", bench)
        yield f"memory over {soak_frames} frames at 640x360", soak(soak_frames, small, made.path, bench, folder)
