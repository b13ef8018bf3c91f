"""What hosts need beside pixels: notes, pictures of tracks and people, the colour of results, results in their form."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from faceplate.cli.main import main
from faceplate.colour.spaces import ColourConfig
from faceplate.media.read import read_image
from faceplate_client import wire
from faceplate_client.errors import ServerError
from faceplate_client.slots import as_array
from tests.integration.conftest import SMALL, Cli, person_photos
from tests.integration.server.conftest import Running

CONSENT = (
    'person = "Ada"\nsigned_by = "Ada"\ndate = {date}\nproject = "film"\nscope = "one shot"\nvalid_until = {end}\n'
)


@pytest.fixture(scope="module")
def people(identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an identity of each kind."""
    folder = tmp_path_factory.mktemp("people")
    shutil.copy(identity, folder / "none.fpid")
    (folder / "broken.fpid").write_bytes(b"no identity")
    (folder / "readme.txt").write_text("not an identity")
    for name, end in (("Valid", "2999-01-01"), ("Expired", "2020-01-02")):
        record = folder / f"{name}.toml"
        record.write_text(CONSENT.format(date="2020-01-01", end=end))
        words = ["identity", "make", name, str(person_photos()[0]), "-o", str(folder / f"{name}.fpid")]
        assert main([*words, "--consent", str(record)]) == 0
    return folder


def test_a_folders_identities_with_consent_and_pictures(server: Running, people: Path, tmp_path: Path) -> None:
    with server.client() as client:
        found = client.identities(people, project="film", pictures=tmp_path / "pictures")
        other = client.identities(people, project="another film")
        with pytest.raises(ServerError, match="cannot be read"):
            client.identities(tmp_path / "nowhere")
    assert [(one.name, one.state) for one in found] == [
        ("broken", "unreadable"),
        ("Expired", "refused"),
        ("person", "none"),
        ("Valid", "valid"),
    ]
    assert "expired" in found[1].text
    assert found[0].picture is None
    for one in found[1:]:
        assert one.picture is not None
        picture = cv2.imread(one.picture)
        assert picture is not None
        assert max(picture.shape) <= 160
        assert picture.mean() > 20
    assert next(one for one in other if one.name == "Valid").state == "refused"
    assert all(one.picture is None for one in other)


def test_an_analysis_shows_its_tracks(server: Running, small_plate: str, tmp_path: Path) -> None:
    sidecar = tmp_path / "faces.faces.json"
    with server.client() as client:
        job = client.analyse(
            plate=small_plate, frames="1002-1005", sidecar=str(sidecar), pictures=str(tmp_path / "pictures")
        )
        end = client.result(job, 60)
        again = list(client.events(client.analyse(plate=small_plate, frames="1002-1005", sidecar=str(sidecar)), 60))
    assert isinstance(end, wire.Done)
    assert end.sidecar == str(sidecar)
    (track,) = end.tracks
    assert (track.id, track.first, track.last, track.frames) == (1, 1002, 1005, 4)
    assert track.width_px == pytest.approx(SMALL.face_width_px, rel=0.1)
    assert track.picture == str(tmp_path / "pictures" / "track-1.png")
    picture = cv2.imread(track.picture)
    assert picture is not None
    assert max(picture.shape) == 160
    # the sidecar of a part fits that part: nothing is analysed again
    assert not any(isinstance(event, wire.Progress) for event in again)
    assert again[-1] == wire.Done(
        again[-1].id, {}, None, str(sidecar), (wire.TrackFound(**{**vars(track), "picture": None}),)
    )


def test_a_range_tells_its_notes_and_its_colour(
    cli: Cli, server: Running, small_plate: str, identity: Path, tmp_path: Path
) -> None:
    with server.client() as client:
        job = client.submit_range(
            plate=small_plate,
            output=str(tmp_path / "a" / "o.####.exr"),
            frames="1001",
            assignments=(wire.Assignment(str(identity)),),
        )
        events = list(client.events(job, 60))
    notes = [(event.level, event.text) for event in events if isinstance(event, wire.Note)]
    assert ("warning", "person: no consent record") in notes
    assert ("note", "track 1 -> person") in notes
    end = events[-1]
    assert isinstance(end, wire.Done)
    assert (end.colour_space, end.interop_id) == ("ACEScg", "lin_ap1_scene")
    words = ["apply", small_plate, "--frames", "1001", "--identity", identity, "--json", "--server", server.address]
    ran = cli(*words, "-o", tmp_path / "b" / "o.####.exr")
    assert {"event": "warning", "text": "person: no consent record"} in ran.events


def test_a_frame_tells_its_notes_and_takes_the_hosts_form(server: Running, small_plate: str, identity: Path) -> None:
    config = ColourConfig.open()
    plate = read_image(Path(small_plate.replace("####", "1003")), 1003)
    height, width, _ = plate.pixels.shape
    with server.client() as client, server.ring(2, width * height * 16) as ring:

        def frame(engine: str, form: wire.FrameForm) -> tuple[list[wire.Event], object, np.ndarray]:
            room = ring.offer(ring.acquire())
            job = client.submit_frame(
                frame=1003,
                plate=wire.FileRef(small_plate, 1003),
                output=room,
                assignments=(wire.Assignment(str(identity)),),
                engine=engine,
                form=form,
            )
            events = list(client.events(job, 60))
            header, pixels = ring.result(room)
            assert header is not None
            array = np.array(as_array(header, pixels))
            ring.release(room.slot)
            return events, header, array

        rgba = wire.FrameForm(("R", "G", "B", "A"), "float", True)
        events, header, same = frame("mesh", rgba)
        assert ("warning", "person: no consent record") in [
            (event.level, event.text) for event in events if isinstance(event, wire.Note)
        ]
        assert (header.channels, header.bottom_up, header.dtype.name) == (("R", "G", "B", "A"), True, "FLOAT")  # type: ignore[attr-defined]
        assert header.colour_space == config.resolve("ACEScg")  # type: ignore[attr-defined]
        _, _, untouched = frame("null", rgba)
        np.testing.assert_array_equal(untouched[..., :3], plate.pixels[..., :3].astype(np.float32))
        assert (untouched[..., 3] == 1).all()
        assert (same != untouched).any()
        _, header, other = frame("null", wire.FrameForm(("R", "G", "B"), "half", False, "lin_rec709_scene"))
        assert header.colour_space == config.resolve("lin_rec709_scene")  # type: ignore[attr-defined]
        wanted = config.transform("ACEScg", "lin_rec709_scene").numpy(plate.pixels[..., :3].astype(np.float32))
        np.testing.assert_allclose(other, wanted.astype(np.float16), rtol=2e-3, atol=1e-4)
        with pytest.raises(ServerError, match="cannot have these channels"):
            frame("null", wire.FrameForm(("A",), "half", False))
        ring.reclaim(0)


def test_a_form_needs_a_slot_of_its_own(server: Running, small_plate: str, tmp_path: Path) -> None:
    with server.client() as client:
        job = client.submit_frame(
            frame=1003,
            plate=wire.FileRef(small_plate, 1003),
            output=wire.FileRef(str(tmp_path / "o.exr")),
            assignments=(),
            engine="null",
            form=wire.FrameForm(("R", "G", "B"), "half", False),
        )
        with pytest.raises(ServerError, match="needs an output slot"):
            client.result(job, 30)
