"""What a movie says about its colour, by the code points of ITU-T H.273, and what is assumed where it says nothing.

Assumptions, which the report prints: a raster of at least 1280 columns or more than 576 lines is BT.709; below that
BT.601, with the primaries of 625 lines for 576, of 525 lines for 480 and 486, else those of BT.709 (video made on a
computer). YCbCr is limited range, RGB full. A tagged transfer or set of primaries of BT.2020 brings its matrix along.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...errors import SettingError, UnsupportedImageError
from .layout import Layout
from .planes import Coding, Matrix

PRIMARIES: Mapping[int, str] = MappingProxyType(
    {1: "bt709", 5: "bt470bg", 6: "smpte170m", 7: "smpte170m", 9: "bt2020", 11: "p3dci", 12: "p3d65"}
)
_LIKE_BT709 = (1, 6, 11, 14, 15)
TRANSFERS: Mapping[int, str] = MappingProxyType(
    dict.fromkeys(_LIKE_BT709, "bt709")
    | {4: "gamma22", 5: "gamma28", 7: "smpte240m", 8: "linear", 13: "srgb", 16: "pq", 18: "hlg"}
)
_MATRICES: Mapping[int, Matrix] = MappingProxyType(
    {0: "rgb", 1: "bt709", 5: "bt601", 6: "bt601", 7: "smpte240m", 9: "bt2020"}
)
_MATRIX_NAMES = {4: "FCC", 8: "YCgCo", 10: "BT.2020 constant luminance", 14: "ICtCp"}
_CODE_POINTS: Mapping[str, int] = MappingProxyType(
    {"bt709": 1, "bt470bg": 5, "smpte170m": 6, "bt2020": 9, "p3dci": 11, "p3d65": 12}
)
_TRANSFER_POINTS: Mapping[str, int] = MappingProxyType(
    {"bt709": 1, "gamma22": 4, "gamma28": 5, "smpte240m": 7, "linear": 8, "srgb": 13, "pq": 16, "hlg": 18}
)
MATRIX_POINTS: Mapping[str, int] = MappingProxyType({"rgb": 0, "bt709": 1, "bt601": 6, "smpte240m": 7, "bt2020": 9})
_CHOSEN = ("bt709", "bt601", "bt2020", "smpte240m")
_RANGES = ("limited", "full")
_SAID = (0, 2)
"""Code points that say nothing; 0 means RGB for the matrix."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Code points as the file has them; 2 is "unspecified" (range: 0 unspecified, 1 limited, 2 full).

    Attributes:
        primaries: of H.273.
        transfer: of H.273.
        matrix: of H.273.
        range: FFmpeg's.
    """

    primaries: int = 2
    transfer: int = 2
    matrix: int = 2
    range: int = 0


@dataclass(frozen=True, slots=True)
class MovieColour:
    """What a movie's code values mean.

    Attributes:
        primaries: a value of `PRIMARIES`; "" for one that has no name here.
        transfer: a value of `TRANSFERS`; "" likewise.
        coding: matrix, range, chroma siting.
        assumed: of "transfer", "primaries", "matrix", "range" those that the file does not say.
        tags: as the file has them.
    """

    primaries: str
    transfer: str
    coding: Coding
    assumed: tuple[str, ...]
    tags: Tags

    @property
    def written(self) -> Tags:
        """Tags for a movie with these code values: the file's own, and what was assumed where it had none."""
        transfer = self.tags.transfer if "transfer" not in self.assumed else _TRANSFER_POINTS[self.transfer]
        primaries = self.tags.primaries if "primaries" not in self.assumed else _CODE_POINTS[self.primaries]
        matrix = self.tags.matrix if "matrix" not in self.assumed else MATRIX_POINTS[self.coding.matrix]
        return Tags(primaries, transfer, matrix, 2 if self.coding.full_range else 1)

    @property
    def coding_note(self) -> str:
        """Matrix and range, and whether they are assumed."""
        guessed = [name for name in ("matrix", "range") if name in self.assumed]
        said = f"matrix {self.coding.matrix}, {'full' if self.coding.full_range else 'limited'} range"
        return said + (f" ({' and '.join(guessed)} assumed)" if guessed else "")

    @property
    def note(self) -> str:
        """One line for the report."""
        guessed = [name for name in ("transfer", "primaries") if name in self.assumed]
        said = f"transfer {self.transfer or self.tags.transfer}, primaries {self.primaries or self.tags.primaries}"
        untagged = f" (untagged: {' and '.join(guessed)} assumed)" if guessed else ""
        return f"{said}{untagged}, {self.coding_note}"


@dataclass(frozen=True, slots=True)
class CodesAre:
    """What a job says about a movie's code values, over the file's tags.

    Attributes:
        matrix: bt709, bt601, bt2020 or smpte240m; None to let the file say.
        range: "limited" or "full", None likewise.

    Raises:
        SettingError: another word.
    """

    matrix: str | None = None
    range: str | None = None

    def __post_init__(self) -> None:
        for option, value, known in (("matrix", self.matrix, _CHOSEN), ("range", self.range, _RANGES)):
            if value is not None and value not in known:
                raise SettingError(f"--input-{option} {value} is unknown", expected=", ".join(known))

    def over(self, tags: Tags, layout: Layout) -> Tags:
        """The tags as if the file had said so.

        Raises:
            SettingError: the pictures are RGB, or their format says full range by itself.
        """
        if self.matrix is not None and layout.model != "yuv":
            raise SettingError(
                f"--input-matrix {self.matrix}: the movie has no Y'CbCr", found=layout.name, hint="leave it out"
            )
        if self.range == "limited" and layout.full:
            raise SettingError("--input-range limited: the movie's format is full range", found=layout.name)
        matrix = tags.matrix if self.matrix is None else MATRIX_POINTS[self.matrix]
        return dataclasses.replace(
            tags, matrix=matrix, range=tags.range if self.range is None else _RANGES.index(self.range) + 1
        )


AS_TAGGED = CodesAre()
"""The job says nothing."""


def colour_of(tags: Tags, layout: Layout, width: int, height: int, siting: tuple[float, float] | None) -> MovieColour:
    """What the tags and the raster say.

    Args:
        tags: of the first frame.
        layout: of its pixels.
        width: of the raster as coded.
        height: likewise.
        siting: of chroma, None where the file does not say.

    Raises:
        UnsupportedImageError: a matrix that Faceplate does not undo.
    """
    assumed = []
    wide = width >= 1280 or height > 576
    standard = "bt2020" if tags.primaries == 9 or tags.transfer in (14, 15, 16, 18) else "bt709" if wide else "sd"
    primaries = PRIMARIES.get(tags.primaries, "")
    if tags.primaries in _SAID:
        assumed.append("primaries")
        lines = {576: "bt470bg", 480: "smpte170m", 486: "smpte170m"}
        primaries = lines.get(height, "bt709") if standard == "sd" else standard
    transfer = TRANSFERS.get(tags.transfer, "")
    if tags.transfer in _SAID:
        assumed.append("transfer")
        transfer = "bt709"
    matrix = _matrix(tags, layout, standard, assumed)
    full = layout.full or tags.range == 2
    if tags.range == 0 and not layout.full:
        assumed.append("range")
        full = layout.model == "rgb"
    order = [name for name in ("transfer", "primaries", "matrix", "range") if name in assumed]
    where = siting if siting is not None else _usual_siting(layout, standard)
    return MovieColour(primaries, transfer, Coding(matrix, full, where), tuple(order), tags)


def _matrix(tags: Tags, layout: Layout, standard: str, assumed: list[str]) -> Matrix:
    if layout.model == "rgb":
        return "rgb"
    if tags.matrix not in (0, 2):
        if tags.matrix not in _MATRICES:
            name = _MATRIX_NAMES.get(tags.matrix, f"number {tags.matrix}")
            raise UnsupportedImageError(
                f"the movie's colour matrix is not read: {name}",
                expected="BT.601, BT.709, BT.2020 non-constant, SMPTE 240M or RGB",
                hint="convert the movie to an EXR sequence or to BT.709",
            )
        return _MATRICES[tags.matrix]
    assumed.append("matrix")
    matrices: dict[str, Matrix] = {"sd": "bt601", "bt709": "bt709", "bt2020": "bt2020"}
    return matrices[standard]


def _usual_siting(layout: Layout, standard: str) -> tuple[float, float]:
    """Where chroma lies in untagged video: MPEG's left; JPEG's centre; top left in BT.2020."""
    if layout.full:
        return 0.5, 0.5
    return (0.0, 0.0) if standard == "bt2020" else (0.0, 0.5)
