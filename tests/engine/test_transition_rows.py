"""The table, row for row, against the same table written by hand from the design."""

from __future__ import annotations

import pytest

from publisher.engine.job import State
from publisher.engine.transitions import TABLE, Event, allowed

# from: events: to. Nothing else may happen.
ROWS = """
scheduled: claim: claimed
scheduled: reschedule replace hold release_hold: scheduled
scheduled: cancel: cancelled
scheduled: expire: missed
claimed: expire: missed
claimed: begin_send: sending
claimed: wait release: scheduled
claimed: defer unauthorized: scheduled failed
claimed: lease_expired: scheduled failed
claimed: reject: failed
claimed: cancel: cancelled
claimed: hold reschedule: scheduled
claimed: look_unclear: unknown
scheduled: repeat_ended: unknown
claimed: repeat_ended: unknown
sending: repeat_ended: unknown
sending: publish: published
sending: reject: failed
sending: defer unauthorized: scheduled failed
sending: lose_answer lease_expired: unknown
unknown: late_publish confirm_published: published
unknown: reject: failed
unknown: defer unauthorized: scheduled failed
unknown: look_again: unknown
unknown: repeat: scheduled
unknown: confirm_absent: scheduled failed
unknown: drop: dropped
scheduled: late_publish confirm_published: published
claimed: late_publish confirm_published: published
failed: late_publish confirm_published: published
missed: late_publish confirm_published: published
dropped: late_publish confirm_published: published
scheduled: spool_found: unknown
claimed: spool_found: unknown
failed: spool_found: unknown
missed: spool_found: unknown
failed: requeue: scheduled
missed: requeue: scheduled
cancelled: restore: scheduled
"""


def by_hand() -> dict[tuple[str, str], set[str]]:
    rows = {}
    for line in ROWS.split("\n"):
        if line:
            state, events, ends = line.split(": ")
            rows |= {(state, event): set(ends.split()) for event in events.split()}
    return rows


def test_every_row_leads_where_the_design_says() -> None:
    table = {(str(state), str(event)): {*map(str, ends)} for (state, event), ends in TABLE.items()}
    assert table == by_hand()


@pytest.mark.parametrize("state", State)
def test_nothing_else_may_happen(state: State) -> None:
    may = {str(event) for event in Event if allowed(state, event)}
    assert may == {event for at, event in by_hand() if at == state}
