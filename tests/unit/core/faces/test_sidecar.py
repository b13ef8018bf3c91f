from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.errors import OutputError, SidecarError
from faceplate.face import Appearance, Observation, Origin, Track
from faceplate.faces.detect import DetectSettings
from faceplate.faces.edits import carry_edits
from faceplate.faces.shot import AnalyseSettings, ShotFaces, ShotSource, quantise
from faceplate.faces.sidecar import (
    format_shot,
    frame_ranges,
    read_sidecar,
    sidecar_matches,
    sidecar_path,
    write_sidecar,
)
from faceplate.faces.sidecar_read import parse_shot
from faceplate.frame import Box
from tests.unit.core.faces.made import made_track

NETS = {"face_detector": "ab" * 32, "face_mesh_attention": "cd" * 32}
HASHES = {frame: f"{frame:032x}" for frame in range(1001, 1009)}
SOURCE = ShotSource("/plates/sh010.####.exr", HASHES, Box(0, 0, 1920, 1080), Box(-8, -8, 1928, 1088), 1.0, "ACEScg")


def made_appearance() -> Appearance:
    random = np.random.default_rng(0)
    median = random.normal(0, 1, (96, 96, 3)).astype(np.float16).astype(np.float32)
    median[:20] = np.nan
    return Appearance(median, np.abs(median[..., 0]))


def made_shot(**change: Any) -> ShotFaces:
    first = made_track(1, range(1001, 1005), x=200.123)
    second = made_track(3, range(1005, 1008), x=1700.4567, width=333.3, label="Jane's double")
    cover = np.random.default_rng(1).integers(0, 256, (96, 96)).astype(np.uint8)
    seen = {**first.observations, 1002: dataclasses.replace(first.observations[1002], cover=cover)}
    tracks = (Track(1, seen, made_appearance()), second)
    settings = AnalyseSettings(DetectSettings(rotations="always"), max_gap=5)
    shot = ShotFaces(tuple(HASHES), tracks, (1005,), settings, NETS, SOURCE, {"note": {"by": "sup", "list": [1, 2]}})
    return dataclasses.replace(shot, **change)


def equal_tracks(a: tuple[Track, ...], b: tuple[Track, ...]) -> bool:
    assert [(t.id, t.label, list(t.observations)) for t in a] == [(t.id, t.label, list(t.observations)) for t in b]
    for one, other in zip(a, b, strict=True):
        for frame, seen in one.observations.items():
            twin = other.observations[frame]
            assert np.array_equal(seen.landmarks, twin.landmarks)
            assert (seen.frame, seen.score, seen.origin, seen.yaw_deg) == (
                *(twin.frame, twin.score, twin.origin, twin.yaw_deg),
            )
            assert (seen.cover is None) == (twin.cover is None)
            assert seen.cover is None or np.array_equal(seen.cover, twin.cover)
        if one.appearance is not None:
            assert other.appearance is not None
            np.testing.assert_array_equal(one.appearance.median, other.appearance.median)
            np.testing.assert_array_equal(one.appearance.spread, other.appearance.spread)
    return True


def test_what_is_written_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    shot = made_shot()
    write_sidecar(tmp_path / "a.faces.json", shot, tool="faceplate 1.0")
    back = read_sidecar(tmp_path / "a.faces.json")
    assert equal_tracks(shot.tracks, back.tracks)
    assert (back.frames, back.cuts, back.settings) == (shot.frames, shot.cuts, shot.settings)
    assert (dict(back.nets), dict(back.extras)) == (NETS, dict(shot.extras))
    assert back.source == SOURCE
    assert format_shot(back, tool="faceplate 1.0") == (tmp_path / "a.faces.json").read_text("utf-8")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), far=st.floats(1, 14000))
def test_any_landmarks_keep_their_bits(seed: int, far: float) -> None:
    points = quantise(np.random.default_rng(seed).normal(0, far, (478, 3)).clip(-16000, 16000))
    assert np.array_equal(quantise(points), points)
    track = Track(1, {1001: Observation(1001, points, 0.5, Origin.TRACKED, -3.25)})
    text = format_shot(made_shot(tracks=(track,)), tool="t")
    back = parse_shot(text, "a")
    assert equal_tracks((track,), back.tracks)
    assert format_shot(back, tool="t") == text


def test_a_negative_zero_is_a_zero() -> None:
    points = quantise(np.full((478, 3), -1e-5))
    assert not np.signbit(points).any()
    track = Track(1, {1001: Observation(1001, points, 0.5, Origin.TRACKED, 0.0)})
    assert "-0" not in format_shot(made_shot(tracks=(track,)), tool="t").split('"landmarks":')[1].split("]")[0]


def test_the_file_is_made_for_reading() -> None:
    lines = format_shot(made_shot(), tool="faceplate 1.0").splitlines()
    assert lines[1:4] == ['"format": "faceplate faces",', '"version": 1,', '"tool": "faceplate 1.0",']
    assert '"no_face": "1008",' in lines
    assert sum(line.startswith('{"frame":') for line in lines) == 7
    assert lines.index('"hashes": {') < lines.index('"appearances": {')
    json.loads("\n".join(lines))


def test_weak_frames_are_listed() -> None:
    track = made_track(1, range(1001, 1005))
    weak = dataclasses.replace(track.observations[1003], origin=Origin.FILLED)
    shot = made_shot(tracks=(Track(1, {**track.observations, 1003: weak}),))
    assert '"weak": {"1":"1003"},' in format_shot(shot, tool="t").splitlines()


Change = Callable[[dict[str, Any]], object]


def landmarks(document: dict[str, Any]) -> list[Any]:
    values: list[Any] = document["tracks"][0]["frames"][1]["landmarks"]
    return values


BROKEN: dict[str, tuple[Change, str]] = {
    "another format": (lambda d: d.update(format="x"), "not a faces sidecar"),
    "a later version": (lambda d: d.update(version=2), "another version"),
    "version is text": (lambda d: d.update(version="1"), "version is wrong"),
    "no tracks": (lambda d: d.pop("tracks"), "tracks is missing"),
    "tracks is an object": (lambda d: d.update(tracks={}), "tracks is wrong"),
    "a track is a number": (lambda d: d["tracks"].append(4), r"tracks\[2\] is wrong"),
    "an id twice": (lambda d: d["tracks"][1].update(id=1), r"tracks\[1\].id is wrong.*twice"),
    "an id of zero": (lambda d: d["tracks"][1].update(id=0), r"tracks\[1\].id is wrong"),
    "an id of true": (lambda d: d["tracks"][1].update(id=True), r"tracks\[1\].id is wrong"),
    "no frames in a track": (lambda d: d["tracks"][1].update(frames=[]), r"tracks\[1\].frames is wrong"),
    "a frame twice": (
        lambda d: d["tracks"][0]["frames"].append(d["tracks"][0]["frames"][0]),
        r"tracks\[0\].frames\[4\].frame is wrong.*twice",
    ),
    "a frame of no shot": (lambda d: d["tracks"][0]["frames"][0].update(frame=7), r"frames\[0\].frame is wrong"),
    "a point too few": (lambda d: landmarks(d).pop(), r"frames\[1\].landmarks is wrong.*1434 numbers.*1433"),
    "a point is text": (lambda d: landmarks(d).__setitem__(5, "1"), r"landmarks\[5\] is wrong"),
    "a point is huge": (lambda d: landmarks(d).__setitem__(5, 1e300), r"landmarks\[5\] is wrong"),
    "an unknown origin": (lambda d: d["tracks"][0]["frames"][0].update(origin="made"), "origin is wrong"),
    "a score above one": (lambda d: d["tracks"][0]["frames"][0].update(score=1.5), "score is wrong"),
    "a yaw of 100": (lambda d: d["tracks"][0]["frames"][0].update(yaw=100), "yaw is wrong"),
    "frames in words": (lambda d: d.update(frames="all"), "frames is wrong"),
    "frames that fall": (lambda d: d.update(frames="5,1001-1008"[::1] + ",3"), "frames is wrong"),
    "cuts of text": (lambda d: d.update(cuts=["1005"]), "cuts is wrong"),
    "a window of three": (lambda d: d["plate"].update(data_window=[0, 0, 5]), "plate.data_window is wrong"),
    "an empty window": (lambda d: d["plate"].update(data_window=[0, 0, 0, 5]), "plate.data_window is wrong"),
    "no pixel aspect": (lambda d: d["plate"].update(pixel_aspect=0), "plate.pixel_aspect is wrong"),
    "a setting out of range": (lambda d: d["settings"].update(max_gap=-4), "max_gap"),
    "an unknown rotation": (lambda d: d["settings"]["detect"].update(rotations="some"), "settings.detect.rotations"),
    "a hash of no frame": (lambda d: d["hashes"].update(first="00"), "hashes.first is wrong"),
    "no base64": (lambda d: d["appearances"].update({"1": "!!"}), "appearances.1 is wrong"),
    "a cover of no bytes": (lambda d: d["tracks"][0]["frames"][1].update(cover="é"), r"frames\[1\].cover is wrong"),
    "a cover not deflated": (lambda d: d["tracks"][0]["frames"][1].update(cover="AAAA"), r"frames\[1\].cover is wrong"),
    "a cover cut off": (
        lambda d: d["tracks"][0]["frames"][1].update(cover=d["tracks"][0]["frames"][1]["cover"][:400]),
        r"frames\[1\].cover is wrong",
    ),
    "a bomb as cover": (
        lambda d: d["tracks"][0]["frames"][1].update(cover=base64.b64encode(zlib.compress(bytes(10**7))).decode()),
        r"frames\[1\].cover is wrong.*9217 bytes",
    ),
    "no archive": (lambda d: d["appearances"].update({"1": "AAAA"}), "appearances.1 is wrong"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_named(name: str) -> None:
    change, words = BROKEN[name]
    document = json.loads(format_shot(made_shot(), tool="t"))
    change(document)
    with pytest.raises(SidecarError, match=words):
        parse_shot(json.dumps(document), "a.faces.json")


def test_what_lay_in_front_of_points_that_were_moved_counts_no_more() -> None:
    document = json.loads(format_shot(made_shot(), tool="t"))
    document["tracks"][0]["frames"][1].update(origin="edited")
    assert parse_shot(json.dumps(document), "a").tracks[0].observations[1002].cover is None


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(word: str) -> None:
    text = format_shot(made_shot(), tool="t").replace('"score":0.98', f'"score":{word}', 1)
    with pytest.raises(SidecarError, match=word):
        parse_shot(text, "a")


def test_a_key_that_stands_twice_is_refused() -> None:
    text = format_shot(made_shot(), tool="t").replace('"cuts": [1005],', '"cuts": [1005],\n"cuts": [1006],')
    with pytest.raises(SidecarError, match="'cuts' twice"):
        parse_shot(text, "a")


@settings(max_examples=40, deadline=None)
@given(part=st.floats(0, 0.9999))
def test_a_truncated_file_is_refused_wherever_it_ends(part: float) -> None:
    text = format_shot(made_shot(), tool="t").rstrip()
    with pytest.raises(SidecarError, match=r"broken in line \d+"):
        parse_shot(text[: int(len(text) * part)], "a")


def test_absent_files_and_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SidecarError, match="cannot be read"):
        read_sidecar(tmp_path / "no.faces.json")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SidecarError, match="cannot be read"):
        read_sidecar(tmp_path / "b")
    (tmp_path / "c").write_text("[1, 2]")
    with pytest.raises(SidecarError, match="not a faces sidecar"):
        read_sidecar(tmp_path / "c")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.faces.json"
    write_sidecar(path, made_shot(), tool="one")
    before = path.read_bytes()
    with pytest.raises(SidecarError):
        write_sidecar(path, made_shot(source=None), tool="two")
    with pytest.raises(OutputError):
        write_sidecar(tmp_path / "absent" / "a.faces.json", made_shot(), tool="two")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_reuse_is_decided_with_a_reason() -> None:
    shot = made_shot()

    def ask(**change: Any) -> tuple[bool, str]:
        asked: dict[str, Any] = {
            "hashes": HASHES,
            "settings": shot.settings,
            "nets": NETS,
            "colour_space": "ACEScg",
            **change,
        }
        return sidecar_matches(shot, **asked)

    assert ask()[0]
    assert ask(hashes={1003: HASHES[1003]})[0]
    assert ask(hashes={**HASHES, 1009: "0", 1010: "0", 1012: "0"}) == (
        *(False, "frames 1009-1010,1012 are not in the sidecar"),
    )
    assert ask(hashes={**HASHES, 1004: "0"}) == (False, "frames 1004 have changed since the analysis")
    assert "read as Linear" in ask(colour_space="Linear")[1]
    assert "nets" in ask(nets={})[1]
    assert "settings" in ask(settings=AnalyseSettings())[1]
    assert not sidecar_matches(made_shot(source=None), HASHES, shot.settings, NETS, "ACEScg")[0]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("/p/sh010.####.exr", "/p/sh010.faces.json"),
        ("/p/sh010_%04d.exr", "/p/sh010.faces.json"),
        ("/p/still.exr", "/p/still.faces.json"),
        ("/p/take.v2.mov", "/p/take.v2.faces.json"),
    ],
)
def test_the_sidecar_lies_beside_the_plate(pattern: str, name: str) -> None:
    assert sidecar_path(pattern) == Path(name)


def test_ranges_are_written_as_people_do() -> None:
    assert frame_ranges([1001, 1002, 1003, 1007, 1009, 1010]) == "1001-1003,1007,1009-1010"
    assert frame_ranges([-2, -1, 0, 1]) == "-2-1"
    assert frame_ranges([]) == ""


def test_frames_before_zero_are_read_back() -> None:
    frames = (-3, -2, -1, 0, 1, 5)
    shot = made_shot(frames=frames, tracks=(made_track(1, range(-2, 2)),), cuts=())
    assert parse_shot(format_shot(shot, tool="t"), "a").frames == frames


def test_hand_edits_work() -> None:
    """Rename, delete a frame, split, and move points."""
    document = json.loads(format_shot(made_shot(), tool="t"))
    track = document["tracks"][0]
    track["label"] = "hero"
    tail = track["frames"].pop()
    document["tracks"].append({"id": 7, "label": "", "frames": [tail]})
    track["frames"][0]["origin"] = "edited"
    track["frames"][0]["landmarks"][0] = 150.12345
    track["frames"][0]["yaw"] = 60
    shot = parse_shot(json.dumps(document), "a")
    assert [(t.id, t.label, len(t.observations)) for t in shot.tracks] == [
        *((1, "hero", 3), (3, "Jane's double", 3), (7, "", 1)),
    ]
    edited = shot.tracks[0].observations[1001]
    assert edited.landmarks[0, 0] == round(150.12345 * 1024) / 1024
    assert abs(edited.yaw_deg) < 10


def test_edits_survive_a_new_analysis() -> None:
    old_hero = made_track(5, range(1001, 1006), x=200, label="hero")
    edited = dataclasses.replace(old_hero.observations[1003], origin=Origin.EDITED)
    other = made_track(2, range(1001, 1006), x=900)
    lone = made_track(8, range(1007, 1008), x=500)
    lone_edit = dataclasses.replace(lone.observations[1007], origin=Origin.EDITED)
    old = made_shot(
        tracks=(other, Track(5, {**old_hero.observations, 1003: edited}, label="hero"), Track(8, {1007: lone_edit}))
    )
    fresh = (made_track(1, range(1001, 1007), x=201), made_track(2, range(1001, 1007), x=1400))
    carried = carry_edits(made_shot(tracks=fresh, extras={}), old)
    assert [(t.id, t.label, t.first, t.last) for t in carried.tracks] == [
        *((5, "hero", 1001, 1006), (8, "", 1007, 1007), (9, "", 1001, 1006)),
    ]
    hero = carried.tracks[0].observations
    assert hero[1003] is edited
    assert hero[1004].landmarks[0, 0] == fresh[0].observations[1004].landmarks[0, 0]
    assert dict(carried.extras) == dict(old.extras)
