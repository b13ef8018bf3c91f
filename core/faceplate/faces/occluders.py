"""What lies in front of a face: hands, microphones, hair, glare. Found where the skin is (canonical UV), so that motion
is taken out, and steadied over time.

Three kinds of evidence. *Memory*: the track's usual appearance against this frame. *Skin*: colours that the cheeks of
this frame do not explain, looked for only on the forehead and the outer band, where nothing folds. *Glare*: white
beyond what skin can be.

Each frame is scored on its own. Then a score takes the mean of the same texel's scores in the frames around it, those
before and after alike (zero phase), and each counts the less the more it differs (a bilateral filter, Tomasi and
Manduchi 1998, along time): noise goes, and an edge that passes stays where and as sharp as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from ..face import Appearance, Cover
from .appearance import SIZE, AppearanceSampler, Texture
from .zones import zone_at

Map = NDArray[np.float32]
Scores = NDArray[np.float32]
"""(2, SIZE, SIZE): how far a texel is from what the track usually shows, and from the cheeks' colour; both in robust
deviations, 0 where not known."""

REACH = 3
"""Frames before and after that are looked at."""

_SIGMA = 1.5
"""Of the weights over time, frames."""
_SIMILAR = 1.2
"""Difference of scores at which a neighbour counts 0.6 of what an equal one does."""
_WEAK, _STRONG = (1.1, 2.4), (3.0, 4.4)
"""Deviations between which memory evidence rises: to join a patch, and to start one."""
_SURE = 5.0
_EDGE_REACH = 8
_LEAST_SPREAD = 0.18
"""Stops; below it lies noise, compression and slow change of light."""
_FOLDS = 0.6
"""Stops more that eyes and mouth may change."""
_GROW_ROUNDS = 16
_CLOSE_REACH = 8
"""Texels: gaps up to twice as wide inside a patch are closed; a hand has the colour of the face in places."""
_FIT_ROUNDS = 4
_SKIN_ROUNDS = 3
_SKIN_KNEE = (3.6, 5.2)
_SKIN_GROUND = (0.02, 0.006, 0.01)
_CHEEK_LEVEL, _DARK = 0.22, 0.003
_ENOUGH = (4.0, 16.0)
_GLARE = (4.1, 4.5)
"""Times the cheeks' light that the darkest channel of no skin reaches: a lamp, the sun or a flare before the face."""


def score(texture: Texture, appearance: Appearance | None) -> Scores:
    """The evidence of one frame. See `Scores`.

    Args:
        texture: as `appearance.light_texture` gives it.
        appearance: of the track, or None.
    """
    light = [np.ascontiguousarray(texture[..., channel]) for channel in range(3)]
    seen = np.isfinite(light[0])
    scores = np.zeros((2, SIZE, SIZE), np.float32)
    if not seen.any():
        return scores
    if appearance is not None:
        scores[0] = _unlike_memory(light, appearance, seen)
    scores[1], cheeks = _foreign_to_skin(light, seen)
    darkest = np.where(seen, np.minimum(np.minimum(light[0], light[1]), light[2]), np.float32(-99.0)) - cheeks
    if darkest.max() > math.log2(_GLARE[0]):
        np.maximum(scores[0], _SURE * _smoothstep(*_GLARE, np.exp2(darkest)), out=scores[0])
    return scores


def _unlike_memory(light: Sequence[Map], appearance: Appearance, seen: NDArray[np.bool_]) -> Map:
    """Deviations from what the track usually shows, change of light apart, averaged over about a texel."""
    known = seen & np.isfinite(appearance.spread)
    usual = appearance.median[known].T
    red, green, blue = _without_light(np.stack([plane[known] for plane in light]) - usual, known)
    allowed = np.maximum(2.0 * appearance.spread[known], _LEAST_SPREAD) + _FOLDS * _folds()[known]
    unlike, weight = np.zeros((2, SIZE, SIZE), np.float32)
    unlike[known] = np.sqrt((red * red + green * green + blue * blue) * np.float32(1.0 / 3.0)) / allowed
    weight[known] = 1.0
    return _averaged([unlike], weight, 1.2)[0]


@cache
def _folds() -> Map:
    """1 where expressions change the picture."""
    return np.maximum(zone_at("eyes", SIZE), zone_at("mouth", SIZE))


@cache
def _basis() -> Map:
    """(3, SIZE, SIZE): 1, u, v, both -1..1."""
    axis = np.linspace(-1.0, 1.0, SIZE, dtype=np.float32)
    u, v = np.meshgrid(axis, axis)
    return np.stack([np.ones_like(u), u, v])


def _without_light(change: Map, known: NDArray[np.bool_]) -> Map:
    """Take a change of exposure, colour and slope of the light out of (3, n) stops: a robust plane a channel."""
    if change.shape[1] < 64:
        return np.zeros_like(change)
    basis = _basis()[:, known]
    ridge = np.diag(np.array([1.0, 40.0, 40.0], np.float32))
    rest = change - np.median(change, 1)[:, None]
    for _ in range(_FIT_ROUNDS):
        unlike = rest[0] * rest[0] + rest[1] * rest[1] + rest[2] * rest[2]
        trust = 1.0 / np.square(1.0 + unlike * np.float32(1.0 / (3.0 * 0.35**2)))
        weighted = basis * trust
        rest = change - np.linalg.solve(weighted @ basis.T + ridge, weighted @ change.T).T @ basis
    return np.asarray(rest, np.float32)


def _foreign_to_skin(light: Sequence[Map], seen: NDArray[np.bool_]) -> tuple[Map, np.float32]:
    """Mahalanobis distance of forehead and outer band to the cheeks' colour, and the cheeks' light in stops."""
    planes = [np.where(seen, plane, np.float32(0.0)) for plane in light]
    smooth = np.stack([plane[seen] for plane in _averaged(planes, seen.astype(np.float32), 1.2)])
    cheeks = zone_at("cheeks", SIZE)[seen]
    at = np.flatnonzero(cheeks)
    level = np.float32(np.median(smooth[:, at] if at.size else smooth))
    red, green, blue = np.log(np.exp2(smooth - level) * np.float32(_CHEEK_LEVEL) + np.float32(_DARK))
    features = np.stack([(red + green + blue) * np.float32(0.2), (red - green) * np.float32(2.0), blue - green])
    skin, weight = features[:, at], cheeks[at]
    ground = np.diag(np.array(_SKIN_GROUND, np.float32))
    centre, inverse, trust = np.zeros((3, 1), np.float32), ground, weight
    for _ in range(_SKIN_ROUNDS):
        total = max(float(trust.sum()), 1e-3)
        centre = (skin @ trust / np.float32(total))[:, None]
        apart = skin - centre
        inverse = np.linalg.inv((apart * trust) @ apart.T / np.float32(total) + ground)
        # texels that do not belong (a hand on the cheek, a highlight) lose their say without a hard decision
        trust = weight / (1.0 + np.square(_squared(apart, inverse) / np.float32(6.0)))
    made = np.zeros((SIZE, SIZE), np.float32)
    distance = np.sqrt(np.maximum(_squared(features - centre, inverse), 0.0))
    made[seen] = distance * _smoothstep(*_ENOUGH, np.float32(weight.sum()))
    return made, level


def _squared(apart: Map, inverse: Map) -> Map:
    """(n,) squared length of (3, n) in the metric `inverse`."""
    red, green, blue = apart * (inverse @ apart)
    return np.asarray(red + green + blue, np.float32)


def steadied(scores: Sequence[Scores | None], at: int) -> Scores:
    """The scores at one place of a run of consecutive frames, steadied by those around it.

    Args:
        scores: frame by frame, None where there are none.
        at: index, of one that is there.

    Returns:
        New array. Where all frames are equal, exactly the frame's own. A neighbour counts only where the one as far on
        the other side is there too, so that the mean has no lag at the ends either.
    """
    own = scores[at]
    assert own is not None
    total, weights = np.zeros_like(own), np.ones_like(own)
    for away in range(1, REACH + 1):
        if at < away or at + away >= len(scores):
            break
        pair = scores[at - away], scores[at + away]
        for other in pair:
            if pair[0] is None or pair[1] is None or other is None:
                continue
            apart = other - own
            weight = np.exp(apart * apart * np.float32(-0.5 / _SIMILAR**2) - np.float32(0.5 * (away / _SIGMA) ** 2))
            total += weight * apart
            weights += weight
    return own + total / weights


def cover_of(scores: Scores, seen: NDArray[np.bool_]) -> Cover:
    """What the scores say, as a matte.

    Args:
        scores: of a frame.
        seen: (SIZE, SIZE), the texels that have a score.

    Returns:
        (SIZE, SIZE) uint8, 255 where something is surely in front of the face; runs on over the edge of what is seen.
    """
    weak, grown = _smoothstep(*_WEAK, scores[0]), _smoothstep(*_STRONG, scores[0])
    found = _smoothstep(*_SKIN_KNEE, scores[1]) * zone_at("exposed", SIZE)
    if grown.any():
        for _ in range(_GROW_ROUNDS):
            grown = np.minimum(weak, _widened(grown, 1))
        found = np.maximum(found, 1.0 - _widened(1.0 - _widened(grown, _CLOSE_REACH), _CLOSE_REACH))
    # beyond the edge of the face the map goes on as at the edge
    found = np.where(seen, found, _widened(found * seen, _EDGE_REACH))
    return np.asarray(np.rint(found * 255.0), np.uint8)


def cover_alone(texture: Texture, appearance: Appearance | None) -> Cover:
    """`cover_of` a frame without those around it."""
    return cover_of(score(texture, appearance), np.isfinite(texture[..., 0]))


def covers(textures: AppearanceSampler, appearance: Appearance | None, frames: Sequence[int]) -> Mapping[int, Cover]:
    """What lies in front of a track's face in each frame that `textures` has seen, steadied over time.

    Args:
        textures: of the track.
        appearance: of the track, or None.
        frames: of the track, rising; a lone one gets none.
    """
    if len(frames) < 2:
        return {}
    made: dict[int, Cover] = {}
    scores: dict[int, Scores] = {}
    seen: dict[int, NDArray[np.bool_]] = {}
    own = frozenset(frames)
    for frame in frames:
        for ahead in sorted(own.intersection(range(frame, frame + REACH + 1)) - scores.keys()):
            if (texture := textures.texture(ahead)) is not None:
                scores[ahead] = score(texture, appearance)
                seen[ahead] = np.isfinite(texture[..., 0])
        if frame in scores:
            around = [scores.get(other) for other in range(frame - REACH, frame + REACH + 1)]
            made[frame] = cover_of(steadied(around, REACH), seen[frame])
        scores.pop(frame - REACH, None)
        seen.pop(frame, None)
    return made


def _averaged(planes: Sequence[Map], weight: Map, sigma: float) -> list[Map]:
    """Planes blurred where their weight (0 or 1) is not 0; they are 0 where it is."""
    share: Map = np.maximum(_blurred(weight, sigma), np.float32(1e-3))
    return [np.divide(_blurred(plane, sigma), share) for plane in planes]


def _blurred(plane: Map, sigma: float) -> Map:
    return np.asarray(cv2.GaussianBlur(plane, (0, 0), sigma, borderType=cv2.BORDER_CONSTANT), np.float32)


def _widened(field: Map, reach: int) -> Map:
    """Maximum over a square."""
    square = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    return np.asarray(cv2.dilate(field, square), np.float32)


def _smoothstep(low: float, high: float, value: NDArray[np.float32] | np.float32) -> Map:
    t = np.clip((value - np.float32(low)) * np.float32(1.0 / (high - low)), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t), np.float32)
