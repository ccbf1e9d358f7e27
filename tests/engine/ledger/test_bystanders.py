"""What is done to one job is done to no other: every verb, beside jobs in every state."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher.engine import ledger
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Doubt
from publisher.engine.witness import Cause
from tests.engine.ground import (
    POLICY,
    Ground,
    Lane,
    Placed,
    Row,
    lost,
    published,
    refused,
    refused_for_now,
)

S = State
HOUR = timedelta(hours=1)
HORIZON = timedelta(seconds=60)
ABOUT_JOBS = (
    *("job_contents", "attempts", "job_events", "remote_posts", "doubts", "quarantined"),
    *("verdicts", "looks", "orphans"),
)


@pytest.fixture
def lane(own_ground: Ground) -> Lane:
    """A database of this test's own: what happens to others is looked for in all of it."""
    return own_ground.lane()


def crowd(lane: Lane) -> None:
    """Jobs in every state, with and without an attempt, and some that may be live."""
    for state in State:
        lane.put(state)
        lane.put(state, begun=True)
    may_be_live(lane, S.SCHEDULED)
    may_be_live(lane, S.UNKNOWN)
    spool_found(lane, lane.put(S.CANCELLED))
    held = lane.put(S.SCHEDULED)
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, held.id, who="me")


def may_be_live(lane: Lane, state: State) -> Placed:
    """A job whose first attempt has a repeat as its only proof."""
    first = lane.put(S.UNKNOWN)
    conn = lane.ground.conn
    ledger.repeat(conn, doubt(lane, first), until=None, after=0.0, who="me", reason="x")
    if state is S.SCHEDULED:
        return first
    second = lane.sending(first.id)
    assert lane.end(second, lost()).done
    return second


def others(lane: Lane, job_id: JobId) -> dict[str, list[Row]]:
    """Every row about any other job, and what all of them share."""
    ground = lane.ground
    found = {"jobs": ground.sql("SELECT * FROM jobs WHERE id <> %s ORDER BY id", job_id)}
    for table in ABOUT_JOBS:
        rows = ground.sql(f"SELECT to_jsonb(t) AS row FROM {table} t WHERE job_id <> %s", job_id)
        found[table] = sorted(rows, key=str)
    found["gates"] = ground.sql("SELECT * FROM gates ORDER BY channel_id")
    return found


def doubt(lane: Lane, job: Placed) -> Doubt:
    (found,) = ledger.doubts(lane.ground.conn, [job.id])
    return found


def gone(lane: Lane, job: Placed) -> Doubt:
    """The doubt about a send that began long ago, and whose hand has been back for long."""
    ground = lane.ground
    ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
    ground.sql(
        "UPDATE attempts SET begun_at = begun_at - interval '10 minutes',"
        " settled_at = settled_at - interval '9 minutes' WHERE job_id = %s",
        job.id,
    )
    ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")
    return doubt(lane, job)


Act = Callable[[Lane, Placed], object]


def late(end: Any) -> Act:  # noqa: ANN401 - a settlement
    return lambda lane, job: ledger.record_late(
        lane.ground.conn, job.id, job.token, end, who="worker run 9"
    )


def person(verb: Callable[..., object], **how: Any) -> Act:  # noqa: ANN401 - of the verb
    def act(lane: Lane, job: Placed) -> None:
        with lane.ground.app.engine.begin() as conn:
            verb(conn, job.id, who="me", **how)

    return act


def absent(*, send: bool, forced: bool = False) -> Act:
    def act(lane: Lane, job: Placed) -> None:
        ledger.confirm_absent(
            lane.ground.conn, gone(lane, job), send_at=None, send=send, who="me", reason="x",
            horizon=HORIZON, forced=forced,
        )  # fmt: skip

    return act


def live(remote_id: str | None) -> Act:
    return lambda lane, job: ledger.confirm_published(
        lane.ground.conn, doubt(lane, job), remote_id=remote_id, permalink=None, who="me",
        reason="x",
    )  # fmt: skip


def spool_found(lane: Lane, job: Placed) -> None:
    ledger.spool_found(
        lane.ground.conn, job_id=job.id, attempt=1, token=ledger_token(), incarnation=9,
        line={"started": True}, who="worker run 9",
    )  # fmt: skip


def publish_lost(lane: Lane, job: Placed) -> None:
    digest = bytes(lane.ground.one("SELECT content_sha256 FROM job_contents WHERE job_id = %s",
                                   job.id))  # fmt: skip
    assert ledger.publish_lost(
        lane.ground.conn, job.id, token=ledger_token(), attempt=1, content=digest[:8],
        remote_id="lost 1", permalink=None, incarnation=9, who="worker run 9",
    )  # fmt: skip


def ledger_token() -> Any:  # noqa: ANN401 - a Token
    return uuid.uuid4()


def looked(lane: Lane, job: Placed) -> None:
    conn = lane.ground.conn
    lane.ground.sql(
        "UPDATE doubts SET next_look_at = now() - interval '1 day' WHERE job_id = %s", job.id
    )
    ((found, token),) = ledger.claim_doubts(conn, limit=1, lease=60.0)
    assert found.job_id == job.id
    assert ledger.holds_look(conn, job.id, token)
    assert ledger.look_again(conn, job.id, token, last_look="nothing", pause=30.0)
    assert not ledger.holds_look(conn, job.id, token)


def let_go(lane: Lane, job: Placed) -> None:
    conn = lane.ground.conn
    lane.ground.sql(
        "UPDATE doubts SET next_look_at = now() - interval '1 day' WHERE job_id = %s", job.id
    )
    ((_, token),) = ledger.claim_doubts(conn, limit=1, lease=60.0)
    ledger.let_go(conn, {job.id: token})


def rescue(lane: Lane, job: Placed) -> None:
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", job.id)
    taken = ledger.rescue(lane.ground.conn, grace=15.0, deaths=POLICY.deaths, who="me")
    assert [each.id for each in taken] == [job.id]


def forsake(lane: Lane, job: Placed) -> None:
    lane.ground.sql("UPDATE jobs SET incarnation = 4711 WHERE id = %s", job.id)
    taken = ledger.forsake(lane.ground.conn, 4711, deaths=POLICY.deaths, who="me")
    assert [each.id for each in taken] == [job.id]


def expire(lane: Lane, job: Placed) -> None:
    lane.ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", job.id)
    assert ledger.expire(lane.ground.conn, who="me") == {job.id}


def is_held(lane: Lane, job: Placed) -> None:
    with lane.ground.app.engine.begin() as conn:
        ledger.hold(conn, job.id, who="me")
    with lane.ground.app.engine.begin() as conn:
        ledger.release_hold(conn, job.id, who="me")


ACTS: dict[str, tuple[State, Act]] = {
    "a late yes": (S.UNKNOWN, late(published("late 1"))),
    "a late no": (S.UNKNOWN, late(refused())),
    "a late not now": (S.UNKNOWN, late(refused_for_now())),
    "a lost answer told late": (S.SENDING, late(lost())),
    "found in a file": (S.SCHEDULED, spool_found),
    "found in a file with its post": (S.SCHEDULED, publish_lost),
    "it is live": (S.UNKNOWN, live("live 1")),
    "it was seen": (S.UNKNOWN, live(None)),
    "it is absent": (S.UNKNOWN, absent(send=False)),
    "it is absent, again": (S.UNKNOWN, absent(send=True)),
    "forced": (S.UNKNOWN, absent(send=True, forced=True)),
    "repeat": (S.UNKNOWN, lambda lane, job: ledger.repeat(
        lane.ground.conn, doubt(lane, job), until=None, after=0.0, who="me", reason="x")),
    "drop": (S.UNKNOWN, lambda lane, job: ledger.drop(
        lane.ground.conn, doubt(lane, job), who="me", reason="x")),
    "take": (S.UNKNOWN, lambda lane, job: ledger.take(lane.ground.conn, job.id, who="me")),
    "take what nobody has": (S.UNKNOWN, lambda lane, job: ledger.take(
        lane.ground.conn, job.id, who="me", from_anyone=False)),
    "snooze": (S.UNKNOWN, lambda lane, job: ledger.snooze(
        lane.ground.conn, job.id, until=datetime.now(UTC) + HOUR)),
    "look now": (S.UNKNOWN, lambda lane, job: ledger.look_now(lane.ground.conn, job.id)),
    "a look": (S.UNKNOWN, looked),
    "a look given back": (S.UNKNOWN, let_go),
    "cancel": (S.SCHEDULED, person(ledger.cancel)),
    "cancel a claim": (S.CLAIMED, person(ledger.cancel)),
    "move": (S.SCHEDULED, person(ledger.reschedule, at=datetime.now(UTC) + HOUR)),
    "hold and release": (S.SCHEDULED, is_held),
    "replace": (S.SCHEDULED, person(ledger.replace, content="other")),
    "requeue": (S.FAILED, person(ledger.requeue)),
    "restore": (S.CANCELLED, person(ledger.restore)),
    "rescue": (S.SENDING, rescue),
    "rescue a claim": (S.CLAIMED, rescue),
    "forsake": (S.SENDING, forsake),
    "expire": (S.SCHEDULED, expire),
    "settle": (S.SENDING, lambda lane, job: lane.end(job, refused())),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTS)
def test_nothing_happens_to_any_other(lane: Lane, name: str) -> None:
    state, act = ACTS[name]
    crowd(lane)
    job = lane.put(state)
    before, own = others(lane, job.id), lane.ground.everything(job.id)
    act(lane, job)
    assert others(lane, job.id) == before
    if state is not S.UNKNOWN:
        assert lane.ground.everything(job.id) != own


def test_a_late_no_is_held_against_the_jobs_own_attempts(lane: Lane) -> None:
    may_be_live(lane, S.SCHEDULED)
    job = lane.put(S.UNKNOWN)
    late(refused())(lane, job)
    assert lane.ground.state(job.id) is S.FAILED


# In quarantine


def suspect_looked(lane: Lane, job: Placed) -> None:
    conn = lane.ground.conn
    lane.ground.sql(
        "UPDATE quarantined SET next_look_at = now() - interval '1 day' WHERE job_id = %s", job.id
    )
    ((found, token),) = ledger.claim_suspects(conn, limit=1, lease=60.0)
    assert found.job_id == job.id
    assert ledger.look_for_again(conn, job.id, token, seen="nothing", pause=30.0)
    assert not ledger.look_for_again(conn, job.id, token, seen="nothing", pause=30.0)


def found_on_page(remote_id: str | None) -> Act:
    return lambda lane, job: ledger.found_live(
        lane.ground.conn, job.id, remote_id=remote_id, permalink=None, who="me", reason="x"
    )


IN_QUARANTINE: dict[str, Act] = {
    "found": found_on_page("live 1"),
    "seen": found_on_page(None),
    "released": lambda lane, job: ledger.release_suspects(
        lane.ground.conn, [job.id], who="me", reason="x"
    ),
    "a look": suspect_looked,
    "asked": lambda lane, job: ledger.ask_about_suspect(lane.ground.conn, job.id, seen="two"),
    "cancelled": person(ledger.cancel),
    "found in a file": spool_found,
}


@pytest.mark.parametrize("name", IN_QUARANTINE)
def test_nothing_happens_to_any_other_in_quarantine(lane: Lane, name: str) -> None:
    crowd(lane)
    job = lane.put(S.SCHEDULED)
    opened = ledger.open_quarantine(
        lane.ground.conn, Cause.RESTORED, strict=True, absent_after=60.0, who="test"
    )
    assert opened is not None
    assert opened.jobs > 5
    before, own = others(lane, job.id), lane.ground.sql("SELECT * FROM quarantined")
    IN_QUARANTINE[name](lane, job)
    assert others(lane, job.id) == before
    assert name == "cancelled" or lane.ground.sql("SELECT * FROM quarantined") != own
