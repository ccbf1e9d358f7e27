"""The retry policy to the last field: what each end writes, and its edges by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from publisher.engine import retry
from publisher.engine.job import State, Token
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.retry import Policy, Rest, Settlement, Standing, pause
from publisher.engine.transitions import Event

S, E = State, Event
NOW = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
A_DAY_ON = NOW + timedelta(days=1)
ANSWER = Answer(status=400, body="no", sent=12)
TOKEN = Token(UUID(int=1))
HIGH = Policy(first=30.0, longest=1800.0, settling=45.0, jitter=lambda _, high: high)
CANNOT = " (this platform cannot be looked at to make sure)"


def standing(
    *, failures: int = 0, begun: bool = True, sent: bool = True, can_look: bool = True
) -> Standing:
    return Standing(failures, A_DAY_ON, begun=begun, sent=sent, can_look=can_look, attempt=3)


def test_published_writes_all_it_was_told() -> None:
    end = retry.settle(
        Published("1_2", "https://x", NOW, ANSWER, not_before=9.0), standing(), HIGH, NOW
    )
    assert end == Settlement(
        E.PUBLISH, S.PUBLISHED, outcome="published", remote_id="1_2", permalink="https://x",
        answer=ANSWER, rest=Rest(seconds=9.0), attempt=3,
    )  # fmt: skip
    plain = retry.settle(Published("1", not_before=0.0), standing(), HIGH, NOW)
    assert plain == Settlement(
        E.PUBLISH, S.PUBLISHED, outcome="published", remote_id="1", attempt=3
    )


def test_published_under_no_id_that_can_be_kept_is_a_doubt() -> None:
    end = retry.settle(Published("a\nb", "https://x", answer=ANSWER), standing(), HIGH, NOW)
    assert end == Settlement(
        E.LOSE_ANSWER, S.UNKNOWN, outcome="unknown", reason=Reason.NO_ID,
        detail="the id in the answer is none that can be kept", answer=ANSWER,
    )  # fmt: skip


def test_a_doubt_writes_its_reason_answer_and_clue() -> None:
    unknown = Unknown(Reason.ANSWER_CUT, "half of it", "v7", ANSWER)
    assert retry.settle(unknown, standing(), HIGH, NOW) == Settlement(
        E.LOSE_ANSWER, S.UNKNOWN, outcome="unknown", reason=Reason.ANSWER_CUT, detail="half of it",
        answer=ANSWER, remote_handle="v7",
    )  # fmt: skip


PROOFS = [(False, False, None), (True, False, Proof.NOT_SENT), (True, True, Proof.REFUSED)]


@pytest.mark.parametrize(("begun", "sent", "proof"), PROOFS)
def test_each_refusal_writes_its_row_answer_and_proof(
    *, begun: bool, sent: bool, proof: Proof | None
) -> None:
    at = standing(failures=1, begun=begun, sent=sent)
    why, row = Reason.MEDIA_REFUSED, "x/400"
    given = {"reason": why, "detail": "no", "proof": proof, "proof_detail": row, "answer": ANSWER}
    assert retry.settle(Rejected(why, "no", row, answer=ANSWER), at, HIGH, NOW) == Settlement(
        E.REJECT, S.FAILED, outcome="rejected", **given  # type: ignore[arg-type]
    )  # fmt: skip
    assert retry.settle(Unauthorized(why, "no", row, answer=ANSWER), at, HIGH, NOW) == Settlement(
        E.UNAUTHORIZED, S.SCHEDULED, outcome="unauthorized", delay=45.0,
        rest=Rest(blocked=why, detail="no"), **given,  # type: ignore[arg-type]
    )  # fmt: skip
    deferred = Deferred(why, "no", row=row, retry_after=5.0, rest_channel=True, answer=ANSWER)
    assert retry.settle(deferred, at, HIGH, NOW) == Settlement(
        E.DEFER, S.SCHEDULED, outcome="deferred", delay=60.0, failed=1,
        rest=Rest(seconds=60.0, detail="no"), **given,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_channel_to_be_reconnected_waits_for_the_longer_of_two() -> None:
    outcome = Unauthorized(Reason.NEEDS_RECONNECTING, "expired")
    for first, settling, delay in ((30.0, 45.0, 45.0), (60.0, 45.0, 60.0)):
        policy = Policy(first=first, settling=settling)
        assert retry.settle(outcome, standing(), policy, NOW).delay == delay


REFUSALS = [
    Rejected(Reason.CONTENT_REFUSED, "no", "x", answer=ANSWER),
    Unauthorized(Reason.CONTENT_REFUSED, "no", "x", answer=ANSWER),
    Deferred(Reason.CONTENT_REFUSED, "no", row="x", answer=ANSWER),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_refusal_that_nobody_can_check_is_a_doubt_with_its_reason(
    refusal: Rejected | Unauthorized | Deferred,
) -> None:
    assert retry.settle(refusal, standing(can_look=False), HIGH, NOW) == Settlement(
        E.LOSE_ANSWER, S.UNKNOWN, outcome="unknown", reason=Reason.CONTENT_REFUSED,
        detail=f"no{CANNOT}", answer=ANSWER,
    )  # fmt: skip
    unsent = retry.settle(refusal, standing(sent=False, can_look=False), HIGH, NOW)
    assert unsent.proof is Proof.NOT_SENT


# Pauses


def test_steps_stop_doubling_at_the_sixtieth() -> None:
    policy = Policy(first=1.0, longest=1e300, jitter=lambda _, high: high)
    assert [pause(policy, n) for n in (60, 61, 62, 2000)] == [2.0**59, 2.0**60, 2.0**60, 2.0**60]


def test_jitter_is_asked_between_half_a_step_and_the_whole() -> None:
    asked: list[tuple[float, float]] = []

    def jitter(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    policy = Policy(first=10.0, longest=100.0, jitter=jitter)
    assert [pause(policy, 3), pause(policy, 9), pause(policy, 3, 33.0)] == [20.0, 50.0, 33.0]
    assert asked == [(20.0, 40.0), (50.0, 100.0), (20.0, 40.0)]


@pytest.mark.parametrize(
    ("sent", "asked", "delay"),
    [
        (False, None, 30.0), (False, 31.0, 31.0), (False, 29.0, 30.0),
        (True, None, 45.0), (True, 46.0, 46.0), (True, 44.0, 45.0),
    ],
)  # fmt: skip
def test_what_was_sent_has_time_to_settle(*, sent: bool, asked: float | None, delay: float) -> None:
    outcome = Deferred(Reason.BUSY, "busy", retry_after=asked)
    assert retry.settle(outcome, standing(sent=sent), HIGH, NOW).delay == delay


def test_a_deferral_that_names_no_time_asks_for_none() -> None:
    quick = Policy(first=0.25, longest=0.5, jitter=lambda _, high: high)
    assert (
        retry.settle(Deferred(Reason.BUSY, "busy"), standing(sent=False), quick, NOW).delay == 0.25
    )


@pytest.mark.parametrize(
    ("failures", "left", "state", "why"),
    [
        (3, 1801.0, S.SCHEDULED, ""),
        (4, 1801.0, S.FAILED, " (no tries left)"),
        (9, 0.0, S.FAILED, " (no tries left)"),
        (0, 45.001, S.SCHEDULED, ""),
        (0, 45.0, S.FAILED, " (no time left before it stops being useful)"),
        (0, 44.0, S.FAILED, " (no time left before it stops being useful)"),
    ],
)
def test_tries_and_useful_time_end_at_their_edge(
    failures: int, left: float, state: State, why: str
) -> None:
    at = Standing(failures, NOW + timedelta(seconds=left), begun=True, sent=True)
    end = retry.settle(Deferred(Reason.BUSY, "busy", rest_channel=True), at, HIGH, NOW)
    assert (end.event, end.state, end.detail, end.failed) == (E.DEFER, state, f"busy{why}", 1)
    assert end.rest is not None
    assert end.rest.seconds == max(pause(HIGH, failures + 1), 45.0)
    assert end.delay == (end.rest.seconds if state is S.SCHEDULED else 0.0)


# Ends that are no outcome


def test_what_a_worker_ends_without_a_send() -> None:
    assert retry.release() == Settlement(E.RELEASE, S.SCHEDULED)
    assert retry.release("busy", 5.0) == Settlement(
        E.RELEASE, S.SCHEDULED, reason="busy", delay=5.0
    )
    assert retry.wait("encoding", 9.0) == Settlement(
        E.WAIT, S.SCHEDULED, reason="encoding", delay=9.0
    )
    assert retry.expire() == Settlement(
        E.EXPIRE, S.MISSED, reason=Reason.TOO_LATE, detail="its useful time was over"
    )
    assert retry.begin_unacknowledged(3.0) == Settlement(
        E.DEFER, S.SCHEDULED, outcome="deferred", reason=Reason.BEGIN_UNACKNOWLEDGED,
        detail="the record of the send was not confirmed, so it was not sent", delay=3.0,
        proof=Proof.NOT_SENT,
    )  # fmt: skip
    assert retry.not_sent(Reason.SPOOL_FAILED, "disk", 2.0) == Settlement(
        E.DEFER, S.SCHEDULED, outcome="deferred", reason=Reason.SPOOL_FAILED, detail="disk",
        delay=2.0, proof=Proof.NOT_SENT,
    )  # fmt: skip


def test_what_ends_in_doubt_without_an_outcome() -> None:
    assert retry.repeat_ended() == Settlement(
        E.REPEAT_ENDED, S.UNKNOWN, reason=Reason.REPEAT_ENDED,
        detail="the platform's key has lapsed, so a repeat could double it",
    )  # fmt: skip
    assert retry.look_unclear("two alike") == Settlement(
        E.LOOK_UNCLEAR, S.UNKNOWN, reason=Reason.LOOK_UNCLEAR, detail="two alike"
    )
    assert retry.lost_by_the_database(2) == Settlement(
        E.SPOOL_FOUND, S.UNKNOWN, outcome="unknown", reason=Reason.WORKER_DIED, attempt=2,
        detail="the database lost the record of this send while it was under way",
    )  # fmt: skip


def test_what_a_look_found_before_a_second_send() -> None:
    assert retry.found("1_2", "https://x", attempt=1, about=TOKEN) == Settlement(
        E.CONFIRM_PUBLISHED, S.PUBLISHED, outcome="published", remote_id="1_2",
        permalink="https://x", detail="found on the page before a second send", attempt=1,
        about=TOKEN,
    )  # fmt: skip
    unlinked = retry.found("1_2", "https://x\0", attempt=1, about=TOKEN)
    assert (unlinked.state, unlinked.permalink) == (S.PUBLISHED, None)
    unclear = retry.look_unclear("what was found has an id that cannot be kept")
    assert retry.found("", None, attempt=1, about=TOKEN) == unclear


def test_bytes_may_have_left_only_under_an_attempt_without_a_proof_of_none() -> None:
    for attempt, proof, live in (
        (None, None, False),
        (None, Proof.REFUSED, False),
        (1, None, True),
        (1, Proof.REFUSED, True),
        (1, Proof.NOT_SENT, False),
    ):
        end = Settlement(E.DEFER, S.SCHEDULED, attempt=attempt, proof=proof)
        assert end.may_be_live is live


def test_what_can_be_kept_has_its_longest() -> None:
    assert retry.is_storable_id("x" * 500)
    assert retry.is_storable_id("x")
    assert not retry.is_storable_id("x" * 501)
    assert not retry.is_storable_id("")
    link = "https://x/".ljust(2000, "y")
    assert retry.storable_link(link) == link
    assert retry.storable_link(link + "y") is None
    assert retry.storable_link(None) is None


def test_the_usual_patience() -> None:
    usual = Policy()
    assert (usual.tries, usual.first, usual.longest) == (5, 30.0, 1800.0)
    assert (usual.settling, usual.deaths) == (30.0, 3)
