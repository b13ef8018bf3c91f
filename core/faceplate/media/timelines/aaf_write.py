"""An AAF again with other media, changed in a copy of the file: everything else in it stays as it was.

A composition points into master clips, which point to file sources with locators. A result begins later than its
source, so the locator, the lengths, and each place that counts from the source's first frame move together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .place import Result, file_url


def rewrite(target: str, results: Sequence[tuple[Any, Result]], clips: Sequence[Any]) -> list[tuple[Any, str]]:
    """Put results into an AAF.

    Args:
        target: a copy of the document's file, which is changed.
        results: clips of its timeline with what they are to play.
        clips: all picture clips of the timeline.

    Returns:
        Clips that it cannot say, each with the reason.
    """
    import aaf2

    by_mob: dict[str, list[tuple[Any, Result]]] = {}
    for clip, result in results:
        by_mob.setdefault(_mob_of(clip), []).append((clip, result))
    used: dict[str, int] = {}
    for clip in clips:
        used[_mob_of(clip)] = used.get(_mob_of(clip), 0) + 1
    refused: list[tuple[Any, str]] = []
    with aaf2.open(target, "rw") as file:
        masters = {str(mob.mob_id): mob for mob in file.content.mastermobs()}
        compositions = list(file.content.compositionmobs())
        for name, members in by_mob.items():
            reason = _why_not(name, members, used.get(name, 0), masters)
            if reason:
                refused += [(clip, reason) for clip, _ in members]
                continue
            _change(masters[name], members[0][1], compositions)
    return refused


def _mob_of(clip: Any) -> str:
    return str(clip.metadata.get("AAF", {}).get("MobID", ""))


def _why_not(name: str, members: Sequence[tuple[Any, Result]], used: int, masters: dict[str, Any]) -> str:
    if name not in masters:
        return "the AAF has no master clip for it"
    if len({(result.path, result.frames) for _, result in members}) > 1:
        return "its master clip is used with two parts of its media; more --handles join them"
    if len(members) != used:
        return "its master clip is also used by a clip that was not rendered"
    pictures = [slot for slot in masters[name].slots if _is_picture(slot)]
    sounds = [slot for slot in masters[name].slots if not _is_picture(slot)]
    files = {str(source.mob_id) for slot in pictures for source in _clips_of(slot)}
    if files & {str(source.mob_id) for slot in sounds for source in _clips_of(slot)}:
        return "picture and sound are one file in the AAF"
    return "" if pictures else "its master clip has no picture"


def _is_picture(slot: Any) -> bool:
    return str(slot.segment.media_kind) == "Picture"


def _change(master: Any, result: Result, compositions: Sequence[Any]) -> None:
    shift = result.frames[0] - result.first
    slots = {slot.slot_id for slot in master.slots if _is_picture(slot)}
    for mob in compositions:
        for slot in mob.slots:
            for source in _clips_of(slot):
                if source.mob_id == master.mob_id and source.slot_id in slots:
                    source.start = source.start - shift
    seen: set[str] = set()
    for slot in master.slots:
        if _is_picture(slot):
            for source in _clips_of(slot):
                source.length = result.length
                _change_source(source.mob, result, shift, seen)


def _change_source(mob: Any, result: Result, shift: int, seen: set[str]) -> None:
    """A file source: where it lies, how long it is, and where its first frame lies on what it came from."""
    if mob is None or str(mob.mob_id) in seen:
        return
    seen.add(str(mob.mob_id))
    path = result.path if result.is_movie else result.picture(result.frames[0])
    for locator in mob.descriptor["Locator"].value or ():
        locator["URLString"].value = file_url(path)
    if mob.descriptor.get("Length") is not None:
        mob.descriptor["Length"].value = result.length
    origin = False
    for slot in mob.slots:
        if not _is_picture(slot):
            continue
        for source in _clips_of(slot):
            source.length = result.length
            if source.mob is not None:
                source.start = source.start + shift
                origin = True
                _relocate(source.mob, file_url(path), seen)
    if not origin:
        _shift_timecode(mob, shift)


def _relocate(mob: Any, url: str, seen: set[str]) -> None:
    """Some writers give the tape the file's locator too."""
    seen.add(str(mob.mob_id))
    for locator in mob.descriptor["Locator"].value or ():
        locator["URLString"].value = url


def _shift_timecode(mob: Any, shift: int) -> None:
    import aaf2

    for slot in mob.slots:
        for part in _parts(slot.segment):
            if isinstance(part, aaf2.components.Timecode):
                part.start = part.start + shift


def _clips_of(slot: Any) -> Iterator[Any]:
    import aaf2

    for part in _parts(slot.segment):
        if isinstance(part, aaf2.components.SourceClip):
            yield part


def _parts(segment: Any) -> Iterator[Any]:
    """A segment and all inside it."""
    yield segment
    for name in ("Components", "InputSegments", "Choices", "Alternates"):
        found = segment.get(name)
        for part in (found.value if found is not None else None) or ():
            yield from _parts(part)
    for name in ("Selected", "Rendering", "OperationGroup"):
        found = segment.get(name)
        if found is not None and found.value is not None and hasattr(found.value, "properties"):
            yield from _parts(found.value)
    slots = segment.get("Slots")
    for part in (slots.value if slots is not None else None) or ():
        yield from _parts(part)
