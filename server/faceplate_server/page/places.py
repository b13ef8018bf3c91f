"""Where the page's address lies: files of mode 0600 in the server's private folder."""

from __future__ import annotations

import os
from pathlib import Path

from faceplate.errors import ResourceError
from faceplate_client.connection import Place
from faceplate_client.private import open_private

_LONGEST = 1000


def page_file(place: Place) -> Path:
    """One line: the page's address with its token."""
    return place.folder / f"server-{place.name}.page"


def token_file(place: Place) -> Path:
    """The token alone, for Prometheus' `credentials_file`."""
    return place.folder / f"server-{place.name}.page-token"


def read_url(place: Place) -> str:
    """The address of a running server's page.

    Raises:
        ResourceError: it has none.
        UnsafeFile: the file is another user's, or open to others.
    """
    try:
        with os.fdopen(open_private(page_file(place), os.O_RDONLY), "rb") as file:
            return file.read(_LONGEST).decode("ascii").strip()
    except FileNotFoundError as error:
        raise ResourceError(
            f"the server called {place.name!r} has no status page",
            hint="set page = true in the server's configuration and start it again",
        ) from error
