"""Clips are told as they are, or why they cannot be; editions and versions are found out first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faceplate.colour.spaces import DEFAULT_CONFIG, ColourConfig
from faceplate_client.errors import CannotDo, ClipGone, HostError
from faceplate_client.frame_maths import Span
from faceplate_client.host import Feature, PlaceMode, Scope
from faceplate_resolve import colours
from faceplate_resolve.calls import rate, whole
from faceplate_resolve.edition import edition_of, numbers
from faceplate_resolve.host import Choices, ResolveHost
from tests.hosts.resolve.fake.application import UNMANAGED, Resolve
from tests.hosts.resolve.fake.media import PoolItem
from tests.hosts.resolve.fake.timeline import TimelineItem
from tests.hosts.resolve.fake.world import World
from tests.hosts.resolve.shots import MEDIA, START, USED, shot

# Editions


@pytest.mark.parametrize("version", [(18, 5, 1), (19, 1, 3), (20, 3, 2), (21, 0, 2), (21, 1, 0)])
def test_studio_of_every_version(version: tuple[int, ...], tmp_path: Path) -> None:
    one = shot(tmp_path, version=version)
    about = one.host.about()
    assert (about.kind, about.version) == ("resolve", ".".join(map(str, version)))
    assert (about.features, about.places) == ({Feature.BAKE}, (PlaceMode.TAKE, PlaceMode.ABOVE))
    one.host.remove(one.host.place(one.clip, one.result))


@pytest.mark.parametrize("version", [(19, 0, 1), (21, 0, 3), (21, 1, 0)])
def test_the_free_edition_is_told_and_left_alone(version: tuple[int, ...]) -> None:
    resolve = Resolve(World(product="DaVinci Resolve", version=version))
    with pytest.raises(CannotDo, match="free edition") as caught:
        ResolveHost(resolve)
    assert "Studio" in str(caught.value)
    assert "faceplate apply" in caught.value.hint
    assert set(resolve.world.calls) <= {"Resolve.GetProductName", "Resolve.GetVersion", "Resolve.GetVersionString"}
    assert not resolve.world.modal, "nothing of Studio's was called"


def test_too_old_and_dumb() -> None:
    with pytest.raises(CannotDo, match="too old"):
        edition_of(Resolve(World(version=(18, 1, 4))))
    dumb = Resolve()
    dumb.world.modal = True
    with pytest.raises(CannotDo, match="does not say") as caught:
        edition_of(dumb)
    assert "dialogs" in caught.value.hint
    resolve = Resolve()
    resolve.world.fail("Resolve.GetVersion", "none")
    assert edition_of(resolve).version == (21, 0, 4, 5), "the text has it too"


def test_numbers_however_they_come() -> None:
    assert numbers([21, 0, 4, 5, ""]) == (21, 0, 4, 5)
    assert numbers("20.3.2.9") == (20, 3, 2, 9)
    assert numbers(None) == numbers(["b"]) == ()
    assert [whole(one) for one in (3, "86400", 4.0, "7.0", None, "x", float("nan"))] == [
        3,
        86400,
        4,
        7,
        None,
        None,
        None,
    ]
    assert [rate(one) for one in ("24", 24.0, "25.0", None, "", "0")] == [24.0, 24.0, 25.0, 0.0, 0.0, 0.0]
    assert [round(rate(one), 5) for one in ("23.976", "29.97 DF", "59.94", 23.98)] == [
        23.97602,
        29.97003,
        59.94006,
        23.97602,
    ]


def test_nothing_open(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.resolve.project._current = None
    with pytest.raises(HostError, match="no timeline is open in project 'The Long Take'"):
        ResolveHost(one.resolve)
    one.resolve.manager._project = None
    with pytest.raises(HostError, match="no project is open"):
        one.host.project()
    one.resolve.world.modal = True
    with pytest.raises(HostError) as caught:
        one.host.project()
    assert "dialog" in caught.value.hint


# Clips


def test_start_timecode_and_record_frames(tmp_path: Path) -> None:
    one = shot(tmp_path, timelineFrameRate="23.976")
    project = one.host.project()
    assert project.frames == Span(86400, START + len(USED) - 1)
    assert round(project.fps, 4) == 23.976
    assert project.id == f"{one.resolve.project._id}:{one.stage.timeline._id}"
    assert one.clip.start == START


def test_a_movie_is_numbered_from_1(tmp_path: Path) -> None:
    one = shot(tmp_path)
    movie = PoolItem(one.resolve.world, "A001.mov", "/shots/A001.mov", 0, 100, "24.0", Resolution="1920x1080")
    item = one.stage.timeline.put(TimelineItem(one.resolve.world, "A001", movie, START + 50, 10, 20))
    clip = one.host.clip(f"item:{item._id}")
    assert (clip.source, clip.used, clip.media) == ("/shots/A001.mov", Span(21, 30), Span(1, 100))
    assert clip.size == (1920, 1080)
    assert clip.colour_space == "lin_ap1_scene"


def test_titles_and_gaps_are_no_clips(tmp_path: Path) -> None:
    one = shot(tmp_path)
    title = one.stage.put("title", None, START + 10, 5, 0, track=2)
    assert [clip.id for clip in one.host.clips(Scope.ALL)] == [one.clip.id]
    with pytest.raises(ClipGone):
        one.host.clip(f"item:{title._id}")
    with pytest.raises(ClipGone):
        one.host.clip("item:nowhere")


PROPERTIES = (
    ({"FPS": "25.0"}, "25 frames a second in a timeline of 24"),
    ({"Super Scale": "2x"}, "Super Scale"),
    ({"Input LUT": "Film/Kodak.cube"}, "an input LUT"),
    ({"H-FLIP": "On"}, "flipped"),
    ({"Input Color Space": "Some Camera"}, "colour space Some Camera"),
)


@pytest.mark.parametrize(("properties", "why"), PROPERTIES)
def test_what_has_to_be_rendered_first(properties: dict[str, str], why: str, tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.item._media._properties.update(properties)
    clip = one.host.clip(one.clip.id)
    assert clip.processed == why
    assert clip.used == clip.timeline == Span(START, START + 5)


@pytest.mark.parametrize(("speed", "duration", "left"), [(0.5, 12, 2), (2.0, 5, 0), (0.5, 24, 0), (-1.0, 6, 2)])
@pytest.mark.parametrize("counts_from_number", [False, True])
def test_a_retimed_clip_gives_itself_away(
    speed: float, duration: int, left: int, counts_from_number: bool, tmp_path: Path
) -> None:
    one = shot(tmp_path, counts_from_number=counts_from_number)
    item = one.item
    item._speed, item._duration, item._left = speed, duration, left
    assert one.host.clip(one.clip.id).processed == "retimed"


@pytest.mark.parametrize(
    ("kind", "words"), [("Timeline", "nested timeline"), ("Compound", "compound clip"), ("Fusion", "Fusion clip")]
)
def test_what_has_no_file(kind: str, words: str, tmp_path: Path) -> None:
    one = shot(tmp_path)
    media = PoolItem(one.resolve.world, "Comp 1", "", 0, 100, "24.0", Type=kind)
    item = one.stage.timeline.put(TimelineItem(one.resolve.world, "Comp 1", media, START + 50, 10, 20))
    clip = one.host.clip(f"item:{item._id}")
    assert (clip.processed, clip.source, clip.needs_bake) == (words, "", True)


def test_stills_and_odd_file_names(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.item._media._path = "/shots/matte.png"
    assert one.host.clip(one.clip.id).processed == "a still, held"
    one.item._media._path = "/shots/A001 50%.mov"
    assert "sign that stands for a number" in one.host.clip(one.clip.id).processed


def test_a_take_that_lost_its_source_says_so(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.host.place(one.clip, one.result)
    one.item.DeleteTakeByIndex(1)
    with pytest.raises(HostError, match="the take that 'sh010' was made from is gone"):
        one.host.clip(one.clip.id)


# Colour


def settings(**values: str) -> Any:
    return lambda name: values.get(name, "")


def test_every_name_of_the_tables_is_known_to_the_server() -> None:
    config = ColourConfig.open(DEFAULT_CONFIG)
    for name in {*colours.TO_SERVER.values(), *colours.FROM_INTEROP, colours.BAKE_SPACE}:
        config.resolve(name)


def test_what_a_project_does_with_colour() -> None:
    assert colours.colour_of(settings(colorScienceMode="davinciYRGB"), "p").mode == "unmanaged"
    assert colours.colour_of(settings(colorScienceMode="acescct"), "p").mode == "aces"
    managed = colours.colour_of(
        settings(colorScienceMode="davinciYRGBColorManagedv2", colorSpaceInput="Rec.709 Gamma 2.4"), "p"
    )
    assert managed.clip_space({}) == "Rec.709 Gamma 2.4", "a clip without a space of its own has the project's"
    assert managed.clip_space({"Input Color Space": "ACEScg"}) == "ACEScg"
    for science in ("", "fancyNewScience"):
        with pytest.raises(HostError, match="colour science") as caught:
            colours.colour_of(settings(colorScienceMode=science), "The Long Take")
        assert "The Long Take" in str(caught.value)


def test_space_and_gamma_apart() -> None:
    one = colours.colour_of(
        settings(
            colorScienceMode="davinciYRGBColorManagedv2",
            separateColorSpaceAndGamma="1",
            colorSpaceInput="Rec.709",
            colorSpaceInputGamma="Gamma 2.4",
        ),
        "p",
    )
    name = one.clip_space({"Input Color Space": "Rec.709", "Input Gamma": "Linear"})
    assert one.to_server(name) == "lin_rec709_scene"
    sony = one.clip_space({"Input Color Space": "Sony S-Gamut3.Cine", "Input Gamma": "S-Log3"})
    assert one.to_server(sony) == "S-Log3 S-Gamut3.Cine"
    assert one.writes("Linear Rec.709 (sRGB)", "lin_rec709_scene")[0] == {
        "Input Color Space": "Rec.709",
        "Input Gamma": "Linear",
    }


def test_a_name_that_resolve_does_not_take_is_refused(tmp_path: Path) -> None:
    one = shot(tmp_path, spaces=frozenset({"sRGB"}))
    before = one.snapshot()
    with pytest.raises(HostError, match="input colour space") as caught:
        one.host.place(one.clip, one.result)
    assert "tried ACEScg" in str(caught.value)
    assert '"colour_spaces": {"lin_ap1_scene": "NAME"}' in caught.value.hint
    assert one.snapshot() == before
    one.resolve.world.spaces = frozenset({"Studio Linear"})
    host = ResolveHost(one.resolve, Choices(colour_spaces={"lin_ap1_scene": "Studio Linear"}))
    host.place(one.clip, one.result)
    assert one.item._media._properties["Input Color Space"] == "Studio Linear"


def test_the_space_is_set_and_read_back(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.host.place(one.clip, one.result)
    assert one.item._media._properties["Input Color Space"] == "ACEScg"
    assert (one.item._media._first, one.item._media._count) == (1001, 10), "the first frame number is the file's"


def test_aces_projects_set_the_input_transform(tmp_path: Path) -> None:
    one = shot(tmp_path, colorScienceMode="acescct")
    assert one.host.clip(one.clip.id).processed == "", "no input transform: the file says"
    one.host.place(one.clip, one.result)
    assert one.item._media._properties["IDT"] == "ACEScg"


def test_an_unmanaged_project_takes_what_is_encoded_as_its_source(tmp_path: Path) -> None:
    one = shot(tmp_path, **UNMANAGED)
    before = one.snapshot()
    clip = one.host.clip(one.clip.id)
    assert (clip.processed, clip.colour_space) == ("", None)
    placed = one.host.place(clip, one.result)
    assert one.item._media._properties["Input Color Space"] == "sRGB", "which an unmanaged project does not look at"
    one.host.remove(placed)
    assert one.snapshot() == before

    other = replace(one.result, colour_space="Linear Rec.709 (sRGB)", interop_id="lin_rec709_scene")
    with pytest.raises(HostError, match="manages no colour") as caught:
        one.host.place(clip, other)
    assert "DaVinci YRGB Color Managed" in caught.value.hint
    assert one.snapshot() == before


def test_a_named_space_counts_for_all(tmp_path: Path) -> None:
    one = shot(tmp_path)
    one.item._media._properties["Input Color Space"] = "Some Camera"
    host = ResolveHost(one.resolve, Choices(input_space="ARRI LogC4"))
    clip = host.clip(one.clip.id)
    assert (clip.processed, clip.colour_space, clip.media) == ("", "ARRI LogC4", MEDIA)
