"""The facts that alerts are made from, each beside others that are none of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.content import Letter
from publisher.engine.job import JobId, State, Token
from publisher.engine.ledger import alerts
from publisher.engine.ledger.alerts import Addressee
from publisher.engine.ledger.journal import tell
from tests.engine.ground import Driver, Ground, Lane, Placed

S = State
NOW = datetime.now(UTC)
SILENT = timedelta(minutes=2)


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: what stands in it is told of, all of it."""
    return own_ground.lane()


@pytest.fixture
def conn(lane: Lane) -> Driver:
    return lane.ground.conn


def doubt(lane: Lane, since: str = "1 hour") -> Placed:
    """A job that only a person can decide, doubted that long ago."""
    job = lane.put(S.UNKNOWN)
    lane.ground.sql(
        "UPDATE doubts SET asked_at = now(), asked_reason = 'two alike',"
        " since = now() - %s::interval WHERE job_id = %s",
        since,
        job.id,
    )
    return job


def test_an_addressee_is_named_or_numbered(lane: Lane, conn: Driver) -> None:
    first, second, _ = lane, lane.ground.lane(platform="mail"), lane.ground.lane()
    name = lane.ground.one("SELECT upper(name) FROM channels WHERE id = %s", first.channel_id)
    assert alerts.addressees(conn, [str(second.channel_id), name, "nobody"]) == [
        Addressee(first.channel_id, "fake"),
        Addressee(second.channel_id, "mail"),
    ]


# Who was told of what


def test_it_was_told_of_this_incident_of_this_job_at_this_time(lane: Lane, conn: Driver) -> None:
    job, other = lane.add(), lane.add()

    def told() -> bool:
        return alerts.is_told(conn, job, Incident.DOUBT, "3")

    for job_id, event, incident, at in (
        (other, "alert", "doubt", "3"),
        (job, "hold", "doubt", "3"),
        (job, "alert", "live", "3"),
        (job, "alert", "doubt", "4"),
    ):
        tell(conn, job_id, event, who="me", attempt=None, detail={"incident": incident, "at": at})
        assert not told()
    alerts.keep_told(conn, Alert(Incident.DOUBT, job_id=job), "3", "alert:doubt/1", "me")
    assert told()


def test_an_alert_is_known_by_how_its_key_begins(lane: Lane, conn: Driver) -> None:
    first = lane.add(key="alert:b/to:1")
    assert [alerts.has_alert(conn, f"alert:{key}") for key in "abc"] == [False, True, False]
    found = [alerts.newest_of(conn, f"alert:{key}") for key in "abc"]
    assert found == [None, ("alert:b/to:1", lane.ground.row(first)["due_at"]), None]
    newest = lane.add(key="alert:b/to:0", run_at=NOW + timedelta(hours=1))
    lane.add(key="alert:c/to:1")
    due_at = lane.ground.row(newest)["due_at"]
    assert alerts.newest_of(conn, "alert:b") == ("alert:b/to:0", due_at)


# What an alert tells of


def test_a_subject_is_told_with_its_own_key_and_since(lane: Lane, conn: Driver) -> None:
    jobs = [doubt(lane, "3 hours"), doubt(lane, "1 hour")]
    live, waits = lane.put(S.PUBLISHED), lane.put(S.SCHEDULED)
    ground = lane.ground
    asked = [jobs[0].id, jobs[1].id, live.id]
    found = alerts.subjects(conn, asked)
    assert [each.id for each in found] == asked
    assert [each.key for each in found] == [
        ground.one("SELECT key FROM job_contents WHERE job_id = %s", job_id) for job_id in asked
    ]
    since = [ground.one("SELECT since FROM doubts WHERE job_id = %s", job.id) for job in jobs]
    assert [each.since for each in found] == [*since, ground.row(live.id)["settled_at"]]
    (alone,) = alerts.subjects(conn, [waits.id])
    assert alone.since <= alone.now


def letter(words: str) -> str:
    return Letter(to="a@example.org", subject="s", text=words, at=NOW).to_json()


def test_an_alert_is_added_to_while_none_of_its_copies_was_touched(
    lane: Lane, conn: Driver
) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    copies = [lane.add(key=f"alert:b/to:{n}", run_at=later) for n in range(2)]
    for key in ("alert:a/to:0", "alert:c/to:0"):
        lane.claimed(lane.add(key=key))

    def found() -> list[JobId]:
        with conn.transaction():
            return [copy.job_id for copy in alerts.open_copies(conn, "alert:b/")]

    assert found() == copies
    with conn.transaction():
        assert [copy.key for copy in alerts.open_copies(conn, "alert:b/")] == [
            "alert:b/to:0", "alert:b/to:1",
        ]  # fmt: skip
    lane.ground.sql("UPDATE jobs SET failures = 1 WHERE id = %s", copies[0])
    assert found() == []


@pytest.mark.parametrize("left", ["claimed", "begun", "called off"])
def test_an_alert_that_has_left_is_added_to_no_more(lane: Lane, conn: Driver, left: str) -> None:
    first, second = lane.add(key="alert:b/to:0"), lane.add(key="alert:b/to:1")
    match left:
        case "claimed":
            lane.claimed(first)
        case "called off":
            with lane.ground.app.engine.begin() as app:
                ledger.cancel(app, first, who="me")
        case _:
            lane.end(lane.sending(first), retry.begin_unacknowledged(0.0))
            assert lane.ground.row(first)["failures"] == 0
    with conn.transaction():
        assert alerts.open_copies(conn, "alert:b/") == []
    assert lane.ground.state(second) is S.SCHEDULED


def test_what_is_told_more_of_is_one_alert_and_comes_sooner(lane: Lane, conn: Driver) -> None:
    later, soon = NOW + timedelta(hours=2), NOW + timedelta(hours=1)
    job, other = lane.add(run_at=later), lane.add(run_at=later)
    before = lane.ground.everything(other)
    alerts.rewrite(conn, job, letter("more"), who="me", run_at=soon)
    assert lane.ground.everything(other) == before
    row = lane.ground.row(job)
    assert (row["run_at"], row["due_at"]) == (soon, soon)
    content = lane.ground.one("SELECT content FROM job_contents WHERE job_id = %s", job)
    assert content == letter("more")
    alerts.rewrite(conn, job, letter("more still"), who="me", run_at=later)
    assert lane.ground.row(job)["run_at"] == soon


def test_what_is_held_by_a_worker_has_its_time(lane: Lane, conn: Driver) -> None:
    job = lane.claimed()
    before = lane.ground.row(job.id)
    alerts.rewrite(conn, job.id, letter("more"), who="me", run_at=NOW - timedelta(days=1))
    assert lane.ground.row(job.id) == before


# Where


def test_a_place_is_told_with_what_is_due_on_it_within_a_day(lane: Lane, conn: Driver) -> None:
    ground, other = lane.ground, lane.ground.lane()
    until = datetime.now(UTC) + timedelta(hours=5)
    lane.add(useful_until=until)
    lane.add(run_at=datetime.now(UTC) + timedelta(hours=2))
    lane.add(run_at=datetime.now(UTC) + timedelta(days=2), useful_until=until)
    for state in S:
        if state is not S.SCHEDULED:
            lane.put(state, useful_until=until - timedelta(hours=1))
    other.add(useful_until=until - timedelta(hours=2))
    ground.sql(
        "UPDATE gates SET blocked_at = now() - interval '1 h', blocked_reason = 'x'"
        " WHERE channel_id = %s",
        lane.channel_id,
    )
    there, elsewhere = (alerts.place(conn, each.channel_id) for each in (lane, other))
    assert there is not None
    assert elsewhere is not None
    assert (there.waiting, there.useful_until) == (2, until)
    assert (elsewhere.waiting, elsewhere.useful_until) == (1, until - timedelta(hours=2))
    blocked_at = ground.one("SELECT blocked_at FROM gates WHERE blocked_at IS NOT NULL")
    assert (there.blocked_at, elsewhere.blocked_at) == (blocked_at, None)
    assert there.name != elsewhere.name
    for each, when in ((lane, blocked_at), (other, None)):
        assert alerts.blocked_at(conn, each.channel_id) == when
    assert alerts.place(conn, 10**6) is None
    assert alerts.blocked_at(conn, 10**6) is None


def run(ground: Ground, seen: str, **changes: Any) -> int:  # noqa: ANN401 - of its row
    """A worker run that was seen so long ago."""
    number = ground.incarnation(f"{seen}.spool")
    ground.sql("UPDATE incarnations SET seen_at = now() - %s::interval WHERE id = %s", seen, number)
    for column, value in changes.items():
        ground.sql(f"UPDATE incarnations SET {column} = %s WHERE id = %s", value, number)
    return number


def test_a_run_is_told_with_those_that_live_beside_it(own_ground: Ground) -> None:
    silent, live = run(own_ground, "5 min"), run(own_ground, "1 s")
    run(own_ground, "2 s", ended_at=NOW)
    run(own_ground, "10 min")
    found = [alerts.run(own_ground.conn, number) for number in (silent, live)]
    assert [(each.id, each.others) for each in found if each] == [(silent, 1), (live, 0)]
    assert alerts.run(own_ground.conn, 10**6) is None


# What stands in the rows


def standing(conn: Driver) -> list[Alert]:
    return alerts.standing_incidents(conn, silent_for=SILENT)


def told(lane: Lane, job: JobId, event: str = "alert", incident: str = "doubt") -> None:
    detail = {"incident": incident, "at": "x"}
    tell(lane.ground.conn, job, event, who="me", attempt=1, detail=detail)


def untold(conn: Driver) -> list[JobId]:
    return [each.job_id for each in standing(conn) if each.job_id is not None]


def test_each_doubt_for_a_person_that_nobody_told_of_is_told_once(lane: Lane, conn: Driver) -> None:
    one, two = doubt(lane, "3 hours"), doubt(lane, "2 hours")
    lane.put(S.UNKNOWN)  # a machine still looks at it
    assert untold(conn) == [one.id, two.id]
    told(lane, two.id)
    told(lane, one.id, event="hold")
    told(lane, one.id, incident="live")
    assert untold(conn) == [one.id]
    told(lane, one.id)
    assert untold(conn) == []


def test_what_was_told_before_it_was_doubted_again_or_snoozed_is_told_anew(
    lane: Lane, conn: Driver
) -> None:
    job = doubt(lane)
    told(lane, job.id)
    for column in ("since", "snoozed_until"):
        lane.ground.sql(f"UPDATE doubts SET {column} = clock_timestamp()")
        assert untold(conn) == [job.id]
        told(lane, job.id)
        assert untold(conn) == []


def test_a_doubt_is_told_when_its_snooze_is_over(lane: Lane, conn: Driver) -> None:
    job = doubt(lane)
    lane.ground.sql("UPDATE doubts SET snoozed_until = now() + interval '1 hour'")
    assert untold(conn) == []
    lane.ground.sql("UPDATE doubts SET snoozed_until = now() - interval '1 minute'")
    assert untold(conn) == [job.id]
    assert [each.at for each in standing(conn)] == [
        lane.ground.one("SELECT snoozed_until FROM doubts")
    ]


def test_a_channel_is_blocked_until_it_is_connected(lane: Lane, conn: Driver) -> None:
    other = lane.ground.lane()
    lane.ground.sql(
        "UPDATE gates SET blocked_at = now(), blocked_reason = 'why' WHERE channel_id = %s",
        other.channel_id,
    )
    assert standing(conn) == [Alert(Incident.BLOCKED, channel_id=other.channel_id, detail="why")]


def test_a_send_without_a_record_is_told_for_a_day_unless_it_was_adopted(
    lane: Lane, conn: Driver
) -> None:
    job = lane.put(S.PUBLISHED)
    tokens = [str(uuid4()) for _ in range(4)]
    for token, job_id in zip(tokens, (job.id, 10**6, job.id, job.id), strict=True):
        ledger.spool_found(
            conn, job_id=JobId(job_id), attempt=1, token=Token(token), incarnation=1,  # type: ignore[arg-type]
            line={"started": True}, who="rescue",
        )  # fmt: skip
    ground = lane.ground
    ground.sql("UPDATE orphans SET adopted = true WHERE token = %s", tokens[2])
    ground.sql("UPDATE orphans SET at = now() - interval '25 hours' WHERE token = %s", tokens[3])
    lane.add()
    assert sorted(standing(conn), key=lambda each: tokens.index(each.mark)) == [
        Alert(Incident.ORPHAN, job_id=job.id, mark=tokens[0]),
        Alert(Incident.ORPHAN, job_id=None, mark=tokens[1]),
    ]


def test_a_run_is_silent_for_a_day_unless_it_is_over(own_ground: Ground) -> None:
    silent = run(own_ground, "5 min")
    run(own_ground, "1 min")
    run(own_ground, "5 min", ended_at=NOW)
    run(own_ground, "5 min", declared_gone_at=NOW)
    run(own_ground, "25 hours")
    (found,) = standing(own_ground.conn)
    assert (found.incident, found.run) == (Incident.SILENT, silent)
