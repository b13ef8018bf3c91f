"""What is to be done of one clip, and the record that a job of it begins with."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from .frame_maths import Span
from .host import Clip, HostAbout, PlaceMode, Project
from .job_record import JobRecord, Recipe
from .result_folder import VersionFolder, faces_file


@dataclass(frozen=True)
class Plan:
    """What is to be done of a clip.

    Attributes:
        clip: as it is now.
        about: the host.
        project: the document.
        root: result root.
        files: of this version.
        timeline: stretch that is asked for, inside the clip's.
        recipe: what is to be made.
        mode: how the result will be placed.
        number: of the clip, from 1.
        of: clips in all.
        bakes: folder for renders of the host that are removed afterwards; None keeps them beside the result.
    """

    clip: Clip
    about: HostAbout
    project: Project
    root: Path
    files: VersionFolder
    timeline: Span
    recipe: Recipe
    mode: PlaceMode
    number: int = 1
    of: int = 1
    bakes: Path | None = None

    @property
    def bake_pattern(self) -> str:
        """Of what the host renders."""
        own = Path(self.files.bake_pattern)
        return str(own if self.bakes is None else self.bakes / own.name)

    @property
    def must_bake(self) -> bool:
        """Whether the host renders the clip before the server reads it."""
        return self.clip.needs_bake or self.recipe.bake

    @property
    def why_bake(self) -> str:
        """In words; "" where it does not."""
        if not self.must_bake:
            return ""
        return self.clip.processed or ("asked for" if self.clip.source else "no file that the server could read")

    @property
    def visible(self) -> Span:
        """File numbers that are to be seen: of the source, or of the timeline where the clip is baked."""
        if self.must_bake:
            return self.timeline
        times = self.clip.times
        return Span(times.to_source(self.timeline.first), times.to_source(self.timeline.last))

    @property
    def frames(self) -> Span:
        """File numbers that are made: with handles, as far as the source has them."""
        if self.must_bake or self.clip.media is None:
            return self.visible
        return self.visible.widened(self.recipe.handles, self.clip.media)

    @property
    def whole(self) -> Span:
        """File numbers that are analysed: those of the whole clip, so that a part comes out as it does in the whole."""
        if self.must_bake or self.clip.media is None:
            return self.frames
        return self.clip.used.widened(self.recipe.handles, self.clip.media)


def first_record(plan: Plan) -> JobRecord:
    """The record of a new job; not written yet."""
    clip, visible = plan.clip, plan.visible
    return JobRecord(
        path=plan.files.record,
        id="fp-" + secrets.token_hex(6),
        host=plan.about.name,
        project_id=plan.project.id,
        project=plan.project.name,
        clip_id=clip.id,
        clip=clip.name,
        view=clip.view,
        source=plan.bake_pattern if plan.must_bake else clip.source,
        baked=plan.why_bake,
        frames=plan.frames,
        used=visible,
        start=plan.timeline.first,
        size=clip.size,
        pixel_aspect=clip.pixel_aspect,
        fps=clip.fps,
        pattern=plan.files.pattern,
        sidecar=str(faces_file(plan.root, plan.project.name, clip, baked=plan.must_bake)),
        colour_in=_input_space(plan),
        mode=plan.mode,
        recipe=plan.recipe,
        whole=plan.timeline == clip.timeline,
    )


def next_record(plan: Plan, old: JobRecord) -> JobRecord:
    """The record of a job that is done again, or whose frames grow: same id and files.

    What was done is still known where it was done in the same way.
    """
    fresh = first_record(plan)
    same_source = fresh.source == old.source
    kept = old.states if same_source and fresh.recipe == old.recipe else {}
    return replace(
        fresh,
        id=old.id,
        states={frame: state for frame, state in kept.items() if frame in fresh.frames},
        errors={frame: text for frame, text in old.errors.items() if frame in kept},
        placed=old.placed,
        size=fresh.size if fresh.size != (0, 0) else old.size,
        sidecar=old.sidecar if same_source else fresh.sidecar,
        colour_space=old.colour_space,
        interop_id=old.interop_id,
    )


def _input_space(plan: Plan) -> str | None:
    """Colour space of what the server reads: a bake is in the working space, whatever the source is in."""
    if plan.must_bake:
        return plan.project.working_space
    return plan.clip.colour_space if plan.recipe.input_space is None else plan.recipe.input_space
