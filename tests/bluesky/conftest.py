"""The reference server, for tests that are asked for by name: ``make test-bluesky``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from publisher.config import Settings
from publisher.transport import Transport
from tests.bluesky.account import RealAccount
from tests.bluesky.proxy import CuttingProxy
from tests.bluesky.reference import ReferencePds, running

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "bluesky: needs the reference server; pytest -m bluesky")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these out unless they are asked for: they install a server of another language."""
    if "bluesky" in (config.getoption("markexpr") or ""):
        return
    for item in items:
        if item.get_closest_marker("bluesky") is not None:
            item.add_marker(pytest.mark.skip(reason="make test-bluesky"))


@pytest.fixture(scope="session")
def pds() -> Iterator[ReferencePds]:
    """The server, for the whole run; each test has an account of its own."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def transport() -> Iterator[Transport]:
    """HTTP as the product makes it."""
    made = Transport(Settings())
    yield made
    made.close()


@pytest.fixture
def proxy(pds: ReferencePds) -> Iterator[CuttingProxy]:
    """Between the adapter and the server."""
    with CuttingProxy(pds.port) as running_proxy:
        yield running_proxy


@pytest.fixture
def account(
    pds: ReferencePds,
    transport: Transport,
    proxy: CuttingProxy,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[RealAccount]:
    """An account of its own, behind the proxy; afterwards, no secret of it is anywhere."""
    caplog.set_level("DEBUG")
    made = RealAccount(pds, transport, proxy, pds.account(f"writer{next(_numbers)}"))
    yield made
    kept = f"{made.seen!r}{caplog.text}"
    for secret in made.secrets():
        assert secret not in kept
