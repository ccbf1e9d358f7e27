"""The embedded server's life, lived by real processes: started, shared, killed, stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from publisher.config import Settings
from publisher.db.cluster import Cluster
from publisher.db.connect import Database
from publisher.db.embedded import EmbeddedServer
from publisher.db.roles import Role
from tests.embedded import User, await_gone, postmaster_pid, runs, superuser
from tests.postgres import installed, ordinary_account

pytestmark = pytest.mark.skipif("embedded" not in installed(), reason="the wheel is not installed")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_runs_while_it_is_held_and_no_longer(home: Path) -> None:
    with EmbeddedServer.acquire(home) as server:
        assert runs(home)
        with superuser(server) as conn:
            shown = {
                name: conn.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone()
                for name in ("data_checksums", "listen_addresses", "TimeZone", "server_encoding")
            }
            assert shown == {
                "data_checksums": ("on",),
                "listen_addresses": ("",),
                "TimeZone": ("UTC",),
                "server_encoding": ("UTF8",),
            }
            powers = conn.execute(
                "SELECT rolsuper, rolcreaterole, rolcreatedb, rolinherit FROM pg_roles"
                " WHERE rolname = 'publisher'"
            )
            assert powers.fetchone() == (False, False, False, False)
    assert not runs(home)


def test_safety_cannot_be_configured_away(home: Path) -> None:
    names = [sql.Identifier(n) for n in ("fsync", "full_page_writes", "synchronous_commit")]
    with EmbeddedServer.acquire(home) as server, superuser(server) as conn:
        for name in names:
            conn.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(name))
        conn.execute("SELECT pg_reload_conf()")
    with EmbeddedServer.acquire(home) as server, superuser(server) as conn:
        for name in names:
            assert conn.execute(sql.SQL("SHOW {}").format(name)).fetchone() == ("on",)
        conn.execute("ALTER SYSTEM RESET ALL")


def test_one_process_may_hold_it_twice(home: Path) -> None:
    first, second = EmbeddedServer.acquire(home), EmbeddedServer.acquire(home)
    first.release()
    first.release()
    assert runs(home)
    second.release()
    assert not runs(home)


def test_the_first_to_leave_does_not_stop_it(home: Path, user: Callable[..., User]) -> None:
    first, second = user(), user()
    first.await_up()
    second.await_up()
    first.leave()
    assert runs(home)
    second.leave()
    assert not runs(home)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_to_leave_stops_it_when_a_user_was_killed(
    home: Path, user: Callable[..., User], how: signal.Signals
) -> None:
    first, second = user(), user()
    first.await_up()
    second.await_up()
    assert second.die(how) == -how
    assert runs(home)
    first.leave()
    assert not runs(home)


def test_the_next_to_acquire_finds_it_when_the_only_user_was_killed(
    home: Path, user: Callable[..., User]
) -> None:
    only = user()
    only.await_up()
    pid = postmaster_pid(home)
    only.die(signal.SIGKILL)
    assert runs(home)
    server = EmbeddedServer.acquire(home)
    assert postmaster_pid(home) == pid
    server.release()
    assert not runs(home)


def test_a_user_that_exits_on_sigterm_stops_it(home: Path, user: Callable[..., User]) -> None:
    polite = user("polite")
    polite.await_up()
    assert polite.die(signal.SIGTERM) == 0
    assert not runs(home)


def test_many_may_start_at_once(place: Path) -> None:
    home = place / "home"
    users = [User(home) for _ in range(4)]
    for one in users:
        one.await_up()
    for one in users[1:]:
        one.leave()
    assert runs(home)
    users[0].leave()
    assert not runs(home)


def test_control_c_does_not_reach_it(home: Path, user: Callable[..., User]) -> None:
    only = user()
    only.await_up()
    pid = postmaster_pid(home)
    assert os.getsid(pid) != os.getsid(only.process.pid)
    assert os.getpgid(pid) == pid


def test_a_killed_server_is_started_again(home: Path) -> None:
    server = EmbeddedServer.acquire(home)
    os.kill(postmaster_pid(home), signal.SIGKILL)
    again = EmbeddedServer.acquire(home)
    psycopg.connect(host=str(again.socket_folder), user="publisher").close()
    server.release()
    assert runs(home)
    again.release()
    assert not runs(home)


def test_whoever_holds_a_server_that_died_can_start_it_again(home: Path) -> None:
    settings = Settings(home=home)
    with Database.open(settings, Role.ENGINE, application_name="test") as database:
        pid = postmaster_pid(home)
        os.kill(pid, signal.SIGKILL)
        await_gone(home)
        with database.connect_driver() as conn:
            assert conn.execute("SHOW role").fetchone() == ("publisher_engine",)
        assert postmaster_pid(home) != pid
    assert not runs(home)


@pytest.mark.parametrize(
    "milestone",
    ["start.lock", "data.unfinished/PG_VERSION", "data", "data/postmaster.pid", "start.log"],
)
def test_a_starter_that_was_killed_leaves_nothing_in_the_way(place: Path, milestone: str) -> None:
    starter = User(place / "home")
    while not (place / "home/postgres" / milestone).exists():
        assert starter.process.poll() is None
    starter.die(signal.SIGKILL)
    with EmbeddedServer.acquire(place / "home") as server, superuser(server) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    assert not runs(place / "home")


def test_a_stale_pid_that_is_somebody_elses_now_is_no_obstacle(home: Path) -> None:
    """After a reboot, or in a container, the pid in the file is soon another process's."""
    first = EmbeddedServer.acquire(home)
    path = home / "postgres/data/postmaster.pid"
    lines = path.read_text().splitlines()
    os.kill(postmaster_pid(home), signal.SIGKILL)
    await_gone(home)
    uid, gid = ordinary_account()
    identity: dict[str, Any] = {"user": uid, "group": gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "60"], **identity) as bystander:
        path.write_text("\n".join([str(bystander.pid), *lines[1:]]))
        (home / "postgres/socket/.s.PGSQL.5432.lock").write_text(path.read_text())
        server = EmbeddedServer.acquire(home)
        assert postmaster_pid(home) != bystander.pid
        first.release()
        server.release()
        assert bystander.poll() is None
        bystander.kill()


def test_a_cluster_half_made_is_made_again(place: Path) -> None:
    folder = Cluster.at(place / "home").folder
    (folder / "socket").mkdir()  # ours, and not given to the server's account yet
    left_over = folder / "data.unfinished"
    left_over.mkdir()
    (left_over / "PG_VERSION").write_text("18")
    with EmbeddedServer.acquire(place / "home"):
        assert not left_over.exists()


def test_a_forked_child_neither_stops_nor_keeps_it(home: Path) -> None:
    server = EmbeddedServer.acquire(home)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        server.release()
        os.write(write_end, b"released")
        signal.pause()
    assert os.read(read_end, 8) == b"released"
    assert runs(home)
    server.release()
    assert not runs(home)  # though the child is alive
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read_end)
    os.close(write_end)
