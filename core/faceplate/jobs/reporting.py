"""From a job's folder to its report: `job.json` (what the job was), the manifest's rows, and the contact sheet."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError, ManifestError
from ..media.atomic import atomic_write
from ..report.html import render_html
from ..report.values import FaceRow, FrameRow, JobReport, Thumbnail
from .manifest import FrameRecord, read_records
from .spec import job_folder

JOB_FILE = "job.json"
MANIFEST_FILE = "manifest.jsonl"
THUMBS_FOLDER = "thumbs"
PAGE_FILE = "report.html"


def write_job(folder: Path, base: JobReport) -> None:
    """Keep what the job is, without its frames."""
    with atomic_write(folder / JOB_FILE) as temporary:
        temporary.write_text(json.dumps(base.to_json()), "utf-8")


def _read_job(folder: Path) -> JobReport:
    path = folder / JOB_FILE
    if not path.exists():
        raise InputError(
            f"{folder} holds no job",
            expected=f"a folder with {JOB_FILE}, or the output pattern of a job",
            hint="give the same output as to faceplate apply",
        )
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(
            f"{path} is damaged", found=str(error), hint="run the job again; finished frames are kept"
        ) from error
    return JobReport.from_json(document)


def _row(record: FrameRecord) -> FrameRow:
    note = str(record.error["message"]) if record.error else ""
    try:
        faces = tuple(FaceRow(**face) for face in record.facts.get("faces", ()))
    except (TypeError, AttributeError) as error:
        raise ManifestError(f"the manifest's facts about frame {record.frame} are damaged", found=str(error)) from error
    return FrameRow(record.frame, record.state, faces, record.seconds.get("frame", 0.0), note)


def _timings(records: Mapping[int, FrameRecord]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for record in records.values():
        total.update({stage: seconds for stage, seconds in record.seconds.items() if stage != "frame"})
    return dict(total)


def _thumbnails(folder: Path, records: Mapping[int, FrameRecord]) -> tuple[Thumbnail, ...]:
    found = []
    for frame in sorted(records):
        files = [folder / THUMBS_FOLDER / f"{frame}.{name}.png" for name in ("before", "after", "matte")]
        if all(file.exists() for file in files):
            before, after, matte = (file.read_bytes() for file in files)
            found.append(Thumbnail(frame, before, after, matte))
    return tuple(found)


def write_report(folder: Path, base: JobReport) -> Path:
    """The HTML page of a job, from `base` and what the folder holds.

    Raises:
        ManifestError: the manifest is damaged.
        OutputError: the page cannot be written.
    """
    records = read_records(folder / MANIFEST_FILE)
    report = dataclasses.replace(
        base,
        rows=tuple(_row(record) for _, record in sorted(records.items())),
        timings={**base.timings, **_timings(records)},
        thumbnails=_thumbnails(folder, records),
    )
    page = folder / PAGE_FILE
    with atomic_write(page) as temporary:
        temporary.write_text(render_html(report), "utf-8")
    return page


def counted(folder: Path) -> dict[str, int]:
    """Frames by state of a job, over all its runs; empty where it has no manifest.

    Raises:
        ManifestError: it is damaged.
    """
    path = folder / MANIFEST_FILE
    records = read_records(path) if path.is_file() else {}
    return dict(Counter(record.state.value for record in records.values()))


def rebuild_report(output: str) -> tuple[Path, Mapping[str, int]]:
    """The report of a finished or broken job again.

    Args:
        output: the job's output pattern, or its folder.

    Returns:
        (the page, frames by state).

    Raises:
        InputError: no job there.
        ManifestError: it is damaged.
    """
    given = Path(output)
    folder = given if given.suffix == ".faceplate" else job_folder(output)
    page = write_report(folder, _read_job(folder))
    return page, counted(folder)
