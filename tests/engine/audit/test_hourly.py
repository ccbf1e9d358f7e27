"""The hourly audit: once in a deployment, told once a day, and nobody's claims wait for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from publisher.engine.alert import Alert
from publisher.engine.audit import CATALOGUE, Invariant, audit
from publisher.engine.audit.hourly import Hourly
from publisher.engine.job import State
from publisher.engine.ledger import Conn
from publisher.engine.tally import Count
from tests.engine.ground import Ground, await_that
from tests.engine.test_alerts import TO, make, raised

HOOKED = 1
"""Of the messages of one alert, so many are webhooks; the others are mails."""


@pytest.fixture
def hourly(own_ground: Ground) -> Hourly:
    """With people to tell, and a past in which nothing is amiss."""
    lane = own_ground.lane()
    lane.incarnation = own_ground.incarnation()
    lane.put(State.PUBLISHED)
    mail, hook = own_ground.lane(platform="mail"), own_ground.lane(platform="webhook")
    alarm = make(mail, channels=(str(mail.channel_id), str(hook.channel_id)), to=TO)
    return Hourly(own_ground.engine.connect_driver, alarm, alerted=True)


def spoil(ground: Ground) -> None:
    """Make a published job one that nothing shows to be live, and that sends twice."""
    with ground.owner() as conn:
        conn.execute("ALTER TABLE attempts DISABLE TRIGGER USER")
        conn.execute("DELETE FROM attempts")


def an_hour_later(ground: Ground) -> None:
    ground.sql("UPDATE chores SET done_at = done_at - interval '1 hour'")


def test_of_many_processes_one_has_its_turn(hourly: Hourly) -> None:
    with ThreadPoolExecutor(6) as pool:
        reports = list(pool.map(lambda _: hourly.once(), range(6)))
    (report,) = [report for report in reports if report is not None]
    assert not report.broken
    assert report.asked == len(CATALOGUE)


def test_it_comes_again_after_an_hour(hourly: Hourly, own_ground: Ground) -> None:
    assert hourly.once() is not None
    assert hourly.once() is None
    an_hour_later(own_ground)
    assert hourly.once() is not None
    assert not raised(own_ground)


def test_what_is_broken_is_told_once_a_day(hourly: Hourly, own_ground: Ground) -> None:
    spoil(own_ground)
    report = hourly.once()
    assert report is not None
    broken = [one.invariant.id for one in report.broken]
    assert {"T05", "T08"} <= set(broken)
    rows = raised(own_ground)
    assert len(rows) == len(broken) * (len(TO) + HOOKED)
    assert all(row["key"].startswith("alert:audit/mark:") for row in rows)
    assert all("publisher audit" in row["content"] for row in rows)
    an_hour_later(own_ground)
    again = hourly.once()
    assert again is not None
    assert [one.invariant.id for one in again.broken] == broken
    assert len(raised(own_ground)) == len(rows)
    assert set(hourly.tally.counts(Count.BROKEN).values()) == {2}


def test_it_runs_by_itself_and_ends_with_its_block(own_ground: Ground) -> None:
    seen: list[Alert] = []

    def alarm(conn: Conn, alert: Alert) -> None:
        seen.append(alert)

    lane = own_ground.lane()
    lane.put(State.PUBLISHED)
    spoil(own_ground)
    with Hourly(own_ground.engine.connect_driver, alarm, poll=0.01).running():
        await_that(lambda: seen)
    assert {alert.incident for alert in seen} == {"audit"}


def test_a_question_that_takes_too_long_costs_only_itself(own_ground: Ground) -> None:
    slow = "SELECT 1::bigint AS job_id, 1 AS attempt, 1 AS channel_id, pg_sleep(60)::text AS detail"
    catalogue = [replace(CATALOGUE[0], sql=slow), CATALOGUE[1]]
    report = audit(own_ground.conn, catalogue=catalogue, patience=0.1)
    assert [one.id for one, _ in report.unasked] == ["D01"]
    assert "timeout" in report.unasked[0][1]
    assert not report.broken


def test_no_question_can_change_anything(own_ground: Ground) -> None:
    sql = "SELECT nextval('jobs_id_seq') AS job_id, 1 AS attempt, 1 AS channel_id, '' AS detail"
    writing = Invariant("D99", "", "", sql)
    report = audit(own_ground.conn, catalogue=[writing])
    assert [why for _, why in report.unasked] == [
        "cannot execute nextval() in a read-only transaction"
    ]


def test_claims_go_on_under_an_audit_that_takes_its_time(own_ground: Ground) -> None:
    lane = own_ground.lane()
    lane.add()
    with own_ground.engine.connect_driver() as conn, conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for one in CATALOGUE:
            conn.execute(one.statement(full=True).encode(), {"ids": None, "alerted": True})
        assert len(lane.claim()) == 1
