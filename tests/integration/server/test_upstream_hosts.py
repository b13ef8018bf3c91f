"""Hosts do not notice: what a server must do for them, it does as well where a team server does the work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.server.conftest import Running
from tests.integration.server.teams import team_of
from tests.integration.server.test_for_hosts import *  # noqa: F403
from tests.integration.server.test_jobs import *  # noqa: F403
from tests.integration.server.test_movies import *  # noqa: F403

del test_auto_takes_a_server_that_gives_the_same_and_none_else  # noqa: F821 - "auto" wants the same device


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    with team_of() as team:
        yield team.local("anna")
