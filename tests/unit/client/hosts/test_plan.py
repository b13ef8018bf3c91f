"""What a job of a clip begins with."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, HostAbout, PlaceMode, Project
from faceplate_client.job_record import Recipe
from faceplate_client.plan import Plan, first_record
from faceplate_client.result_folder import new_version

CLIP = Clip("id", "sh010 plate", 11, Span(1001, 1010), Span(990, 1020), "/p.####.exr", colour_space="ARRI LogC3")
PROJECT = Project("film", "Film", Path("/film"), Span(1, 100), 24.0, "lin_ap1_scene")


@pytest.mark.parametrize("named", [None, "ARRI LogC4"])
@pytest.mark.parametrize(
    ("clip", "bake", "space"),
    [
        (CLIP, False, "ARRI LogC3"),
        (CLIP, True, "lin_ap1_scene"),
        (dataclasses.replace(CLIP, processed="retimed"), False, "lin_ap1_scene"),
        (dataclasses.replace(CLIP, source="", media=None), False, "lin_ap1_scene"),
    ],
)
def test_a_render_of_the_host_is_in_the_working_space_whatever_the_source_is_in(
    tmp_path: Path, clip: Clip, bake: bool, space: str, named: str | None
) -> None:
    plan = Plan(
        clip,
        HostAbout("resolve", "21.0", frozenset(), (PlaceMode.TAKE,)),
        PROJECT,
        tmp_path,
        new_version(tmp_path, PROJECT.name, clip),
        clip.timeline,
        Recipe((), input_space=named, bake=bake),
        PlaceMode.TAKE,
    )
    assert first_record(plan).colour_in == (named if named and not plan.must_bake else space)
