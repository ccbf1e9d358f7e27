"""R4: what proves that a send can write no more, and what does not."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import State
from publisher.engine.outcome import Proof, Reason, Unknown
from publisher.engine.rescue import Rescue
from publisher.engine.sender import DECLARED_MARGIN, Sender
from publisher.engine.spool import Opened, Spool, boot_id
from tests.engine.ground import Ground, Lane, Placed, decided, lost
from tests.reconciler.desk import HORIZON, Desk, doubt_of

S = State
NOW = datetime(2026, 7, 1, tzinfo=UTC)

maybe = st.none() | st.integers(-10_000, 10_000).map(lambda s: NOW + timedelta(seconds=s))


@settings(deadline=None)
@given(maybe, maybe, maybe, st.integers(0, 10_000))
def test_the_first_proof_counts_and_the_horizon_comes_on_top(
    returned: datetime | None, ended: datetime | None, declared: datetime | None, horizon: int
) -> None:
    sender = Sender(1, "here", returned, ended, declared)
    late = None if declared is None else declared + DECLARED_MARGIN
    proofs = [at for at in (returned, ended, late) if at is not None]
    assert sender.gone_at() == (min(proofs) if proofs else None)
    unlocks_at = sender.unlocks_at(timedelta(seconds=horizon))
    assert unlocks_at == (min(proofs) + timedelta(seconds=horizon) if proofs else None)


# What the journal makes of it


def absent(desk: Desk, job: Placed, *, send: bool = True) -> State:
    return ledger.confirm_absent(
        desk.conn, doubt_of(desk.ground, job), send=send, send_at=None, who="ed",
        reason="not there", horizon=HORIZON,
    ).state  # fmt: skip


def refused(desk: Desk, job: Placed, *, send: bool = True) -> str:
    before = desk.ground.everything(job.id)
    with pytest.raises(Conflict) as error:
        absent(desk, job, send=send)
    assert error.value.code == "sender-may-be-alive"
    assert error.value.state == S.UNKNOWN
    assert desk.ground.everything(job.id) == before
    return str(error.value)


def moved(ground: Ground, table: str, column: str, by: timedelta, where: str, value: int) -> None:
    ground.sql(f"UPDATE {table} SET {column} = {column} - %s WHERE {where} = %s", by, value)


def started(lane: Lane, folder: Path, *, boot: str | None = None) -> tuple[Spool, Placed]:
    """A begun and started send of a worker run with a file of its own."""
    spool = Spool.create(folder)
    spool.boot = boot or boot_id()
    number, deployment = ledger.register(
        lane.ground.conn, host=socket.gethostname(), boot_id=spool.boot, pid=1, file=spool.path.name
    )
    spool.head(deployment=deployment, incarnation=number)
    lane.incarnation = number
    job = lane.sending()
    spool.open([Opened(job.id, 1, job.token, True)])
    spool.start(job.token)
    return spool, job


def forgotten(lane: Lane, job: Placed) -> None:
    """Its lease ran out: rescue makes a doubt of it, and knows nothing of its worker."""
    lane.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", job.id)
    assert ledger.rescue(lane.ground.conn, grace=0, deaths=3, who="worker run 99")


def spools(desk: Desk) -> bool:
    """What each round of the reconciler begins with."""
    rescue: Rescue = desk.reconciler().rescue
    return rescue.spools(desk.conn, ledger.clock(desk.conn))


@pytest.mark.parametrize("send", [True, False])
def test_without_a_proof_it_is_locked_for_whoever_asks(desk: Desk, send: bool) -> None:  # noqa: FBT001
    lane = desk.lane
    lane.incarnation = lane.ground.incarnation()
    job = lane.sending()
    forgotten(lane, job)
    said = refused(desk, job, send=send)
    assert said.startswith(
        f"Sending again is locked: worker run {lane.incarnation} on here may still send the first "
        "one. It unlocks 60 s after that run is proved stopped: stop it"
    )
    assert f"`publisher workers declare-gone {lane.incarnation}`" in said
    assert doubt_of(lane.ground, job).sender.gone_at() is None


def test_what_is_given_up_too_early_cannot_be_requeued_either(desk: Desk) -> None:
    """A failed job may be requeued at once, so giving up is no way round the lock."""
    lane = desk.lane
    job = lane.sending()
    forgotten(lane, job)
    refused(desk, job, send=False)
    with lane.ground.app.engine.begin() as conn, pytest.raises(Conflict):
        ledger.requeue(conn, job.id, who="op")


def test_the_hand_returned(desk: Desk) -> None:
    run = desk.lane.incarnation = desk.ground.incarnation()
    job = desk.lane.put(S.UNKNOWN)
    returned = desk.ground.attempt(job.id)["settled_at"]
    assert doubt_of(desk.ground, job).sender.returned_at == returned
    unlocks = returned + HORIZON
    assert refused(desk, job) == (
        f"Sending again is locked until {unlocks:%Y-%m-%d %H:%M:%S %Z}: worker run {run} on here "
        "is gone, but what it wrote may still arrive."
    )
    moved(desk.ground, "attempts", "settled_at", HORIZON, "job_id", job.id)
    assert absent(desk, job) is S.SCHEDULED


@pytest.mark.parametrize("reason", [Reason.WORKER_DIED, Reason.DRAINED])
def test_a_hand_that_was_given_up_has_not_returned(desk: Desk, reason: Reason) -> None:
    job = desk.lane.sending()
    desk.lane.end(job, decided(Unknown(reason, "nobody waits any longer")))
    assert doubt_of(desk.ground, job).sender.gone_at() is None
    refused(desk, job)


@pytest.mark.parametrize("event", ["late_answer", "spool_read"])
def test_a_hand_that_returns_late_has_returned_only_then(desk: Desk, event: str) -> None:
    """Frozen for an hour, rescued meanwhile: until it speaks it may have written."""
    lane = desk.lane
    job = lane.sending()
    forgotten(lane, job)
    moved(lane.ground, "attempts", "settled_at", timedelta(hours=1), "job_id", job.id)
    before = ledger.clock(desk.conn)
    late = ledger.record_late(desk.conn, job.id, job.token, lost(), who="w", event=event)
    assert late is ledger.Late.KEPT
    returned = doubt_of(lane.ground, job).sender.returned_at
    assert returned is not None
    assert returned >= before
    refused(desk, job)


def test_a_clean_end(desk: Desk) -> None:
    lane = desk.lane
    lane.incarnation = lane.ground.incarnation()
    job = lane.sending()
    forgotten(lane, job)
    refused(desk, job)
    ledger.end(desk.conn, lane.incarnation, "every hand returned")
    assert "is gone, but what it wrote may still arrive" in refused(desk, job)
    moved(lane.ground, "incarnations", "ended_at", HORIZON, "id", lane.incarnation)
    assert absent(desk, job) is S.SCHEDULED


def test_its_file_could_be_locked(desk: Desk) -> None:
    spool, job = started(desk.lane, desk.folder)
    forgotten(desk.lane, job)
    assert not spools(desk)
    assert doubt_of(desk.ground, job).sender.gone_at() is None  # it holds its file
    refused(desk, job)
    spool.close(remove=False)
    spools(desk)
    doubt = doubt_of(desk.ground, job)
    assert doubt.sender.ended_at is not None
    assert "may still arrive" in refused(desk, job)
    moved(desk.ground, "incarnations", "ended_at", HORIZON, "id", desk.lane.incarnation)
    assert absent(desk, job) is S.SCHEDULED
    assert desk.ground.attempt(job.id)["proof"] == Proof.ABSENT


def test_its_machine_was_restarted(desk: Desk) -> None:
    spool, job = started(desk.lane, desk.folder, boot="another boot")
    forgotten(desk.lane, job)
    spool.close(remove=False)
    spools(desk)
    why = desk.ground.one(
        "SELECT end_reason FROM incarnations WHERE id = %s", desk.lane.incarnation
    )
    assert why == "its machine was restarted"
    assert doubt_of(desk.ground, job).sender.ended_at is not None
    refused(desk, job)
    moved(desk.ground, "incarnations", "ended_at", HORIZON, "id", desk.lane.incarnation)
    assert absent(desk, job) is S.SCHEDULED


def test_stated_gone_counts_a_quarter_of_an_hour_later(desk: Desk) -> None:
    lane, ground = desk.lane, desk.ground
    lane.incarnation = ground.incarnation()
    job = lane.sending()
    forgotten(lane, job)
    with ground.app.engine.begin() as conn:
        at = ledger.declare_gone(conn, lane.incarnation, who="op", reason="its power is off")
    assert at is not None
    unlocks = at + DECLARED_MARGIN + HORIZON
    assert f"locked until {unlocks:%Y-%m-%d %H:%M:%S %Z}" in refused(desk, job)
    with ground.app.engine.begin() as conn:
        assert ledger.declare_gone(conn, lane.incarnation) == at  # the first word stays
        assert ledger.declare_gone(conn, 2**40) is None
    moved(ground, "incarnations", "declared_gone_at", DECLARED_MARGIN, "id", lane.incarnation)
    refused(desk, job)
    moved(ground, "incarnations", "declared_gone_at", HORIZON, "id", lane.incarnation)
    assert absent(desk, job) is S.SCHEDULED
    assert "declare_gone" in {event["event"] for event in ground.events(job.id)}


def test_the_sender_of_a_repeat_is_the_repeats(desk: Desk) -> None:
    lane, ground = desk.lane, desk.ground
    first = lane.put(S.UNKNOWN)
    ledger.repeat(
        desk.conn, doubt_of(ground, first), until=None, after=0, who="reconciler", reason="safe"
    )
    lane.incarnation = ground.incarnation()
    again = lane.sending(first.id)
    forgotten(lane, again)
    sender = doubt_of(ground, first).sender
    assert (sender.run, sender.gone_at()) == (lane.incarnation, None)
    refused(desk, first)


VERBS: dict[str, Callable[[Desk, Placed], object]] = {
    "repeat": lambda desk, job: ledger.repeat(
        desk.conn, doubt_of(desk.ground, job), until=None, after=0, who="ed", reason="x"
    ),
    "drop": lambda desk, job: ledger.drop(
        desk.conn, doubt_of(desk.ground, job), who="ed", reason="x"
    ),
    "live": lambda desk, job: ledger.confirm_published(
        desk.conn, doubt_of(desk.ground, job), remote_id=None, permalink=None, who="ed", reason="x"
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_other_verdicts_are_not_locked(desk: Desk, verb: str) -> None:
    """Live and dropped send nothing; whoever repeats has made sure of the key."""
    job = desk.lane.sending()
    forgotten(desk.lane, job)
    VERBS[verb](desk, job)
    assert desk.state(job) is not S.UNKNOWN
