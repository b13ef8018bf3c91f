"""The template of a farm: valid by the specification's own model, ranges both sides read alike, every path mappable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openjd.model import IntRangeExpr, decode_job_template

from faceplate.cli.main import main
from faceplate.farm.template import farm_range
from faceplate.media.sequence import parse_frame_range


@given(st.sets(st.integers(-50, 2000), min_size=1, max_size=60))
def test_ranges_are_read_alike(numbers: set[int]) -> None:
    text = farm_range(sorted(numbers))
    assert list(IntRangeExpr.from_str(text)) == sorted(numbers)
    assert list(parse_frame_range(text)) == sorted(numbers)


def test_long_ranges_are_short_texts() -> None:
    assert farm_range(range(1001, 200_000)) == "1001-199999"
    assert farm_range(range(1001, 1100, 2)) == "1001-1099:2"
    assert farm_range([1, 2, 5, 7, 9, 20]) == "1-2,5-9:2,20"


def export(tmp_path: Path, job: dict[str, Any], *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert main(["farm", "export", str(tmp_path / "job.json"), "-o", str(tmp_path / "bundle"), *words]) == 0
    read = [json.loads((tmp_path / "bundle" / name).read_text()) for name in ("template.json", "parameters.json")]
    listed = json.loads((tmp_path / "bundle" / "parameter_values.json").read_text())["parameterValues"]
    assert {one["name"]: one["value"] for one in listed} == read[1]
    return read[0], read[1]


def test_the_template_is_valid_and_holds_no_path(small_job: dict[str, Any], tmp_path: Path) -> None:
    job = {
        **small_job,
        "name": "sh010 {x}",
        "faces": "x.faces.json",
        "holdout": "roto/m.####.exr:roto.A",
        "frames": "1001-1003",
        "missing": "hold",
        "set": ["strength=0.5"],
    }
    template, values = export(tmp_path, job, "--gpus", "1", "--gpu-memory", "8000", "--chunk", "7")
    decode_job_template(template=template, supported_extensions=["TASK_CHUNKING"])
    assert str(tmp_path) not in json.dumps(template)
    paths = {one["name"] for one in template["parameterDefinitions"] if one["type"] == "PATH"}
    assert paths == {"PlateFolder", "OutputFolder", "HoldOutFolder", "Identity1", "Faces"}
    assert (values["Frames"], values["ChunkSize"], values["Device"]) == ("1001-1003", 7, "cuda")
    amounts = {one["name"]: one["min"] for one in template["steps"][1]["hostRequirements"]["amounts"]}
    assert amounts["amount.worker.gpu"] == 1
    assert amounts["amount.worker.gpu.memory"] == 8000
    assert [step["name"] for step in template["steps"]] == ["First", "Frames", "Check"]
    frames = template["steps"][1]["script"]["actions"]["onRun"]["args"]
    assert "{{Param.HoldOutFolder}}/{{Param.HoldOutName}}:roto.A" in frames
    assert "{{Param.Identity1}}@main" in frames
    assert frames[frames.index("--set") + 1] == "strength=0.5"


def test_who_is_in_the_plate_is_a_path_too(small_job: dict[str, Any], tmp_path: Path) -> None:
    template, values = export(tmp_path, {**small_job, "identity": ["jane.fpid@refs/anna.fpid", "tom.fpid@auto"]})
    assert values["InPlate1"].endswith("anna.fpid")
    text = json.dumps(template)
    assert "{{Param.Identity1}}@{{Param.InPlate1}}" in text
    assert "{{Param.Identity2}}@auto" in text


def test_a_movie_has_a_step_of_its_own(small_job: dict[str, Any], tmp_path: Path) -> None:
    template, _ = export(tmp_path, {**small_job, "output": "out/x.mov", "fps": "24", "codec": "prores_4444"})
    decode_job_template(template=template, supported_extensions=["TASK_CHUNKING"])
    steps = {step["name"]: step for step in template["steps"]}
    assert [step.get("dependencies") for step in template["steps"]] == [
        None,
        [{"dependsOn": "First"}],
        [{"dependsOn": "Frames"}],
        [{"dependsOn": "Movie"}],
    ]
    arguments = {name: step["script"]["actions"]["onRun"]["args"] for name, step in steps.items()}
    assert [name for name, words in arguments.items() if "--no-movie" in words] == ["First", "Frames"]
    assert "prores_4444" in arguments["Movie"]


def test_several_jobs_are_several_bundles(small_job: dict[str, Any], tmp_path: Path) -> None:
    jobs = [{**small_job, "output": f"{name}.####.exr"} for name in "ab"]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    assert main(["farm", "export", str(tmp_path / "jobs.json"), "-o", str(tmp_path / "bundles")]) == 0
    assert len(list((tmp_path / "bundles").glob("*/template.json"))) == 2


def test_what_is_wrong_is_said_before_anything_is_written(small_job: dict[str, Any], tmp_path: Path) -> None:
    for wrong in ({"plate": "none.####.exr"}, {"frames": "1-5"}, {"codec": "xyz"}, {"nonsense": "x"}):
        (tmp_path / "job.json").write_text(json.dumps({**small_job, **wrong}))
        assert main(["farm", "export", str(tmp_path / "job.json"), "-o", str(tmp_path / "bundle")]) == 2
    assert not (tmp_path / "bundle").exists()


@pytest.fixture
def small_job(tmp_path: Path) -> dict[str, Any]:
    from tests.support.plates import moving_plate

    plate = moving_plate(96, 64, 3, face_width_px=20).write(tmp_path / "plate")
    return {"plate": plate, "identity": "jane.fpid", "output": "out/x.####.exr"}
