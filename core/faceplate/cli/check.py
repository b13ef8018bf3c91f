"""`faceplate check`: is a result whole?"""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .show import print_lines, reporter


def check(
    output: Annotated[str, typer.Argument(help="File, movie or pattern.")],
    frames: Annotated[
        str | None,
        typer.Option(help="Range that has to be there. Default: what the job folder says, else first to last."),
    ] = None,
    plate: Annotated[str | None, typer.Option(help="What it should be like in raster and timecode.")] = None,
    json: options.Json = False,
) -> int:
    """Check that all frames are there, whole, of one raster, and that the timecode counts on; exit code 1 if not."""
    from ..batch.check import check_output
    from ..jobs.cancel import CancelToken, cancel_on_signals

    token = CancelToken()
    with cancel_on_signals(token), reporter(as_json=json) as emit:
        found = check_output(output, frames, plate, emit, token)
    if json:
        event = {"event": "checked", "output": output, "frames": found.frames, "problems": list(found.problems)}
        print_lines(event, as_json=True)
        return 1 if found.problems else 0
    for text in found.problems:
        print(text)
    print(f"{output}: {found.frames} frames, {f'{len(found.problems)} problems' if found.problems else 'all well'}")
    return 1 if found.problems else 0
