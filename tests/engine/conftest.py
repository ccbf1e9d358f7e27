"""A database per module, a channel and queue per test, and connections that are closed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog

from tests.engine.fallen import Fallen
from tests.engine.ground import Driver, Ground, Lane, superuser
from tests.postgres import Postgres


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """No log lines: a traceback on a terminal takes a coordinator half a second."""
    before = structlog.get_config()
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


Connect = Callable[[], Driver]


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    """A database that the tests of one module share."""
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def own_ground(pg: Postgres) -> Iterator[Ground]:
    """A database of this test's own, for what looks at every job there is."""
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def lane(ground: Ground) -> Lane:
    """A channel and a queue of this test's own."""
    return ground.lane()


@pytest.fixture
def root(ground: Ground) -> Iterator[Driver]:
    """Somebody with every right, whom triggers stop all the same; it is all taken back."""
    with superuser(ground.server, ground.name) as conn, conn.transaction(force_rollback=True):
        yield conn


@pytest.fixture
def connect(ground: Ground) -> Iterator[Connect]:
    """More connections as workers open them, closed when the test ends."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ground.engine.connect_driver())


@pytest.fixture
def connect_app(ground: Ground) -> Iterator[Connect]:
    """More connections as pages open them, closed when the test ends."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ground.app.connect_driver())


@pytest.fixture
def run(lane: Lane, tmp_path: Path) -> Fallen:
    """A worker run of this test's own, which it lets die."""
    return Fallen.start(lane, tmp_path)
