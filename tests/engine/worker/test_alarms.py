"""What a worker tells people of, in the transaction of what it tells of; and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.job import State
from publisher.engine.ledger import Conn
from publisher.engine.tally import Count, Tally
from tests.engine.crew import Crew, Run
from tests.engine.ground import await_that
from tests.engine.platform import Stuck, token_refused


@dataclass
class Recorder:
    """Keeps alerts, and whether a transaction was open."""

    alerts: list[Alert] = field(default_factory=list)
    in_transaction: list[bool] = field(default_factory=list)

    def __call__(self, conn: Conn, alert: Alert) -> None:
        self.alerts.append(alert)
        self.in_transaction.append(conn.info.transaction_status.name == "INTRANS")


def test_a_blocked_channel_is_told_of_where_it_is_closed(crew: Crew) -> None:
    told, tally = Recorder(), Tally()
    (job,) = crew.add()
    crew.fake.acts[job.key].append(token_refused)
    run = Run(crew.worker(alarm=told, tally=tally))
    await_that(lambda: told.alerts)
    assert run.drain() == 0
    (alert,) = told.alerts
    assert (alert.incident, alert.channel_id) == (Incident.BLOCKED, crew.lane.channel_id)
    assert told.in_transaction == [True]
    closed = "SELECT blocked_at IS NOT NULL FROM gates WHERE channel_id = %s"
    assert crew.ground.one(closed, crew.lane.channel_id)
    assert tally.counts(Count.OUTCOMES) == {("unauthorized", "needs_reconnecting", "fake"): 1}


def test_a_post_that_is_live_against_the_record_is_told_of(crew: Crew) -> None:
    """A repeat is being sent when the first one's answer comes after all."""
    told, tally = Recorder(), Tally()
    (job,) = crew.add()
    first, second = Stuck(), Stuck()
    crew.fake.acts[job.key] += [first, second]
    slow = Run(crew.worker(alarm=told, tally=tally))
    assert first.reached.wait(20)
    crew.ground.sql(
        "UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", crew.id(job)
    )
    ledger.rescue(crew.ground.conn, grace=0, deaths=3, who="test")
    (doubt,) = ledger.doubts(crew.ground.conn, [crew.id(job)])
    ledger.repeat(crew.ground.conn, doubt, until=None, after=0, who="test", reason="safe")
    quick = Run(crew.worker())
    assert second.reached.wait(20)
    assert crew.state(job) is State.SENDING
    first.let_go.set()
    await_that(lambda: told.alerts)
    second.let_go.set()
    for run in (slow, quick):
        run.drain()
    # And once more where the second one went live as well, and the same worker sent it.
    assert {(one.incident, one.job_id) for one in told.alerts} == {(Incident.LIVE, crew.id(job))}
    assert told.in_transaction[0]
    assert tally.counts(Count.LATE_ANSWERS) == {(ledger.Late.KEPT_ALERT,): 1}


def test_an_end_that_cannot_be_written_is_told_of(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Recorder()
    (job,) = crew.add()
    settle = retry.settle
    monkeypatch.setattr(
        retry,
        "settle",
        lambda *args: replace(settle(*args), remote_id=""),
    )
    run = Run(crew.worker(alarm=told))
    await_that(lambda: told.alerts)
    run.drain()
    assert told.alerts[0].incident is Incident.PARKED
    assert told.alerts[0].job_id == crew.id(job)


def test_outcomes_and_lateness_are_counted(crew: Crew) -> None:
    tally = Tally()
    jobs = crew.add(3)
    run = Run(crew.worker(tally=tally))
    await_that(lambda: all(crew.state(job) == "published" for job in jobs))
    run.drain()
    assert tally.counts(Count.OUTCOMES) == {("published", "", "fake"): 3}
    lateness = tally.lateness()["fake"]
    assert sum(lateness.buckets) == 3
    assert lateness.seconds > 3 * 60  # they were due a minute ago
