"""The codecs that movies are written in, what each can hold, and which one fits a plate.

ProRes and DNxHR are FFmpeg's own encoders, not licensed by Apple or Avid; their files say so. H.264 and H.265 need
libx264 and libx265 in the installed FFmpeg.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import av

from ...errors import OutputError, SettingError
from .layout import Layout, layout_of
from .planes import Coding, Matrix
from .tags import MovieColour


@dataclass(frozen=True, slots=True)
class MovieCodec:
    """A codec to write.

    Attributes:
        name: on the command line.
        title: for people.
        encoder: of FFmpeg.
        suffixes: files that can hold it, the usual one first.
        options: of the encoder.
        keeps_range: whether a file tells full range from limited; else YCbCr is written limited.
        alpha: whether it can hold alpha.
        only_bt709: whether its pictures always say that their matrix is BT.709's, so that they have to be.
    """

    name: str
    title: str
    encoder: str
    suffixes: tuple[str, ...]
    options: Mapping[str, str]
    keeps_range: bool = False
    alpha: bool = False
    only_bt709: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))


_QUICKTIME = (".mov", ".mkv", ".mxf")
_DELIVERY = (".mp4", ".mov", ".m4v", ".mkv")
_ALL = (
    MovieCodec("prores_422hq", "ProRes 422 HQ", "prores_ks", _QUICKTIME, {"profile": "hq"}),
    MovieCodec(
        "prores_4444", "ProRes 4444", "prores_ks", _QUICKTIME, {"profile": "4444", "alpha_bits": "16"}, alpha=True
    ),
    MovieCodec(
        "prores_4444xq",
        "ProRes 4444 XQ",
        "prores_ks",
        _QUICKTIME,
        {"profile": "4444xq", "alpha_bits": "16"},
        alpha=True,
    ),
    MovieCodec("dnxhr_hqx", "DNxHR HQX", "dnxhd", (".mov", ".mxf"), {"profile": "dnxhr_hqx"}, only_bt709=True),
    MovieCodec("dnxhr_444", "DNxHR 444", "dnxhd", (".mov", ".mxf"), {"profile": "dnxhr_444"}, only_bt709=True),
    MovieCodec("ffv1", "FFV1", "ffv1", (".mkv",), {"level": "3", "g": "1", "slices": "4", "slicecrc": "1"}, True, True),
    MovieCodec("h264", "H.264 10 bit", "libx264", _DELIVERY, {"preset": "medium", "crf": "12", "threads": "4"}, True),
    MovieCodec("h265", "H.265 10 bit", "libx265", _DELIVERY, {"preset": "medium", "crf": "12"}, True),
)
_SHORT = 8
"""Seen with libx265: movies shorter than its look-ahead get decoding times out of uninitialised memory."""

CODECS: Mapping[str, MovieCodec] = MappingProxyType({codec.name: codec for codec in _ALL})
"""By name."""


def codec_named(name: str) -> MovieCodec:
    """A codec by its name.

    Raises:
        SettingError: no such codec.
    """
    if name in CODECS:
        return CODECS[name]
    near = difflib.get_close_matches(name, CODECS, n=1)
    raise SettingError(
        f"no codec is called {name!r}",
        expected=", ".join(CODECS),
        hint=f"did you mean {near[0]}?" if near else "leave --codec out to take the plate's kind",
    )


def fitting_codec(suffix: str, layout: Layout | None, encoder: str, *, alpha: bool) -> MovieCodec:
    """The codec for a file when none is named: the plate's kind, rich enough to hold it.

    Args:
        suffix: of the file to write.
        layout: of the plate's code values, None where the plate is no movie.
        encoder: FFmpeg's name of the plate's codec.
        alpha: whether alpha has to be held.

    Raises:
        OutputError: no codec for such a file.
    """
    rich = alpha or layout is None or layout.model == "rgb" or (layout.shift_x == 0 and layout.model == "yuv")
    names = {
        ".mov": "prores_4444" if rich else "prores_422hq",
        ".mxf": "dnxhr_444" if rich else "dnxhr_hqx",
        ".mkv": "ffv1",
        ".mp4": "h265" if encoder == "hevc" else "h264",
        ".m4v": "h265" if encoder == "hevc" else "h264",
    }
    if suffix == ".mov" and encoder == "dnxhd" and not alpha:
        return CODECS["dnxhr_444" if rich else "dnxhr_hqx"]
    if suffix not in names:
        raise OutputError(f"movies are not written as {suffix}", expected=", ".join(names), hint="write .mov")
    return CODECS[names[suffix]]


def check_codec(codec: MovieCodec, suffix: str, *, alpha: bool) -> None:
    """Refuse a pair that cannot be written.

    Raises:
        OutputError: the file cannot hold the codec, the codec no alpha, or FFmpeg was built without the encoder.
    """
    if suffix not in codec.suffixes:
        raise OutputError(
            f"a {suffix} file cannot hold {codec.title}",
            expected=" or ".join(codec.suffixes),
            hint="change the file's extension, or --codec",
        )
    if alpha and not codec.alpha:
        raise OutputError(
            f"{codec.title} holds no alpha",
            expected=", ".join(one.name for one in _ALL if one.alpha),
            hint="--codec prores_4444 for an element with its matte",
        )
    try:
        av.codec.Codec(codec.encoder, "w")
    except av.codec.codec.UnknownCodecError as error:
        raise OutputError(
            f"the installed FFmpeg cannot write {codec.title}",
            expected=f"the encoder {codec.encoder}",
            hint="choose another --codec",
        ) from error


def layout_for(codec: MovieCodec, source: Layout | None, *, alpha: bool) -> Layout:
    """The pixel format to encode: as near to the source's as the codec takes.

    Args:
        codec: to write.
        source: layout of the plate's codes, None for a plate that is no movie.
        alpha: whether alpha is to be held.
    """
    letter = "a" if alpha and codec.alpha else ""
    if codec.name == "ffv1":
        return layout_of(_ffv1(source, letter))
    fixed = {"prores_422hq": "yuv422p10le", "dnxhr_hqx": "yuv422p10le", "h264": "yuv420p10le", "h265": "yuv420p10le"}
    if codec.name in fixed:
        return layout_of(fixed[codec.name])
    if codec.name == "dnxhr_444" and source is not None and source.model == "rgb":
        return layout_of("gbrp10le")
    return layout_of(f"yuv{letter}444p10le")


def _ffv1(source: Layout | None, letter: str) -> str:
    if source is None:
        return f"gbr{letter}p16le"
    bits = source.bits if source.bits in (8, 10, 12, 14, 16) else 10
    order = "" if bits == 8 else f"{bits}le"
    if source.model == "rgb":
        return f"bgr{letter or '0'}" if bits == 8 else f"gbr{letter}p{order}"
    if source.model == "gray":
        return f"yuva444p{order}" if letter else f"gray{order}"
    sub = {(1, 1): "420", (1, 0): "422", (0, 0): "444", (0, 1): "440", (2, 0): "411", (2, 2): "410"}
    name = f"yuv{letter}{sub[source.shift_x, source.shift_y]}p{'16le' if letter and bits == 14 else order}"
    known = {form.name for form in av.codec.Codec("ffv1", "w").video_formats or ()}
    return name if name in known else f"yuv{letter}444p{'16le' if bits > 12 else order}"


def coding_for(codec: MovieCodec, target: Layout, colour: MovieColour) -> Coding:
    """The coding to write: the source's where the codec can say it.

    Args:
        codec: to write.
        target: layout to write.
        colour: of the plate's codes; where they had no matrix, the primaries decide.
    """
    source = colour.coding
    if target.model == "rgb":
        return Coding("rgb", source.full_range if source.matrix == "rgb" else True)
    matrix: Matrix = source.matrix
    if codec.only_bt709:
        matrix = "bt709"
    elif matrix == "rgb":
        usual: Mapping[str, Matrix] = {"bt2020": "bt2020", "bt470bg": "bt601", "smpte170m": "bt601"}
        matrix = usual.get(colour.primaries, "bt709")
    full = source.full_range and codec.keeps_range and source.matrix != "rgb"
    return Coding(matrix, full, source.siting)


def encoder_params(codec: MovieCodec, coding: Coding, frames: int) -> Mapping[str, str]:
    """Options of libx264 and libx265 that depend on the movie: where chroma lies, which only they can tag.

    Args:
        codec: any.
        coding: of the movie.
        frames: number of them.
    """
    if codec.name not in ("h264", "h265"):
        return {}
    numbers = {(0.0, 0.5): 0, (0.5, 0.5): 1, (0.0, 0.0): 2}
    said = [f"chromaloc={numbers[coding.siting]}"] if coding.siting in numbers else []
    if codec.name == "h264":
        return {"x264-params": ":".join(said)}
    said += ["log-level=none", "frame-threads=2"]
    if frames < _SHORT:
        said.append("bframes=0")
    return {"x265-params": ":".join(said)}
