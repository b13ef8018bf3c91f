"""Each format in and out: what is read of it, and the same format again with the results in place."""

# ruff: noqa: E501 - documents as editors write them

from __future__ import annotations

import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import opentimelineio as otio
import pytest

from faceplate.errors import InputError
from faceplate.media.timelines.files import open_timeline
from tests.support.timelines import clip, dissolve, gap, span, time, timeline
from tests.unit.core.media.timelines.conftest import CODE, FRAMES, handed_back, planned, shown


def cut(media: Path) -> Any:
    """A001 frames 11-20, a gap, B 002 frames 31-40 dissolving to A001 frame 41-50, pictures 1006-1015 above."""
    a, b = (media / "A001.mov").as_uri(), (media / "B 002.mov").as_uri()
    above = clip("above", 5, 10)
    above.media_reference = otio.schema.ImageSequenceReference(
        media.as_uri() + "/", "sh010.", ".exr", 1001, 1, 24, 4, available_range=span(0, FRAMES)
    )
    return timeline(
        [
            clip("one", CODE + 10, 10, url=a, available=(CODE, FRAMES)),
            gap(5),
            clip("two", 30, 10, url=b, available=(0, FRAMES)),
            dissolve(2, 3),
            clip("three", CODE + 40, 10, url=a, available=(CODE, FRAMES)),
        ],
        [gap(12), above],
        start=time(CODE),
    )


EXPECTED = {"A001": [(11, 20), (39, 50)], "B_002": [(31, 43)], "sh010": [(1006, 1015)]}


def test_otio_there_and_back(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.otio"
    document = cut(media)
    document.metadata["studio"] = {"show": "long take"}
    document.tracks[0][0].metadata["note"] = "hero"
    document.tracks[0][2].effects.append(otio.schema.LinearTimeWarp(time_scalar=2.0))
    otio.adapters.write_to_file(document, str(path))
    written, said, plan = handed_back(path, tmp_path / "out", handles=2)
    assert said == []
    assert shown(plan) == {**EXPECTED, "B_002": [(31, 55)]}
    assert {shot.name: shot.parts for shot in plan.shots} == {
        "A001": ((9, 22), (37, 52)),
        "B_002": ((29, 57),),
        "sh010": ((1004, 1017),),
    }
    again = otio.adapters.read_from_file(str(written[0]))
    assert again.metadata["studio"]["show"] == "long take"
    assert again.global_start_time == time(CODE)
    one, two, three = (each for each in again.tracks[0] if isinstance(each, otio.schema.Clip))
    assert one.metadata["note"] == "hero"
    assert one.source_range == span(CODE + 10, 10)
    reference = one.media_reference
    assert reference.available_range == span(CODE + 8, 14)
    assert reference.target_url_for_image_number(0).endswith("/out/A001/A001.0009.exr")
    assert three.media_reference.available_range == span(CODE + 36, 16)
    assert one.media_references()["original"].target_url == (media / "A001.mov").as_uri()
    assert two.effects[0].time_scalar == 2.0
    assert two.media_reference.available_range == span(28, 29)
    # The frame that each clip shows first is the plate's, whatever part of it was rendered.
    for each, frame in ((one, 11), (two, 31), (three, 41)):
        reference = each.media_reference
        offset = each.source_range.start_time - reference.available_range.start_time
        assert reference.start_frame + offset.value == frame


def test_elements_lie_above_and_the_plate_stays(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.otio"
    otio.adapters.write_to_file(cut(media), str(path))
    written, _, _ = handed_back(path, tmp_path / "out", element=True, suffix=".mov", only=("A001", "two"))
    again = otio.adapters.read_from_file(str(written[0]))
    assert [track.name for track in again.tracks] == ["V1", "V1 faceplate", "V2"]
    below, above = again.tracks[0], again.tracks[1]
    assert [type(each).__name__ for each in above] == ["Clip", "Gap", "Clip", "Transition", "Clip"]
    assert above.duration() == below.duration()
    for index in (0, 2, 4):
        assert above.range_of_child_at_index(index) == below.range_of_child_at_index(index)
        assert above[index].source_range == below[index].source_range
        assert "/media" in below[index].media_reference.target_url
    assert above[0].media_reference.target_url.endswith("/out/A001_11-20.mov")
    assert above[0].media_reference.available_range == span(CODE + 10, 10)


def test_otioz_carries_its_media(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.otioz"
    source = timeline([clip("one", CODE + 10, 10, url=(media / "A001.mov").as_uri(), available=(CODE, FRAMES))])
    otio.adapters.write_to_file(source, str(path))
    _, plan = planned(path, tmp_path / "out")
    assert plan.shots[0].media.plate.startswith(str(tmp_path / "out" / "otioz-"))
    for number in range(11, 21):
        target = tmp_path / "out" / "A001" / f"A001.{number:04d}.exr"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"result %d" % number)
    written, said, _ = handed_back(path, tmp_path / "out")
    assert said == []
    with zipfile.ZipFile(written[1]) as file:
        assert file.read("version.txt") == b"1.0.0"
        assert file.read("media/A001/A001.0011.exr") == b"result 11"
        assert file.read("media/A001.mov") == (media / "A001.mov").read_bytes()
    again = otio.adapters.read_from_file(str(written[1]))
    (one,) = again.find_clips()
    assert one.media_reference.target_url_base == "media/A001/"
    # and it can be rendered again
    _, plan = planned(written[1], tmp_path / "second")
    assert shown(plan) == {"A001": [(11, 20)]}


FCP7 = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE xmeml>
<xmeml version="5"><sequence id="s"><name>cut</name><duration>60</duration>
<rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate>
<timecode><rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate><string>01:00:00:00</string><frame>86400</frame><displayformat>NDF</displayformat></timecode>
<media><video><format><samplecharacteristics><width>32</width></samplecharacteristics></format><track>
<clipitem id="c1"><name>one</name><duration>60</duration><rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate>
<start>0</start><end>10</end><in>10</in><out>20</out><pproTicksIn>105840000000</pproTicksIn><pproTicksOut>211680000000</pproTicksOut>
<file id="f1"><name>A001.mov</name><pathurl>{a}</pathurl><rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate><duration>60</duration>
<timecode><rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate><string>01:00:00:00</string><frame>86400</frame><displayformat>NDF</displayformat><reel><name>A001</name></reel></timecode>
<media><video><samplecharacteristics><width>32</width></samplecharacteristics></video><audio><channelcount>2</channelcount></audio></media></file>
<filter><effect><name>Opacity</name><effectid>opacity</effectid><parameter><parameterid>opacity</parameterid><value>50</value></parameter></effect></filter>
<labels><label2>Iris</label2></labels><!-- keep --></clipitem>
<clipitem id="c2"><name>two</name><duration>60</duration><rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate>
<start>15</start><end>25</end><in>{in2}</in><out>{out2}</out><file id="f1"/>{filter}</clipitem>
</track></video><audio><track><clipitem id="c3"><name>sound</name><duration>60</duration>
<rate><timebase>24</timebase><ntsc>FALSE</ntsc></rate><start>0</start><end>10</end><in>10</in><out>20</out><file id="f1"/></clipitem></track></audio>
</media></sequence></xmeml>
"""
REMAP = """<filter><effect><name>Time Remap</name><effectid>timeremap</effectid><effecttype>motion</effecttype>
<parameter><parameterid>variablespeed</parameterid><value>0</value></parameter>
<parameter><parameterid>speed</parameterid><value>{speed}</value></parameter>
<parameter><parameterid>reverse</parameterid><value>{reverse}</value></parameter>{graph}</effect></filter>"""


def fcp7(
    media: Path, folder: Path, *, into: tuple[int, int] = (30, 40), remap: tuple[float, str, str] | None = None
) -> Path:
    path = folder / "cut.xml"
    effect = "" if remap is None else REMAP.format(speed=remap[0], reverse=remap[1], graph=remap[2])
    text = FCP7.format(a=(media / "A001.mov").as_uri(), in2=into[0], out2=into[1], filter=effect)
    path.write_text(text, "utf-8")
    return path


def graph(*keys: tuple[float, float]) -> str:
    inside = "".join(f"<keyframe><when>{when}</when><value>{value}</value></keyframe>" for when, value in keys)
    return f"<parameter><parameterid>graphdict</parameterid>{inside}</parameter>"


def test_fcp7_keeps_all_but_the_media(media: Path, tmp_path: Path) -> None:
    path = fcp7(media, tmp_path)
    written, said, plan = handed_back(path, tmp_path / "out", handles=3)
    assert said == []
    assert shown(plan) == {"A001": [(11, 20), (31, 40)]}
    root = ElementTree.parse(written[1]).getroot()
    items = {item.get("id"): item for item in root.iter("clipitem")}
    one = items["c1"]
    assert [one.findtext(tag) for tag in ("start", "end", "in", "out", "duration")] == ["0", "10", "3", "13", "16"]
    assert one.findtext("pproTicksIn") == str(3 * 254016000000 // 24)
    assert one.findtext("filter/effect/parameter/value") == "50"
    assert one.findtext("labels/label2") == "Iris"
    assert "<!-- keep -->" in written[1].read_text("utf-8")
    assert one.findtext("file/pathurl") == (tmp_path / "out/A001/A001.0008.exr").as_uri()
    assert one.findtext("file/timecode/string") == "01:00:00:07"
    assert one.findtext("file/timecode/reel/name") == "A001"
    assert one.find("file/media/audio") is None
    sound = items["c3"].find("file")
    assert sound is not None
    assert (sound.get("id"), sound.findtext("pathurl")) == ("f1", (media / "A001.mov").as_uri())
    again = otio.adapters.read_from_file(str(written[1]), "fcp_xml")
    assert [each.source_range.start_time.value for each in again.video_tracks()[0].find_clips()] == [
        CODE + 10,
        CODE + 30,
    ]


@pytest.mark.parametrize(
    ("into", "remap", "expected"),
    [
        ((20, 40), (200.0, "FALSE", ""), (21, 39)),  # media frames
        ((10, 20), (200.0, "FALSE", ""), (21, 39)),  # retimed frames
        ((10, 20), (200.0, "FALSE", graph((0, 0), (10, 20), (30, 60))), (21, 39)),
        ((10, 20), (50.0, "FALSE", graph((0, 10), (120, 70))), (16, 21)),
        ((5, 15), (100.0, "TRUE", graph((0, 59), (59, 0))), (46, 55)),
        ((7, 17), (0.0, "FALSE", graph((0, 12), (60, 12))), (13, 13)),
    ],
)
def test_fcp7_retimes_are_read(
    media: Path, tmp_path: Path, into: tuple[int, int], remap: Any, expected: tuple[int, int]
) -> None:
    _, plan = planned(fcp7(media, tmp_path, into=into, remap=remap), tmp_path / "out")
    assert plan.problems == ()
    assert shown(plan) == {"A001": [(11, 20), expected]}


@pytest.mark.parametrize(
    ("into", "remap", "reason"),
    [
        ((0, 10), (100.0, "FALSE", graph((0, 0), (10, 30), (20, 35))), "speed ramp"),
        ((0, 10), (100.0, "TRUE", ""), "plays backwards"),
        ((0, 25), (200.0, "FALSE", ""), "do not go with a speed"),
    ],
)
def test_fcp7_retimes_that_cannot_be_told_are_refused(
    media: Path, tmp_path: Path, into: tuple[int, int], remap: Any, reason: str
) -> None:
    _, plan = planned(fcp7(media, tmp_path, into=into, remap=remap), tmp_path / "out")
    ((where, why),) = plan.problems
    assert where.startswith("two (V1 at 01:00:00:15)")
    assert reason in why


def test_fcp7_a_graph_over_the_whole_file_keeps_the_editors_media(media: Path, tmp_path: Path) -> None:
    path = fcp7(media, tmp_path, into=(10, 20), remap=(200.0, "FALSE", graph((0, 0), (30, 60))))
    written, said, _ = handed_back(path, tmp_path / "out")
    assert len(said) == 1
    assert "keeps the editor's media for two" in said[0]
    again = otio.adapters.read_from_file(str(written[1]), "fcp_xml")
    urls = [each.media_reference.target_url for each in again.video_tracks()[0].find_clips()]
    assert urls == [(tmp_path / "out/A001/A001.0011.exr").as_uri(), (media / "A001.mov").as_uri()]


FCPX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE fcpxml>
<fcpxml version="1.10"><!-- made by hand --><resources>
<format id="r1" frameDuration="1001/24000s" width="32" height="32"/>
<asset id="r2" name="N001" uid="X" start="{start}" duration="60060/24000s" hasVideo="1" hasAudio="1" format="r1">
<media-rep kind="original-media" src="{url}"/></asset></resources>
<library><event name="e"><project name="cut"><sequence format="r1" tcStart="86486400/24000s" duration="30030/24000s"><spine>
<asset-clip ref="r2" name="one" offset="86486400/24000s" start="{one}" duration="10010/24000s"><note>hero</note></asset-clip>
<transition name="Cross Dissolve" offset="86492406/24000s" duration="8008/24000s"/>
<asset-clip ref="r2" name="two" offset="86496410/24000s" start="{two}" duration="20020/24000s">{map}
<asset-clip ref="r2" name="tie" lane="1" offset="{anchor}" start="{one}" duration="5005/24000s"/></asset-clip>
</spine></sequence></project></event></library></fcpxml>
"""


def fcpx(media: Path, folder: Path, time_map: str = "", two: Fraction | None = None) -> Path:
    begins = Fraction(CODE * 1001, 24000)

    def at(frame: int) -> str:
        return f"{begins + Fraction(frame * 1001, 24000)}s"

    path = folder / "cut.fcpxml"
    start = at(30) if two is None else f"{two}s"
    text = FCPX.format(
        url=(media / "N001.mov").as_uri(), start=at(0), one=at(10), two=start, map=time_map, anchor=start
    )
    path.write_text(text, "utf-8")
    return path


def test_fcpx_with_exact_rates_transitions_and_lanes(media: Path, tmp_path: Path) -> None:
    _, plan = planned(fcpx(media, tmp_path), tmp_path / "out")
    assert plan.rate == Fraction(24000, 1001)
    assert plan.problems == ()
    ((name, ranges),) = shown(plan).items()
    assert name == "N001"
    assert ranges == [(11, 24), (27, 50), (11, 15)]  # the dissolve reaches 4 frames into either
    assert [clip.record for clip in plan.shots[0].clips] == [(0, 13), (6, 29), (10, 14)]
    assert plan.document.timeline.global_start_time.value == pytest.approx(CODE)


def test_fcpx_movies_in_place_and_sequences_refused(media: Path, tmp_path: Path) -> None:
    path = fcpx(media, tmp_path)
    written, said, _ = handed_back(path, tmp_path / "out", suffix=".mov", handles=2)
    assert said == []
    root = ElementTree.parse(written[1]).getroot()
    assets = {asset.get("id"): asset for asset in root.iter("asset")}
    clips = {each.get("name"): each for each in root.iter("asset-clip")}
    one = assets[clips["one"].get("ref")]
    assert one.find("media-rep").get("src") == (tmp_path / "out/N001.mov").as_uri()  # type: ignore[union-attr]
    assert one.get("duration") == f"{Fraction(44 * 1001, 24000)}s"
    assert clips["one"].findtext("note") == "hero"
    assert "<!-- made by hand -->" in written[1].read_text("utf-8")
    assert assets["r2"].get("start") == f"{Fraction(CODE * 1001, 24000)}s"
    written, said, _ = handed_back(path, tmp_path / "exr")
    assert len(written) == 2
    assert all("plays no sequences of pictures" in text for text in said)
    assert len(said) == 3


def test_fcpx_time_maps(media: Path, tmp_path: Path) -> None:
    begins = Fraction(CODE * 1001, 24000)
    second = Fraction(1001, 1000)
    straight = (
        f'<timeMap><timept time="0s" value="{begins}s" interp="linear"/>'
        f'<timept time="{second}s" value="{begins + 2 * second}s" interp="linear"/></timeMap>'
    )
    _, plan = planned(fcpx(media, tmp_path, straight, Fraction(6 * 1001, 24000)), tmp_path / "out")
    assert plan.problems == ()
    # Local frame 6 is media frame 12; the dissolve begins 4 frames earlier, at 4, and 20 frames later it is 12 + 38.
    assert shown(plan)["N001"][1] == (5, 51)
    ramp = straight.replace(
        "</timeMap>", f'<timept time="{2 * second}s" value="{begins}s" interp="smooth2"/></timeMap>'
    )
    _, plan = planned(fcpx(media, tmp_path, ramp, Fraction(6 * 1001, 24000)), tmp_path / "out")
    ((_, why),) = plan.problems
    assert "speed ramp" in why


EDL = """TITLE: cut
FCM: NON-DROP FRAME

001  A001     V     C        01:00:00:10 01:00:00:20 01:00:00:00 01:00:00:10
* FROM CLIP NAME: A001.mov
002  A001     V     C        01:00:00:20 01:00:00:20 01:00:00:10 01:00:00:10
002  BX       V     D    004 01:00:01:06 01:00:01:16 01:00:00:10 01:00:00:20
* FROM CLIP NAME: A001.mov
* TO CLIP NAME: N001.mov
003  A001     V     C        01:00:00:00 01:00:00:20 01:00:00:20 01:00:01:06
M2   A001       048.0                01:00:00:00
* FROM CLIP NAME: A001.mov
* COMMENT: keep me
"""


def test_edl_names_and_timecode(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.edl"
    path.write_text(EDL, "utf-8")
    with pytest.raises(InputError, match="does not say its frame rate"):
        open_timeline(path)
    options: dict[str, Any] = {"rate": Fraction(24), "roots": (media,)}
    written, said, plan = handed_back(path, tmp_path / "out", **options)
    assert said == []
    assert shown(plan) == {"A001": [(11, 24), (1, 19)], "N001": [(31, 40)]}
    text = written[1].read_text("utf-8")
    assert "* FROM CLIP NAME: A001.[0001-0024].exr\n* TO CLIP NAME: N001.[0031-0040].exr" in text
    assert "* COMMENT: keep me" in text
    assert "M2   A001       048.0" in text
    again = otio.adapters.read_from_file(str(written[1]), "cmx_3600", rate=24)
    assert [each.name for each in again.tracks[0] if isinstance(each, otio.schema.Clip)] == [
        "A001.[0001-0024].exr",
        "N001.[0031-0040].exr",
        "A001.[0001-0024].exr",
    ]


def test_edl_drop_frame_and_events_with_two_clips(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "drop.edl"
    path.write_text(EDL.replace("NON-DROP", "DROP"), "utf-8")
    document = open_timeline(path, Fraction(30000, 1001))
    first = next(iter(document.timeline.find_clips()))
    # 01:00:00;10 is 108 numbers earlier than without drop frame.
    assert first.source_range.start_time.value == 3600 * 30 + 10 - 108
    assert document.drop
    _, plan = planned(path, tmp_path / "out", rate=Fraction(30000, 1001))
    assert plan.problems[-1][0] == "A001.mov (V1 at 01:00:00;20)"
    path.write_text(EDL, "utf-8")
    assert not open_timeline(path, Fraction(30000, 1001)).drop
    path.write_text(
        EDL.replace(
            "01:00:00:20 01:00:00:20 01:00:00:10 01:00:00:10", "01:00:00:20 01:00:00:25 01:00:00:10 01:00:00:15"
        ),
        "utf-8",
    )
    with pytest.raises(InputError, match="a clip of its own before its transition"):
        open_timeline(path, Fraction(24))


def test_aaf_in_a_copy_of_the_file(media: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.aaf"
    a, b = (media / "A001.mov").as_uri(), (media / "B 002.mov").as_uri()
    source = timeline(
        [
            clip("one", CODE + 10, 10, url=a, available=(CODE, FRAMES)),
            gap(5),
            clip("two", 30, 10, url=b, available=(0, FRAMES)),
        ],
        start=time(CODE),
    )
    otio.adapters.write_to_file(source, str(path), "AAF", use_empty_mob_ids=True)
    written, said, plan = handed_back(path, tmp_path / "out", suffix=".mov", handles=2)
    assert said == []
    assert shown(plan) == {"A001": [(11, 20)], "B_002": [(31, 40)]}
    again = otio.adapters.read_from_file(str(written[1]), "AAF")
    one, two = again.find_clips()
    assert one.media_reference.target_url == (tmp_path / "out/A001.mov").as_uri()
    assert one.source_range == span(CODE + 10, 10)
    assert one.media_reference.available_range == span(CODE + 8, 14)
    assert two.source_range.start_time - two.media_reference.available_range.start_time == time(2)
    assert again.tracks[0].range_of_child_at_index(2) == source.tracks[0].range_of_child_at_index(2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.otio", "{"),
        ("x.xml", "<xmeml>"),
        ("x.fcpxml", "no"),
        ("x.aaf", "no"),
        ("x.otioz", "no"),
        ("x.edl", "001 what"),
    ],
)
def test_damaged_files_say_so(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as error:
        open_timeline(path, Fraction(24))
    assert name in str(error.value) or "XML" in str(error.value)


def test_no_timeline_and_several(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no timeline"):
        open_timeline(tmp_path / "x.txt")
    with pytest.raises(InputError, match="cannot read"):
        open_timeline(tmp_path / "absent.otio")
    both = otio.schema.SerializableCollection(children=[timeline([gap(1)], name="a"), timeline([gap(1)], name="b")])
    path = tmp_path / "both.otio"
    otio.adapters.write_to_file(both, str(path))
    with pytest.raises(InputError, match="2 timelines") as error:
        open_timeline(path)
    assert error.value.found == "a, b"
    assert open_timeline(path, name="b").timeline.name == "b"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("opentimelineio", "otio_fcpx_xml_adapter"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(InputError) as error:
                open_timeline(tmp_path / "cut.otio")
        assert error.value.hint == 'pip install "faceplate[timelines]"'
