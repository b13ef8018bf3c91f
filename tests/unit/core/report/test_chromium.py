"""The report in a real browser: it loads without a complaint, and what it tells is there and visible."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from faceplate.report.html import write_html
from faceplate.report.values import JobReport
from tests.support.browser import browse, complaints
from tests.unit.core.report.made import faceless_report, make_report, single_report


@pytest.mark.parametrize(
    ("make", "texts", "plots"),
    [
        (make_report, ("Contact sheet", "Jitter", "no consent record", "1041-1047"), 7),
        (single_report, ("Contact sheet", "Nothing to look at", "7be1c0ffee420001"), 0),
        (faceless_report, ("30 frames have no face", "No identity took part"), 0),
    ],
)
def test_page_loads_without_a_complaint(
    tmp_path: Path, make: Callable[[], JobReport], texts: tuple[str, ...], plots: int
) -> None:
    write_html(tmp_path / "report.html", make())
    seen = browse((tmp_path / "report.html").as_uri(), tmp_path, "--dump-dom")
    assert complaints(seen.stderr) == []
    for text in texts:
        assert text in seen.stdout
    assert len(re.findall(r'<svg [^>]*aria-label="[A-Z][^"]* over time"', seen.stdout)) == plots
    assert seen.stdout.count('<path class="line') >= plots


def test_hostile_name_runs_nothing(tmp_path: Path) -> None:
    hostile = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    write_html(tmp_path / "report.html", dataclasses.replace(single_report(), plate=hostile))
    seen = browse((tmp_path / "report.html").as_uri(), tmp_path, "--dump-dom")
    assert complaints(seen.stderr) == []  # not even the policy had to stop anything
    assert "<title>owned" not in seen.stdout
    assert "&lt;script&gt;" in seen.stdout


def test_the_console_check_seescomplaints(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<script>console.error('seen')</script>", "utf-8")
    assert complaints(browse((tmp_path / "bad.html").as_uri(), tmp_path, "--dump-dom").stderr)
