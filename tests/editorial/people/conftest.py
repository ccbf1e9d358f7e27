"""People in a real database: an admin and an editor of one workspace, with passwords and all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import argon2
import pytest
from sqlalchemy import Connection, Engine, text

from publisher.db.connect import Database
from publisher.editorial.people import links, passwords, person, sign_in, users, workspaces
from publisher.editorial.people.person import Person
from publisher.editorial.people.roles import Role
from publisher.editorial.people.sessions import Begun
from publisher.vault import Vault

PASSWORD = "plover kettle ninety"
OTHER = "another long sentence"
T = TypeVar("T")
WAITING = "SELECT 1 FROM pg_locks WHERE NOT granted"


class Town:
    """The use cases on one database, and a back door to it."""

    def __init__(self, app: Database, owner: Database) -> None:
        self.engine: Engine = app.engine
        self._owner = owner
        self.vault = Vault(bytes(32), "d0")

    def invite(self, email: str, role: Role = Role.EDITOR, slug: str = "main") -> str:
        """Add somebody; returns the token of their link."""
        with self.engine.begin() as conn:
            workspace = workspaces.find(conn, slug)
            name = email.partition("@")[0].title()
            added = users.add(conn, workspace, email=email, name=name, role=role, who="root")
        assert added.link is not None
        return added.link.token

    def join(self, email: str, role: Role = Role.EDITOR, slug: str = "main") -> Begun:
        """Add somebody who chooses ``PASSWORD`` at once; returns their first session."""
        token = self.invite(email, role, slug)
        return sign_in.by_link(self.engine, token=token, password=PASSWORD)

    def sign_in(self, email: str, password: str = PASSWORD, **more: Any) -> Begun:  # noqa: ANN401 - those of with_password
        return sign_in.with_password(self.engine, email=email, password=password, **more)

    def person(self, email: str, slug: str = "main") -> Person:
        with self.engine.begin() as conn:
            return person.in_workspace(conn, users.find(conn, email).id, slug)

    def user(self, email: str) -> users.User:
        with self.engine.begin() as conn:
            return users.find(conn, email)

    def link(self, email: str) -> str:
        with self.engine.begin() as conn:
            return links.make(conn, users.find(conn, email).id, who="root").token

    def do(self, statement: str, **values: object) -> None:
        """Change rows as only a test may, such as their times."""
        with self._owner.engine.begin() as conn:
            conn.execute(text(statement), values)

    def all(self, query: str, **values: object) -> Sequence[Any]:
        with self._owner.engine.begin() as conn:
            return conn.execute(text(query), values).all()

    def at_once(self, count: int, act: Callable[[int], T]) -> list[T | Exception]:
        """What came of doing it so many times at the same moment."""

        def run(number: int) -> T | Exception:
            try:
                return act(number)
            except Exception as error:  # noqa: BLE001 - told to the test
                return error

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(run, range(count)))

    def meanwhile(self, first: Callable[[Connection], object], second: Callable[[], T]) -> object:
        """What came of ``second`` when it began while ``first`` was done and not yet committed.

        ``first`` is committed once ``second`` waits for it, or has ended without waiting.
        """
        with ThreadPoolExecutor(1) as pool:
            with self.engine.begin() as conn:
                first(conn)
                running = pool.submit(second)
                while not running.done() and not self.all(WAITING):
                    pass
            error = running.exception()
            return running.result() if error is None else error


@pytest.fixture
def town(app_database: Database, owner_database: Database, monkeypatch: pytest.MonkeyPatch) -> Town:
    """Passwords are hashed cheaply here; test_passwords has the real parameters."""
    cheap = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", cheap)
    return Town(app_database, owner_database)
