"""Worker off for three days, fifty posts overdue and five fresh: commands, processes, a page."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import psycopg
import pytest

from tests.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(500)

LATE = [f"late-{number:02}" for number in range(50)]
FRESH = [f"fresh-{number}" for number in range(5)]
BRISK = {
    "PUBLISHER_LEASE_DISTRUST_SECONDS": "2",
    "PUBLISHER_LEASE_SECONDS": "3",
    "PUBLISHER_RESCUE_AFTER_SECONDS": "4",
    "PUBLISHER_PUBLISH_TIMEOUT_SECONDS": "5",
    "PUBLISHER_PUBLISH_LEASE_SECONDS": "9",
}


@pytest.fixture
def desk(terminal: Terminal, page: str) -> Terminal:
    """A worker ran three days ago, and fifty-five posts were due since; the late ones first."""
    terminal = Terminal(terminal.environment | BRISK, terminal.folder)
    with terminal.working():
        pass
    terminal.done("channels", "set", "Page A", "--useful-for", "7d")
    now = datetime.now(UTC)
    ages = {
        ref: timedelta(hours=1) + timedelta(days=3) * (50 - number) / 50
        for number, ref in enumerate(LATE)
    } | {ref: timedelta(minutes=5 - number) for number, ref in enumerate(FRESH)}
    # Added the other way round, so that no number gives the order away.
    rows = [f"{ref},Page A,Post {ref},{(now - age).isoformat()}" for ref, age in ages.items()]
    assert "55 rows · 55 added" in terminal.import_posts(*reversed(rows))
    with _database(terminal) as conn:
        conn.execute("UPDATE publisher.pulse SET beat_at = clock_timestamp() - interval '3 days'")
    return terminal


def _database(terminal: Terminal) -> psycopg.Connection[tuple[object, ...]]:
    conn = psycopg.connect(terminal.environment["PUBLISHER_DATABASE_URL"], autocommit=True)
    conn.execute("SET ROLE publisher_owner")
    return conn


def _await(desk: Terminal, counts: dict[str, int], within: float = 150) -> None:
    states: dict[str, int] = {}
    until = time.monotonic() + within
    with _database(desk) as conn:
        while time.monotonic() < until:
            rows = conn.execute("SELECT state, count(*) FROM publisher.jobs GROUP BY 1").fetchall()
            states = {str(state): int(str(number)) for state, number in rows}
            if states == counts:
                return
            time.sleep(0.1)
    pytest.fail(f"{states} instead of {counts}")


def _begun(desk: Terminal) -> tuple[list[str], list[datetime]]:
    query = """
        SELECT p.ref, a.begun_at FROM publisher.attempts a
          JOIN publisher.jobs j ON j.id = a.job_id JOIN publisher.posts p ON p.id = j.post_id
         ORDER BY a.begun_at"""
    with _database(desk) as conn:
        rows = conn.execute(query).fetchall()
    return [str(row[0]) for row in rows], [row[1] for row in rows]  # type: ignore[misc]


def test_fresh_ones_first_then_the_late_ones_in_turn(desk: Terminal) -> None:
    with _database(desk) as conn:
        # Shorter than a person could say it, or the test would take the day that it is about.
        conn.execute(
            "UPDATE publisher.gates SET spacing = '0.2 s', release_every = '0.05 s',"
            " backlog = 'release'"
        )
    with desk.working():
        _await(desk, {"published": 55})
    order, at = _begun(desk)
    assert [ref for ref in order if ref in FRESH] == FRESH
    assert [ref for ref in order if ref in LATE] == LATE
    # After ten turns that fresh posts took, one late post goes before them.
    assert order[0] == FRESH[0]
    assert len({*order}) == 55
    assert all(later - one >= timedelta(seconds=0.2) for one, later in pairwise(at))


def test_late_ones_are_missed_where_their_channel_says_so(desk: Terminal) -> None:
    desk.done("channels", "set", "Page A", "--backlog", "miss", "--spacing", "1s")
    with desk.working():
        _await(desk, {"published": 5, "missed": 50})
    order, at = _begun(desk)
    assert order == FRESH
    assert all(later - one >= timedelta(seconds=1) for one, later in pairwise(at))


def test_nothing_overtakes_the_sorting_where_the_first_beats_fail(desk: Terminal) -> None:
    desk.done("channels", "set", "Page A", "--backlog", "miss")
    gave_up = """
        SELECT count(*) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%%UPDATE pulse%%' AND query_start > %s"""
    with _database(desk) as other, _database(desk) as conn:
        conn.execute("RESET ROLE")  # what another login does is not shown to the owner
        other.execute("BEGIN")
        other.execute("SELECT FROM publisher.pulse FOR UPDATE")
        with desk.working():
            since = datetime.min.replace(tzinfo=UTC)
            until = time.monotonic() + 60
            for _ in range(3):
                while conn.execute(gave_up, [since]).fetchone() == (0,):
                    assert time.monotonic() < until, "no beat was tried"
                    time.sleep(0.05)
                since = datetime.now(UTC)
            states = other.execute("SELECT DISTINCT state FROM publisher.jobs").fetchall()
            assert states == [("scheduled",)]
            assert _begun(desk) == ([], [])
            other.execute("ROLLBACK")
            _await(desk, {"published": 5, "missed": 50})
    assert _begun(desk)[0] == FRESH
