"""The timeline again, with results in place of its media; ranges, effects and notes of the editor stay as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..sequence import output_path, split_pattern
from .folders import Run
from .times import exact_rate

ORIGINAL = "original"
"""Key of the editor's own media reference beside the new one."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was rendered of a clip's source.

    Attributes:
        path: movie, or pattern of pictures with "#".
        frames: first and last frame number of the plate in it.
        first: number of the plate's first frame.
        begins: media time of that first frame, s.
        count: frames a second with which the plate's frames are counted.
        facts: what the timeline's metadata say about it.
    """

    path: Path
    frames: Run
    first: int
    begins: Fraction
    count: Fraction
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start(self) -> Fraction:
        """Media time of its first frame, s: the time of the plate, so that the clips' ranges hold."""
        return self.begins + (self.frames[0] - self.first) / self.count

    @property
    def length(self) -> int:
        """Frames in it."""
        return self.frames[1] - self.frames[0] + 1

    def picture(self, number: int) -> Path:
        """The file of a frame, where the result is pictures."""
        return output_path(str(self.path), number)

    @property
    def is_movie(self) -> bool:
        """False for pictures."""
        return "#" not in self.path.name


def file_url(path: Path) -> str:
    """The URL of an absolute path."""
    return Path(path).absolute().as_uri()


def reference_to(result: Result, clip: Any) -> Any:
    """A media reference to a result, counted as the clip counts."""
    import opentimelineio as otio

    spelled = clip.trimmed_range().start_time.rate
    rate = spelled if exact_rate(spelled) == result.count else float(result.count)
    start = float(result.start * exact_rate(rate))
    available = otio.opentime.TimeRange(
        otio.opentime.RationalTime(start, rate), otio.opentime.RationalTime(result.length, rate)
    )
    before = clip.media_reference
    metadata = dict(before.metadata) if before is not None else {}
    metadata["faceplate"] = dict(result.facts)
    if result.is_movie:
        made = otio.schema.ExternalReference(file_url(result.path), available, metadata=metadata)
    else:
        prefix, width, suffix = split_pattern(result.path.name)
        made = otio.schema.ImageSequenceReference(
            file_url(result.path.parent) + "/",
            prefix,
            suffix,
            result.frames[0],
            1,
            rate,
            width,
            otio.schema.ImageSequenceReference.MissingFramePolicy.error,
            available,
            metadata=metadata,
        )
    made.name = result.path.name
    return made


def replace_media(results: Sequence[tuple[Any, Result]]) -> None:
    """Let clips of a timeline play results; the editor's reference stays beside the new one, under `ORIGINAL`."""
    for clip, result in results:
        key, references = clip.active_media_reference_key, dict(clip.media_references())
        made = reference_to(result, clip)
        references[ORIGINAL] = clip.media_reference
        clip.media_reference = _nothing()
        references[key] = made
        clip.set_media_references(references, key)


def _nothing() -> Any:
    import opentimelineio as otio

    return otio.schema.MissingReference()


def add_elements(timeline: Any, results: Sequence[tuple[Any, Result]]) -> list[str]:
    """Put results on tracks of their own, each right above the track whose clips it belongs to.

    Returns:
        Clips inside nests, which stay as they are, in words.
    """
    import opentimelineio as otio

    by_clip = {id(clip): result for clip, result in results}
    placed: set[int] = set()
    for track in list(timeline.tracks):
        if not isinstance(track, otio.schema.Track) or not any(id(child) in by_clip for child in track):
            continue
        above = otio.schema.Track(f"{track.name} faceplate", kind=otio.schema.TrackKind.Video)
        above.source_range = track.source_range
        children = list(track)
        for index, child in enumerate(children):
            if isinstance(child, otio.schema.Transition):
                beside = [children[at] for at in (index - 1, index + 1) if 0 <= at < len(children)]
                if all(id(each) in by_clip for each in beside):
                    above.append(child.clone())
            elif id(child) in by_clip:
                made = child.clone()
                made.set_media_references({"DEFAULT_MEDIA": reference_to(by_clip[id(child)], child)}, "DEFAULT_MEDIA")
                above.append(made)
                placed.add(id(child))
            else:
                above.append(otio.schema.Gap(source_range=child.trimmed_range()))
        timeline.tracks.insert(list(timeline.tracks).index(track) + 1, above)
    return [clip.name or "?" for clip, _ in results if id(clip) not in placed]
