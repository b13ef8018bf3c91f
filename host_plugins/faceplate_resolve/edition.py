"""Which Resolve this is, found out before anything else is asked of it.

The free edition answers Studio's calls with a dialog, and while that is open every other call fails; so nothing but its
name and version is asked before the edition is known. From 21.1 on the free edition runs no Python at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from faceplate_client.errors import CannotDo

from . import api
from .calls import maybe

OLDEST = (18, 5)
SELECTION = (21, 0, 4)
"""From this version on scripts see the timeline's selection."""
WITHOUT = (
    "without it: render or export the shot, run `faceplate apply` on the files, and put the result on the timeline"
)


@dataclass(frozen=True)
class Edition:
    """The application's name and version.

    Attributes:
        product: "DaVinci Resolve Studio", or "DaVinci Resolve" for the free edition.
        version: as numbers, e.g. (21, 0, 4).
    """

    product: str
    version: tuple[int, ...]

    @property
    def text(self) -> str:
        """Version for people: "21.0.4"."""
        return ".".join(map(str, self.version[:3]))

    @property
    def studio(self) -> bool:
        """Whether this is Studio."""
        return "studio" in self.product.casefold()


def edition_of(application: api.Application) -> Edition:
    """The edition and version of a running Resolve; refuses what cannot be served.

    Raises:
        CannotDo: the free edition, a version before 18.5, or something that does not answer as Resolve does.
    """
    product = maybe(application.GetProductName)
    version = numbers(maybe(application.GetVersion)) or numbers(maybe(application.GetVersionString))
    if not isinstance(product, str) or not product or not version:
        raise CannotDo(
            "Resolve does not say which edition and version it is",
            found=f"{product!r}, {version!r}",
            hint="close its open dialogs and try again; if that does not help, start it anew",
        )
    edition = Edition(product, version)
    if not edition.studio:
        raise CannotDo(
            f"this is the free edition, {product} {edition.text}; Faceplate needs DaVinci Resolve Studio",
            expected=f"DaVinci Resolve Studio {'.'.join(map(str, OLDEST))} or later",
            found=f"{product} {edition.text}",
            hint=f"Blackmagic gives scripts to Studio alone from 21.1 on; {WITHOUT}",
        )
    if version[:2] < OLDEST:
        raise CannotDo(
            f"{product} {edition.text} is too old",
            expected=f"{'.'.join(map(str, OLDEST))} or later",
            found=edition.text,
            hint=f"update Resolve; {WITHOUT}",
        )
    return edition


def numbers(said: Any) -> tuple[int, ...]:
    """Version numbers from `GetVersion`'s list or `GetVersionString`'s text; empty where there are none."""
    if isinstance(said, str):
        return tuple(int(part) for part in re.findall(r"\d+", said)[:4])
    if isinstance(said, (list, tuple)):
        found = []
        for part in said[:4]:
            if isinstance(part, bool) or not isinstance(part, (int, float)):
                break
            found.append(int(part))
        return tuple(found)
    return ()
