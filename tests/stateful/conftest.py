"""One database for all runs of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres
from tests.stateful.life import Stage


@pytest.fixture(scope="module")
def stage(pg: Postgres) -> Iterator[Stage]:
    with Stage.open(pg) as opened:
        yield opened
