"""What a job is, before it runs: the values that the command line, a farm task or a host fills in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..colour.spaces import ColourConfig
from ..errors import SettingError
from ..face import Identity
from ..faces.shot import AnalyseSettings, ShotFaces
from ..job import Assignment, FailedPolicy, HoldOut, KeyedSettings, MissingPolicy
from ..media.movies.tags import CodesAre
from ..media.sequence import without_number
from ..models.sessions import SessionPool

if TYPE_CHECKING:
    from ..plate import FrameSource, Plate
    from .cancel import CancelToken
    from .events import Emit
    from .frames import FrameWork
    from .manifest import FrameRecord
    from .plan import PlannedFace

MESH = "mesh"
"""The engine that ships."""

_ENGINE = re.compile(r"[A-Za-z0-9_.-]+(\+[A-Za-z0-9_.-]+)*", re.ASCII)


class Hands(Protocol):
    """Does frames and analyses in other processes."""

    def frame(self, work: FrameWork, source: FrameSource) -> FrameRecord:
        """As `FrameWork.run`, from several threads."""
        ...

    def analyse(
        self, plate: Plate, frames: Sequence[int], settings: AnalyseSettings, emit: Emit, cancel: CancelToken
    ) -> ShotFaces:
        """As `analyse.analyse_plate`."""
        ...

    def look(self, plate: Plate, planned: PlannedFace, frames: Sequence[int]) -> list[Any]:
        """As `plan.looks`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Workbench:
    """What jobs run on, made once a process.

    Attributes:
        config: OCIO configuration.
        nets: warm nets and the device.
        threads: frames worked on at once.
        turn: held for each frame that is worked on; a server makes a job wait here while others go first.
        shown: how a path is written into ledger, report and sidecar, where the job's files lie elsewhere than for
            its user (a team server works on copies).
        user: who the ledger says it was; None for the user of this process.
        hands: does frames and analyses elsewhere; None for this process.
    """

    config: ColourConfig
    nets: SessionPool
    threads: int
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    shown: Callable[[str], str] = str
    user: str | None = None
    hands: Hands | None = None


@dataclass(frozen=True, slots=True)
class MovieOutput:
    """How a movie is written, where the output is one.

    Attributes:
        codec: a name of `media.movies.codecs.CODECS`, None for the plate's kind.
        alpha: of an element: "straight", or "premultiplied" in code values, as editors mean it.
        rate: frames a second, None for the plate's own times. A movie plate is conformed: it keeps its length, and
            frames are repeated or left out; a plate of pictures is played at that rate.
        space: colour space of the movie, for a plate of pictures; None for BT.709.
        failed: what the movie is where a frame failed: "none", or "plate": the plate's own frame stands in, and where
            that cannot be read the frame before.
        deferred: whether the frames alone are made, and the movie is left to a later run of the same job.
    """

    codec: str | None = None
    alpha: Literal["straight", "premultiplied"] = "straight"
    rate: Fraction | None = None
    space: str | None = None
    failed: FailedPolicy = "none"
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class ApplyJob:
    """Put identities on the faces of a plate.

    Attributes:
        plate: file, folder or sequence pattern.
        output: file or pattern to write.
        assignments: who becomes whom.
        frames: range text, None for all.
        engine: as `jobs.engines` reads it.
        input_space: colour space of the plate, None to let the file say.
        input_matrix: of a movie's code values (`media.movies.planes.Matrix`), None to let the file say.
        input_range: likewise, "limited" or "full".
        faces: sidecar to use; None for the one beside the plate or the job's own.
        holdout: matte of what must stay the plate.
        layers: as `deliver.parse_layers` gives them.
        settings: keyed by frame.
        missing: what a hole in the sequence means.
        commercial: refuse weights whose licence forbids paid work.
        project: name to check consent against.
        analyse: how faces are found, where that has to be done.
        movie: how a movie is written.
    """

    plate: str
    output: str
    assignments: tuple[Assignment, ...]
    frames: str | None = None
    engine: str = MESH
    input_space: str | None = None
    input_matrix: str | None = None
    input_range: str | None = None
    faces: Path | None = None
    holdout: HoldOut | None = None
    layers: tuple[str, ...] = ()
    settings: KeyedSettings = field(default_factory=KeyedSettings)
    missing: MissingPolicy = "error"
    commercial: bool = False
    project: str | None = None
    analyse: AnalyseSettings = field(default_factory=AnalyseSettings)
    movie: MovieOutput = field(default_factory=MovieOutput)

    def __post_init__(self) -> None:
        if not _ENGINE.fullmatch(self.engine):
            raise SettingError(
                f"no engine is called {self.engine!r}",
                expected=f"{MESH}, or ids of models joined by +",
                hint="faceplate models list names the models",
            )
        if not self.assignments:
            raise SettingError("no identity was given", hint="add --identity FILE.fpid, or FILE.fpid@TRACK")

    @property
    def codes(self) -> CodesAre:
        """What the job says about a movie's code values.

        Raises:
            SettingError: no such matrix or range.
        """
        return CodesAre(self.input_matrix, self.input_range)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended.

    Attributes:
        state: "done" or "cancelled".
        counts: frames by state, and "kept" for those that an earlier run had finished.
        failed: failed frames with their errors.
        folder: the job folder: manifest, report, ledger, sidecar.
    """

    state: Literal["done", "cancelled"]
    counts: Mapping[str, int]
    failed: Mapping[int, Mapping[str, Any]]
    folder: Path

    @property
    def exit_code(self) -> int:
        """0 done, 1 frames failed, 130 cancelled."""
        if self.state == "cancelled":
            return 130
        return 1 if self.failed else 0


def digest(document: Any) -> str:
    """Hex digest of JSON values, the same whatever the order of their keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def job_id(job: ApplyJob, identities: Mapping[Path, Identity]) -> str:
    """Short id of what the job makes. Frames, settings and where files lie do not count: a retry of one frame, a finer
    setting, or the same job on another machine, is the same job, and frames that come out the same stay as they are.
    """
    return digest(
        {
            "plate": Path(job.plate).name,
            "assignments": [_who(one, identities) for one in job.assignments],
            "engine": job.engine,
            "input_space": job.input_space,
            "holdout": [Path(job.holdout.pattern).name, job.holdout.layer] if job.holdout else None,
            "layers": job.layers,
            "project": job.project,
        }
    )[:16]


def _who(one: Assignment, identities: Mapping[Path, Identity]) -> list[Any]:
    found = [identities[one.identity].content_hash, one.track]
    return found if one.like is None else [*found, identities[one.like].content_hash]


def job_folder(output: str) -> Path:
    """The folder beside the output for manifest, report, ledger and sidecar: `shot.v2.####.exr` -> `shot.v2.faceplate`.

    Only frame number and extension are left out, so that two versions of a shot do not share a folder.
    """
    path = Path(output)
    stem = without_number(path.stem if path.suffix else path.name).strip("._- ") or "output"
    return path.parent / f"{stem}.faceplate"
