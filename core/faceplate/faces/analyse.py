"""Analyses a shot: every face in every frame, tracked forward and backward and smoothed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import Cancelled
from ..face import Points
from .appearance import Texture, light_texture
from .assemble import assemble_tracks
from .cuts import CutFinder
from .detect import TILE
from .nets import FaceNets
from .shot import AnalyseSettings, ShotFaces
from .track import Tracker, ViewOf
from .view import PlateView

Progress = Callable[[int, int], None]
Cancel = Callable[[], bool]


def analyse_shot(
    frames: Sequence[int],
    view_of: ViewOf,
    nets: FaceNets,
    settings: AnalyseSettings | None = None,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> ShotFaces:
    """Find, follow and smooth all faces of a shot.

    Each frame is opened once, in order; then, in falling order, those in which a face that appears later was missed,
    and those in which one was filled. No more than two frames are held at a time. The same frames, nets and settings
    give the same result.

    Args:
        frames: frame numbers, rising.
        view_of: opens a frame.
        nets: detector and mesh.
        settings: None for the defaults.
        progress: called with frames done and frames in all after each frame of the forward pass.
        cancel: asked before each frame.

    Raises:
        Cancelled: `cancel` said so.
    """
    settings = settings or AnalyseSettings()

    def check() -> None:
        if cancel is not None and cancel():
            raise Cancelled("the analysis was stopped", hint="run it again; frames are analysed from the start")

    tracker = Tracker(nets, settings.detect, settings.landmarks, settings.max_gap)
    finder = CutFinder()
    since_search = settings.search_every
    pixel_aspect = 1.0
    for done, frame in enumerate(frames, 1):
        check()
        view = view_of(frame)
        pixel_aspect = view.pixel_aspect
        suspect = finder.add(frame, view.overview(TILE))
        search = suspect or since_search >= settings.search_every
        tracker.step(frame, view, search=search)
        since_search = 1 if search else since_search + 1
        if progress is not None:
            progress(done, len(frames))
    cuts = finder.cuts(tracker.same_face, tracker.spans)
    tracker.backward(frames, frozenset(cuts), view_of, check)

    def look(frame: int, landmarks: Points) -> Texture:
        check()
        return light_texture(view_of(frame), landmarks)

    tracks = assemble_tracks(tracker.tracks, frames, cuts, settings, pixel_aspect, look)
    return ShotFaces(tuple(frames), tracks, cuts, settings, nets.hashes())


def analyse_single(
    view: PlateView, nets: FaceNets, settings: AnalyseSettings | None = None, *, frame: int = 0
) -> ShotFaces:
    """The faces of a lone picture, fully searched, nothing smoothed.

    Args:
        view: the picture.
        nets: detector and mesh.
        settings: None for the defaults.
        frame: number that the observations get.
    """
    return analyse_shot([frame], lambda _: view, nets, settings)
