"""A busy past in which nothing is amiss raises nothing, whichever way it is asked."""

from __future__ import annotations

from pathlib import Path

from publisher.engine import ledger, retry
from publisher.engine.audit import CATALOGUE, audit
from publisher.engine.job import State
from tests.engine.audit.history import Past
from tests.engine.ground import Ground, refused


def test_a_busy_past_holds(past: Past) -> None:
    states = past.ground.sql("SELECT DISTINCT state FROM jobs")
    assert {State(row["state"]) for row in states} == set(State)
    for full in (False, True):
        report = audit(past.ground.conn, full=full, alerted=True)
        assert not [(broken.invariant.id, broken.rows) for broken in report.broken]
        assert not report.unasked
        assert report.asked == len(CATALOGUE)
        assert (report.jobs is None) == full


def test_what_was_requeued_and_then_found_by_a_look_is_no_forbidden_move(
    own_ground: Ground, tmp_path: Path
) -> None:
    """Its one attempt was refused, and that is how it ended before it was brought back."""
    past = Past(own_ground, tmp_path)
    first = past.desk.ends(refused())
    past.jobs["requeued"] = first.id
    past.moved(ledger.requeue, "requeued")
    job = past.desk.claimed(first.id)
    found = retry.found("was there", None, attempt=1, about=first.token)
    assert past.desk.end(job, found).done
    assert own_ground.state(first.id) is State.PUBLISHED
    broken = {one.invariant.id for one in audit(own_ground.conn, full=True).broken}
    assert "T21" not in broken
