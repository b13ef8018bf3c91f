# ruff: noqa: F811 - fixtures of another file
"""The same people over several sources, by a recogniser: one that tells people apart by the colour of their crop."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import opentimelineio as otio

from tests.integration.conftest import SMALL, Cli, write_plain_exr
from tests.integration.test_recognise import TINT, folder, people  # noqa: F401 - fixtures
from tests.support.timelines import clip, timeline


def test_one_name_over_all_sources_and_one_identity(
    cli: Cli,
    folder: Path,
    people: dict[str, Path],
    tmp_path: Path,
) -> None:
    """Jane in two sources, Joan in one between them."""
    items = []
    for name, tint in (("A", 1.0), ("B", TINT), ("C", 1.0)):
        (tmp_path / name).mkdir()
        for number in list(SMALL.numbers)[:3]:
            pixels = (SMALL.frame(number).astype(np.float32) * tint).astype(np.float16)
            write_plain_exr(tmp_path / name / f"{name}.{number}.exr", pixels)
        first = next(iter(SMALL.numbers))
        items.append(clip(name, 0, 3, url=f"{name}/{name}.{first}.exr", available=(0, 3)))
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(timeline(items), str(path))
    out = tmp_path / "out"
    assert cli("render", path, "-o", out, "--faces-only").code == 0
    file = out / "cut.people.toml"
    assert tomllib.loads(file.read_text("utf-8")) == {
        "people": {"person-1": "", "person-2": ""},
        "shots": {"A": {"1": "person-1"}, "B": {"1": "person-2"}, "C": {"1": "person-1"}},
    }
    # Who is who is known: one word gives a person a face in all sources.
    words = ("render", path, "-o", out, "--json")
    ran = cli(*words, "--identity", f"{people['new']}@person-2")
    assert ran.code == 0, ran.out
    assert ran.event("done")["shots"] == {"unassigned": 2, "done": 1}
    assert sorted(each.name for each in out.rglob("*.exr")) == [f"B.{n:04d}.exr" for n in list(SMALL.numbers)[:3]]
    # Or the person is named by an identity of hers.
    ran = cli(*words, "--faces-only", "--identity", f"{people['new']}@{people['jane']}")
    found = tomllib.loads(file.read_text("utf-8"))
    assert found["shots"] == {"A": {"1": "jane"}, "B": {"1": "person-2"}, "C": {"1": "jane"}}
    assert found["people"]["jane"] == str(people["new"])
