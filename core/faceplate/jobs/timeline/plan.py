"""From a timeline to what has to be rendered: each source once, whatever number of clips show it."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...media.formats import is_movie
from ...media.sequence import without_number
from ...media.timelines.files import Document, open_timeline
from ...media.timelines.folders import Run
from ...media.timelines.linking import Found, Linker, NotFound, Wanted, wanted
from ...media.timelines.media import Media, Origin, open_media, origin
from ...media.timelines.times import seconds, timecode_text
from ...media.timelines.uses import Use, find_uses, timeline_rate
from .spec import RenderJob

_UNSAFE = re.compile(r"[^\w.-]+")
_DIGITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class ClipPlan:
    """One clip that is rendered.

    Attributes:
        name: of the clip.
        item: the clip in the timeline.
        uses: where it is seen; two, one each way, when it plays backwards and nobody says from where.
        begins: media time of the plate's first frame, s.
        count: frames a second with which the plate's frames are counted.
        shown: first and last frame of the plate that are seen.
        needed: the same with handles, as far as the plate goes.
        record: first and last frame of the timeline, from 0.
    """

    name: str
    item: Any
    uses: tuple[Use, ...]
    begins: Fraction
    count: Fraction
    shown: Run
    needed: Run
    record: Run

    @property
    def speed(self) -> Fraction:
        """Media frames a frame."""
        return self.uses[0].speed

    def frames(self, rate: Fraction, media: Media) -> list[tuple[int, int]]:
        """(timeline frame, plate frame) one by one, of the first way; between two frames the earlier."""
        use, found = self.uses[0], []
        for tick in use.ticks(rate):
            number, _ = media.around(use.line.at(tick / rate) - self.begins, self.count)
            found.append((tick, min(max(number, media.numbers.first), media.numbers.last)))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ShotPlan:
    """One source with all its clips.

    Attributes:
        name: unique in the timeline, fit for a file name.
        media: the plate.
        clips: that show it.
        parts: first and last frame of each stretch to render, rising.
    """

    name: str
    media: Media
    clips: tuple[ClipPlan, ...]
    parts: tuple[Run, ...]

    @property
    def count(self) -> int:
        """Frames to render."""
        return sum(last - first + 1 for first, last in self.parts)

    @property
    def frames(self) -> str:
        """The parts as a range text."""
        return ranges_text(self.parts)

    def part_of(self, clip: ClipPlan) -> Run:
        """The part in which a clip lies."""
        return next(part for part in self.parts if part[0] <= clip.needed[0] and clip.needed[1] <= part[1])


@dataclass(frozen=True, slots=True, eq=False)
class TimelinePlan:
    """What rendering a timeline comes to.

    Attributes:
        document: the timeline.
        rate: its frames a second.
        shots: by name.
        problems: (clip, why) of clips that cannot be rendered.
        left: (clip, why) of clips that stay as they are: titles, clips left out on purpose.
        notes: what else is worth knowing.
    """

    document: Document
    rate: Fraction
    shots: tuple[ShotPlan, ...]
    problems: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def starts(self) -> Fraction:
        """Timecode of the timeline's first frame, s."""
        return starts_at(self.document.timeline)

    @property
    def frames(self) -> int:
        """Frames to render in all."""
        return sum(shot.count for shot in self.shots)

    @property
    def clips(self) -> int:
        """Clips that are rendered."""
        return sum(len(shot.clips) for shot in self.shots)


def starts_at(timeline: Any) -> Fraction:
    """Timecode of a timeline's first frame, s; 0 where it has none."""
    start = timeline.global_start_time
    return Fraction(0) if start is None or start.rate <= 0 else seconds(start)


def ranges_text(parts: Iterable[Run]) -> str:
    """Stretches of frames as a range text."""
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in parts)


def merge(ranges: Iterable[Run]) -> tuple[Run, ...]:
    """Ranges that overlap or touch as one, rising."""
    found: list[Run] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


@dataclass(slots=True)
class _Draft:
    """A source while its clips are gathered."""

    media: Media
    clips: list[ClipPlan] = field(default_factory=list)


def plan_timeline(document: Document, job: RenderJob) -> TimelinePlan:
    """Plan a timeline; media are looked for and asked for their length, no picture is read.

    Raises:
        InputError: `job.only` or `job.skip` name no clip.
    """
    return _Planner(document, job).plan()


def open_and_plan(job: RenderJob, unpack: Path) -> tuple[Document, TimelinePlan]:
    """The timeline of a job and its plan; media inside an `.otioz` are unpacked below `unpack` where they are not yet.

    Raises:
        InputError: the timeline cannot be read, or names in the job are none of its.
    """
    document = open_timeline(job.timeline, job.rate, job.name, unpack)
    return document, plan_timeline(document, job)


class _Planner:
    def __init__(self, document: Document, job: RenderJob) -> None:
        self.document, self.job = document, job
        self.rate = timeline_rate(document.timeline)
        self.linker = Linker(document.base, job.roots, job.relink, job.output)
        self.drafts: dict[str, _Draft] = {}
        self.problems: list[tuple[str, str]] = []
        self.left: list[tuple[str, str]] = []
        self.notes = Counter[str](document.notes)
        self._found: dict[Wanted, Found | NotFound] = {}
        self._media: dict[str, Media | InputError] = {}
        self._named: set[str] = set()

    def plan(self) -> TimelinePlan:
        by_clip: dict[int, list[Use]] = {}
        for use in find_uses(self.document.timeline):
            by_clip.setdefault(id(use.clip), []).append(use)
        for uses in by_clip.values():
            self._clip(uses)
        self._check_names()
        shots = tuple(self._shots())
        return TimelinePlan(
            self.document,
            self.rate,
            shots,
            tuple(self.problems),
            tuple(self.left),
            tuple(text if count == 1 else f"{text} ({count} times)" for text, count in self.notes.items()),
        )

    def where(self, use: Use) -> str:
        """A clip as its editor finds it: name, track, timecode."""
        begins = starts_at(self.document.timeline) + use.line.start
        name = use.clip.name or "a clip without a name"
        return f"{name} (V{use.track + 1} at {timecode_text(begins, self.rate, drop=self.document.drop)})"

    def _clip(self, uses: list[Use]) -> None:
        use, here = uses[0], self.where(uses[0])
        target = wanted(use.clip.media_reference, _names(use.clip))
        if target is None:
            self.left.append((here, "no media: a title or generator"))
            return
        if not self._is_wanted(use.clip.name, target):
            return
        if use.problem:
            self.problems.append((here, f"{use.problem}; it cannot be told which frames are shown"))
            return
        found = self._find(target)
        if isinstance(found, NotFound):
            self._offline(here, f"media not found: {found.wanted}: {found.reason}")
            return
        media = self._open(found)
        if isinstance(media, InputError):
            self._offline(here, str(media))
            return
        begins = origin(use.clip.media_reference, use.shown, use.rate, found, media)
        if isinstance(begins, str):
            self.problems.append((here, begins))
            return
        self._take(here, uses, media, begins)

    def _offline(self, here: str, reason: str) -> None:
        (self.left if self.job.offline == "skip" else self.problems).append((here, reason))

    def _is_wanted(self, name: str, target: Wanted) -> bool:
        known = {text.lower() for text in (name, os.path.basename(target.path)) if text}
        known |= {os.path.splitext(without_number(text))[0].rstrip("._- ") for text in known}

        def fits(patterns: Sequence[str]) -> bool:
            hit = [each for each in patterns if any(fnmatchcase(text, each.lower()) for text in known)]
            self._named.update(hit)
            return bool(hit)

        skipped = fits(self.job.skip)
        if skipped or (self.job.only and not fits(self.job.only)):
            self.left.append((name or "a clip without a name", "left out on purpose"))
            return False
        return True

    def _check_names(self) -> None:
        unknown = [each for each in (*self.job.only, *self.job.skip) if each not in self._named]
        if unknown:
            raise InputError(
                f"no clip of the timeline is called {unknown[0]!r}",
                hint="names as in the timeline or of the media; * stands for any letters. See them with --dry-run",
            )

    def _find(self, target: Wanted) -> Found | NotFound:
        if target not in self._found:
            self._found[target] = self.linker.find(target)
        return self._found[target]

    def _open(self, found: Found) -> Media | InputError:
        if found.plate not in self._media:
            try:
                self._media[found.plate] = open_media(found)
            except InputError as error:
                self._media[found.plate] = error
        return self._media[found.plate]

    def _take(self, here: str, uses: list[Use], media: Media, begins: Origin) -> None:
        use, numbers = uses[0], media.numbers
        count = media.counts_at(use.rate)
        inside: list[Run] = []
        for each in uses:
            ticks = each.ticks(self.rate)
            if not ticks:
                continue
            ends = [each.line.at(tick / self.rate) - begins.time for tick in (ticks[0], ticks[-1])]
            beside = [number for end in ends for number in media.around(end, count)]
            inside.append((min(beside), max(beside)))
        if not inside:
            self.left.append((here, "shorter than a frame of the timeline"))
            return
        if use.either_way:
            # What runs out of the media is not how it plays.
            inside = [run for run in inside if numbers.first <= run[0] and run[1] <= numbers.last] or inside
        first, last = min(run[0] for run in inside), max(run[1] for run in inside)
        if last < numbers.first or first > numbers.last:
            self.problems.append(
                (here, f"frames {first}-{last} lie outside {media.plate}, which has {numbers.first}-{numbers.last}")
            )
            return
        if first < numbers.first or last > numbers.last:
            over = max(numbers.first - first, 0) + max(last - numbers.last, 0)
            self.notes[f"{here} needs {over} frames more than {os.path.basename(media.plate)} has"] += 1
            first, last = max(first, numbers.first), min(last, numbers.last)
        needed = max(first - self.job.handles, numbers.first), min(last + self.job.handles, numbers.last)
        if begins.note:
            self.notes[f"{os.path.basename(media.plate)}: {begins.note}"] += 1
        if use.either_way:
            self.notes[f"{here} plays backwards, and the timeline does not say from which end: both are covered"] += 1
        ticks = use.ticks(self.rate)
        record = (ticks[0], ticks[-1]) if ticks else (0, 0)
        plan = ClipPlan(use.clip.name, use.clip, tuple(uses), begins.time, count, (first, last), needed, record)
        self.drafts.setdefault(media.key, _Draft(media)).clips.append(plan)

    def _shots(self) -> list[ShotPlan]:
        names = _unique({key: draft.media for key, draft in self.drafts.items()})
        shots = []
        for key, draft in self.drafts.items():
            parts = merge(clip.needed for clip in draft.clips)
            holes = [hole for first, last in parts for hole in draft.media.numbers.missing(first, last)]
            if holes and self.job.words.missing == "error":
                self.problems.append((names[key], f"{draft.media.plate} has no file for frames {ranges_text(holes)}"))
            shots.append(ShotPlan(names[key], draft.media, tuple(draft.clips), parts))
        return sorted(shots, key=lambda shot: shot.name)


def _names(clip: Any) -> tuple[str, ...]:
    """What a clip's media may be called."""
    reel = clip.metadata.get("cmx_3600", {}).get("reel", "")
    return tuple(dict.fromkeys(name for name in (clip.name, reel) if name))


def shot_name(plate: str) -> str:
    """A plate's name without folder, number and extension, fit for a file name."""
    name = os.path.basename(plate)
    stem = os.path.splitext(name)[0] if is_movie(name) else without_number(os.path.splitext(name)[0])
    return _UNSAFE.sub("_", stem).strip("._- ") or "shot"


def _unique(media: dict[str, Media]) -> dict[str, str]:
    """A name for each source by its key; sources of one name get their folder's, or a mark of their path, in front."""
    found = {key: shot_name(each.plate) for key, each in media.items()}
    for longer in (_with_folder, _with_mark):
        taken = Counter(name.lower() for name in found.values())
        for key, name in found.items():
            if taken[name.lower()] > 1:
                found[key] = longer(shot_name(media[key].plate), media[key])
    return found


def _with_folder(name: str, media: Media) -> str:
    return _UNSAFE.sub("_", f"{Path(media.plate).parent.name}_{name}").strip("._- ")


def _with_mark(name: str, media: Media) -> str:
    return f"{name}_{hashlib.sha256(media.key.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def outputs(shot: ShotPlan, folder: Path, suffix: str) -> dict[Run, str]:
    """What is written of a shot: of pictures one pattern for all parts, of movies a file a part."""
    if suffix == ".exr":
        digits = max(_DIGITS, len(str(shot.media.numbers.last)))
        pattern = str(folder / shot.name / f"{shot.name}.{'#' * digits}.exr")
        return dict.fromkeys(shot.parts, pattern)
    if len(shot.parts) == 1:
        return {shot.parts[0]: str(folder / f"{shot.name}{suffix}")}
    return {part: str(folder / f"{shot.name}_{part[0]}-{part[1]}{suffix}") for part in shot.parts}
