"""A busy past in which nothing is amiss raises nothing, whichever way it is asked."""

from __future__ import annotations

from publisher.engine.audit import CATALOGUE, audit
from publisher.engine.job import State
from tests.engine.audit.history import Past


def test_a_busy_past_holds(past: Past) -> None:
    states = past.ground.sql("SELECT DISTINCT state FROM jobs")
    assert {State(row["state"]) for row in states} == set(State)
    for full in (False, True):
        report = audit(past.ground.conn, full=full, alerted=True)
        assert not [(broken.invariant.id, broken.rows) for broken in report.broken]
        assert not report.unasked
        assert report.asked == len(CATALOGUE)
        assert (report.jobs is None) == full
