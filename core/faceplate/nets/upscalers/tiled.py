"""Real-ESRGAN and its kin: pictures of any size, in tiles that overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch.nn import functional

from ...errors import ModelError
from ..base import TensorNet, Tensors, picture_in, picture_out

_KIND = re.compile(r"upscaler_x(\d+)")


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a picture is cut.

    Attributes:
        tile: side of what goes into the net, px, a multiple of 8.
        margin: px at each side of a tile that only inform: what a net makes at an edge of its picture is thrown away.
        blend: px over which neighbouring tiles are crossfaded.
        batch: tiles at once.

    Raises:
        ModelError: margins and blend leave nothing of a tile.
    """

    tile: int = 256
    margin: int = 16
    blend: int = 16
    batch: int = 1

    def __post_init__(self) -> None:
        if self.step <= 0 or self.tile % 8 or min(self.margin, self.blend) < 0 or self.batch < 1:
            raise ModelError(
                "an upscaler cannot work in these tiles",
                expected="a tile that is a multiple of 8 px and larger than twice the margin and the blend",
                found=f"tile {self.tile}, margin {self.margin}, blend {self.blend}, batch {self.batch}",
            )

    @property
    def kept(self) -> int:
        """Side of what is kept of a tile, px."""
        return self.tile - 2 * self.margin

    @property
    def step(self) -> int:
        """From one tile to the next, px."""
        return self.kept - self.blend


class Upscaler:
    """An upscaler of a kind "upscaler_x2", "upscaler_x4" or "upscaler_x8".

    Args:
        net: input `input`, output `output`, of any size.
        tiling: how pictures are cut.

    Raises:
        ModelError: the net is of another kind.
    """

    def __init__(self, net: TensorNet, tiling: Tiling | None = None) -> None:
        found = _KIND.fullmatch(net.card.kind)
        if found is None:
            raise ModelError(
                f"model {net.card.id} is no upscaler",
                expected="a kind like upscaler_x4",
                found=net.card.kind or "none",
                hint="faceplate models list names the upscalers",
            )
        self.net = net
        self.scale = int(found[1])
        self._tiling = tiling or Tiling()

    def pre(self, tiles: torch.Tensor) -> Tensors:
        """`input` as the card's mean and std say."""
        return {"input": picture_in(tiles, self.net.card)}

    def run(self, inputs: Mapping[str, torch.Tensor]) -> Tensors:
        """The net."""
        return self.net.run_tensors(inputs)

    def post(self, outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(N, 3, scale * h, scale * w), 0..1."""
        return picture_out(outputs["output"], self.net.card)

    def upscale(self, pictures: torch.Tensor) -> torch.Tensor:
        """Pictures with `scale` times the pixels a side.

        Tiles overlap; what lies near a tile's edge is not used, and the rest is crossfaded with weights that sum to 1:
        no seam is left even where the net's ideas of two tiles differ.

        Args:
            pictures: (N, 3, h, w) sRGB-encoded 0..1, on the net's device.

        Returns:
            (N, 3, scale * h, scale * w) 0..1.
        """
        tiling, scale = self._tiling, self.scale
        height, width = pictures.shape[-2:]
        rows, columns = _starts(height, tiling), _starts(width, tiling)
        padded = _mirrored(pictures, _rest(rows, tiling) - height, _rest(columns, tiling) - width, tiling.margin)
        out = pictures.new_zeros((*pictures.shape[:2], _rest(rows, tiling) * scale, _rest(columns, tiling) * scale))
        spots = [(index, y, x) for index in range(len(pictures)) for y in rows for x in columns]
        for group in _grouped(spots, tiling.batch):
            tiles = torch.cat([padded[i : i + 1, :, y : y + tiling.tile, x : x + tiling.tile] for i, y, x in group])
            made = self.post(self.run(self.pre(tiles.contiguous())))
            for (index, y, x), tile in zip(group, made, strict=True):
                self._add(out[index], tile, (y, rows), (x, columns))
        return out[..., : height * scale, : width * scale].clamp_(0.0, 1.0)

    def _add(
        self, out: torch.Tensor, tile: torch.Tensor, down: tuple[int, list[int]], across: tuple[int, list[int]]
    ) -> None:
        tiling, scale = self._tiling, self.scale
        inner = slice(tiling.margin * scale, (tiling.margin + tiling.kept) * scale)
        weights = [
            _ramp(tiling.kept * scale, tiling.blend * scale, at > starts[0], at < starts[-1]).to(tile)
            for at, starts in (down, across)
        ]
        spot = [slice(at * scale, (at + tiling.kept) * scale) for at, _ in (down, across)]
        out[:, spot[0], spot[1]] += tile[:, inner, inner] * (weights[0][:, None] * weights[1][None, :])


def _starts(length: int, tiling: Tiling) -> list[int]:
    """Where the kept parts of tiles begin, px; together they cover the length."""
    starts = [0]
    while starts[-1] + tiling.kept < length:
        starts.append(starts[-1] + tiling.step)
    return starts


def _rest(starts: list[int], tiling: Tiling) -> int:
    """Length that the kept parts cover."""
    return starts[-1] + tiling.kept


def _ramp(length: int, blend: int, before: bool, after: bool) -> torch.Tensor:
    """(length,) weights: 1, rising from 0 where a tile lies before and falling to 0 where one lies after; the ramps of
    two neighbours sum to 1.
    """
    weights = torch.ones(length)
    rising = (torch.arange(blend) + 0.5) / max(blend, 1)
    if before and blend:
        weights[:blend] = rising
    if after and blend:
        weights[-blend:] = 1.0 - rising
    return weights


def _mirrored(pictures: torch.Tensor, down: int, right: int, margin: int) -> torch.Tensor:
    """With mirrored edges: `margin` px around, and what is missing to whole tiles."""
    left = [margin, margin + right, margin, margin + down]
    while any(left):
        height, width = pictures.shape[-2:]
        now = [min(left[0], width - 1), min(left[1], width - 1), min(left[2], height - 1), min(left[3], height - 1)]
        if not any(now):  # a single row or column has nothing to mirror
            return functional.pad(pictures, tuple(left), mode="replicate")
        pictures = functional.pad(pictures, tuple(now), mode="reflect")
        left = [wanted - done for wanted, done in zip(left, now, strict=True)]
    return pictures


def _grouped(spots: list[tuple[int, int, int]], size: int) -> Iterator[list[tuple[int, int, int]]]:
    for first in range(0, len(spots), size):
        yield spots[first : first + size]
