"""The colour proof: bars and ramps through every input and output pair, with a job that changes nothing.

Ours is what our arithmetic does to the codes before the encoder; the codec's own loss is measured beside it. Both in
codes of the file that was read, in Y'CbCr, away from the edges of the bars where chroma of another grid must differ.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from faceplate.colour.spaces import ColourConfig
from faceplate.job import Assignment
from faceplate.jobs.cancel import CancelToken
from faceplate.jobs.hashes import HashCache
from faceplate.jobs.movie import assemble
from faceplate.jobs.movie_plan import MoviePlan, plan_movie
from faceplate.jobs.patches import patch_path
from faceplate.jobs.spec import ApplyJob, MovieOutput, Workbench
from faceplate.media.exr import write_exr
from faceplate.media.movies.codecs import CODECS
from faceplate.media.movies.convert import convert
from faceplate.media.movies.layout import layout_of
from faceplate.media.movies.movie import Movie
from faceplate.media.movies.planes import Coding, Matrix, from_rgb, to_luma, to_rgb
from faceplate.models.sessions import SessionPool
from faceplate.plate import open_plate
from tests.support.movies import Clip

Values = NDArray[np.float32]
BARS = np.array([[r, g, b] for r in (1, 0) for g in (1, 0) for b in (1, 0)], np.float32) * 0.75
WIDTH, HEIGHT = 256, 128


def card(width: int, height: int) -> NDArray[np.float32]:
    """Bars of 75 % above, a ramp of each primary and of grey below; R'G'B'."""
    picture = np.zeros((height, width, 3), np.float32)
    picture[: height // 2] = BARS[np.arange(width) * 8 // width]
    ramp = np.linspace(0, 1, width, dtype=np.float32)
    for index, colour in enumerate(([1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1])):
        rows = slice(height // 2 + index * height // 8, height // 2 + (index + 1) * height // 8)
        picture[rows] = ramp[:, None] * colour
    return picture


def calm(width: int, height: int) -> NDArray[np.bool_]:
    """Pixels away from the edges of bars and ramps."""
    inside = np.ones((height, width), bool)
    for x in range(0, width + 1, width // 8):
        inside[: height // 2, max(0, x - 8) : x + 8] = False
    for y in range(height // 2, height + 1, height // 8):
        inside[max(0, y - 8) : y + 8] = False
    inside[:, :8] = inside[:, -8:] = False
    return inside


@dataclass(frozen=True)
class Source:
    """A clip to read."""

    clip: Clip
    suffix: str
    matrix: Matrix
    full: bool = False


def source(codec: str, pixels: str, suffix: str, tags: tuple[int, int, int, int], matrix: Matrix = "bt709",
           full: bool = False, size: tuple[int, int] = (WIDTH, HEIGHT), **options: str) -> Source:  # fmt: skip
    return Source(Clip(codec, pixels, *size, tags=tags, options=options), suffix, matrix, full)


SOURCES = {
    "H.264 8 bit, BT.709": source("libx264", "yuv420p", ".mp4", (1, 1, 1, 1), qp="0"),
    "H.264 8 bit, untagged HD": source("libx264", "yuv420p", ".mp4", (2, 2, 2, 0), size=(1280, 720), qp="0"),
    "H.264 8 bit, full range": source("libx264", "yuv420p", ".mp4", (1, 1, 1, 2), full=True, qp="0"),
    "H.264 8 bit, BT.601": source("libx264", "yuv420p", ".mp4", (6, 6, 6, 1), "bt601", qp="0"),
    "ProRes 422 HQ, BT.709": source("prores_ks", "yuv422p10le", ".mov", (1, 1, 1, 1)),
    "ProRes 422 HQ, untagged HD": source("prores_ks", "yuv422p10le", ".mov", (2, 2, 2, 0), size=(1280, 720)),
    "ProRes 4444, BT.709": source("prores_ks", "yuv444p10le", ".mov", (1, 1, 1, 1)),
    "DNxHR 444 RGB": source("dnxhd", "gbrp10le", ".mov", (1, 1, 0, 2), "rgb", full=True, profile="dnxhr_444"),
    "HEVC 10 bit, PQ": source("libx265", "yuv420p10le", ".mp4", (9, 16, 9, 1), "bt2020"),
    "HEVC 10 bit, HLG": source("libx265", "yuv420p10le", ".mp4", (9, 18, 9, 1), "bt2020"),
    "FFV1 12 bit, BT.2020": source("ffv1", "yuv422p12le", ".mkv", (9, 15, 9, 1), "bt2020"),
    "FFV1 16 bit RGB": source("ffv1", "gbrp16le", ".mkv", (1, 1, 0, 2), "rgb", full=True),
}
OUTPUTS = {name: codec.suffixes[0] for name, codec in CODECS.items()}


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plates")
    made = {}
    for number, (name, one) in enumerate(SOURCES.items()):
        coding = Coding(one.matrix, one.full)
        picture = from_rgb(card(one.clip.width, one.clip.height), layout_of(one.clip.pixels), coding)
        options = dict(one.clip.options)
        if one.clip.codec == "libx265":
            options["x265-params"] = "lossless=1:bframes=0:log-level=none"
        clip = dataclasses.replace(one.clip, options=options)
        made[name] = clip.write(folder / f"{number}{one.suffix}", [picture])
    return made


def unchanged(plate_path: Path, out: Path, codec: str) -> MoviePlan:
    """A job in which nothing changes, through the real plan and the real assembly."""
    config = ColourConfig.open()
    plate = open_plate(str(plate_path), config)
    job = ApplyJob(str(plate_path), str(out), (Assignment(Path("x.fpid")),), movie=MovieOutput(codec))
    sources = plate.sources(None, "error")
    plan = plan_movie(job, plate, sources)
    folder = out.with_suffix(".faceplate")
    patches = {one.number: patch_path(folder, one.number) for one in sources}
    for path in patches.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_exr(path, np.zeros((1, 1, 4), np.float32), display_window=plate.first.display_window)
    bench = Workbench(config, SessionPool(device="cpu", threads=1), 1)
    assemble(plan, plate, folder, patches, {}, bench, HashCache(), lambda _: None, CancelToken())
    return plan


def off(read: Values, wanted: Values, matrix: Matrix, bits: int, where: NDArray[np.bool_]) -> float:
    """Largest difference in codes of a depth: of luma and colour differences, or of R'G'B' where there is no matrix."""
    if matrix == "rgb":
        return float(np.abs(read - wanted)[..., :3][where].max() * (2**bits - 1))
    pairs = zip(to_luma(read, matrix), to_luma(wanted, matrix), (219, 224, 224), strict=True)
    return max(float(np.abs(a - b)[where].max() * scale * 2 ** (bits - 8)) for a, b, scale in pairs)


def errors(plate: Path, out: Path, codec: str) -> tuple[float, float, Movie]:
    """(ours, with the codec's own), and the movie that was written.

    In codes of the file that has fewer bits: a coarser file cannot be nearer than half a code of its own.
    """
    made = unchanged(plate, out, codec).made
    before, after = Movie(plate), Movie(out)
    mine, theirs = before.picture(1), after.picture(1)
    coding = before.facts.colour.coding
    wanted = to_rgb(mine.planes, mine.layout, coding)
    handed = convert(mine.planes, mine.layout, coding, made.layout, made.coding)
    bits = min(mine.layout.bits, made.layout.bits)
    where, matrix = calm(before.facts.width, before.facts.height), made.coding.matrix
    ours = off(to_rgb(handed, made.layout, made.coding), wanted, matrix, bits, where)
    read = to_rgb(theirs.planes, theirs.layout, after.facts.colour.coding)
    return ours, off(read, wanted, matrix, bits, where), after


PAIRS = [
    *((name, codec) for name in SOURCES for codec in ("prores_422hq", "prores_4444", "ffv1")),
    *((name, codec) for name in ("H.264 8 bit, BT.709", "ProRes 422 HQ, BT.709") for codec in OUTPUTS),
    *((name, codec) for name in ("HEVC 10 bit, PQ", "HEVC 10 bit, HLG") for codec in ("h265", "dnxhr_hqx")),
    *(("DNxHR 444 RGB", codec) for codec in ("dnxhr_444", "h264")),
]


@pytest.mark.parametrize(("name", "codec"), sorted(set(PAIRS)))
def test_at_most_one_code(name: str, codec: str, plates: dict[str, Path], tmp_path: Path) -> None:
    ours, with_codec, made = errors(plates[name], tmp_path / f"o{OUTPUTS[codec]}", codec)
    assert ours <= 1.0
    assert with_codec <= (1.0 if codec == "ffv1" else 6.0)
    before = Movie(plates[name]).facts.colour
    after = made.facts.colour
    assert (after.transfer, after.primaries) == (before.transfer, before.primaries)
    assert after.tags.transfer not in (0, 2)  # what was assumed is written down


def seen_by_swscale(path: Path) -> Values:
    """R'G'B' in codes of 8 bits, by the file's own tags, or BT.709 where there are none."""
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    untagged = int(frame.colorspace) == 2
    shown = frame.reformat(format="rgb24", src_colorspace="itu709" if untagged else None)
    return shown.to_ndarray().astype(np.float32)


@pytest.mark.parametrize("codec", ["prores_422hq", "dnxhr_hqx", "h264", "h265", "ffv1"])
@pytest.mark.parametrize("name", ["H.264 8 bit, untagged HD", "H.264 8 bit, BT.601", "ProRes 4444, BT.709"])
def test_another_reader_sees_the_same_colours(name: str, codec: str, plates: dict[str, Path], tmp_path: Path) -> None:
    """The result by its tags looks like the plate by its own; where peers are 23 codes off."""
    path = tmp_path / f"o{OUTPUTS[codec]}"
    unchanged(plates[name], path, codec)
    before, after = seen_by_swscale(plates[name]), seen_by_swscale(path)
    where = calm(before.shape[1], before.shape[0])
    assert np.abs(after - before)[where].max() <= (5 if codec in ("h264", "h265") else 3)
