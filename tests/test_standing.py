"""What people read of a job's state: four answers for each, and never a bare "failed"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from publisher import reasons
from publisher.engine.job import Hold, JobId, State
from publisher.engine.outcome import Reason
from publisher.engine.queries import JobRow
from publisher.standing import OnPage, stand

NOW = datetime(2026, 12, 7, 2, tzinfo=UTC)


def row(state: State, **changes: Any) -> JobRow:  # noqa: ANN401
    values: dict[str, Any] = {
        "id": JobId(1), "key": "post:1/channel:1/at:x", "ref": "r", "kind": "publish",
        "queue": "publish", "channel_id": 1, "channel": "Page A", "platform": "facebook_pages",
        "post_id": 1, "state": state, "attempts": 0, "failures": 0, "due_at": NOW, "run_at": NOW,
        "useful_until": None, "settled_at": None, "hold_reason": None, "remote_id": None,
        "permalink": None, "attested_at": None, "reason": None, "possibly_live": False,
        "looked": False, "channel_blocked": None, "channel_paused": False,
        "channel_not_before": None, "now": NOW,
    }  # fmt: skip
    return JobRow(**values | changes)


@pytest.mark.parametrize("hold", [Hold.APPROVAL, Hold.EDITED])
def test_what_waits_for_an_approval_is_not_released_by_hand(hold: Hold) -> None:
    until = NOW + timedelta(hours=1)
    at = stand(row(State.SCHEDULED, hold_reason=str(hold), useful_until=until), tries=5)
    assert (at.label, at.on_page, at.next_at) == (f"On hold: {hold}", OnPage.NO, until)
    assert "release" not in at.verbs
    assert "until its post is approved" in at.by_itself


@pytest.mark.parametrize("state", State)
def test_every_state_answers_all_four(state: State) -> None:
    at = stand(row(state, reason=Reason.CONTENT_REFUSED), tries=5)
    assert at.mark
    assert at.label
    assert at.why
    assert at.by_itself
    assert "fail" not in at.label.lower()


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.PUBLISHED, OnPage.YES),
        (State.UNKNOWN, OnPage.MAYBE),
        (State.SENDING, OnPage.MAYBE),
        (State.DROPPED, OnPage.MAYBE),
        (State.SCHEDULED, OnPage.NO),
        (State.CLAIMED, OnPage.NO),
        (State.FAILED, OnPage.NO),
        (State.MISSED, OnPage.NO),
        (State.CANCELLED, OnPage.NO),
    ],
)
def test_is_it_on_the_page(state: State, answer: OnPage) -> None:
    assert stand(row(state), tries=5).on_page is answer


def test_a_safe_repeat_does_not_hide_a_doubt() -> None:
    for state in (State.SCHEDULED, State.CLAIMED):
        assert stand(row(state, attempts=1, possibly_live=True), tries=5).on_page is OnPage.MAYBE


def test_a_doubt_offers_no_way_to_send_again() -> None:
    at = stand(row(State.UNKNOWN, reason=Reason.NO_ANSWER), tries=5)
    assert at.verbs == ("unknowns show",)
    assert at.needs_a_person
    assert "nothing will be sent" in at.by_itself


def test_a_doubt_is_checked_while_looks_remain_and_then_needs_a_person() -> None:
    later = NOW + timedelta(minutes=1)
    checking = stand(row(State.UNKNOWN, reason=Reason.NO_ANSWER, next_look_at=later), tries=5)
    assert (checking.mark, checking.label) == ("?", "May be live: checking")
    assert (checking.next_at, checking.needs_a_person) == (later, False)
    assert checking.by_itself == "nothing is sent by itself; the next look is at"
    due = stand(row(State.UNKNOWN, reason=Reason.NO_ANSWER, next_look_at=NOW), tries=5)
    assert due.next_at is None
    assert due.by_itself == "nothing is sent by itself; a look at the page is due"

    asked = {"asked_at": NOW, "asked_reason": "2 posts on the page could be it"}
    both = stand(row(State.UNKNOWN, reason=Reason.NO_ANSWER, next_look_at=later, **asked), tries=5)
    assert (both.mark, both.label) == ("‽", "May be live: needs a person")
    assert both.needs_a_person
    assert both.next_at == later
    assert both.why.endswith("came in time. 2 posts on the page could be it.")
    over = stand(row(State.UNKNOWN, reason=Reason.NO_ANSWER, **asked), tries=5)
    assert over.by_itself == "nothing will be sent by itself"


def test_what_is_late_after_a_standstill_needs_nobody() -> None:
    until = NOW + timedelta(hours=1)
    late = row(State.SCHEDULED, hold_reason=str(Hold.BACKLOG), useful_until=until)
    at = stand(late, tries=5)
    assert at.label == "On hold: late after a standstill, waits its turn"
    assert (at.on_page, at.next_at, at.needs_a_person) == (OnPage.NO, until, False)
    assert at.verbs[0] == "release"
    assert "fresh posts go first" in at.by_itself


def test_a_wait_says_until_when() -> None:
    rest = NOW + timedelta(minutes=20)
    waiting = row(State.SCHEDULED, failures=2, reason=Reason.BUSY, channel_not_before=rest)
    at = stand(waiting, tries=5)
    assert at.label == "Waiting: 2 of 5 tries used"
    assert at.next_at == rest
    held = stand(row(State.SCHEDULED, hold_reason="held by a person"), tries=5)
    assert held.next_at is None
    assert held.verbs[0] == "release"
    closed = stand(row(State.SCHEDULED, channel_blocked=Reason.NEEDS_RECONNECTING), tries=5)
    assert closed.verbs[0] == "channels reconnect"


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    said = reasons.sentence(reason)
    assert said.endswith(".")
    assert said != reason
    assert reasons.remedy_words(reasons.remedy(reason))


@pytest.mark.parametrize("reason", Reason)
def test_a_brief_reason_fits_a_column(reason: Reason) -> None:
    said = reasons.brief(reason)
    assert said
    if said != reasons.sentence(reason):
        assert len(said) <= 30
    assert reasons.brief(None) == ""


def test_a_reason_that_is_none_of_ours_is_said_as_it_is() -> None:
    assert reasons.sentence("the platform still works on it") == "the platform still works on it"
    assert reasons.sentence(None) == ""


@pytest.mark.parametrize(
    ("state", "answer", "label"),
    [
        (State.SCHEDULED, OnPage.YES, "Scheduled"),
        (State.CLAIMED, OnPage.YES, "Preparing"),
        (State.SENDING, OnPage.MAYBE, "Deleting"),
        (State.PUBLISHED, OnPage.NO, "Deleted"),
        (State.UNKNOWN, OnPage.MAYBE, "May still be there: needs a person"),
        (State.FAILED, OnPage.YES, "Not deleted"),
        (State.MISSED, OnPage.YES, "Not deleted"),
        (State.CANCELLED, OnPage.YES, "Not deleted: cancelled"),
        (State.DROPPED, OnPage.MAYBE, "Dropped: may still be there, no longer followed"),
    ],
)
def test_a_deletion_answers_for_the_post_that_is_to_go(
    state: State, answer: OnPage, label: str
) -> None:
    at = stand(row(state, kind="delete", removes=JobId(2)), tries=5)
    assert (at.on_page, at.label) == (answer, label)
    assert at.by_itself
    assert at.why or state is State.FAILED or state is State.UNKNOWN


def test_a_deletion_that_may_have_gone_through_is_a_maybe_while_it_waits() -> None:
    for state in (State.SCHEDULED, State.CLAIMED):
        at = stand(row(state, kind="delete", possibly_live=True), tries=5)
        assert at.on_page is OnPage.MAYBE
    held = row(State.SCHEDULED, kind="delete", hold_reason=str(Hold.QUARANTINE))
    assert stand(held, tries=5).on_page is OnPage.MAYBE


def test_a_deletion_in_doubt_is_looked_for_and_asked_again_by_itself() -> None:
    looked = row(State.UNKNOWN, kind="delete", next_look_at=NOW + timedelta(minutes=1))
    at = stand(looked, tries=5)
    assert (at.label, at.needs_a_person) == ("May still be there: checking", False)
    assert "asked for again" in at.by_itself


def test_what_was_deleted_is_live_no_more_and_says_since_when() -> None:
    gone = row(State.PUBLISHED, remote_id="501", deleted_at=NOW)
    at = stand(gone, tries=5)
    assert (at.on_page, at.label) == (OnPage.NO, "Was live, then deleted")
    assert at.why == "It was deleted from the page by 2026-12-07 02:00 UTC."
    assert at.verbs == ()
