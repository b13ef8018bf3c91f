"""The faces of a plate: a fitting sidecar, or an analysis of the whole sequence."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import __version__
from ..colour.spaces import ColourConfig
from ..errors import InputError, OutputError, SidecarError
from ..faces.analyse import analyse_shot
from ..faces.choose import describe
from ..faces.detect import DetectSettings, detect_quick
from ..faces.edits import carry_edits
from ..faces.nets import FaceNets
from ..faces.shot import AnalyseSettings, ShotFaces, ShotSource
from ..faces.sidecar import frame_ranges, read_sidecar, sidecar_matches, sidecar_path, write_sidecar
from ..faces.view import LinearPlateView
from ..frame import Frame
from ..models.sessions import SessionPool
from ..plate import FrameSource, Plate, open_plate
from ..provenance.attributes import UsedModel
from .cancel import CancelToken
from .events import Emit, note, progress, warning
from .hashes import HashCache
from .spec import ApplyJob, Workbench

_AHEAD = 2
_EXPOSURES = (1.0, 4.0, 0.25, 16.0, 0.0625, 64.0)
"""Gains tried on the plate, the likeliest first: nets find faces that are lit as in a photograph."""
_EXPOSURE_FRAMES = 5
_CLEARLY_BETTER = 1.25


@dataclass(frozen=True, slots=True)
class AnalyseJob:
    """Find the faces of a plate.

    Attributes:
        plate: file, folder or pattern.
        frames: range text, None for all.
        output: sidecar to write, None for the one beside the plate.
        input_space: colour space of the plate, None to let the file say.
        max_gap: longest gap that is filled, None for the default.
        force: analyse even where the sidecar fits.
    """

    plate: str
    frames: str | None = None
    output: Path | None = None
    input_space: str | None = None
    max_gap: int | None = None
    force: bool = False


class _Unreadable(Exception):
    """A frame that turned out to be damaged while it was analysed."""

    def __init__(self, frame: int, error: InputError) -> None:
        super().__init__(str(error))
        self.frame = frame
        self.error = error


def plate_view(config: ColourConfig, frame: Frame, exposure: float = 1.0) -> LinearPlateView:
    """A frame as detectors see it."""
    matrix = config.to_rec709(frame.colour_space).matrix
    return LinearPlateView(
        frame.pixels,
        frame.data_window,
        pixel_aspect=frame.pixel_aspect,
        to_rec709=None if matrix is None else np.array(matrix.rows),
        exposure=exposure,
    )


def present(plate: Plate, number: int) -> FrameSource:
    """A frame that has a file, as it is read."""
    return FrameSource(number, plate.sequence.path(number), "present", number)


class _Ahead:
    """Opens views of the frames in order, reading the next ones while one is looked at."""

    def __init__(self, plate: Plate, frames: Sequence[int], exposure: float) -> None:
        self._plate = plate
        self._next = dict(itertools.pairwise(frames))
        self._exposure = exposure
        self._pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="read")
        self._pending: dict[int, Future[LinearPlateView]] = {}

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _open(self, number: int) -> LinearPlateView:
        return plate_view(self._plate.config, self._plate.read(present(self._plate, number)), self._exposure)

    def __call__(self, number: int) -> LinearPlateView:
        wanted, at = [number], number
        for _ in range(_AHEAD):
            if at not in self._next:
                break
            at = self._next[at]
            wanted.append(at)
        for frame in wanted:
            if frame not in self._pending:
                self._pending[frame] = self._pool.submit(self._open, frame)
        self._pending = {frame: self._pending[frame] for frame in wanted}
        try:
            return self._pending.pop(number).result()
        except InputError as error:
            raise _Unreadable(number, error) from error


def analysis_exposure(plate: Plate, frames: Sequence[int], nets: FaceNets) -> float:
    """The gain at which the detector sees the faces of a plate best; 1 unless another is clearly better.

    A plate may be exposed anywhere (log decoded to scene light, a night shot). Looked for in a few frames over the
    shot; frames that cannot be read do not count, they fail where they are processed.
    """
    picked = sorted({frames[round(at)] for at in np.linspace(0, len(frames) - 1, _EXPOSURE_FRAMES)})
    scores = dict.fromkeys(_EXPOSURES, 0.0)
    for number in picked:
        try:
            frame = plate.read(present(plate, number))
        except InputError:
            continue
        _look(plate.config, frame, nets, scores)
        if scores[1.0] > 0:
            break
    return _best(scores)


def _look(config: ColourConfig, frame: Frame, nets: FaceNets, scores: dict[float, float]) -> None:
    """Add what the detector sees of a frame at each gain."""
    for exposure in _EXPOSURES:
        found = detect_quick(plate_view(config, frame, exposure), nets.detector, DetectSettings())
        scores[exposure] += sum(detection.score for detection in found)


def _best(scores: dict[float, float]) -> float:
    best = max(_EXPOSURES, key=lambda exposure: scores[exposure])
    return best if scores[best] > _CLEARLY_BETTER * scores[1.0] else 1.0


def analyse_frame(config: ColourConfig, frame: Frame, pool: SessionPool, settings: AnalyseSettings) -> ShotFaces:
    """The faces of one frame that is in memory, without its neighbours: nothing is smoothed or filled.

    Args:
        config: OCIO configuration.
        frame: scene-linear; a frame without a number counts as 0.
        pool: of nets.
        settings: of the analysis.
    """
    nets = FaceNets.load(pool)
    scores = dict.fromkeys(_EXPOSURES, 0.0)
    _look(config, frame, nets, scores)
    view = plate_view(config, frame, _best(scores))
    return analyse_shot([frame.number or 0], lambda _: view, nets, settings)


def analyse_plate(
    plate: Plate, frames: Sequence[int], bench: Workbench, settings: AnalyseSettings, emit: Emit, cancel: CancelToken
) -> ShotFaces:
    """Analyse frames of a plate. A frame that cannot be read is left out with a warning, like a hole in the sequence.

    Raises:
        Cancelled: asked to stop; an analysis starts again from its beginning.
        InputError: no frame can be read.
    """
    if bench.hands is not None:
        return bench.hands.analyse(plate, frames, settings, emit, cancel)
    nets = FaceNets.load(bench.nets)
    exposure = analysis_exposure(plate, frames, nets)

    def stop_here() -> bool:
        with bench.turn():  # between two frames: whoever goes first does so now
            return cancel.is_cancelled

    if exposure != 1.0:
        emit(note(f"the plate is looked at {np.log2(exposure):+.0f} stops, where its faces are found best"))
    readable = list(frames)
    while True:
        try:
            with _Ahead(plate, readable, exposure) as view_of:
                return analyse_shot(
                    readable,
                    view_of,
                    nets,
                    settings,
                    progress=lambda done, total: emit(progress("analyse", done, total)),
                    cancel=stop_here,
                )
        except _Unreadable as damaged:
            emit(warning(f"frame {damaged.frame} is left out of the analysis: {damaged.error}"))
            readable.remove(damaged.frame)
            if not readable:
                raise damaged.error from damaged


def _with_source(shot: ShotFaces, plate: Plate, bench: Workbench, hashes: HashCache) -> ShotFaces:
    source = ShotSource(
        pattern=bench.shown(plate.sequence.pattern),
        hashes={frame: hashes.get(plate.sequence.path(frame)) for frame in shot.frames},
        display_window=plate.first.display_window,
        data_window=plate.first.data_window,
        pixel_aspect=plate.first.pixel_aspect,
        colour_space=plate.colour_space,
    )
    return dataclasses.replace(shot, source=source)


def _fits(
    shot: ShotFaces,
    plate: Plate,
    settings: AnalyseSettings,
    bench: Workbench,
    hashes: HashCache,
    frames: Sequence[int] | None = None,
) -> tuple[bool, str]:
    """Whether a sidecar can be used for `frames` of a plate, None for all of them, and why."""
    numbers = plate.sequence.frames if frames is None else frames
    wanted = {frame: hashes.get(plate.sequence.path(frame)) for frame in numbers}
    return sidecar_matches(shot, wanted, settings, FaceNets.load(bench.nets).hashes(), plate.colour_space)


def _given_sidecar(path: Path, asked: Sequence[int], plate: Plate, emit: Emit) -> ShotFaces:
    """The sidecar that the user named: used as it is, if it is of this raster and holds the frames asked for.

    Damaged frames are in no sidecar; they fail where they are processed.
    """
    shot = read_sidecar(path)
    lacking = [frame for frame in sorted(set(asked) - set(shot.frames)) if _is_readable(plate, frame)]
    if lacking:
        raise SidecarError(
            f"{path} does not cover the frames asked for",
            found=f"{len(lacking)} frames that were not analysed, first {lacking[0]}",
            hint="analyse the whole plate, or give --frames that the sidecar holds",
        )
    if shot.source is not None and shot.source.display_window != plate.first.display_window:
        raise SidecarError(
            f"{path} belongs to another plate",
            expected=f"raster {plate.first.display_window}",
            found=f"{shot.source.display_window}",
            hint="analyse this plate: faceplate analyse",
        )
    emit(note(f"faces: {path}, as given"))
    return shot


def _is_readable(plate: Plate, frame: int) -> bool:
    try:
        plate.read(present(plate, frame))
    except InputError:
        return False
    return True


def faces_for(
    job: ApplyJob, plate: Plate, bench: Workbench, folder: Path, hashes: HashCache, emit: Emit, cancel: CancelToken
) -> ShotFaces:
    """The faces for an apply job: the sidecar it names, a fitting one beside the plate or in the job folder, or anew.

    The whole sequence is analysed, whatever part the job covers, so that a part comes out as it does in the whole.

    Raises:
        SidecarError: the sidecar that the job names cannot be used.
        Cancelled: asked to stop.
    """
    if job.faces is not None:
        asked = [source.source for source in plate.sources(job.frames, job.missing) if source.path is not None]
        return _given_sidecar(job.faces, asked, plate, emit)
    own = folder / sidecar_path(plate.sequence.pattern).name
    old: ShotFaces | None = None
    for path in (sidecar_path(plate.sequence.pattern), own):
        if not path.is_file():
            continue
        try:
            shot = read_sidecar(path)
        except SidecarError as error:
            emit(warning(f"{path} is not used: {error}"))
            continue
        fits, reason = _fits(shot, plate, job.analyse, bench, hashes)
        if fits:
            emit(note(f"faces: {path}"))
            return shot
        emit(note(f"{path} is not used as it is: {reason}"))
        old = old or shot
    shot = analyse_plate(plate, plate.sequence.frames, bench, job.analyse, emit, cancel)
    shot = _with_source(shot, plate, bench, hashes)
    if old is not None:
        shot = carry_edits(shot, old)
    write_sidecar(own, shot, tool=f"Faceplate {__version__}")
    return shot


def run_analyse(job: AnalyseJob, bench: Workbench, emit: Emit, cancel: CancelToken) -> Path:
    """Analyse a plate and write its sidecar.

    Returns:
        The sidecar.

    Raises:
        InputError: the plate cannot be used.
        OutputError: the sidecar cannot be written.
        Cancelled: asked to stop.
    """
    plate = open_plate(job.plate, bench.config, job.input_space)
    frames = [source.number for source in plate.sources(job.frames, "skip") if source.path is not None]
    settings = AnalyseSettings() if job.max_gap is None else AnalyseSettings(max_gap=job.max_gap)
    path = job.output or sidecar_path(plate.sequence.pattern)
    if path.exists() and not path.name.endswith(".json"):
        raise OutputError(f"{path} is no sidecar", expected="a name that ends with .faces.json", hint="see -o")
    hashes = HashCache()
    if plate.sequence.holes:
        emit(warning(f"the plate has no file for {frame_ranges(plate.sequence.holes)}"))
    old = read_sidecar(path) if path.exists() else None
    shot: ShotFaces | None = None
    if old is not None and not job.force:
        fits, reason = _fits(old, plate, settings, bench, hashes, frames)
        emit(note(f"{path}: {reason}"))
        shot = old if fits else None
    if shot is None:
        shot = _with_source(analyse_plate(plate, frames, bench, settings, emit, cancel), plate, bench, hashes)
        if old is not None:
            shot = carry_edits(shot, old)
            emit(note("hand edits, labels and track numbers of the old sidecar are kept"))
        write_sidecar(path, shot, tool=f"Faceplate {__version__}")
    for text in summary(shot):
        emit(note(text))
    emit(
        {"event": "done", "text": f"faces in {path}", "state": "done", "sidecar": str(path), "tracks": len(shot.tracks)}
    )
    return path


def summary(shot: ShotFaces) -> list[str]:
    """What was found, a line a track, and what is worth a look."""
    lines = [describe(track) for track in shot.tracks]
    if shot.cuts:
        lines.append(f"cuts before {', '.join(map(str, shot.cuts))}")
    if shot.no_face:
        lines.append(f"no face in {len(shot.no_face)} of {len(shot.frames)} frames")
    for track, frames in shot.weak.items():
        lines.append(f"track {track}: look at {frame_ranges(frames)} (filled, unsure or turned far)")
    return lines


def used_models(pool: SessionPool) -> tuple[UsedModel, ...]:
    """The nets that analysis and swap run, for headers, ledger and report."""
    nets = FaceNets.load(pool)
    return tuple(
        UsedModel(net.card.id, net.card.sha256, net.card.licence, net.card.commercial is True)
        for net in (nets.detector, nets.mesh)
    )
