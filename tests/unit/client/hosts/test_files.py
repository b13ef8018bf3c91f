"""Result folders, job records, slates and heads of EXR files."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import OpenImageIO as oiio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faceplate.media.sequence import is_pattern, open_sequence, output_path
from faceplate_client import slate, wire
from faceplate_client.errors import FolderFailed, FramesMissing, RecordDamaged
from faceplate_client.exr_head import is_cut_off, read_head
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, PlaceMode
from faceplate_client.job_record import JobRecord, Recipe, load
from faceplate_client.result_folder import (
    check_files,
    faces_file,
    file_of,
    missing_files,
    new_version,
    of_record,
    safe_name,
    versions,
)
from faceplate_client.slots import FrameHeader, FrameType, as_array

CLIP = Clip("id", "sh010 plate", 11, Span(1001, 1010), Span(990, 1020), "/p.####.exr")


def record(path: Path) -> JobRecord:
    return JobRecord(
        path=path,
        id="fp-1",
        host="memory 1",
        project_id="p",
        project="Film",
        clip_id="id",
        clip="Zoë 面",
        view="left",
        source="/p.####.exr",
        baked="",
        frames=Span(-3, 12),
        used=Span(1, 10),
        start=11,
        size=(64, 48),
        pixel_aspect=2.0,
        fps=23.976,
        pattern=str(path.parent / "r.####.exr"),
        sidecar="/s.faces.json",
        colour_in=None,
        mode=PlaceMode.TAKE,
        recipe=Recipe(
            (wire.Assignment("/jane.fpid", 2), wire.Assignment("/joe.fpid")),
            {"strength": ((11, 0.0), (20, 1.0))},
            ("matte",),
            holdout=("/m.####.exr", "A"),
            handles=4,
        ),
        states={1: "done", 2: "failed", 3: "no face", -3: "skipped"},
        errors={2: "kaputt"},
        notes=("jane: no consent record",),
    )


def test_a_record_comes_back(tmp_path: Path) -> None:
    made = record(tmp_path / "a.record.json").save()
    assert load(made.path) == made
    assert made.failed == {-3: "skipped", 2: "kaputt"}
    assert made.to_do == tuple(frame for frame in made.frames if frame not in (1, 3))
    assert made.timeline == Span(11, 20)
    assert [path.name for path in tmp_path.iterdir()] == ["a.record.json"]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"format": "x", "version": 1}', "\0" * 9])
def test_a_damaged_record_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.record.json"
    path.write_text(damage)
    with pytest.raises(RecordDamaged):
        load(path)


def test_every_part_of_a_record_is_looked_at(tmp_path: Path) -> None:
    made = record(tmp_path / "a.record.json").save()
    document = json.loads(made.path.read_text("utf-8"))
    for name in document:
        made.path.write_text(json.dumps({key: value for key, value in document.items() if key != name}))
        with pytest.raises(RecordDamaged):
            load(made.path)
    with pytest.raises(RecordDamaged, match="cannot be read"):
        load(tmp_path / "none.json")
    with pytest.raises(FolderFailed):
        dataclasses.replace(made, path=tmp_path / "nowhere" / "a.record.json").save()


# Folders


@settings(max_examples=300, deadline=None, database=None)
@given(st.text(max_size=120))
def test_any_name_is_a_file_name(text: str) -> None:
    name = safe_name(text)
    assert name
    assert len(name.encode()) <= 81
    assert not is_pattern(name)
    assert not set(name) & set('/\\:*?"<>|\0#@%$')
    assert name == name.strip(". ")
    assert safe_name(name) == name


def test_names_that_windows_keeps_for_itself() -> None:
    assert [safe_name(name) for name in ("con", "COM1.exr", "aux.x", "console")] == [
        "con_",
        "COM1.exr_",
        "aux.x_",
        "console",
    ]


@given(st.integers(-99_999, 9_999_999))
def test_files_are_named_as_the_server_does(frame: int) -> None:
    pattern = "/a.####/take2.####.exr".replace("/a.####", "/a")
    assert file_of(pattern, frame) == output_path(pattern, frame)


def test_versions_count_up_and_two_hosts_never_share_one(tmp_path: Path) -> None:
    first = new_version(tmp_path, "Film", CLIP)
    assert first.pattern == str(tmp_path / "Film" / "sh010_plate" / "v001" / "sh010_plate.v001.####.exr")
    assert of_record(first.record) == first
    right = dataclasses.replace(CLIP, view="right")
    assert new_version(tmp_path, "Film", right, beside=first.folder).pattern.endswith("sh010_plate.right.v001.####.exr")
    made: list[Path] = []

    def make() -> None:
        for _ in range(10):
            made.append(new_version(tmp_path, "Film", CLIP).folder)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 40
    assert [number for number, _ in versions(first.folder.parent)] == list(range(1, 42))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "Film").write_text("a file in the way")
    with pytest.raises(FolderFailed, match="result folder"):
        new_version(tmp_path, "Film", CLIP)


def test_another_source_has_another_sidecar(tmp_path: Path) -> None:
    one = faces_file(tmp_path, "Film", CLIP, baked=False)
    assert one == faces_file(tmp_path, "Film", dataclasses.replace(CLIP, start=99), baked=False)
    assert one != faces_file(tmp_path, "Film", dataclasses.replace(CLIP, source="/q.####.exr"), baked=False)
    assert one != faces_file(tmp_path, "Film", CLIP, baked=True)


def test_missing_empty_and_foreign_files_are_no_results(tmp_path: Path) -> None:
    pattern = str(tmp_path / "r.####.exr")
    slate.write_exr(file_of(pattern, 1), 8, 8, "x")
    file_of(pattern, 2).write_bytes(b"")
    file_of(pattern, 3).write_text("no picture")
    assert missing_files(pattern, range(1, 5)) == (2, 3, 4)
    with pytest.raises(FramesMissing, match="lacks 3 frames; found 2-4"):
        check_files(pattern, range(1, 5))
    assert open_sequence(pattern).path(1) == file_of(pattern, 1)


# Slates


@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 2), (64, 48), (333, 77), (1920, 1080)])
def test_a_slate_is_a_whole_exr(tmp_path: Path, width: int, height: int) -> None:
    path = tmp_path / "s.exr"
    slate.write_exr(path, width, height, "frame 7: kaputt ä" * 99, pixel_aspect=2.0, interop="lin_ap1_scene")
    with OpenEXR.File(str(path), separate_channels=False) as file:
        header, pixels = dict(file.header()), np.array(file.channels()["RGBA"].pixels)
    assert header["colorInteropID"] == "lin_ap1_scene"
    assert header["pixelAspectRatio"] == 2.0
    assert header["faceplate/slate"].startswith("frame 7: kaputt ä")
    assert pixels.shape == (height, width, 4)
    assert pixels.dtype == np.float16
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    lit = (x + y // 8 * 8) % 64 < 32
    np.testing.assert_array_equal(pixels, np.stack([lit, lit * 0, lit, lit * 0 + 1], axis=-1).astype(np.float16))
    np.testing.assert_array_equal(np.asarray(oiio.ImageBuf(str(path)).get_pixels(oiio.HALF)), pixels)
    assert slate.is_slate(path)
    head = read_head(path)
    assert head is not None
    assert (head.size, head.interop_id) == ((width, height), "lin_ap1_scene")


@pytest.mark.parametrize("kind", list(FrameType))
@pytest.mark.parametrize("channels", [("R", "G", "B", "A"), ("R", "G", "B"), ("A",), ("B", "Z")])
def test_a_slate_in_memory(kind: FrameType, channels: tuple[str, ...]) -> None:
    header = FrameHeader(100, 40, channels, kind)
    memory = memoryview(bytearray(header.nbytes))
    slate.fill(header, memory)
    array = as_array(header, memory)
    x, y = np.meshgrid(np.arange(100), np.arange(40))
    lit = (x + y // 8 * 8) % 64 < 32
    for index, name in enumerate(channels):
        expected = {"R": lit, "B": lit, "A": lit * 0 + 1}.get(name, lit * 0)
        np.testing.assert_array_equal(array[..., index], expected)
    floats = bytearray(header.nbytes)
    as_floats: Any = memoryview(floats).cast("f")
    slate.fill(header, as_floats)
    assert floats == bytes(memory)


def test_heads_of_what_is_no_exr(tmp_path: Path) -> None:
    path = tmp_path / "s.exr"
    assert read_head(path) is None
    assert not slate.is_slate(path)
    slate.write_exr(path, 64, 48, "x")
    whole = path.read_bytes()
    end = whole.index(b"faceplate/slate")
    for cut in range(0, end, 7):
        path.write_bytes(whole[:cut])
        assert read_head(path) is None
    with pytest.raises(FolderFailed, match="no size"):
        slate.write_exr(path, 0, 0, "x")


@pytest.mark.parametrize("compression", ["none", "rle", "zips", "zip", "piz", "pxr24", "b44", "dwaa", "dwab"])
def test_files_that_are_cut_off_are_noticed(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "a.exr"
    pixels = np.random.default_rng(1).random((300, 40, 3), dtype=np.float32)
    out = oiio.ImageOutput.create(str(path))
    spec = oiio.ImageSpec(40, 300, 3, "half")
    spec.y, spec.full_y = -20, -20
    spec["compression"] = compression
    assert out.open(str(path), spec)
    out.write_image(pixels)
    out.close()
    assert not is_cut_off(path)
    whole = path.read_bytes()
    for length in (4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert is_cut_off(path) == (length > 4), length  # of four bytes nobody knows what they are
    path.write_bytes(whole + b"more")
    assert not is_cut_off(path)
