"""FCPXML: OTIO's adapter, with exact rates, retimes, transitions and new media elements read as well.

The adapter counts in whole frames a second, takes the start timecode for a gap, and leaves out time maps and
transitions. What is not read here either is named in `unread`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

from otio_fcpx_xml_adapter.fcpx_xml import FcpxXml

from ...errors import InputError
from .fcp7 import parse

_UNREAD = {"mc-clip": "multicam clip", "sync-clip": "synchronised clip", "audition": "audition"}
_TWINS = Fraction(1, 500)
_RATES = {"23.98": Fraction(24000, 1001), "29.97": Fraction(30000, 1001), "59.94": Fraction(60000, 1001)}


def fraction(text: str | None) -> Fraction:
    """Seconds of "1001/24000s", "5s"; 0 where nothing is said.

    Raises:
        InputError: no time.
    """
    try:
        return Fraction((text or "0s").strip().removesuffix("s") or "0")
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"{text!r} in the FCPXML is no time", hint="export the timeline again") from error


def tidy(root: ElementTree.Element) -> list[str]:
    """Bring a document into the form that the adapter reads; what it has to say about that.

    Raises:
        InputError: it holds what cannot be read.
    """
    notes = []
    for asset in root.iter("asset"):
        media = asset.find("media-rep")
        if not asset.get("src") and media is not None and media.get("src"):
            asset.set("src", str(media.get("src")))
    assets = {asset.get("id") for asset in root.iter("asset")}
    for tag, name in _UNREAD.items():
        found = [each.get("name") or "?" for each in root.iter(tag)]
        if found:
            raise InputError(
                f"the FCPXML holds a {name}, which is not read: {', '.join(found[:5])}",
                hint="flatten it in the editor, or export the timeline as OTIO",
            )
    for element in list(root.iter("video")):
        if element.get("ref") not in assets:
            element.tag = "title"  # a generator: no file holds it
            notes.append(f"{element.get('name') or 'a generator'} is no media and stays as it is")
    return notes


class Reader(FcpxXml):  # type: ignore[misc]
    """The adapter's reader; times come out in the sequence's rate, exact.

    Args:
        text: of the document.

    Raises:
        InputError: no XML, or something in it that is not read.
    """

    def __init__(self, text: str) -> None:
        root = parse(text)
        self.notes = tidy(root)
        super().__init__(ElementTree.tostring(root, encoding="unicode"))
        self._place = {element: number for number, element in enumerate(self.fcpx_xml.iter())}

    def _from_library(self) -> Any:
        import opentimelineio as otio

        found = otio.schema.SerializableCollection()
        for project in self.fcpx_xml.iter("project"):
            found.append(self._from_project(project))
        return found

    def _from_project(self, project_element: Any) -> Any:
        timeline = super()._from_project(project_element)
        sequence = project_element.find("./sequence")
        start = fraction(sequence.get("tcStart"))
        rate = self._format_frame_rate(sequence.get("format"))
        timeline.global_start_time = self._time(start, rate)
        self._add_transitions(timeline, sequence, rate)
        return timeline

    def _squence_to_stack(self, sequence_element: Any, name: str = "", source_range: Any = None) -> Any:
        import opentimelineio as otio

        stack = super()._squence_to_stack(sequence_element, name, source_range)
        rate = self._format_frame_rate(sequence_element.get("format"))
        start = fraction(sequence_element.get("tcStart"))
        for track in stack:
            lead = track[0] if len(track) else None
            if start and isinstance(lead, otio.schema.Gap):
                lead.source_range = otio.opentime.TimeRange(
                    lead.source_range.start_time, lead.source_range.duration - self._time(start, rate)
                )
        return stack

    def _build_composable(self, element: Any, default_format: str) -> Any:
        item = super()._build_composable(element, default_format)
        clip = self._timing_clip(element)
        item.metadata.setdefault("fcpx", {})["element"] = self._place[element]
        item.enabled = clip.get("enabled", "1") != "0"
        conform = clip.find("conform-rate")
        if conform is not None and conform.get("scaleEnabled", "1") != "0":
            self._check_conform(item, conform, self._format_frame_rate(default_format))
        points = clip.find("timeMap")
        if points is not None:
            self._warp(item, points, fraction(clip.get("start")))
        return item

    def _check_conform(self, item: Any, conform: Any, rate: float) -> None:
        told = conform.get("srcFrameRate", "")
        source = _RATES.get(told) or (Fraction(told) if told.replace(".", "", 1).isdigit() else None)
        if source is None or abs(float(source) - rate) > float(_TWINS) * rate:
            _refuse(item, f"it is conformed from {told or 'another rate'} by a change of speed")

    def _warp(self, item: Any, points: Any, start: Fraction) -> None:
        """A time map leads from the clip's own time to the media's, straight between its points."""
        import opentimelineio as otio

        keys = sorted((fraction(each.get("time")), fraction(each.get("value"))) for each in points.findall("timept"))
        if len(keys) < 2 or keys[0][0] == keys[-1][0]:
            _refuse(item, "its time map has fewer than two points")
            return
        (x0, y0), (x1, y1) = keys[0], keys[-1]
        speed, rate = (y1 - y0) / (x1 - x0), item.source_range.duration.rate
        if any(abs(y0 + speed * (x - x0) - y) * Fraction(rate) > 1 for x, y in keys):
            _refuse(item, "its speed changes over the clip (a speed ramp)")
            return
        begins = self._time(y0 + speed * (start - x0), rate)
        item.source_range = otio.opentime.TimeRange(begins, item.source_range.duration)
        metadata = {"faceplate": {"from": "start"}}
        item.effects.append(otio.schema.LinearTimeWarp("timeMap", float(speed), metadata=metadata))

    def _add_transitions(self, timeline: Any, sequence: Any, rate: float) -> None:
        """Dissolves of the main storyline, between the clips that meet in their middle."""
        import opentimelineio as otio

        tracks = [track for track in timeline.tracks if track.name == "0"]
        spine = sequence.find("./spine")
        for element in spine.findall("./transition") if spine is not None and tracks else ():
            length = fraction(element.get("duration"))
            middle = fraction(element.get("offset")) - fraction(sequence.get("tcStart")) + length / 2
            at, index = Fraction(0), None
            for number, child in enumerate(tracks[0]):
                if abs(at - middle) * Fraction(rate) <= 1 and not isinstance(child, otio.schema.Transition):
                    index = number
                duration = child.duration()
                if not isinstance(child, otio.schema.Transition):
                    at += Fraction(duration.value) / Fraction(duration.rate)
            if index is None:
                self.notes.append(f"the transition {element.get('name') or '?'} lies at no cut and is not read")
                continue
            half = self._time(length / 2, rate)
            dissolve = otio.schema.Transition(
                element.get("name") or "", otio.schema.TransitionTypes.SMPTE_Dissolve, half, half
            )
            tracks[0].insert(index, dissolve)

    def _format_frame_rate(self, format_id: str) -> float:
        each = self._format_by_id(format_id)
        duration = fraction(each.get("frameDuration")) if each is not None else Fraction(0)
        if duration <= 0:
            raise InputError(f"the format {format_id!r} of the FCPXML has no frame rate", hint="export it again")
        return float(1 / duration)

    def _format_id_for_clip(self, clip: Any, default_format: str) -> str:
        return default_format

    def _number_of_frames(self, time_value: str | None, format_id: str) -> int:
        return round(fraction(time_value) * Fraction(self._format_frame_rate(format_id)).limit_denominator(1001))

    def _time_range(self, element: Any, format_id: str) -> Any:
        import opentimelineio as otio

        rate = self._format_frame_rate(format_id)
        start, duration = fraction(element.get("start")), fraction(element.get("duration"))
        return otio.opentime.TimeRange(self._time(start, rate), self._time(duration, rate))

    def _reference_from_id(self, asset_id: str, default_format: str) -> Any:
        import opentimelineio as otio

        asset = self._asset_by_id(asset_id)
        if asset is None or not asset.get("src"):
            return otio.schema.MissingReference(name=asset.get("name", "") if asset is not None else "")
        each = self._format_by_id(asset.get("format", default_format))
        known = each is not None and each.get("frameDuration")
        rate = self._format_frame_rate(asset.get("format") if known else default_format)
        begins, lasts = fraction(asset.get("start")), fraction(asset.get("duration"))
        available = otio.opentime.TimeRange(self._time(begins, rate), self._time(lasts, rate)) if lasts else None
        return otio.schema.ExternalReference(
            asset.get("src"), available, metadata={"fcpx": {"asset": asset_id, **self._create_metadta(asset)}}
        )

    @staticmethod
    def _time(seconds: Fraction, rate: float) -> Any:
        import opentimelineio as otio

        exact = Fraction(rate).limit_denominator(1001)
        return otio.opentime.RationalTime(float(seconds * exact), rate)


def _refuse(item: Any, reason: str) -> None:
    import opentimelineio as otio

    item.effects.append(otio.schema.Effect("retime", metadata={"faceplate": {"retime": reason}}))
