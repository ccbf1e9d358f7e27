"""Which key a deployment belongs to, and who finds that out."""

from __future__ import annotations

import multiprocessing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial.deployment import (
    CloneRefused,
    KeyStanding,
    Standing,
    own_vault,
)
from publisher.engine import queries
from publisher.engine.schema import channels
from publisher.vault import Vault

spawn = multiprocessing.get_context("spawn")


def standing(database: Database, settings: Settings) -> KeyStanding:
    with database.engine.begin() as conn:
        return Standing.read(conn, settings).key


def test_the_first_key_is_the_deployments(database: Database, settings: Settings) -> None:
    assert standing(database, settings) is KeyStanding.UNUSED
    assert not settings.key_file.exists()
    with database.engine.begin() as conn:
        vault = own_vault(conn, settings)
        noted = queries.identity(conn).key_check
    assert noted == vault.check
    assert standing(database, settings) is KeyStanding.MATCHES
    with database.engine.begin() as conn:
        assert own_vault(conn, settings).check == vault.check


def test_a_lost_key_is_not_made_again(database: Database, settings: Settings) -> None:
    with database.engine.begin() as conn:
        own_vault(conn, settings)
    settings.key_file.unlink()
    with database.engine.begin() as conn, pytest.raises(CloneRefused) as caught:
        own_vault(conn, settings)
    assert caught.value.exit_code == 3
    assert not settings.key_file.exists()


@pytest.mark.parametrize(
    ("sealed_with", "expected"), [("ours", KeyStanding.MATCHES), ("another", KeyStanding.ANOTHER)]
)
def test_what_was_sealed_before_checks_were_kept_tells_too(
    app_database: Database, settings: Settings, sealed_with: str, expected: KeyStanding
) -> None:
    with app_database.engine.begin() as conn:
        identity = queries.deployment_id(conn)
        ours = Vault.from_settings(settings, identity)
        vault = ours if sealed_with == "ours" else Vault(bytes(32), identity)
        for number in (1, 2):
            values = {"platform": "p", "name": f"n{number}", "remote_id": f"{number}"}
            sealed = vault.seal("token", channel_id=number) if number == 2 else b"damaged"
            conn.execute(insert(channels).values(**values, sealed=sealed, trusted=True))
    assert standing(app_database, settings) is expected


def test_a_missing_key_with_something_sealed_is_a_copy(
    app_database: Database, settings: Settings
) -> None:
    with app_database.engine.begin() as conn:
        values = {"platform": "p", "name": "n", "remote_id": "1", "sealed": b"sealed"}
        conn.execute(insert(channels).values(**values, trusted=True))
    assert standing(app_database, settings) is KeyStanding.MISSING
    with app_database.engine.begin() as conn, pytest.raises(CloneRefused):
        own_vault(conn, settings)
    assert not settings.key_file.exists()


def test_of_two_first_keys_one_stays(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    start, ends = spawn.Barrier(2), spawn.Queue()
    racing = [
        spawn.Process(
            target=_use_a_key,
            args=(settings.model_copy(update={"home": tmp_path / name}), start, ends),
        )
        for name in ("a", "b")
    ]
    for one in racing:
        one.start()
    said = sorted(ends.get(timeout=60) for _ in racing)
    for one in racing:
        one.join()
    assert said == ["refused", "used"]


def _use_a_key(settings: Settings, start: Barrier, ends: Queue[str]) -> None:
    with Database.open(settings, Role.APP, application_name="test", workspace=EVERY) as database:
        start.wait(60)
        try:
            with database.engine.begin() as conn:
                own_vault(conn, settings)
        except CloneRefused:
            ends.put("refused")
        else:
            ends.put("used")


def test_the_check_tells_nothing_of_the_key() -> None:
    one, other = Vault(bytes(32), "a"), Vault(bytes(31) + b"\x01", "a")
    assert len({one.check, other.check, one.for_deployment("b").check}) == 3
    assert all(len(vault.check) == 32 for vault in (one, other))
    assert repr(bytes(32)) not in repr(one)


def test_only_the_owner_may_change_which_deployment_it_is(database: Database) -> None:
    with database.engine.connect() as conn, pytest.raises(Exception, match="permission denied"):
        conn.execute(text("UPDATE deployment SET id = gen_random_uuid()"))
