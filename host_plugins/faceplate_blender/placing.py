# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a result above its source strip, and take it out again so that the scene is as it was.

Works on strips that it is given and imports nothing of Blender. What was there before is kept as JSON in a custom
property of the result, so that it outlives saving and loading:

    mute        whether the source was muted
    look        [whether the result was baked, whether it covers all of the source]
    inputs      [[effect, "input_1", strip], ...]: effects on the source, which now take the result
    moved       [[strip, from, to], ...]: channels of strips above that made room

Strips are told by a key in a custom property of theirs, since an artist renames them, and where copies have the same
key by place; the source by its jobs. A strip may carry several results, one version above the other; each knows what
was there before it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from faceplate_client import result_folder
from faceplate_client.errors import FramesMissing, PlaceFailed
from faceplate_client.frame_maths import Span
from faceplate_client.host import Clip, Result

from . import colours, elements, strips
from .shim import Api

CHANNELS = 128
INPUTS = ("input_1", "input_2")
_LOOK = ("use_flip_x", "use_flip_y", "color_multiply", "multiply_alpha", "color_saturation")
_TRANSFORM = ("filter", "offset_x", "offset_y", "scale_x", "scale_y", "rotation", "origin")
_CROP = ("min_x", "max_x", "min_y", "max_y")


def place(api: Api, editor: Any, source: Any, clip: Clip, result: Result) -> Any:
    """Place a result; the new strip, or the one of the same job that stands there already.

    Args:
        api: words of this version.
        editor: the sequence editor.
        source: the strip that the result is of.
        clip: as it was read from `source`.
        result: what to place.

    Raises:
        FramesMissing: a file is not on the disk.
        PlaceFailed: no free channel, or no such colour space; the scene is as it was.
    """
    files = [file_of(result.pattern, frame) for frame in result.files]
    if missing := [path for path in files if not os.path.isfile(path)]:
        raise FramesMissing(
            f"{len(missing)} of {len(files)} files of the result are missing, a strip would show the plate there",
            found=f"no {missing[0]}",
        )
    space = colours.from_server(result.colour_space, result.interop_id, known_spaces(editor.id_data))
    if space is None:
        raise PlaceFailed(
            f"Blender has no colour space for the result of {clip.name!r}",
            found=result.colour_space,
            hint="choose another space for the source strip, or use the colour configuration of the server (OCIO)",
        )
    standing = _results_of(api, editor, source).get(result.tag.job)
    if standing is not None:
        if _renew(api, editor, standing, source, clip, result, files):
            standing.colorspace_settings.name = space
            return standing
        remove(api, editor, standing)
    siblings = api.children(owner_of(api, editor, source))
    covered = Span(result.start, result.start + len(result.used) - 1)
    if result.covers_clip:
        covered = Span(*api.visible(source))
    moved = make_room(api, siblings, source, covered)
    strip = siblings.new_image(
        name=result.name, filepath=files[0], channel=source.channel + 1, frame_start=result.start
    )
    try:
        elements.append(strip, map(os.path.basename, files[1:]))
        _set_times(api, strip, source, clip, result)
        _set_look(strip, source, space, clip)
        if api.visible(strip) != (covered.first, covered.last) or strip.channel != source.channel + 1:
            raise PlaceFailed(f"Blender put the result of {clip.name!r} elsewhere", found=str(api.visible(strip)))
    except (TypeError, ValueError, RuntimeError, PlaceFailed) as error:
        siblings.remove(strip)
        _move_back(api, siblings, moved)
        if isinstance(error, PlaceFailed):
            raise
        raise PlaceFailed(f"Blender refuses the result of {clip.name!r}", found=str(error)) from error
    inputs: list[list[str]] = []
    before = {
        "mute": bool(source.mute),
        "look": _look_of(clip, result),
        "inputs": inputs,
        "moved": [[_key(one), *ways] for one, *ways in moved],
    }
    if result.covers_clip:
        inputs += _repoint(api, editor, source, strip)
        source.mute = True
    strip.select = False
    strip[strips.JOB], strip[strips.RECORD] = result.tag.job, result.tag.record
    strip[strips.UNDO] = json.dumps(before)
    source[strips.JOB] = " ".join([*jobs_of(source), result.tag.job])
    return strip


def _look_of(clip: Clip, result: Result) -> list[bool]:
    return [clip.needs_bake, result.covers_clip]


def _renew(api: Api, editor: Any, strip: Any, source: Any, clip: Clip, result: Result, files: list[str]) -> bool:
    """Let a result that stands show other files at other frames; all else is as the artist has it.

    Returns:
        False where it would have to look or lie in another way, and has to be placed anew.
    """
    covered = Span(result.start, result.start + len(result.used) - 1)
    if result.covers_clip:
        covered = Span(*api.visible(source))
    owner = owner_of(api, editor, strip)
    in_the_way = any(
        other.channel == strip.channel and other != strip and Span(*api.visible(other)).meet(covered)
        for other in api.children(owner)
    )
    same_look = json.loads(strip[strips.UNDO]).get("look") == _look_of(clip, result)
    if in_the_way or not same_look or owner_of(api, editor, source) != owner:
        return False
    elements.replace(strip, files)
    _set_times(api, strip, source, clip, result)
    strip[strips.RECORD] = result.tag.record
    return bool(api.visible(strip) == (covered.first, covered.last))


def remove(api: Api, editor: Any, result: Any) -> None:
    """Take a result out and restore what was there before it, as far as the artist has not changed it since.

    Raises:
        PlaceFailed: effects take the result, and there is no source that they could take; nothing was changed.
    """
    before = json.loads(result[strips.UNDO])
    job = result[strips.JOB]
    source = source_of(api, editor, result)
    twin = _twin_of(api, editor, source, result)
    later = [] if twin is not None else _later_results(api, editor, source, job)
    if later:  # a newer version stands over this one: what was there before this one was there before that one
        heirs = json.loads(later[0][strips.UNDO])
        heirs["mute"], heirs["moved"] = before["mute"], heirs["moved"] + before["moved"]
        was = {(effect, slot): strip for effect, slot, strip in before["inputs"]}
        heirs["inputs"] = [
            [effect, slot, was.get((effect, slot), strip) if strip == result.get(strips.KEY) else strip]
            for effect, slot, strip in heirs["inputs"]
        ]
        later[0][strips.UNDO] = json.dumps(heirs)
    _release_effects(api, editor, result, twin if twin is not None else source, before["inputs"])
    moved = [(strip, *ways) for key, *ways in before["moved"] if (strip := _keyed(api, editor, key, result))]
    siblings = api.children(owner_of(api, editor, result))
    siblings.remove(result)
    if twin is not None:
        return
    if not later:
        _move_back(api, siblings, moved)
    if source is not None:
        if not later:
            source.mute = before["mute"]
        left = [one for one in jobs_of(source) if one != job]
        if left:
            source[strips.JOB] = " ".join(left)
        else:
            del source[strips.JOB]
    _drop_keys(api, editor)


def _release_effects(api: Api, editor: Any, result: Any, heir: Any | None, inputs: Iterable[list[str]]) -> None:
    """Give effects that take a result what they had before it, or `heir`: Blender would delete them with it."""
    taking = [
        (effect, slot)
        for effect, _ in api.walk(editor)
        for slot in INPUTS
        if getattr(effect, slot, None) == result and effect != result
    ]
    was = {(key, slot): _keyed(api, editor, strip, result) for key, slot, strip in inputs}
    fed = [(effect, slot, was.get((effect.get(strips.KEY), slot)) or heir) for effect, slot in taking]
    place = owner_of(api, editor, result)
    for effect, _, strip in fed:
        if strip is None or owner_of(api, editor, strip) != place:
            raise PlaceFailed(
                f"the effect {effect.name!r} lies on {result.name!r}, and the strip that this was made of is not there",
                hint="delete the effect, or give it another input, then remove the result",
            )
    for effect, slot, strip in fed:
        _feed(effect, slot, strip)


def owner_of(api: Api, editor: Any, wanted: Any) -> Any:
    """The editor or meta strip that a strip lies in."""
    return next(owner for strip, owner in api.walk(editor) if strip.name == wanted.name)


def source_of(api: Api, editor: Any, result: Any) -> Any | None:
    """The strip that a result is of, also when it was renamed since; None where it is gone."""
    tagged = [
        strip for strip, _ in api.walk(editor) if not strips.is_result(strip) and result[strips.JOB] in jobs_of(strip)
    ]
    return _nearest(api, editor, tagged, result)


def _nearest(api: Api, editor: Any, found: list[Any], to: Any) -> Any | None:
    """Of a strip and its copies, which carry the same properties, the one at another strip; None of none."""
    if len(found) < 2:
        return found[0] if found else None
    owners = {strip.name: getattr(owner, "name", "") for strip, owner in api.walk(editor)}
    first, last = api.visible(to)

    def far(strip: Any) -> tuple[bool, int, int]:
        start, end = api.visible(strip)
        away = abs(start - first) + abs(end - last)
        return owners[strip.name] != owners[to.name], away, abs(strip.channel - to.channel)

    return min(found, key=far)


def _key(strip: Any) -> str:
    """What a strip is called in UNDO, whatever the artist calls it."""
    if strips.KEY not in strip:
        strip[strips.KEY] = secrets.token_hex(6)
    return str(strip[strips.KEY])


def _keyed(api: Api, editor: Any, key: str, near: Any) -> Any | None:
    """The strip of a key, None where it is gone."""
    return _nearest(api, editor, [strip for strip, _ in api.walk(editor) if strip.get(strips.KEY) == key], near)


def _drop_keys(api: Api, editor: Any) -> None:
    """Take away keys that no result needs any more."""
    every = [strip for strip, _ in api.walk(editor)]
    needed = "".join(str(strip[strips.UNDO]) for strip in every if strips.is_result(strip))
    for strip in every:
        if strips.KEY in strip and strip[strips.KEY] not in needed:
            del strip[strips.KEY]


def _twin_of(api: Api, editor: Any, source: Any | None, result: Any) -> Any | None:
    """Another copy of a result on the same source, None where there is none."""
    twins = [
        strip
        for strip, _ in api.walk(editor)
        if strips.is_result(strip) and strip != result and strip[strips.JOB] == result[strips.JOB]
    ]
    same = [strip for strip in twins if source is not None and source_of(api, editor, strip) == source]
    return _nearest(api, editor, same, result)


def jobs_of(strip: Any) -> list[str]:
    """Jobs whose results lie on a source strip, the oldest first."""
    return str(strip.get(strips.JOB, "")).split()


def file_of(pattern: str, frame: int) -> str:
    """The path of a frame."""
    return str(result_folder.file_of(pattern, frame))


def known_spaces(scene: Any) -> frozenset[str]:
    """Names of all colour spaces that this Blender has; not every strip has one."""
    settings = scene.sequencer_colorspace_settings
    return frozenset(item.identifier for item in settings.bl_rna.properties["name"].enum_items)


def make_room(api: Api, siblings: Iterable[Any], source: Any, covered: Span) -> list[tuple[Any, int, int]]:
    """Free the channel above a strip: what is in the way goes up by one, with what that meets in turn.

    Returns:
        (strip, from, to) of each that moved, in the order in which they go back.

    Raises:
        PlaceFailed: the topmost channel is taken; nothing was moved.
    """
    moving: dict[str, Any] = {}
    waiting = [(covered, source.channel + 1)]
    while waiting:
        span, channel = waiting.pop()
        if channel > CHANNELS:
            raise PlaceFailed(
                f"no free channel above {source.name!r}", hint=f"Blender has {CHANNELS}: move strips down, then apply"
            )
        for strip in siblings:
            theirs = Span(*api.visible(strip))
            if strip.channel == channel and strip.name not in moving and theirs.meet(span):
                moving[strip.name] = strip
                waiting.append((theirs, channel + 1))
    upwards = sorted(moving.values(), key=lambda strip: strip.channel)
    moved = [(strip, strip.channel, strip.channel + 1) for strip in upwards]
    for strip in reversed(upwards):
        strip.channel += 1
    return moved


def _move_back(api: Api, siblings: Iterable[Any], moved: Iterable[tuple[Any, int, int]]) -> None:
    for strip, came_from, went_to in moved:
        span = Span(*api.visible(strip))
        taken = (other.channel == came_from and Span(*api.visible(other)).meet(span) for other in siblings)
        if strip.channel == went_to and not any(taken):  # else the artist has moved it since
            strip.channel = came_from


def _results_of(api: Api, editor: Any, source: Any) -> dict[str, Any]:
    """The results of a strip, by job."""
    return {
        strip[strips.JOB]: strip
        for strip, _ in api.walk(editor)
        if strips.is_result(strip) and source_of(api, editor, strip) == source
    }


def _later_results(api: Api, editor: Any, source: Any | None, job: str) -> list[Any]:
    if source is None:
        return []
    jobs, found = jobs_of(source), _results_of(api, editor, source)
    return [found[later] for later in jobs[jobs.index(job) + 1 :] if later in found]


def _set_times(api: Api, strip: Any, source: Any, clip: Clip, result: Result) -> None:
    if result.covers_clip and not clip.needs_bake and strips.is_still(source):
        start, head, tail = (getattr(source, name) for name in (api.content_start, api.left_off, api.right_off))
    else:
        head, tail = result.used.first - result.files.first, result.files.last - result.used.last
        start = result.start - head
    setattr(strip, api.content_start, start)
    setattr(strip, api.left_off, head)
    setattr(strip, api.right_off, tail)


def _set_look(strip: Any, source: Any, space: str, clip: Clip) -> None:
    """The result takes the place of its source: how it lies over others, and unless that is baked in, its look."""
    strip.colorspace_settings.name = space
    strip.alpha_mode = "PREMUL"
    strip.blend_type = source.blend_type
    strip.blend_alpha = 1.0 if clip.processed == strips.OPACITY_BAKED else source.blend_alpha
    if clip.needs_bake:
        return
    for name in _LOOK:
        setattr(strip, name, getattr(source, name))
    for part, names in (("transform", _TRANSFORM), ("crop", _CROP)):
        for name in names:
            setattr(getattr(strip, part), name, getattr(getattr(source, part), name))


def _repoint(api: Api, editor: Any, source: Any, result: Any) -> Iterator[list[str]]:
    """Let effects that take the source, or an earlier result of it, take the result."""
    earlier = {source.name, *(strip.name for strip in _results_of(api, editor, source).values())}
    for effect, _ in api.walk(editor):
        for slot in INPUTS:
            taken = getattr(effect, slot, None)
            if taken is not None and taken.name in earlier and effect.name != result.name:
                _feed(effect, slot, result)
                yield [_key(effect), slot, _key(taken)]


def _feed(effect: Any, slot: str, strip: Any) -> None:
    setattr(effect, slot, strip)
    # Blender 5.2 looks users of a strip up in a cache that a new input leaves stale: it would delete this effect with
    # the strip that it had before. A name that is set drops the cache.
    effect.name = effect.name
