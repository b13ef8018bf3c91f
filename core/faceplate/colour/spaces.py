"""The active OCIO configuration: names, what they mean, and conversions between them.

The order in which a plate's space is found is in `decide`; this file only knows the configuration.

Display spaces ("sRGB - Display") are accepted where a space is asked for: OCIO takes them back to scene light
through the configuration's default view transform, which in the built-in configurations is un-tone-mapped (a curve and
a matrix). A picture that went through a tone-mapping view cannot be brought back over its range (ACES 2.0 loses all
above 128 and all negatives), so Faceplate never inverts a *view*; for ordinary 8-bit pictures take
"sRGB Encoded Rec.709 (sRGB)".

Spaces whose own curve loses range, whatever computes it: ACEScc (negatives become 0), Canon Log 3 (clamps outside about
-0.07..14.7), Apple Log (negatives clamp at about -0.056), Canon Log 2 and ADX (tables with ends).
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import PyOpenColorIO as ocio

from ..errors import ColourSpaceError
from .transform import ColourTransform

DEFAULT_CONFIG = "ocio://studio-config-v4.0.0_aces-v2.0_ocio-v2.5"
"""Pinned by full name: "ocio://default" means different configurations in different releases."""

_REC709_LINEAR = ("lin_rec709_scene", "lin_rec709", "lin_rec709_srgb", "Linear Rec.709 (sRGB)", "lin_srgb")

_CROSSTALK = 2e-5
"""Relative; between two spaces of the same primaries a conversion leaves channels apart to about 1e-6."""


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _load(source: str) -> Any:
    try:
        return ocio.Config.CreateFromFile(source)
    except (ocio.Exception, ocio.ExceptionMissingFile) as error:
        raise ColourSpaceError(
            f"the OCIO configuration {source} cannot be loaded",
            expected="an .ocio or .ocioz file, or an ocio:// name",
            found=str(error).strip(),
            hint=f"correct $OCIO or the setting, or leave both out to use {DEFAULT_CONFIG}",
        ) from error


class ColourConfig:
    """An OCIO configuration.

    Attributes:
        source: file or ocio:// name it was read from.
        from_studio: True when it came from $OCIO, so that its file rules speak for the studio.
        name: for the report; the file name where the configuration has none.
        description: for the report, may be empty.
    """

    def __init__(self, config: Any, source: str, *, from_studio: bool = False) -> None:
        self._config = config
        self.source = source
        self.from_studio = from_studio
        self.name: str = config.getName() or os.path.basename(source)
        self.description: str = config.getDescription()
        self._transforms: dict[tuple[str, str], ColourTransform] = {}
        self._twins: dict[str, str] = {}

    @classmethod
    def open(cls, source: str | None = None) -> ColourConfig:
        """The configuration `source`, else that of $OCIO, else `DEFAULT_CONFIG`.

        Raises:
            ColourSpaceError: it cannot be loaded.
        """
        studio = os.environ.get("OCIO", "").strip()
        chosen = source or studio or DEFAULT_CONFIG
        return cls(_load(chosen), chosen, from_studio=not source and bool(studio))

    def __repr__(self) -> str:
        return f"ColourConfig({self.name!r})"

    @cached_property
    def _spaces(self) -> Mapping[str, Any]:
        """Spaces by canonical name, scene-referred first."""
        found = {}
        for kind in (ocio.SEARCH_REFERENCE_SPACE_SCENE, ocio.SEARCH_REFERENCE_SPACE_DISPLAY):
            for space in self._config.getColorSpaces(kind, ocio.COLORSPACE_ALL):
                found[space.getName()] = space
        return found

    @cached_property
    def _lookup(self) -> Mapping[str, str]:
        """Canonical names by every other name, lower case."""
        found: dict[str, str] = {}
        for name, space in self._spaces.items():
            for other in (*space.getAliases(), _interop_id(space)):
                if other:
                    found.setdefault(other.lower(), name)
        for role, name in self._config.getRoles():
            found[role.lower()] = name
        for name in self._spaces:
            found[name.lower()] = name
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names of every space that can hold a plate."""
        return tuple(name for name, space in self._spaces.items() if not space.isData())

    def resolve(self, name: str) -> str:
        """Canonical name of a space.

        Args:
            name: canonical name, alias, role or interop id in any case; or a canonical name's beginning that fits one
                space only, with or without the maker ("LogC4", "V-Log").

        Raises:
            ColourSpaceError: unknown, fits several, or a data space; the hint offers the nearest.
        """
        word = name.strip()
        found = self._lookup.get(word.lower())
        if found is None:
            holding, starts = self._holding(_squeeze(word))
            if len(holding) != 1 or not starts:
                raise ColourSpaceError(
                    f"{name!r} fits several colour spaces" if holding else f"no colour space is called {name!r}",
                    expected=f"a space of {self.name}",
                    hint=self._offer(word),
                )
            found = holding[0]
        if found in self._spaces and self._spaces[found].isData():
            raise ColourSpaceError(
                f"{name!r} is for data, not for colour",
                expected="the space in which the plate was made",
                hint=f"if the pixels are linear, say in which primaries: {', '.join(self._linear_names()[:4])}",
            )
        return found

    def _holding(self, word: str) -> tuple[list[str], bool]:
        """Spaces whose canonical name holds `word`, and whether the first begins with it (after its maker's name)."""
        found = [name for name in self._spaces if len(word) >= 4 and word in _squeeze(name)]
        if not found:
            return [], False
        maker = _squeeze(self._spaces[found[0]].getFamily().split("/")[-1])
        first = _squeeze(found[0])
        return found, first.startswith(word) or first.removeprefix(maker).startswith(word)

    def _linear_names(self) -> list[str]:
        common = ("lin_ap1_scene", "lin_rec709_scene", "lin_ap0_scene", "lin_rec2020_scene")
        known = [self._lookup[name] for name in common if name in self._lookup]
        return known + [name for name in self.names if self.is_linear(name) and name not in known]

    def _offer(self, word: str) -> str:
        squeezed = _squeeze(word)
        forms = {_squeeze(other): name for other, name in self._lookup.items()}
        holding = [name for form, name in forms.items() if len(squeezed) >= 2 and squeezed in form]
        near = [forms[form] for form in difflib.get_close_matches(squeezed, forms, n=6, cutoff=0.5)]
        ranked = sorted(dict.fromkeys(holding), key=list(self._spaces).index) + near
        offered = [name for name in dict.fromkeys(ranked) if not self._spaces[name].isData()][:6]
        if not offered:
            return f"the spaces of {self.name} are {', '.join(self.names)}"
        return f"did you mean {' or '.join(repr(name) for name in offered)}?"

    def is_linear(self, name: str) -> bool:
        """True when `name` (as in `resolve`) is scene-linear."""
        return bool(self._config.isColorSpaceLinear(self.resolve(name), ocio.REFERENCE_SPACE_SCENE))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the configuration's text: two machines that have the same one convert alike, but for LUT files."""
        return hashlib.sha256(self._config.serialize().encode()).hexdigest()

    def interop_id(self, name: str) -> str:
        """The space's id of the Color Interop Forum; "" where the configuration, or an OCIO before 2.5, has none."""
        return _interop_id(self._spaces[self.resolve(name)])

    def linear_twin(self, name: str) -> str:
        """The scene-linear space to decode `name` to.

        Itself when linear; the linear space of the same primaries where the configuration has one; else the space of
        the scene_linear role.

        Raises:
            ColourSpaceError: unknown space, or the configuration has no scene_linear role where it is needed.
        """
        space = self.resolve(name)
        if space not in self._twins:
            self._twins[space] = space if self.is_linear(space) else self._find_twin(space)
        return self._twins[space]

    def _find_twin(self, space: str) -> str:
        # Two pixels that share one channel: where that channel comes out the same, nothing mixes the channels.
        probes = np.array([[0.5, 0.3, 0.6], [0.5, 0.6, 0.4], [0.3, 0.5, 0.6], [0.6, 0.5, 0.4]], dtype=np.float32)
        best, least = None, _CROSSTALK
        for linear in self.names:
            if not self.is_linear(linear):
                continue
            out = self.transform(space, linear).numpy(probes)
            pairs = np.array([[out[0, 0], out[1, 0]], [out[2, 1], out[3, 1]], [out[0, 2], out[2, 2]]])
            mixing = float(np.max(np.abs(pairs[:, 0] - pairs[:, 1]) / np.maximum(np.abs(pairs).max(axis=1), 1e-6)))
            if mixing < least:
                best, least = linear, mixing
        return best if best is not None else self.scene_linear

    @property
    def scene_linear(self) -> str:
        """Canonical name of the space with the scene_linear role.

        Raises:
            ColourSpaceError: the configuration has no such role.
        """
        found = self._lookup.get("scene_linear")
        if found is None:
            raise ColourSpaceError(
                f"the OCIO configuration {self.name} has no scene_linear role",
                hint="name the plate's space in the job, or add the role to the configuration",
            )
        return found

    def transform(self, src: str, dst: str) -> ColourTransform:
        """The conversion from `src` to `dst` (names as in `resolve`), kept for the next call.

        Raises:
            ColourSpaceError: unknown space, or OCIO cannot make the conversion (a LUT file is missing, say).
        """
        key = self.resolve(src), self.resolve(dst)
        if key not in self._transforms:
            self._transforms[key] = _transform(*key, lambda: self._config.getProcessor(*key))
        return self._transforms[key]

    def to_rec709(self, src: str) -> ColourTransform:
        """The conversion from `src` to linear Rec.709, the primaries that face models believe in.

        A configuration without a linear Rec.709 space is bridged by OCIO's interchange role to `DEFAULT_CONFIG`.

        Raises:
            ColourSpaceError: unknown space, or neither such a space nor the aces_interchange role.
        """
        return self._rec709(src, forward=True)

    def from_rec709(self, dst: str) -> ColourTransform:
        """The conversion from linear Rec.709 to `dst`; otherwise as `to_rec709`."""
        return self._rec709(dst, forward=False)

    def _rec709(self, name: str, *, forward: bool) -> ColourTransform:
        space = self.resolve(name)
        own = next((self._lookup[alias.lower()] for alias in _REC709_LINEAR if alias.lower() in self._lookup), None)
        if own is not None:
            return self.transform(space, own) if forward else self.transform(own, space)
        outer = f"{DEFAULT_CONFIG}:lin_rec709_scene"
        key = (space, outer) if forward else (outer, space)
        if key not in self._transforms:
            ours, theirs = (self._config, space), (_load(DEFAULT_CONFIG), "lin_rec709_scene")
            first, second = (ours, theirs) if forward else (theirs, ours)
            self._transforms[key] = _transform(*key, lambda: ocio.Config.GetProcessorFromConfigs(*first, *second))
        return self._transforms[key]

    def with_space(self, name: str, to_linear: tuple[list[Any], str]) -> ColourConfig:
        """This configuration and one more scene-referred space.

        Args:
            name: of the new space.
            to_linear: OCIO transforms from its values to those of a linear space, and that space's canonical name.
        """
        steps, linear = to_linear
        base = self._config.getColorSpace(linear)
        whole = ocio.GroupTransform()
        for step in steps:
            whole.appendTransform(step)
        rest = base.getTransform(ocio.COLORSPACE_DIR_TO_REFERENCE)
        if rest is None:
            back = base.getTransform(ocio.COLORSPACE_DIR_FROM_REFERENCE)
            rest = None if back is None else ocio.GroupTransform([back], ocio.TRANSFORM_DIR_INVERSE)
        if rest is not None:
            whole.appendTransform(rest)
        space = ocio.ColorSpace(name=name, toReference=whole)
        more = copy.deepcopy(self._config)
        more.addColorSpace(space)
        config = ColourConfig(more, self.source, from_studio=self.from_studio)
        config.name, config.description = self.name, self.description
        return config

    def rule_for(self, path: str) -> str | None:
        """The space that the configuration's file rules give for `path`; None when only the default rule fits."""
        space, rule = self._config.getColorSpaceFromFilepath(path)
        rules = self._config.getFileRules()
        if not space or rules.getName(rule).lower() == "default":
            return None
        return str(space)


def _interop_id(space: Any) -> str:
    return str(space.getInteropID()) if hasattr(space, "getInteropID") else ""


def _transform(source: str, target: str, make: Any) -> ColourTransform:
    try:
        return ColourTransform(source, target, make())
    except (ocio.Exception, ocio.ExceptionMissingFile) as error:
        raise ColourSpaceError(
            f"OCIO cannot convert {source} to {target}",
            found=str(error).strip(),
            hint="check the configuration's roles (scene_linear, aces_interchange) and the files it refers to",
        ) from error
