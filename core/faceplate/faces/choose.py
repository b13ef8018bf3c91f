"""Which track becomes which identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import SettingError
from ..face import Track
from ..job import Assignment


def resolve_assignments(
    tracks: Sequence[Track], assignments: Sequence[Assignment], recognised: Mapping[int, int] | None = None
) -> dict[int, int]:
    """The index in `assignments` of each track that is to be replaced, by track id.

    A track that an assignment names goes first, then those that "auto" recognised; "main" then takes, from what is
    left, the tracks that fill most of the shot and do not overlap in time with one it took already (so after a cut the
    main face of what follows); "all" takes what nobody else has.

    Args:
        tracks: of the shot.
        assignments: of the job.
        recognised: index of an "auto" assignment by track id (`jobs.recognise`), None where nobody looked.

    Raises:
        SettingError: a named track does not exist, two assignments claim the same track or the same rule, or "auto"
            is asked for where nobody can look at the whole shot.
    """
    chosen: dict[int, int] = {}
    _check_rules(assignments)
    by_id = {track.id: track for track in tracks}
    for index, assignment in enumerate(assignments):
        if isinstance(assignment.track, str):
            continue
        if assignment.track not in by_id:
            raise SettingError(
                f"there is no track {assignment.track}", expected=_list(tracks), hint="name one of these, main or all"
            )
        if assignment.track in chosen:
            first = assignments[chosen[assignment.track]]
            raise SettingError(
                f"track {assignment.track} is given to two identities",
                expected="one identity a track",
                found=f"{first.identity} and {assignment.identity}",
            )
        chosen[assignment.track] = index
    if recognised is None and any(assignment.track == "auto" for assignment in assignments):
        raise SettingError(
            '"auto" looks at the whole shot, and here is one frame of it',
            expected="a track number, main or all",
            hint="render the shot as a job, or name the track",
        )
    there = {track.id for track in tracks}
    chosen |= {track: index for track, index in (recognised or {}).items() if track in there and track not in chosen}
    for rule in ("main", "all"):
        for index, assignment in enumerate(assignments):
            if assignment.track == rule:
                free = [track for track in tracks if track.id not in chosen]
                chosen.update(dict.fromkeys(_main(free) if rule == "main" else [track.id for track in free], index))
    return dict(sorted(chosen.items()))


def _check_rules(assignments: Sequence[Assignment]) -> None:
    for rule in ("main", "all"):
        claims = [str(assignment.identity) for assignment in assignments if assignment.track == rule]
        if len(claims) > 1:
            raise SettingError(
                f'"{rule}" is given to two identities',
                expected="one identity",
                found=" and ".join(claims),
                hint="name the tracks by number; `faceplate analyse` lists them",
            )


def _main(tracks: Sequence[Track]) -> list[int]:
    taken: list[Track] = []
    for track in sorted(tracks, key=lambda track: (-track.weight, track.id)):
        frames = track.observations.keys()
        if not any(frames & other.observations.keys() for other in taken):
            taken.append(track)
    return [track.id for track in taken]


def _list(tracks: Sequence[Track]) -> str:
    if not tracks:
        return "a track, but no face was found"
    return "; ".join(describe(track) for track in tracks)


def describe(track: Track) -> str:
    """One track in a few words: number, label, frames, mean width."""
    name = f"track {track.id}" + (f" ({track.label})" if track.label else "")
    width = track.weight / len(track.observations)
    return f"{name}: frames {track.first}-{track.last}, {width:.0f} px wide"
