"""`faceplate report`: make the report of a job again from what its folder holds."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .show import print_lines


def report(
    output: Annotated[str, typer.Argument(help="The output pattern of the job, or its .faceplate folder.")],
    json: options.Json = False,
) -> int:
    """Write the HTML report of a job and print where it is."""
    from ..jobs.reporting import rebuild_report

    page, counts = rebuild_report(output)
    print_lines({"report": str(page), **counts}, as_json=json)
    return 0
