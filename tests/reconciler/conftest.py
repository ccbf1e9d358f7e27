"""A database per module, a channel and a desk per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog

from tests.engine.ground import Driver, Ground, Lane
from tests.postgres import Postgres
from tests.reconciler.desk import Desk

Connect = Callable[[], Driver]


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """No log lines: tracebacks on a terminal take their time."""
    before = structlog.get_config()
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    """A database that the tests of one module share."""
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def lane(ground: Ground) -> Lane:
    """A channel of this test's own; what earlier tests left in doubt is not due."""
    ground.sql("UPDATE doubts SET next_look_at = clock_timestamp() + interval '1 day'")
    return ground.lane()


@pytest.fixture
def connect(ground: Ground) -> Iterator[Connect]:
    """More connections as the reconciler opens them, closed when the test ends."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ground.engine.connect_driver())


@pytest.fixture
def connect_app(ground: Ground) -> Iterator[Connect]:
    """More connections as pages open them, closed when the test ends."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ground.app.connect_driver())


@pytest.fixture
def desk(lane: Lane, tmp_path: Path) -> Iterator[Desk]:
    """A reconciler in this process, on a platform that shows what it is told to."""
    with Desk.open(lane, tmp_path) as opened:
        yield opened
