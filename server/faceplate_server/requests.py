"""From the wire's requests to the engine's jobs: the same values that the command line makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from faceplate.deliver import parse_layers
from faceplate.errors import SettingError
from faceplate.faces.shot import AnalyseSettings
from faceplate.job import Assignment, HoldOut, KeyedSettings, MissingPolicy
from faceplate.jobs.analyse import AnalyseJob
from faceplate.jobs.spec import ApplyJob, MovieOutput
from faceplate.jobs.words import parse_failed, parse_movie
from faceplate.media.sequence import is_pattern, output_path
from faceplate_client import wire

from .errors import Refused
from .roots import Roots

_ANALYSE = ("search_every", "max_gap", "min_length", "smoothing")


def apply_job(message: wire.SubmitRange, roots: Roots) -> ApplyJob:
    """The job that `faceplate apply` would run.

    Raises:
        Refused: a path outside the roots.
        InputError: values that make no job.
    """
    for path in (message.plate, message.output):
        roots.check(path)
    return ApplyJob(
        plate=message.plate,
        output=message.output,
        assignments=assignments(message.assignments, roots),
        frames=message.frames,
        engine=message.engine,
        input_space=message.input_space,
        faces=None if message.faces is None else roots.check(message.faces),
        holdout=_file_holdout(message.holdout, roots),
        layers=parse_layers(",".join(message.layers) or None),
        settings=settings(message.settings),
        missing=cast("MissingPolicy", message.missing),
        commercial=message.commercial,
        project=message.project,
        analyse=analyse_settings(message.analyse),
        movie=_movie(message.movie or wire.MovieForm()),
        **_codes(message.movie or wire.MovieForm()),
    )


def _movie(form: wire.MovieForm) -> MovieOutput:
    made = parse_movie(form.codec, form.alpha, form.rate, form.colour_space)
    return dataclasses.replace(made, failed=parse_failed(form.failed), deferred=form.deferred)


def _codes(form: wire.MovieForm) -> dict[str, str | None]:
    return {"input_matrix": form.matrix, "input_range": form.range}


def analyse_job(message: wire.SubmitAnalyse, roots: Roots) -> AnalyseJob:
    """The job that `faceplate analyse` would run.

    Raises:
        Refused: a path outside the roots.
        SettingError: an analysis setting that this job does not have.
    """
    roots.check(message.plate)
    given = dict(message.analyse)
    max_gap = given.pop("max_gap", None)
    force = given.pop("force", False)
    if given or type(force) is not bool or not (max_gap is None or type(max_gap) is int):
        raise SettingError("analysis settings that cannot be used", expected="max_gap, force", found=str(given))
    sidecar = None if message.sidecar is None else roots.check(message.sidecar)
    return AnalyseJob(message.plate, message.frames, sidecar, message.input_space, max_gap, force)


def assignments(given: tuple[wire.Assignment, ...], roots: Roots) -> tuple[Assignment, ...]:
    """Who becomes whom, the identities' paths checked."""
    return tuple(Assignment(roots.check(one.identity), cast("Any", one.track)) for one in given)


def settings(given: Mapping[str, tuple[tuple[int, float], ...]]) -> KeyedSettings:
    """Keyed settings, names and ranges checked."""
    return KeyedSettings.from_json({name: [[frame, value] for frame, value in keys] for name, keys in given.items()})


def analyse_settings(given: Mapping[str, Any]) -> AnalyseSettings:
    """Settings of the analysis by name; those not named have their default.

    Raises:
        SettingError: an unknown name, not a number, out of range.
    """
    for name, value in given.items():
        if name not in _ANALYSE or type(value) not in (int, float) or (name != "smoothing" and type(value) is not int):
            raise SettingError(
                f"analysis setting {name} cannot be used",
                expected=f"a number for {', '.join(_ANALYSE)}",
                found=str(value),
            )
    return dataclasses.replace(AnalyseSettings(), **given)


def _file_holdout(given: wire.HoldOut | None, roots: Roots) -> HoldOut | None:
    if given is None:
        return None
    if not isinstance(given.matte, wire.FileRef):
        raise Refused("input", "the hold-out of a range has to be files", hint="send its pattern")
    roots.check(given.matte.pattern)
    return HoldOut(given.matte.pattern, given.layer)


def file_path(reference: wire.FileRef, roots: Roots) -> Path:
    """The file that a reference names, inside the roots."""
    roots.check(reference.pattern)
    if reference.frame is None or not is_pattern(reference.pattern):
        return Path(reference.pattern)
    return roots.check(output_path(reference.pattern, reference.frame))
