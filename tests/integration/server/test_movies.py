"""Movies through a server: a frame of one by reference, and a whole job."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from faceplate.colour.spaces import ColourConfig
from faceplate.media.read import read_image
from faceplate.plate import open_plate
from faceplate_client import wire
from tests.integration.conftest import Cli
from tests.integration.server.conftest import Running
from tests.support.movies import Clip, face_clip

PRORES = Clip("prores_ks", "yuv422p10le", 480, 300, timecode="01:00:00:00")


def test_a_frame_of_a_movie_by_reference(server: Running, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES, count=3)
    out = tmp_path / "o.exr"
    with server.client() as client:
        job = client.submit_frame(
            frame=2,
            plate=wire.FileRef(str(plate), 2),
            output=wire.FileRef(str(out)),
            assignments=(wire.Assignment(str(identity)),),
        )
        result = client.result(job, 60)
    assert isinstance(result, wire.FrameResult)
    assert result.state == "done"
    assert result.facts["colour_space"] == "Camera Rec.709"
    read = open_plate(str(plate), ColourConfig.open())
    (source,) = read.sources("2", "error")
    wanted = read.read(source).pixels.astype(np.float16)
    same = (read_image(out).pixels == wanted).all(axis=-1)
    assert 0.7 < same.mean() < 0.98


def test_a_job_of_a_movie_gives_the_same_bytes(server: Running, cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES, count=2)
    for folder, where in (("a", "off"), ("b", server.address)):
        words = ("apply", plate, "--identity", identity, "-o", tmp_path / folder / "o.mov", "--device", "cpu")
        assert cli(*words, "--server", where).code == 0
    assert (tmp_path / "a" / "o.mov").read_bytes() == (tmp_path / "b" / "o.mov").read_bytes()


def test_what_is_said_of_a_movie_reaches_the_server(server: Running, cli: Cli, identity: Path, tmp_path: Path) -> None:
    plate = face_clip(tmp_path / "x.mov", PRORES, count=2)
    said = ("--codec", "ffv1", "--fps", "12", "--input-matrix", "bt601", "--input-range", "full", "--failed", "plate")
    made = []
    for folder, where, more in (("a", "off", ()), ("b", server.address, ("--no-movie",)), ("b", server.address, ())):
        out = tmp_path / folder / "o.mkv"
        words = ("apply", plate, "--identity", identity, "-o", out, "--device", "cpu", *said, *more, "--server", where)
        assert cli(*words).code == 0
        made.append(out.read_bytes() if out.exists() else None)
    assert made[1] is None
    assert made[0] == made[2]
