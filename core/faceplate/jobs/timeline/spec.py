"""What rendering a timeline means, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from ...errors import SettingError
from ...media.formats import MOVIES
from ..words import ApplyWords

RULES = ("main", "all", "auto")
"""Words in the place of a person's name."""


@dataclass(frozen=True, slots=True)
class GivenIdentity:
    """An identity from the command line.

    Attributes:
        path: of the .fpid file.
        person: whom it replaces: a name of the people file; or a rule, "main" for the main face of each source,
            "all" for every face, "auto" for those that a recogniser says are one person.
        like: of "auto", the .fpid of the person who is in the plates; None for the identity itself.
    """

    path: Path
    person: str = "main"
    like: Path | None = None

    @property
    def who(self) -> Path:
        """Of "auto", whose face is looked for."""
        return self.like or self.path


@dataclass(frozen=True, slots=True)
class RenderJob:
    """Render what a timeline shows, and place the results.

    Attributes:
        timeline: file.
        output: folder.
        words: of the jobs, all that is the same for each; plate, output, identities, frames and faces are put in.
        identities: given ones; those of the people file come on top.
        handles: frames more at each end of a clip.
        only: patterns of clip or source names; () for all.
        skip: patterns of names that are left out.
        element: the face alone, on a track of its own above.
        suffix: of the results: ".exr" or a movie's.
        roots: folders below which media are looked for.
        relink: (beginning of a path, what takes its place).
        rate: frames a second of an EDL.
        name: of the timeline, in a file with several.
        offline: what media that are not there mean: "error", or "skip" to leave their clips as they are.
    """

    timeline: Path
    output: Path
    words: ApplyWords
    identities: tuple[GivenIdentity, ...] = ()
    handles: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    element: bool = False
    suffix: str = ".exr"
    roots: tuple[Path, ...] = ()
    relink: tuple[tuple[str, str], ...] = ()
    rate: Fraction | None = None
    name: str | None = None
    offline: Literal["error", "skip"] = "error"

    def __post_init__(self) -> None:
        if not 0 <= self.handles <= 10_000:
            raise SettingError("handles are out of range", expected="0..10000 frames", found=str(self.handles))
        if self.suffix != ".exr" and self.suffix not in MOVIES:
            raise SettingError(
                f"a timeline is not rendered as {self.suffix}", expected=f".exr, {', '.join(sorted(MOVIES))}"
            )
        for rule in ("main", "all"):  # several may be "auto"
            claims = [str(each.path) for each in self.identities if each.person == rule]
            if len(claims) > 1:
                raise SettingError(
                    f'"{rule}" is given to two identities',
                    found=" and ".join(claims),
                    hint="name the person: FILE.fpid@PERSON, or assign the tracks in the people file",
                )


@dataclass(frozen=True, slots=True)
class RenderOutcome:
    """How it ended.

    Attributes:
        state: "done", "cancelled", or "faces" where only the faces were looked for.
        shots: number of shots by state: "done", "kept", "unassigned", "failed".
        failed: by shot, why, as an error's dictionary.
        timelines: files that were written.
    """

    state: Literal["done", "cancelled", "faces"]
    shots: Mapping[str, int]
    failed: Mapping[str, Mapping[str, Any]]
    timelines: tuple[Path, ...]

    @property
    def exit_code(self) -> int:
        """0 done, 1 shots or frames failed, 130 cancelled."""
        if self.state == "cancelled":
            return 130
        return 1 if self.failed else 0
