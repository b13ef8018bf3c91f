"""Whole shots on synthetic plates with known truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np
import pytest

from faceplate.errors import Cancelled, SettingError
from faceplate.face import Origin, Track
from faceplate.faces import follow, topology
from faceplate.faces.analyse import analyse_shot, analyse_single
from faceplate.faces.crop import Roi
from faceplate.faces.detect import DetectSettings
from faceplate.faces.landmarks import Look, MeshFace, measure_in
from faceplate.faces.measure import JitterFigures, landmark_jitter
from faceplate.faces.nets import Net
from faceplate.faces.shot import AnalyseSettings, ShotFaces
from faceplate.faces.view import LinearPlateView
from tests.support.plates import SyntheticPlate, moving_plate
from tests.unit.core.faces.made import mean_error, nets, view

FAST = AnalyseSettings(DetectSettings(min_face_px=80))


def analyse(
    plate: SyntheticPlate,
    settings: AnalyseSettings = FAST,
    change: Callable[[int, np.ndarray], np.ndarray] = lambda _, pixels: pixels,
) -> ShotFaces:
    def view_of(frame: int) -> LinearPlateView:
        return view(plate, frame, change(frame, plate.frame(frame)))

    return analyse_shot(plate.numbers, view_of, nets(), settings)


def landmarks(track: Track) -> np.ndarray:
    return np.stack([seen.landmarks for seen in track.observations.values()])


def figures(plate: SyntheticPlate, track: Track) -> JitterFigures:
    return landmark_jitter(landmarks(track), np.stack([plate.truth_landmarks(frame) for frame in track.observations]))


def test_a_static_plate_has_no_temporal_variance_at_all() -> None:
    plate = moving_plate(512, 288, 6, face_width_px=100, motion="static", grain=0)
    shot = analyse(plate, AnalyseSettings(DetectSettings(min_face_px=80), search_every=2))
    assert [len(track.observations) for track in shot.tracks] == [6]
    assert np.ptp(landmarks(shot.tracks[0]), axis=0).max() == 0
    assert len({(seen.score, seen.yaw_deg) for seen in shot.tracks[0].observations.values()}) == 1


def test_jitter_at_400_px_on_a_moving_plate_with_grain() -> None:
    plate = moving_plate(800, 600, 12, face_width_px=400, motion="sine", travel_px=120, grain=0.01)
    shot = analyse(plate)
    assert [len(track.observations) for track in shot.tracks] == [12]
    assert shot.cuts == ()
    smooth = figures(plate, shot.tracks[0])
    assert smooth.jitter_px < 0.12
    assert smooth.flicker_px < 0.08
    assert smooth.mean_error_px < 0.01 * 400
    assert abs(smooth.lag_frames) < 0.01


def test_few_frames_cost_a_run_of_the_net_and_all_stay_as_steady_as_with_five(monkeypatch: pytest.MonkeyPatch) -> None:
    plate = moving_plate(800, 600, 12, face_width_px=400, motion="linear", travel_px=120, grain=0.01)
    asked: list[int] = []

    def counted(places: Sequence[tuple[Roi, Look]], net: Net, pixel_aspect: float) -> list[MeshFace]:
        asked.append(len(places))
        return measure_in(places, net, pixel_aspect)

    monkeypatch.setattr("faceplate.faces.follow.measure_in", counted)
    cheap = figures(plate, analyse(plate).tracks[0])
    assert asked[1:] == [0, 1, 0, 1, 0, 1, 0, 5, 0, 1, 0]
    monkeypatch.setattr("faceplate.faces.follow._SURVEY_EVERY", 1)
    full = figures(plate, analyse(plate).tracks[0])
    assert cheap.jitter_px < max(1.2 * full.jitter_px, 0.12)
    assert abs(cheap.mean_error_px - full.mean_error_px) < 0.25


def with_eyes_closed(plate: SyntheticPlate, frame: int, pixels: np.ndarray) -> np.ndarray:
    """The colour of the lower lids all over both eyes."""
    out = pixels.copy()
    for eye in (topology.RIGHT_EYE, topology.LEFT_EYE):
        ring = plate.truth_landmarks(frame)[list(eye), :2]
        centre, height = ring.mean(0), float(np.ptp(ring[:, 1]))
        mask = np.zeros(out.shape[:2], np.uint8)
        cv2.fillPoly(mask, [np.rint((ring - centre) * 1.3 + centre).astype(np.int32)], 1)
        out[mask > 0] = out[int(centre[1] + 0.8 * height), int(centre[0])]
    return out


@pytest.mark.parametrize("closed", [1004, 1005])
def test_in_a_blink_no_frame_goes_by_flow_alone(monkeypatch: pytest.MonkeyPatch, closed: int) -> None:
    plate = moving_plate(400, 300, 9, face_width_px=160, motion="linear", travel_px=20, grain=0.005)
    opened, by_flow = [0], []

    def blink(frame: int, pixels: np.ndarray) -> np.ndarray:
        opened[0] = frame
        return with_eyes_closed(plate, frame, pixels) if frame in (closed, closed + 1) else pixels

    carried = follow._carried
    monkeypatch.setattr(follow, "_carried", lambda *args: by_flow.append(opened[0]) or carried(*args))
    analyse(plate, change=blink)
    assert by_flow
    assert not {closed, closed + 2} & set(by_flow)


def test_a_face_that_turns_all_the_way_round_is_never_lost() -> None:
    plate = moving_plate(320, 240, 13, face_width_px=80, motion="rotate")
    shot = analyse(plate)
    assert shot.cuts == ()
    assert [len(track.observations) for track in shot.tracks] == [13]
    assert {seen.origin for seen in shot.tracks[0].observations.values()} == {Origin.DETECTED}
    assert figures(plate, shot.tracks[0]).mean_error_px < 0.012 * 80


def test_a_cut_starts_new_tracks() -> None:
    plate = moving_plate(512, 288, 8, face_width_px=90, motion="cut")
    shot = analyse(plate)
    assert shot.cuts == (1005,)
    assert [(track.id, track.first, track.last) for track in shot.tracks] == [(1, 1001, 1004), (2, 1005, 1008)]


def test_two_faces_keep_their_tracks() -> None:
    plate = moving_plate(640, 288, 5, face_width_px=80, faces=2, travel_px=60)
    shot = analyse(plate)
    assert [len(track.observations) for track in shot.tracks] == [5, 5]
    for track in shot.tracks:
        errors = [
            [mean_error(seen.landmarks, plate.truth_landmarks(frame, face)) for face in range(2)]
            for frame, seen in track.observations.items()
        ]
        assert len({int(np.argmin(row)) for row in errors}) == 1
        assert np.min(errors, axis=1).max() < 0.012 * 80


@pytest.mark.parametrize("where", ["frame", "face"])
def test_a_short_gap_is_filled_and_said_so(where: str) -> None:
    plate = moving_plate(512, 288, 12, face_width_px=90, travel_px=66)

    def blank(frame: int, pixels: np.ndarray) -> np.ndarray:
        if not 1006 <= frame <= 1008:
            return pixels
        out = pixels.copy()
        x, y = plate.truth_landmarks(frame)[:468, :2].mean(0).astype(int)
        out[(slice(None),) if where == "frame" else (slice(y - 90, y + 90), slice(x - 80, x + 80))] = 0.2
        return out

    shot = analyse(plate, change=blank)
    assert shot.cuts == ()
    assert [len(track.observations) for track in shot.tracks] == [12]
    track = shot.tracks[0]
    filled = {frame for frame, seen in track.observations.items() if seen.origin is Origin.FILLED}
    assert filled == {1006, 1007, 1008}
    assert set(shot.weak[1]) >= filled
    assert shot.drops == {}
    for frame in filled:
        assert mean_error(track.observations[frame].landmarks, plate.truth_landmarks(frame)) < 0.02 * 90


def test_a_gap_longer_than_allowed_is_a_drop() -> None:
    plate = moving_plate(512, 288, 10, face_width_px=90, motion="static", grain=0)
    settings = AnalyseSettings(DetectSettings(min_face_px=80), max_gap=2, min_length=2)
    shot = analyse(plate, settings, lambda frame, pixels: pixels * 0 + 0.2 if 1004 <= frame <= 1007 else pixels)
    assert shot.no_face == (1004, 1005, 1006, 1007)
    assert [(track.first, track.last) for track in shot.tracks] == [(1001, 1003), (1008, 1010)]


def test_a_face_found_late_is_traced_back() -> None:
    """A face too small for the quick look comes in in frame 3; the next full search is in frame 7."""
    plate = moving_plate(960, 300, 8, face_width_px=34, motion="static", grain=0.01)
    settings = AnalyseSettings(DetectSettings(rotations="never"), search_every=6)
    shot = analyse(plate, settings, lambda frame, pixels: pixels * 0 + 0.3 if frame < 1003 else pixels)
    late = [track for track in shot.tracks if track.last == 1008]
    assert [(track.first, len(track.observations)) for track in late] == [(1003, 6)]


def test_flicker_is_dropped() -> None:
    plate = moving_plate(640, 288, 5, face_width_px=80, faces=2, motion="static", grain=0)

    def blink(frame: int, pixels: np.ndarray) -> np.ndarray:
        out = pixels.copy()
        if frame != 1003:
            out[:, 320:] = 0.3
        return out

    shot = analyse(plate, AnalyseSettings(DetectSettings(min_face_px=80), search_every=1), blink)
    assert [len(track.observations) for track in shot.tracks] == [5]


def test_a_lone_picture_keeps_its_face() -> None:
    single = analyse_single(view(moving_plate(512, 288, 2, face_width_px=90)), nets(), FAST, frame=7)
    assert [list(track.observations) for track in single.tracks] == [[7]]
    assert single.tracks[0].appearance is None


def test_the_same_again_gives_the_same_bits() -> None:
    plate = moving_plate(512, 288, 4, face_width_px=90)
    a, b = analyse(plate), analyse(plate)
    assert np.array_equal(landmarks(a.tracks[0]), landmarks(b.tracks[0]))
    assert a.nets == b.nets
    assert set(a.nets) == {"face_detector", "face_mesh_attention"}


def test_progress_is_told_and_cancel_stops() -> None:
    plate = moving_plate(320, 200, 4, face_width_px=60, motion="static", grain=0)
    told: list[tuple[int, int]] = []
    with pytest.raises(Cancelled):
        analyse_shot(
            plate.numbers,
            lambda frame: view(plate, frame),
            nets(),
            FAST,
            progress=lambda done, count: told.append((done, count)),
            cancel=lambda: len(told) == 2,
        )
    assert told == [(1, 4), (2, 4)]


def test_no_more_than_two_frames_are_held() -> None:
    import weakref

    plate = moving_plate(320, 200, 6, face_width_px=60, motion="cut")
    alive: weakref.WeakSet[LinearPlateView] = weakref.WeakSet()
    most = 0

    def view_of(frame: int) -> LinearPlateView:
        nonlocal most
        made = view(plate, frame)
        alive.add(made)
        most = max(most, len(alive))
        return made

    analyse_shot(plate.numbers, view_of, nets(), FAST)
    assert most <= 2


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="max_gap"):
        AnalyseSettings(max_gap=-1)
    with pytest.raises(SettingError, match="min_face_px"):
        AnalyseSettings(DetectSettings(min_face_px=1))
