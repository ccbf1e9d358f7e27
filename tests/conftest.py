"""Fixtures for every test: a real server, a migrated database of one's own, settings for it.

``PUBLISHER_TEST_POSTGRES`` chooses the servers: ``embedded``, ``15`` or ``all`` (the default). Of
those, a test runs on the first; marked ``both_servers``, or with ``--all-servers``, on each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from tests.postgres import Postgres, ServerName, installed, running

CHOICE = "PUBLISHER_TEST_POSTGRES"
KNOWN: tuple[ServerName, ...] = ("embedded", "15")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all-servers``."""
    parser.addoption(
        "--all-servers",
        action="store_true",
        default=os.environ.get("PUBLISHER_TEST_ALL_SERVERS") == "1",
        help="run every database test on each PostgreSQL, not only those marked both_servers",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, check the choice, forget what the developer's own Publisher is set to."""
    config.addinivalue_line("markers", "both_servers: runs on every PostgreSQL there is")
    wanted()
    for name in [*os.environ]:
        if name.startswith("PUBLISHER_") and not name.startswith("PUBLISHER_TEST_"):
            del os.environ[name]


def pytest_report_header() -> str:
    """Say which servers tests run on, and which half is left out."""
    left_out = [name for name in wanted() if name not in installed()]
    line = f"postgres: {', '.join(chosen()) or 'none'}"
    return f"{line}; left out, not installed: {', '.join(left_out)}" if left_out else line


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what needs a server on the first one, or on each."""
    if "pg" not in metafunc.fixturenames:
        return
    names = chosen()
    everywhere = metafunc.config.getoption("--all-servers")
    if not everywhere and metafunc.definition.get_closest_marker("both_servers") is None:
        names = names[:1]
    metafunc.parametrize("pg", names, indirect=True, scope="session")


def wanted() -> tuple[ServerName, ...]:
    """Return the servers that the environment asks for."""
    choice = os.environ.get(CHOICE, "all")
    if choice == "all":
        return KNOWN
    found = tuple(name for name in KNOWN if name == choice)
    if not found:
        message = f"{CHOICE} is {choice}; it may be embedded, 15 or all"
        raise pytest.UsageError(message)
    return found


def chosen() -> list[ServerName]:
    """Return the servers that are asked for and installed."""
    return [name for name in wanted() if name in installed()]


class Servers:
    """The session's servers, each started when first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        """Stop what is started with ``stack``."""
        self._stack = stack
        self._running: dict[ServerName, Postgres] = {}

    def get(self, name: ServerName) -> Postgres:
        """Return the server, running."""
        if name not in self._running:
            self._running[name] = self._stack.enter_context(running(name))
        return self._running[name]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers that live as long as the session."""
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture(scope="session")
def pg(servers: Servers, request: pytest.FixtureRequest) -> Postgres:
    """A running server."""
    name: ServerName = request.param
    return servers.get(name)


@pytest.fixture
def database_url(pg: Postgres) -> Iterator[str]:
    """The address of a fresh database at the newest revision; its user may act in every role."""
    with pg.migrated_database() as name:
        yield pg.url(name)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Settings for the fresh database and an empty home."""
    return Settings(home=tmp_path / "home", database_url=SecretStr(database_url))


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """The fresh database as workers and the reconciler see it."""
    with Database.open(settings, Role.ENGINE, application_name="test engine") as opened:
        yield opened


@pytest.fixture
def app_database(settings: Settings) -> Iterator[Database]:
    """The fresh database as pages and API see it."""
    with Database.open(settings, Role.APP, application_name="test app", workspace=EVERY) as opened:
        yield opened


@pytest.fixture
def owner_database(settings: Settings) -> Iterator[Database]:
    """The fresh database as migrations and a test's back door see it."""
    with Database.open(settings, Role.OWNER, application_name="test owner") as opened:
        yield opened
