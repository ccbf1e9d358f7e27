"""A server told not to care, a standby, settings kept for a role, sessions that hold things up."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.binaries import find_binaries
from publisher.db.connect import Database
from publisher.db.embedded import LOGIN
from publisher.db.preflight import ProblemCode
from publisher.db.roles import Role, ensure_roles
from publisher.doctor import server
from publisher.doctor.finding import Severity
from publisher.doctor.ward import Limits
from tests.conftest import chosen
from tests.doctor.patient import Patient
from tests.engine.ground import await_that
from tests.postgres import FOLDER_OF_15, Postgres, initialise, new_folder, serving

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE


@pytest.mark.both_servers
@pytest.mark.parametrize("where", ["ROLE publisher IN DATABASE", "DATABASE"])
@pytest.mark.parametrize(
    ("setting", "check", "code"),
    [
        ("synchronous_commit = off", "fit", "synchronous_commit_off"),
        ("default_transaction_read_only = on", "fit", "read_only"),
        ("session_replication_role = replica", "triggers-fire", "triggers_do_not_fire"),
        ("zero_damaged_pages = on", "damage", "damage_hidden"),
        ("statement_timeout = 900", "timeouts", "timeout_short"),
        ("idle_session_timeout = '5s'", "timeouts", "timeout_short"),
    ],
)
def test_settings_of_this_role_as_a_worker_meets_them(
    patient: Patient, where: str, setting: str, check: str, code: str
) -> None:
    patient.plant(f"ALTER {where} {patient.ground.name} SET {setting}")
    assert patient.codes(check) == [code]


@pytest.mark.both_servers
@pytest.mark.parametrize("who", ["publisher_engine", "publisher_app", "publisher", "ALL"])
@pytest.mark.parametrize(
    "setting", ["synchronous_commit = off", "synchronous_commit = 'false'",
                "session_replication_role = replica"],
)  # fmt: skip
def test_settings_kept_for_a_role_that_another_process_would_meet(
    patient: Patient, who: str, setting: str
) -> None:
    """Only a login of its own meets what is kept for it; ours may not."""
    place = f"ROLE {who} IN DATABASE {patient.ground.name}"
    patient.plant(f"ALTER {place} SET {setting}")
    (found,) = patient.found("overrides")
    assert (found.severity, found.code) == (E, "setting_overridden")
    assert setting.partition(" ")[0] in found.what
    patient.plant(f"ALTER {place} SET synchronous_commit = local")
    patient.plant(f"ALTER {place} RESET session_replication_role")
    assert patient.codes("overrides") == []


def test_a_login_of_somebody_elses_may_do_as_it_likes(patient: Patient) -> None:
    patient.plant("CREATE ROLE doctors_reporter LOGIN")
    try:
        patient.plant("ALTER ROLE doctors_reporter SET synchronous_commit = off")
        assert patient.codes("overrides") == []
        patient.plant("GRANT publisher_engine TO doctors_reporter")
        assert patient.codes("overrides") == ["setting_overridden"]
    finally:
        patient.plant("DROP ROLE doctors_reporter")


@contextmanager
def cluster() -> Iterator[tuple[Path, Path]]:
    binaries = FOLDER_OF_15 if "15" in chosen() else find_binaries()
    folder = new_folder()
    try:
        initialise(binaries, folder)
        yield binaries, folder
    finally:
        shutil.rmtree(folder)


def test_a_careless_server_then_the_same_as_a_standby(patient: Patient) -> None:
    with cluster() as (binaries, folder):
        pg = Postgres(chosen()[-1], folder)
        other = replace(
            patient,
            settings=Settings(
                home=patient.settings.home, database_url=SecretStr(pg.url("postgres"))
            ),
        )
        careless = ("fsync=off", "full_page_writes=off", "data_sync_retry=on", "max_connections=20")
        with serving(binaries, folder, *careless):
            with pg.superuser() as conn:
                conn.execute("CREATE ROLE publisher LOGIN NOINHERIT")
                ensure_roles(conn, login=LOGIN)
            with Database.open(other.settings, Role.OWNER, application_name="test") as database:
                migrate.upgrade(database)
            assert other.codes("fit") == ["fsync_off", "full_page_writes_off"]
            assert other.codes("damage") == ["damage_hidden"]
            if pg.name == "15":  # the newer initdb makes them unless told not to
                assert other.ills("checksums") == [(N, "no_checksums")]
            assert other.codes("connections") == []
            patient_limits = replace(other, limits=Limits(free_connections=20))
            assert patient_limits.ills("connections") == [(W, "few_connections")]
        (folder / "data" / "standby.signal").touch()
        with serving(binaries, folder, "synchronous_standby_names=other"):
            assert other.codes("fit") == ["standby"]
            assert other.codes("promise", "standbys") == []
        (folder / "data" / "standby.signal").unlink()
        local = ("synchronous_standby_names=other", "synchronous_commit=local")
        with serving(binaries, folder, *local):
            assert other.ills("fit", "standbys") == [(W, "standby_not_awaited")]


def test_every_reason_not_to_start_has_words_here() -> None:
    for code in ProblemCode:
        what, remedy = server._words(code)
        facts = {"version": "14", "login": "l", "current": "1", "head": "2"}
        assert what.format(**facts).endswith(".")
        assert remedy.format(**facts)


def test_connections_of_a_login_and_a_database_are_limited(patient: Patient) -> None:
    patient.plant(f"ALTER DATABASE {patient.ground.name} CONNECTION LIMIT 15")
    (found,) = patient.found("connections")
    assert found.code == "few_connections"
    assert "this database" in found.what
    patient.plant(f"ALTER DATABASE {patient.ground.name} CONNECTION LIMIT -1")
    patient.plant("ALTER ROLE publisher CONNECTION LIMIT 15")
    try:
        (found,) = patient.found("connections")
        assert "the login user" in found.what
    finally:
        patient.plant("ALTER ROLE publisher CONNECTION LIMIT -1")
    assert patient.codes("connections") == []


@pytest.mark.both_servers
def test_transactions_that_are_left_open(patient: Patient) -> None:
    short = replace(patient, limits=Limits(old_transaction=0.0, idle_in_transaction=0.0))
    assert short.codes("transactions") == []
    with patient.ground.app.engine.connect() as sleeping:
        sleeping.exec_driver_sql("SELECT txid_current()")
        pid = sleeping.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        await_state(patient, pid, "idle in transaction")
        (found,) = short.found("transactions")
        assert (found.severity, found.code) == (W, "idle_in_transaction")
        assert f"pg_terminate_backend({pid})" in found.remedy
        # Not yet old by the limits that count.
        assert patient.codes("transactions") == []
    busy = patient.ground.app.connect_driver()
    thread = Thread(target=_sleep, args=(busy,))
    thread.start()
    try:
        pid = busy.info.backend_pid
        await_state(patient, pid, "active")
        assert short.codes("transactions") == ["old_transaction"]
    finally:
        patient.plant("SELECT pg_terminate_backend(%s)", pid)
        thread.join()


def test_snapshots_of_a_login_whose_sessions_are_hidden_from_us(patient: Patient) -> None:
    short = replace(patient, limits=Limits(snapshot_behind=-1))
    with patient.ground.server.superuser(patient.ground.name) as conn, conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("SELECT 1")
        (found,) = short.found("transactions")
        assert found.code == "old_transaction"
        assert f"Session {conn.info.backend_pid} " in found.what
        assert patient.codes("transactions") == []


def await_state(patient: Patient, pid: int, state: str) -> None:
    question = "SELECT state = %s FROM pg_stat_activity WHERE pid = %s"
    await_that(lambda: patient.ground.one(question, state, pid))


def _sleep(conn: psycopg.Connection) -> None:
    try:
        conn.execute("SELECT pg_sleep(60)")
    except psycopg.OperationalError:
        conn.close()


@pytest.mark.both_servers
def test_locks_that_are_waited_for(patient: Patient) -> None:
    short = replace(patient, limits=Limits(lock_wait=0.0))
    assert short.codes("locks") == []
    lane = patient.lane()
    with (
        patient.ground.app.engine.connect() as holder,
        patient.ground.app.engine.connect() as waiter,
    ):
        lock = f"SELECT FROM gates WHERE channel_id = {lane.channel_id} FOR UPDATE"
        holder.exec_driver_sql(lock)
        by = holder.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        pid = waiter.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        thread = Thread(target=waiter.exec_driver_sql, args=(lock,))
        thread.start()
        try:
            await_that(lambda: patient.ground.one(
                "SELECT cardinality(pg_blocking_pids(%s)) > 0", pid))  # fmt: skip
            (found,) = short.found("locks")
        finally:
            holder.rollback()
            thread.join()
    assert (found.severity, found.code) == (W, "lock_waited_for")
    assert f"pg_terminate_backend({by})" in found.remedy


def test_what_outlives_every_session(patient: Patient) -> None:
    """Nobody asked for prepared transactions; the server must allow them to show one."""
    with cluster() as (binaries, folder):
        pg = Postgres(chosen()[-1], folder)
        with serving(binaries, folder, "max_prepared_transactions=2", "wal_level=logical"):
            with pg.superuser() as conn:
                conn.execute("CREATE ROLE publisher LOGIN NOINHERIT")
                ensure_roles(conn, login=LOGIN)
                conn.execute("CREATE TABLE left_over (n int)")
                conn.execute("BEGIN")
                conn.execute("INSERT INTO left_over VALUES (1)")
                conn.execute("PREPARE TRANSACTION 'forgotten'")
                conn.execute("SELECT pg_create_physical_replication_slot('gone', true)")
            other = replace(
                patient,
                settings=patient.settings.model_copy(
                    update={"database_url": SecretStr(pg.url("postgres"))}
                ),
                limits=Limits(old_transaction=0.0),
            )
            found = other.found("left-behind")
    assert [one.code for one in found] == ["prepared_transaction", "unused_slot"]
    assert "forgotten" in found[0].what
    assert "pg_drop_replication_slot('gone')" in found[1].remedy


@pytest.mark.parametrize(
    ("limits", "severity"),
    [
        (Limits(frozen_note=-1), N),
        (Limits(frozen_note=-1, frozen_warning=-1), W),
        (Limits(frozen_note=-1, frozen_warning=-1, frozen_error=-1), E),
    ],
)
def test_how_far_vacuum_is_behind(patient: Patient, limits: Limits, severity: Severity) -> None:
    assert patient.codes("wraparound") == []
    assert replace(patient, limits=limits).ills("wraparound") == [(severity, "vacuum_behind")]


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (0.0, []),
        (3.0, [(W, "clock_skew")]),
        (-3.0, [(W, "clock_skew")]),
        (-9.0, [(E, "clock_skew")]),
    ],
)
def test_clocks_that_part(
    patient: Patient, ahead: float, expected: list[tuple[Severity, str]]
) -> None:
    """The host's clock is read ``ahead`` of what it is: setting it would move everybody's."""
    assert replace(patient, wall=lambda: time.time() + ahead).ills("clock") == expected


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("UPDATE alembic_version SET version_num = 'from the future'", "schema_newer"),
        ("DELETE FROM alembic_version", "schema_missing"),
        ("UPDATE alembic_version SET version_num = '0001'", "schema_older"),
    ],
)
def test_a_schema_of_another_release(patient: Patient, fault: str, code: str) -> None:
    patient.plant(fault)
    assert patient.codes("fit") == [code]
