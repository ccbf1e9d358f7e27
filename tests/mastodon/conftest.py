"""``mastodon_mock``, for tests that are asked for by name: ``make test-mastodon``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from publisher.config import Settings
from publisher.transport import Transport
from tests.bluesky.proxy import CuttingProxy
from tests.mastodon.account import MockAccount
from tests.mastodon.mock import ACCOUNTS, Mock, running, token_of

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "mastodon: needs mastodon_mock; pytest -m mastodon")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these out unless they are asked for: they install a server."""
    if "mastodon" in (config.getoption("markexpr") or ""):
        return
    for item in items:
        if item.get_closest_marker("mastodon") is not None:
            item.add_marker(pytest.mark.skip(reason="make test-mastodon"))


@pytest.fixture(scope="session")
def mock() -> Iterator[Mock]:
    """The server, for the whole run; each test has an account of its own."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def transport() -> Iterator[Transport]:
    """HTTP as the product makes it, allowed to go to this machine."""
    made = Transport(Settings.model_validate({"allowed_networks": ("127.0.0.0/8",)}))
    yield made
    made.close()


@pytest.fixture
def account(
    mock: Mock, transport: Transport, caplog: pytest.LogCaptureFixture
) -> Iterator[MockAccount]:
    """An account of its own, behind a proxy; afterwards, its token is nowhere."""
    caplog.set_level("DEBUG")
    number = next(_numbers)
    assert number <= ACCOUNTS
    with CuttingProxy(mock.port) as proxy:
        made = MockAccount(mock, transport, proxy, token_of(number))
        yield made
    assert made.token not in repr(made.seen)
    assert made.token not in caplog.text
