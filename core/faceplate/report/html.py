"""Draws a report as one HTML file that needs nothing else: no network, no script, pictures and style inside."""

from __future__ import annotations

import base64
import functools
from pathlib import Path

import jinja2

from ..job import FrameState
from ..media.atomic import atomic_write
from . import plots
from .charts import report_plots, report_strips
from .summary import duration, findings, frame_ranges, settings_lines, widest_face
from .values import MAX_THUMBNAILS, JobReport, thin

_MAX_NOTES = 200


@functools.cache
def environment() -> jinja2.Environment:
    """Templates of this room."""
    # Autoescape is on for everything: names and paths come from files that anyone may have made.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("faceplate.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["png"] = lambda data: "data:image/png;base64," + base64.b64encode(data).decode("ascii")
    environment.filters["jpeg"] = lambda data: "data:image/jpeg;base64," + base64.b64encode(data).decode("ascii")
    environment.filters["duration"] = duration
    environment.filters["ranges"] = frame_ranges
    return environment


def render_html(report: JobReport) -> str:
    """The report as a self-contained HTML document.

    Long shots are thinned: at most `MAX_THUMBNAILS` pictures, and plots that keep every spike but not every point.
    The text can be encoded as UTF-8: bytes of a file name that are none show as escapes.
    """
    noted = [row for row in report.rows if row.note]
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            findings=findings(report),
            counts=[(state, len(report.frames_in(state))) for state in FrameState],
            tracks=sorted({face.track: face.identity for row in report.rows for face in row.faces}.items()),
            # A plot over one frame tells nothing; the template then writes the numbers.
            plots=report_plots(report) if len(report.rows) > 1 else (),
            strips=report_strips(report),
            x_ticks=plots.Axis(report.rows).ticks() if report.rows else (),
            geometry=plots,
            thumbnails=thin(report.thumbnails, MAX_THUMBNAILS),
            notes=noted[:_MAX_NOTES],
            notes_left=max(0, len(noted) - _MAX_NOTES),
            settings=settings_lines(report.settings),
            widest={person.name: widest_face(report, person) for person in report.identities},
            longest=max(report.timings.values(), default=0.0),
        )
    )
    return page.encode("utf-8", errors="backslashreplace").decode("utf-8")


def write_html(path: Path, report: JobReport) -> None:
    """Write `render_html` as UTF-8, whole or not at all.

    Raises:
        OutputError: the file cannot be written.
    """
    with atomic_write(path) as temporary:
        temporary.write_text(render_html(report), "utf-8")
