"""The retry policy: pure, so its laws are tried on whatever Hypothesis thinks of."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.engine import retry
from publisher.engine.job import State, Token
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.retry import Policy, Rest, Standing, pause
from publisher.engine.transitions import Event, allowed
from tests.engine.outcomes import DEFERRALS, DOUBTS, OUTCOMES

S, E = State, Event
NOW = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
A_DAY_ON = NOW + timedelta(days=1)

seconds = st.floats(0.001, 1e5)
policies = st.builds(
    lambda tries, first, more, settling, at: Policy(
        tries=tries,
        first=first,
        longest=first + more,
        settling=settling,
        jitter=lambda low, high: low + (high - low) * at,
    ),
    st.integers(1, 20),
    seconds,
    st.floats(0, 1e5),
    st.floats(0, 300),
    st.floats(0, 1),
)
standings = st.builds(
    lambda failures, left, begun, used, can_look: Standing(
        failures, NOW + timedelta(seconds=left), begun=begun, sent=begun and used, can_look=can_look
    ),
    st.integers(0, 30),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


# Pauses


@given(policies, st.integers(1, 500), seconds)
def test_a_pause_is_never_shorter_than_the_first_step_or_what_was_asked_for(
    policy: Policy, failures: int, at_least: float
) -> None:
    assert pause(policy, failures, at_least) >= max(policy.first, at_least)


@given(policies, st.integers(1, 500))
def test_a_pause_lies_between_half_and_the_whole_of_its_step(policy: Policy, failures: int) -> None:
    step = min(policy.first * 2.0 ** (failures - 1), policy.longest)
    waited = pause(policy, failures)
    assert max(step / 2, policy.first) <= waited * 1.000001
    assert waited <= max(step, policy.first) * 1.000001


def test_steps_double_up_to_the_longest() -> None:
    policy = Policy(jitter=lambda _, high: high)
    assert [pause(policy, n) for n in range(1, 9)] == [30, 60, 120, 240, 480, 960, 1800, 1800]
    lowest = Policy(jitter=lambda low, _: low)
    assert [pause(lowest, n) for n in range(1, 5)] == [30, 30, 60, 120]


def test_jitter_is_random_by_default() -> None:
    assert len({pause(Policy(), 4) for _ in range(20)}) > 1


# Outcomes


@given(OUTCOMES, standings, policies)
def test_an_outcome_leads_where_the_table_allows(
    outcome: Outcome, standing: Standing, policy: Policy
) -> None:
    if isinstance(outcome, Published | Unknown):
        standing = replace(standing, begun=True)
    end = retry.settle(outcome, standing, policy, NOW)
    was = S.SENDING if standing.begun else S.CLAIMED
    assert allowed(was, end.event)
    assert end.state is not S.SENDING


@given(DOUBTS, standings, policies)
def test_a_doubt_leads_to_unknown_and_nowhere_else(
    outcome: Unknown, standing: Standing, policy: Policy
) -> None:
    end = retry.settle(outcome, standing, policy, NOW)
    assert (end.event, end.state, end.outcome, end.proof) == (
        E.LOSE_ANSWER, S.UNKNOWN, "unknown", None,
    )  # fmt: skip


def test_a_doubt_keeps_its_clue() -> None:
    end = retry.settle(Unknown(Reason.NO_ID, "no id", "v7"), standing(), Policy(), NOW)
    assert (end.detail, end.remote_handle) == ("no id", "v7")


@given(OUTCOMES, standings, policies)
def test_a_begun_send_is_freed_only_with_a_proof(
    outcome: Outcome, standing: Standing, policy: Policy
) -> None:
    end = retry.settle(outcome, standing, policy, NOW)
    if end.state in {S.SCHEDULED, S.FAILED}:
        expected = Proof.REFUSED if standing.sent else Proof.NOT_SENT
        assert end.proof is (expected if standing.begun else None)
    else:
        assert end.proof is None


@given(OUTCOMES, standings, policies)
def test_what_cannot_be_looked_at_is_believed_only_if_validated_before_storing(
    outcome: Outcome, standing: Standing, policy: Policy
) -> None:
    end = retry.settle(outcome, standing, policy, NOW)
    is_refusal = isinstance(outcome, Rejected | Deferred | Unauthorized)
    if is_refusal and standing.sent and not standing.can_look:
        is_validated = getattr(outcome, "validated_before_storing")  # noqa: B009 - not of all
        assert (end.state is S.UNKNOWN) is not is_validated
    elif is_refusal:
        assert end.state is not S.UNKNOWN


@given(DEFERRALS, standings, policies)
def test_tries_and_useful_time_end_it(
    outcome: Deferred, standing: Standing, policy: Policy
) -> None:
    standing = replace(standing, can_look=True)
    end = retry.settle(outcome, standing, policy, NOW)
    assert end.event is E.DEFER
    assert end.failed == 1
    if end.state is S.SCHEDULED:
        assert standing.failures + 1 < policy.tries
        assert NOW + timedelta(seconds=end.delay) < standing.ends_at
        assert end.delay >= max(policy.first, outcome.retry_after or 0.0)
        assert not standing.sent or end.delay >= policy.settling
    else:
        assert end.state is S.FAILED
        used_up = standing.failures + 1 >= policy.tries
        assert end.detail.endswith(
            "(no tries left)" if used_up else "(no time left before it stops being useful)"
        )


@given(st.integers(0, 10), st.booleans())
def test_a_rest_of_the_channel_lasts_as_long_as_the_job_waits(failures: int, rest: bool) -> None:  # noqa: FBT001
    outcome = Deferred(Reason.RATE_LIMITED, "slow", retry_after=99.0, rest_channel=rest)
    end = retry.settle(outcome, standing(failures=failures), Policy(tries=5), NOW)
    if not rest:
        assert end.rest is None
    else:
        assert end.rest is not None
        assert end.rest.seconds is not None
        assert end.rest.seconds >= 99.0
        assert end.state is S.FAILED or end.rest.seconds == end.delay


def standing(*, failures: int = 0, begun: bool = True, sent: bool = True) -> Standing:
    return Standing(failures, A_DAY_ON, begun=begun, sent=sent)


def test_published_carries_what_the_platform_asked_for() -> None:
    end = retry.settle(Published("1_2", "https://x", not_before=30.0), standing(), Policy(), NOW)
    assert (end.remote_id, end.permalink, end.rest) == ("1_2", "https://x", Rest(seconds=30.0))
    assert retry.settle(Published("1_2"), standing(), Policy(), NOW).rest is None


def test_unauthorized_counts_no_failure_and_closes_the_gate() -> None:
    outcome = Unauthorized(Reason.NEEDS_RECONNECTING, "expired", row="190")
    end = retry.settle(outcome, standing(failures=4), Policy(), NOW)
    assert (end.state, end.failed, end.proof_detail) == (S.SCHEDULED, 0, "190")
    assert end.rest == Rest(blocked=Reason.NEEDS_RECONNECTING, detail="expired")
    assert end.delay >= 30.0


def test_rejected_ends_at_once() -> None:
    outcome = Rejected(Reason.CONTENT_REFUSED, "too long", row="100/33")
    end = retry.settle(outcome, standing(), Policy(), NOW)
    assert (end.event, end.state, end.failed) == (E.REJECT, S.FAILED, 0)


FOUND = retry.found("1_2", None, attempt=1, about=Token(UUID(int=1)))


@pytest.mark.parametrize(
    ("end", "was", "counts"),
    [
        (retry.release(), S.CLAIMED, 0),
        (retry.release("busy", 5.0), S.CLAIMED, 0),
        (retry.wait("encoding", 9.0), S.CLAIMED, 0),
        (retry.expire(), S.CLAIMED, 0),
        (FOUND, S.CLAIMED, 0),
        (retry.look_unclear("two alike"), S.CLAIMED, 0),
        (retry.begin_unacknowledged(3.0), S.SENDING, 0),
        (retry.not_sent(Reason.SPOOL_FAILED, "disk", 3.0), S.SENDING, 0),
    ],
)
def test_ends_that_are_no_outcome_count_no_failure(
    end: retry.Settlement, was: State, counts: int
) -> None:
    assert allowed(was, end.event)
    assert end.failed == counts
    assert (end.proof is Proof.NOT_SENT) is (was is S.SENDING)


@pytest.mark.parametrize("remote_id", ["", "a\x00", "\ud800", "x" * 501, "a\nb"])
def test_an_id_that_cannot_be_kept_is_no_id(remote_id: str) -> None:
    end = retry.settle(Published(remote_id), standing(), Policy(), NOW)
    assert (end.state, end.reason, end.remote_id) == (S.UNKNOWN, Reason.NO_ID, None)
    seen = retry.found(remote_id, None, attempt=1, about=Token(UUID(int=1)))
    assert (seen.event, seen.state) == (E.LOOK_UNCLEAR, S.UNKNOWN)


@pytest.mark.parametrize("permalink", ["https://x/\x00", "\udfff", "https://x/" + "y" * 2000])
def test_a_link_that_cannot_be_kept_is_left_out(permalink: str) -> None:
    end = retry.settle(Published("1_2", permalink), standing(), Policy(), NOW)
    assert (end.state, end.remote_id, end.permalink) == (S.PUBLISHED, "1_2", None)


def test_only_a_begun_send_may_be_live() -> None:
    assert FOUND.may_be_live
    assert not retry.release().may_be_live
    assert not retry.not_sent(Reason.SPOOL_FAILED, "disk", 3.0).may_be_live
    lost = retry.lost_by_the_database(2)
    assert (lost.state, lost.may_be_live, lost.proof) == (S.UNKNOWN, True, None)
