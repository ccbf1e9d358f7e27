"""Absence is said of every send that may have put a post there, also of those nobody recorded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from publisher.engine import ledger
from publisher.engine.errors import Conflict
from publisher.engine.job import State, Token
from publisher.engine.ledger import Judged
from publisher.engine.rescue import Rescue
from publisher.engine.spool import Opened
from publisher.engine.witness import Cause
from tests.engine.fallen import Fallen
from tests.engine.ground import POLICY, Ground, Placed, await_that, lost, refused_for_now
from tests.reconciler.desk import HORIZON, Desk, doubt_of

S = State


@pytest.fixture(autouse=True)
def _nothing_is_held_afterwards(desk: Desk) -> Iterator[None]:
    yield
    desk.ground.sql("TRUNCATE quarantines, quarantined")


def absent(desk: Desk, job: Placed, *, send: bool = True) -> Judged:
    return ledger.confirm_absent(
        desk.conn,
        doubt_of(desk.ground, job),
        send=send,
        send_at=None,
        who="editor",
        reason="not there",
        horizon=HORIZON,
    )


def settled_long_ago(ground: Ground, job: Placed, number: int) -> None:
    ground.sql(
        "UPDATE attempts SET settled_at = settled_at - interval '10 min'"
        " WHERE job_id = %s AND number = %s",
        job.id,
        number,
    )


def test_a_frozen_run_whose_begin_was_lost_keeps_its_job_in_doubt(desk: Desk) -> None:
    ground, lane = desk.ground, desk.lane
    run = Fallen.start(lane, desk.folder)
    job_id = lane.add()
    token = Token(uuid4())
    run.spool.open([Opened(job_id, 1, token, can_look=True)])
    run.spool.start(token)  # and is stopped with its permit used
    rescue = Rescue(folder=desk.folder, policy=POLICY, grace=0.0, who="worker run 99")
    assert not ledger.holds_suspects(ground.conn)
    rescue.spools(ground.conn, datetime.now(UTC))
    assert ground.state(job_id) is S.SCHEDULED, "nothing speaks for a loss yet"
    ledger.open_quarantine(
        ground.conn, Cause.RESTORED, strict=True, absent_after=0.0, who="worker run 99"
    )
    rescue.spools(ground.conn, datetime.now(UTC))
    assert ground.state(job_id) is S.UNKNOWN
    (doubt,) = ledger.doubts(ground.conn, [job_id])
    assert doubt.attempt == 0
    assert doubt.unlocks_at(timedelta(0)) is None
    assert not run.ended
    run.dies()


@pytest.mark.parametrize("send", [True, False])
def test_a_repeat_does_not_prove_that_who_sent_first_is_gone(desk: Desk, *, send: bool) -> None:
    ground, lane = desk.ground, desk.lane
    lane.incarnation = first = ground.incarnation("first.spool")
    job = lane.sending()
    ground.sql("UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", job.id)
    assert ledger.rescue(ground.conn, grace=0, deaths=3, who="worker run 99")
    ledger.repeat(
        ground.conn, doubt_of(ground, job), until=None, after=0, who="reconciler", reason="its key"
    )
    lane.incarnation = ground.incarnation("second.spool")
    lane.end(lane.sending(job.id), lost())
    settled_long_ago(ground, job, 2)
    assert doubt_of(ground, job).attempt == 2
    assert doubt_of(ground, job).sender.run == first
    with pytest.raises(Conflict, match=f"worker run {first} on .* may still send") as refused:
        absent(desk, job, send=send)
    assert refused.value.code == "sender-may-be-alive"
    assert ground.state(job.id) is S.UNKNOWN
    ground.sql("UPDATE incarnations SET ended_at = now() - interval '1 h' WHERE id = %s", first)
    assert absent(desk, job, send=send).state is (S.SCHEDULED if send else S.FAILED)


@pytest.mark.parametrize("is_restored", [True, False])
def test_what_was_under_way_at_a_loss_is_looked_for_before_it_is_sent_again(
    desk: Desk, *, is_restored: bool
) -> None:
    ground, lane = desk.ground, desk.lane
    run = Fallen.start(lane, desk.folder)
    if not is_restored:  # an older loss says nothing of it
        ledger.open_quarantine(
            ground.conn, Cause.RESTORED, strict=True, absent_after=0.0, who="worker run 99"
        )
    job_id = lane.add()
    ledger.release_suspects(ground.conn, [job_id], who="editor", reason="not there")
    job = lane.sending(job_id)
    run.begins(job)
    if is_restored:
        ledger.open_quarantine(
            ground.conn, Cause.RESTORED, strict=True, absent_after=0.0, who="worker run 99"
        )
    run.dies()
    rescue = Rescue(folder=desk.folder, policy=POLICY, grace=0.0, who="worker run 99")
    rescue.spools(ground.conn, datetime.now(UTC))
    assert ground.state(job.id) is S.SCHEDULED
    assert ground.row(job.id)["hold_reason"] == ("quarantine" if is_restored else None)
    suspects = ledger.suspects(ground.conn, [job.id])
    assert [suspect.strict for suspect in suspects] == ([True] if is_restored else [])


def test_a_send_that_the_database_lost_is_not_judged_by_an_older_one(desk: Desk) -> None:
    ground, lane = desk.ground, desk.lane
    job = lane.sending()
    lane.end(job, refused_for_now())
    settled_long_ago(ground, job, 1)
    ledger.spool_found(
        ground.conn, job_id=job.id, attempt=2, token=Token(uuid4()),
        incarnation=lane.incarnation, line={"started": True}, who="worker run 99",
    )  # fmt: skip
    assert ground.state(job.id) is S.UNKNOWN
    assert doubt_of(ground, job).attempt == 0
    with pytest.raises(Conflict, match="the record of who sent the first one is lost"):
        absent(desk, job)
    assert ground.state(job.id) is S.UNKNOWN


def test_a_doubt_from_before_a_restore_waits_until_nothing_of_it_can_arrive(desk: Desk) -> None:
    ground, lane = desk.ground, desk.lane
    job = lane.put(S.UNKNOWN)
    settled_long_ago(ground, job, 1)
    seen = doubt_of(ground, job)
    ledger.open_quarantine(
        ground.conn, Cause.RESTORED, strict=True, absent_after=1.5, who="worker run 99"
    )
    with pytest.raises(Conflict, match="put back or lost commits"):
        absent(desk, job)
    # Whoever read the doubt before the restore is told the same.
    with pytest.raises(Conflict, match="put back or lost commits"):
        ledger.confirm_absent(
            desk.conn, seen, send=False, send_at=None, who="editor", reason="not there",
            horizon=HORIZON,
        )  # fmt: skip
    await_that(lambda: doubt_of(ground, job).unlocks_at(HORIZON) <= datetime.now(UTC))
    assert absent(desk, job).state is S.SCHEDULED
