"""Homes for embedded servers of one's own, and processes that use them."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from publisher.db.embedded import EmbeddedServer
from tests.embedded import User, runs
from tests.postgres import new_folder


@pytest.fixture
def user(home: Path) -> Iterator[Callable[..., User]]:
    """Start users of the home's server; those left at the end are killed."""
    started: list[User] = []

    def start(*words: str) -> User:
        one = User(home, *words)
        started.append(one)
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.die(signal.SIGKILL)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is closed to everybody but us, as root's are."""
    folder = new_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    """A home whose cluster was made once, in a closed folder."""
    folder = new_folder()
    EmbeddedServer.acquire(folder / "home").release()
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def home(used_home: Path) -> Iterator[Path]:
    """The used home with nothing running, before and after."""
    assert not runs(used_home)
    yield used_home
    if runs(used_home):
        EmbeddedServer.acquire(used_home).release()
    assert not runs(used_home)
