# SPDX-License-Identifier: GPL-3.0-or-later
"""How Blender's versions differ, as one table; the rest of the add-on knows one set of words.

    word              4.2 LTS                    4.5 LTS    5.0                   5.2 LTS and later
    strips            sequences                  strips     strips                strips
    content_start     frame_start                same       same                  content_start
    left, right       frame_final_start, _end    same       same                  left_handle, right_handle
    left/right_off    frame_offset_start, _end   same       same                  left_handle_offset, right_...
    trim_start/_end   animation_offset_...       same       same                  content_trim_start, _end
    length            frame_duration             same       same                  content_duration
    F-curves          action.fcurves             same       channel bags          channel bags
    sequencer scene   the context's scene        same       the workspace's       the workspace's
    compositor        scene.node_tree            same       a node group             a node group
    working space     of the OCIO configuration  same       bpy.data.colorspace   bpy.data.colorspace

`right` is the frame after the last visible one. The old names still work in 5.2, warn, and end with 6.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

OLDEST = (4, 2)
NEWEST = (5, 2)
"""The newest version that was tested; later ones are served like it, with a warning."""


@dataclass(frozen=True)
class Api:
    """The words of one version. Attributes: see the table at the head of this file."""

    strips: str = "strips"
    content_start: str = "frame_start"
    left: str = "frame_final_start"
    right: str = "frame_final_end"
    left_off: str = "frame_offset_start"
    right_off: str = "frame_offset_end"
    trim_start: str = "animation_offset_start"
    trim_end: str = "animation_offset_end"
    length: str = "frame_duration"
    layered_actions: bool = False
    sequencer_scene: bool = False
    working_space: bool = False
    media_type: bool = False
    compositor_groups: bool = False
    render: Mapping[str, bool] = field(default_factory=dict)

    def children(self, owner: Any) -> Any:
        """The strips directly in a sequence editor or meta strip."""
        return getattr(owner, self.strips)

    def walk(self, owner: Any) -> Iterator[tuple[Any, Any]]:
        """(strip, what it lies in) of a sequence editor, those inside meta strips included."""
        for strip in self.children(owner):
            yield strip, owner
            if strip.type == "META":
                yield from self.walk(strip)

    def visible(self, strip: Any) -> tuple[int, int]:
        """First and last visible frame of a strip."""
        return int(getattr(strip, self.left)), int(getattr(strip, self.right)) - 1

    def fcurves(self, action: Any) -> Iterator[Any]:
        """The F-curves of an action."""
        if not self.layered_actions:
            yield from action.fcurves
            return
        for layer in action.layers:
            for strip in layer.strips:
                for bag in strip.channelbags:
                    yield from bag.fcurves


_4_2 = Api(strips="sequences")
_4_5 = Api()
_5_0 = Api(
    layered_actions=True,
    sequencer_scene=True,
    working_space=True,
    media_type=True,
    compositor_groups=True,
    render={"use_sequencer_scene": False},
)
_5_2 = Api(
    content_start="content_start",
    left="left_handle",
    right="right_handle",
    left_off="left_handle_offset",
    right_off="right_handle_offset",
    trim_start="content_trim_start",
    trim_end="content_trim_end",
    length="content_duration",
    layered_actions=True,
    sequencer_scene=True,
    working_space=True,
    media_type=True,
    compositor_groups=True,
    render={"use_sequencer_scene": False},
)
TABLE: tuple[tuple[tuple[int, int], Api], ...] = (((5, 2), _5_2), ((5, 0), _5_0), ((4, 4), _4_5), ((4, 2), _4_2))


def api_of(version: tuple[int, ...]) -> Api:
    """The words of a version, e.g. `bpy.app.version`; those of 5.2 for a later one.

    Raises:
        ValueError: a version before 4.2.
    """
    for since, api in TABLE:
        if tuple(version[:2]) >= since:
            return api
    raise ValueError(f"Blender {'.'.join(map(str, version))} is too old: Faceplate needs 4.2 or later")
