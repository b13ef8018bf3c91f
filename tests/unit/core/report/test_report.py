"""Report values, plot geometry, findings, thumbnails and the HTML."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceplate.demo.portrait import load_portrait
from faceplate.errors import InputError, OutputError
from faceplate.job import FrameState
from faceplate.report import plots
from faceplate.report.charts import report_plots, report_strips
from faceplate.report.html import render_html, write_html
from faceplate.report.summary import duration, findings, frame_ranges
from faceplate.report.thumbs import matte_thumbnail, thumbnail
from faceplate.report.values import FrameRow, JobReport, contact_frames
from tests.unit.core.report.made import faceless_report, make_report, single_report

HOSTILE = """"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}"""


class _Document(HTMLParser):
    """Tags, attributes and text, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(name="report", scope="module")
def _report() -> JobReport:
    return make_report()


@pytest.mark.parametrize("make", [make_report, single_report, faceless_report])
def test_json_round_trip_is_exact(make: object) -> None:
    report = make()  # type: ignore[operator]
    text = json.dumps(report.to_json(), allow_nan=False)
    assert JobReport.from_json(json.loads(text)) == report


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"format": "faceplate report", "version": 2},
        {"format": "faceplate report", "version": 1},
        {**single_report().to_json(), "rows": 3},
        {**single_report().to_json(), "rows": [{"frame": 1}]},
        {**single_report().to_json(), "thumbnails": [{"frame": 1, "before": "%", "after": "", "matte": None}]},
        {**single_report().to_json(), "more": 1},
    ],
)
def test_bad_json_is_an_input_error(document: object) -> None:
    with pytest.raises(InputError):
        JobReport.from_json(document)


def test_lists_of_frames(report: JobReport) -> None:
    assert report.filled == report.weak == (1041, 1042, 1043, 1044, 1045, 1046, 1047)
    assert report.frames_in(FrameState.FAILED) == (1024,)
    assert report.frames_in(FrameState.HELD, FrameState.FAILED) == (1024, 1111)


def test_findings_name_what_needs_a_look_gravest_first(report: JobReport) -> None:
    found = findings(report)
    texts = [finding.text for finding in found]
    assert [finding.level for finding in found] == sorted(
        (finding.level for finding in found), key=["bad", "warn", "info"].index
    )
    assert "1 frame failed and was not written." in texts
    assert "ray: no consent record." in texts
    assert "The licence of studio_swapper_v3 (CC-BY-NC-4.0) does not allow paid work." in texts
    assert any("assumed: sRGB" in text for text in texts)
    assert any(text.startswith("ray's face is up to 174 px wide; the photos show 93 px") for text in texts)
    assert next(f.frames for f in found if "filled" in f.text) == "1041-1047"
    assert findings(single_report()) == ()


@given(st.sets(st.integers(0, 300), max_size=80))
def test_frame_ranges_say_every_frame_once(frames: set[int]) -> None:
    text = frame_ranges(sorted(frames), limit=1000)
    read: list[int] = []
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        read.extend(range(int(first), int(last or first) + 1))
    assert read == sorted(frames)


def test_frame_ranges_count_what_they_leave_out() -> None:
    assert frame_ranges([1, 3, 5, 6, 7], limit=2) == "1, 3 and 3 more"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.42 s"), (12.4, "12 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 50))
def test_decimation_keeps_ends_of_the_range_and_order(values: list[float], bucket: int) -> None:
    points = list(enumerate(values))
    kept = plots.decimate(points, bucket)
    assert max(v for _, v in kept) == max(values)
    assert min(v for _, v in kept) == min(values)
    assert kept == sorted(kept)
    assert set(kept) <= set(points)


def _rows(first: int, count: int) -> list[FrameRow]:
    return [FrameRow(first + index, FrameState.DONE) for index in range(count)]


def test_plot_places_values_on_their_axis_and_breaks_lines_at_gaps() -> None:
    series = {1: [(10, 0.0), (11, 1.0), (14, 0.5)]}
    plot = plots.make_plot(_rows(10, 5), series, "t", "u", "h", ceiling=1.0)
    assert plot is not None
    (line,) = plot.lines
    column = plots.WIDTH / 5
    bottom = plots.TOP + plots.HEIGHT
    first = (plots.LEFT + 0.5 * column, bottom)
    second = (plots.LEFT + 1.5 * column, plots.TOP)
    assert line.path == f"M{first[0]:g} {first[1]:g}L{second[0]:g} {second[1]:g}"
    assert (plots.LEFT + 4.5 * column, plots.TOP + plots.HEIGHT / 2) in line.dots
    assert [tick.text for tick in plot.y_ticks] == ["0.0", "0.5", "1.0"]
    assert [tick.text for tick in plot.x_ticks] == ["10", "11", "12", "13", "14"]


@given(
    st.dictionaries(st.integers(1, 60), st.floats(-1e9, 1e9), min_size=1),
    st.sampled_from([None, 0.0]),
    st.integers(1, 3),
)
def test_plots_stay_inside_their_canvas(values: dict[int, float], floor: float | None, tracks: int) -> None:
    points = [(frame, abs(value) if floor is not None else value) for frame, value in sorted(values.items())]
    series = dict.fromkeys(range(tracks), points)
    plot = plots.make_plot(_rows(1, 60), series, "t", "u", "h", floor=floor)
    assert plot is not None
    for line in plot.lines:
        numbers = [float(text) for text in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", line.path)]
        spots = [*zip(numbers[::2], numbers[1::2], strict=True), *line.dots]
        assert spots
        for x, y in spots:
            assert plots.LEFT <= x <= plots.LEFT + plots.WIDTH
            assert plots.TOP - 0.01 <= y <= plots.TOP + plots.HEIGHT + 0.01
    assert 2 <= len(plot.y_ticks) <= 8


def test_plot_leaves_out_what_is_not_finite() -> None:
    assert plots.make_plot(_rows(1, 2), {1: [(1, float("nan")), (2, float("inf"))]}, "t", "u", "h") is None
    assert plots.make_plot([], {}, "t", "u", "h") is None


def test_long_shots_stay_small() -> None:
    report = make_report(2000, sheet=False)
    points = sum(line.path.count("L") for plot in report_plots(report) for line in plot.lines)
    assert points < 7 * 2 * 1000
    assert len(render_html(report)) < 600_000


def test_strips_cover_every_frame_and_show_the_worst(report: JobReport) -> None:
    states, first, _ = report_strips(report)
    assert sum(cell.width for cell in states.cells) == pytest.approx(plots.WIDTH, abs=0.2)
    assert [cell.text for cell in states.cells if cell.kind == "s-failed"] == ["1024: failed"]
    assert [cell.text for cell in first.cells if cell.kind == "o-filled"] == ["1041-1047: filled, weak"]
    long = report_strips(make_report(9000, sheet=False))[0]
    assert sum(cell.kind == "s-failed" for cell in long.cells) >= 90


@pytest.mark.parametrize("make", [make_report, single_report, faceless_report])
def test_html_needs_nothing_from_outside(make: object) -> None:
    document = _Document(render_html(make()))  # type: ignore[operator]
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in document.tags}
    for tag, attributes in document.tags:
        for name in ("src", "href", "xlink:href", "action"):
            value = attributes.get(name)
            assert value is None or value.startswith("data:image/png;base64,"), (tag, value)
    assert "default-src 'none'" in str(document.tags)


def test_html_tells_what_the_issue_asks_for(report: JobReport) -> None:
    document = _Document(render_html(report))
    for title in ("Contact sheet", "Confidence", "Jitter", "Matte area", "Face size", "Exposure of the change"):
        assert title in document.text
    for fact in ("no consent record", "7be1c0ffee420001", "lin_ap1_scene", "assumed", "CC-BY-NC-4.0", "no paid work"):
        assert fact in document.text
    for fact in ("1041-1047", "found 612", "onnxruntime", "CPUExecutionProvider", "1001: 0, 1010: 1", "50 s"):
        assert fact in document.text
    images = [attributes for tag, attributes in document.tags if tag == "img"]
    assert len(images) == 3 * 24


def test_contact_sheet_is_thinned_and_keeps_the_ends() -> None:
    frames = contact_frames(range(1001, 3001))
    assert (len(frames), frames[0], frames[-1]) == (24, 1001, 3000)
    assert contact_frames([5, 6]) == (5, 6)
    picture = single_report().thumbnails[0]
    many = tuple(dataclasses.replace(picture, frame=frame) for frame in range(100))
    document = _Document(render_html(dataclasses.replace(single_report(), thumbnails=many)))
    assert sum(tag == "img" for tag, _ in document.tags) == 3 * 24
    assert "24 of 100 pictures" in document.text


def test_hostile_names_are_text(report: JobReport) -> None:
    row = dataclasses.replace(report.rows[0], note=HOSTILE)
    face = dataclasses.replace(row.faces[0], identity=HOSTILE, origin=HOSTILE)
    hostile = dataclasses.replace(
        report,
        plate=HOSTILE,
        output=HOSTILE,
        identities=(dataclasses.replace(report.identities[0], name=HOSTILE, consent=HOSTILE),),
        rows=(dataclasses.replace(row, faces=(face,)), *report.rows[1:]),
        versions={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
        settings={HOSTILE: [[0, 1.0]]},
        timings={HOSTILE: 1.0},
    )
    document = _Document(render_html(hostile))
    assert "script" not in {tag for tag, _ in document.tags}
    assert all("onerror" not in attributes for _, attributes in document.tags)
    assert document.text.count(HOSTILE) >= 8


def test_write_html_is_utf8_and_maps_errors(tmp_path: Path) -> None:
    report = dataclasses.replace(single_report(), plate="Ünal \udcff.exr")  # a file name that is no UTF-8
    write_html(tmp_path / "r.html", report)
    assert "Ünal \\udcff.exr" in (tmp_path / "r.html").read_text("utf-8")
    render_html(report).encode("utf-8")
    with pytest.raises(OutputError):
        write_html(tmp_path / "absent" / "r.html", report)


def test_thumbnail_is_srgb_of_the_linear_picture() -> None:
    codes = np.random.default_rng(1).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    value = codes / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4).astype(np.float32)
    read = cv2.imdecode(np.frombuffer(thumbnail(linear), np.uint8), cv2.IMREAD_UNCHANGED)[..., ::-1]
    assert np.array_equal(read, codes)


def test_thumbnail_is_small_and_survives_wild_values() -> None:
    plate = np.tile(load_portrait(), (2, 4, 1)).astype(np.float32)
    plate[0, 0], plate[1, 1], plate[2, 2] = np.nan, np.inf, -5
    read = cv2.imdecode(np.frombuffer(thumbnail(plate), np.uint8), cv2.IMREAD_UNCHANGED)
    assert read.shape == (160, 320, 3)
    tall = cv2.imdecode(np.frombuffer(thumbnail(np.ones((4000, 3, 3), np.float32)), np.uint8), cv2.IMREAD_UNCHANGED)
    assert tall.shape == (4000, 3, 3)
    assert (tall == 255).all()


def test_thumbnail_averages_light_not_codes() -> None:
    stripes = np.zeros((64, 640, 3), np.float32)
    stripes[:, ::2] = 1.0
    read = cv2.imdecode(np.frombuffer(thumbnail(stripes), np.uint8), cv2.IMREAD_UNCHANGED)
    assert (read == 188).all()  # half the light of white; 128 would be half the code


def test_matte_thumbnail_keeps_values() -> None:
    matte = np.array([[0.0, 0.25, 0.5, 1.0, 2.0, np.nan]], np.float32)
    read = cv2.imdecode(np.frombuffer(matte_thumbnail(matte), np.uint8), cv2.IMREAD_UNCHANGED)
    assert read.tolist() == [[0, 64, 128, 255, 255, 0]]
