"""One busy past for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.audit.history import Past
from tests.engine.audit.ruin import Ruin
from tests.engine.ground import Ground
from tests.postgres import Postgres


@pytest.fixture(scope="module")
def past(pg: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    with Ground.open(pg) as ground:
        yield Past.made(ground, Path(tmp_path_factory.mktemp("spool")))


@pytest.fixture(scope="module")
def ruin(past: Past) -> Ruin:
    """The same past, defenceless."""
    return Ruin.of(past)
