"""The closed sets of states and proofs that something is decided by, each written out by hand."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from publisher.engine.job import OPEN, REHEARSAL, JobId, State, Token
from publisher.engine.ledger import EarlierAttempt
from publisher.engine.outcome import Proof
from publisher.engine.queries.due import DueCounts, due_counts
from publisher.engine.worker.held import Held
from tests.engine.ground import Ground

S = State
AT = datetime(2026, 12, 7, tzinfo=UTC)


def test_open_is_what_may_still_come_or_be_live() -> None:
    assert {S.SCHEDULED, S.CLAIMED, S.SENDING, S.UNKNOWN} == OPEN


def test_what_of_the_due_jobs_is_counted_as_what() -> None:
    for state in State:
        due = DueCounts(Counter({state: 3}), 0, 0)
        counted = (due.unsettled, due.live, due.unknown, due.not_published)
        assert counted == {
            **dict.fromkeys((S.SCHEDULED, S.CLAIMED, S.SENDING), (3, 0, 0, 0)),
            S.PUBLISHED: (0, 3, 0, 0),
            S.UNKNOWN: (0, 0, 3, 0),
            **dict.fromkeys((S.FAILED, S.MISSED), (0, 0, 0, 3)),
        }.get(state, (0, 0, 0, 0))


def attempt(number: int, proof: str | None) -> EarlierAttempt:
    return EarlierAttempt(JobId(1), number, Token(uuid.UUID(int=number)), AT, proof, None)


def held(*proofs: str | None) -> Held:
    earlier = tuple(attempt(number, proof) for number, proof in enumerate(proofs, 1))
    nothing = cast("Any", None)
    return Held(nothing, nothing, nothing, 0.0, earlier=earlier)


@pytest.mark.parametrize("proof", [None, *Proof])
def test_only_what_was_not_sent_or_may_be_repeated_needs_no_look(proof: Proof | None) -> None:
    looked_for = held(proof).to_look_at
    if proof in {Proof.NOT_SENT, Proof.REPEAT_SAFE}:
        assert looked_for is None
    else:
        assert looked_for == attempt(1, proof)


def test_the_first_of_the_doubtful_attempts_is_looked_for() -> None:
    assert held().to_look_at is None
    looked_for = held("not_sent", "refused", "absent").to_look_at
    assert looked_for is not None
    assert looked_for.number == 2


def test_what_is_due_is_counted_without_rehearsals_unless_they_are_asked_for(
    own_ground: Ground,
) -> None:
    lane = own_ground.lane()
    due, rehearsed = lane.add(), lane.add(queue=REHEARSAL)
    lane.add(run_at=datetime.now(UTC) + timedelta(hours=1))
    with own_ground.app.engine.connect() as conn:
        assert due_counts(conn).unsettled == 1
        assert due_counts(conn, only=[due, rehearsed]).unsettled == 2
        assert due_counts(conn, only=[rehearsed]).unsettled == 1
