"""`faceplate render --dry-run`: the plan of a timeline, as a table or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import InputError
from ..jobs.timeline.plan import ClipPlan, ShotPlan, TimelinePlan, open_and_plan, outputs, ranges_text
from ..jobs.timeline.spec import RenderJob
from ..media.timelines.times import timecode_text

_NARROW = 160
"""Width of the table where the output is no terminal."""


def show_plan(job: RenderJob, unpack: Path, *, as_json: bool) -> int:
    """Print what a run would do.

    Args:
        job: the run.
        unpack: folder for the media of an `.otioz` while they are asked for their length.
        as_json: one JSON object a line, with every frame of retimed clips.

    Returns:
        0, or 2 where the run would be refused.
    """
    _, plan = open_and_plan(job, unpack)
    if as_json:
        _print_lines(plan, job)
    else:
        _print_table(plan, job)
    return InputError.exit_code if plan.problems or not plan.shots else 0


def speed_text(clip: ClipPlan) -> str:
    """How fast a clip plays, "" for as shot."""
    if clip.speed == 1:
        return ""
    if clip.speed == 0:
        return "freeze"
    return f"{float(clip.speed) * 100:.6g} %"


def _print_table(plan: TimelinePlan, job: RenderJob) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _NARROW)
    table = Table(title=f"{escape(str(plan.document.path))}, {plan.document.title}, {_rate(plan)} frames/s")
    for name, justify in (("source", "left"), ("clips", "right"), ("shown in", "left"), ("retimed", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for name, justify in (("frames to render", "left"), ("count", "right"), ("result", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for shot in plan.shots:
        results = dict.fromkeys(outputs(shot, job.output, job.suffix).values())
        speeds = dict.fromkeys(text for clip in shot.clips if (text := speed_text(clip)))
        table.add_row(
            *map(escape, (shot.name, str(len(shot.clips)), _where(plan, shot.clips), ", ".join(speeds), shot.frames)),
            str(shot.count),
            escape(", ".join(results)),
        )
    console.print(table)
    console.print(f"{plan.clips} clips of {len(plan.shots)} sources, {plan.frames} frames to render")
    for text in plan.notes:
        console.print(f"[dim]{escape(text)}[/dim]", soft_wrap=True)
    for where, reason in plan.left:
        console.print(f"[dim]{escape(where)} stays as it is: {escape(reason)}[/dim]", soft_wrap=True)
    for where, reason in plan.problems:
        console.print(f"[red]{escape(where)}: {escape(reason)}[/red]", soft_wrap=True)


def _where(plan: TimelinePlan, clips: Sequence[ClipPlan]) -> str:
    """Timecode of the first few places."""
    shown = [_code(plan, clip) for clip in clips[:2]]
    return ", ".join(shown) + (f" and {len(clips) - 2} more" if len(clips) > 2 else "")


def _code(plan: TimelinePlan, clip: ClipPlan) -> str:
    return timecode_text(clip.record[0] / plan.rate + plan.starts, plan.rate, drop=plan.document.drop)


def _rate(plan: TimelinePlan) -> str:
    return str(plan.rate) if plan.rate.denominator == 1 else f"{float(plan.rate):.3f}"


def _print_lines(plan: TimelinePlan, job: RenderJob) -> None:
    for text in plan.notes:
        _print({"event": "note", "text": text})
    for shot in plan.shots:
        _print(
            {
                "event": "plan",
                "shot": shot.name,
                "plate": shot.media.plate,
                "frames": shot.frames,
                "count": shot.count,
                "outputs": list(dict.fromkeys(outputs(shot, job.output, job.suffix).values())),
                "clips": [_clip(plan, shot, clip) for clip in shot.clips],
            }
        )
    for event, pairs in (("left", plan.left), ("problem", plan.problems)):
        for where, reason in pairs:
            _print({"event": event, "clip": where, "text": reason})
    _print(
        {
            "event": "done",
            "state": "planned",
            "text": f"{plan.clips} clips of {len(plan.shots)} sources, {plan.frames} frames to render",
            "sources": len(plan.shots),
            "clips": plan.clips,
            "frames": plan.frames,
            "problems": len(plan.problems),
        }
    )


def _clip(plan: TimelinePlan, shot: ShotPlan, clip: ClipPlan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": clip.name,
        "track": clip.uses[0].track + 1,
        "record": ranges_text([clip.record]),
        "shown": ranges_text([clip.shown]),
        "frames": ranges_text([clip.needed]),
        "speed": float(clip.speed),
    }
    if clip.speed != 1:
        found["map"] = clip.frames(plan.rate, shot.media)
    return found


def _print(event: dict[str, Any]) -> None:
    print(json.dumps(event, ensure_ascii=False), flush=True)
