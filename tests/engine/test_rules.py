"""Small rules by hand: a rehearsal's keys, a deletion's refusals, a sender as it is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from publisher.engine.content import ContentError, Happening, Letter
from publisher.engine.errors import Conflict, DuplicateJob, KeyBusy, KeyConflict, OpenJobExists
from publisher.engine.job import congruence, rehearsal_key, rehearsed
from publisher.engine.outcome import (
    CannotWithdraw,
    Certain,
    Deferred,
    NotWithdrawn,
    Reason,
    Rejected,
    Unauthorized,
    cannot_withdraw,
)
from publisher.engine.recognition import difference, unreadable
from publisher.engine.sender import DECLARED_MARGIN, Sender
from publisher.engine.tally import Count, Lateness, Tally

HANOI = timezone(timedelta(hours=7))


# Keys


def test_a_rehearsals_key_names_run_number_channel_and_instant_in_utc() -> None:
    at = datetime(2026, 12, 7, 9, 0, 0, 5, tzinfo=HANOI)
    key = rehearsal_key("run_1.a-b", 12, 3, at)
    assert key == "rehearsal:run_1.a-b:12/channel:3/at:2026-12-07T02:00:00.000005Z"
    assert rehearsed(key) == ("run_1.a-b", 12)


@pytest.mark.parametrize(
    "key",
    ["post:1/channel:2/at:x", "rehearsal:a/1", "rehearsal:a:b/", "rehearsal::1/", "rehearsal:a:1",
     "x rehearsal:a:1/", "rehearsal:a b:1/"],
)  # fmt: skip
def test_every_other_key_is_no_rehearsals(key: str) -> None:
    assert rehearsed(key) is None


@pytest.mark.parametrize("digits", ["x", "X", "0x"])
def test_a_letter_beyond_f_is_no_digit(digits: str) -> None:
    assert congruence(digits) is None


# What a refusal means for a deletion


@pytest.mark.parametrize(
    ("failure", "reason", "after"),
    [
        (Unauthorized(Reason.NEEDS_RECONNECTING, "no"), NotWithdrawn.NEEDS_RECONNECTING, None),
        (Unauthorized(Reason.MISSING_PERMISSION, "no"), NotWithdrawn.REFUSED, None),
        (Rejected(Reason.CONTENT_REFUSED, "no"), NotWithdrawn.REFUSED, None),
        (Deferred(Reason.RATE_LIMITED, "no", retry_after=9.0), NotWithdrawn.RATE_LIMITED, 9.0),
        (Deferred(Reason.BUSY, "no", retry_after=9.0), NotWithdrawn.UNCLEAR, 9.0),
        (Deferred(Reason.BUSY, "no"), NotWithdrawn.UNCLEAR, None),
    ],
)
def test_what_a_refusal_means_for_a_deletion(
    failure: Certain, reason: NotWithdrawn, after: float | None
) -> None:
    assert cannot_withdraw(failure) == CannotWithdraw(reason, "no", after)


# Who sent it

AT = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize("proof", ["returned_at", "ended_at", "declared_gone_at"])
def test_a_sender_is_read_as_the_database_says_it(proof: str) -> None:
    none = {"returned_at": None, "ended_at": None, "declared_gone_at": None}
    facts = {"run": 7, "host": "here", **none}
    assert Sender.read(facts) == Sender(7, "here")
    assert Sender.read(facts | {proof: AT.isoformat()}) == Sender(7, "here", **{proof: AT})  # type: ignore[arg-type]
    lost = Sender.read({"run": None, "host": None, **none})
    assert lost == Sender(0, "an unknown host")


def test_a_persons_word_counts_a_quarter_of_an_hour_later() -> None:
    assert timedelta(minutes=15) == DECLARED_MARGIN
    assert Sender(7, "here", declared_gone_at=AT).sure_gone_at() == AT + timedelta(minutes=15)
    assert Sender(7, "here", ended_at=AT).sure_gone_at() == AT


# Words


def test_what_is_wrong_with_a_content_is_kept_for_whoever_reads_the_log() -> None:
    naive = Letter("a@example.org", "s", "t", datetime(2026, 12, 7)).to_json()  # noqa: DTZ001 - the fault
    for content, why in (
        (naive, "a time without a zone is no instant"),
        ('{"at":"2026-12-07T02:00:00+00:00","subject":"s","text":"t","to":1}', "not a str"),
    ):
        with pytest.raises(ContentError) as error:
            Letter.from_json(content)
        assert str(error.value.__cause__) == why
    with pytest.raises(ContentError) as error:
        Happening.from_json('{"at":"2026-12-07T02:00:00+00:00","data":[],"type":"x"}')
    assert str(error.value.__cause__) == "not a dict"


def test_marks_that_show_nothing_are_passed_over_in_comparing() -> None:
    mark, alike = "\u200e", "b" * 50
    for sent in (f"a{mark}{alike}c", f"a{mark}{mark}{alike}c", f"{mark}a{alike}{mark}c"):
        shown = difference(sent, f"a{alike}d")
        assert [text[-1] for text in shown] == ["c", "d"]
        assert shown[1] == f"…{'b' * 16}d"
    assert difference(f"{alike}\u200dc", f"{alike}c") == (f"…{'b' * 16}[ZWJ]c", f"…{'b' * 16}c")


def test_only_the_full_stop_is_taken_off_what_could_not_be_read() -> None:
    for why in ("it says X", "it says X.", "it says X. "):
        assert unreadable(why).message == (
            "That link cannot be checked just now: it says X. Nothing was recorded."
        )


# Refusals that people read


def test_each_refusal_says_what_stands_and_what_to_do() -> None:
    at = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)
    said = {
        "key-exists": KeyConflict("post:1", 7, "failed"),
        "duplicate-job": DuplicateJob("post:1", 7, at),
        "open-job-exists": OpenJobExists("post:1", 7, "sending"),
        "key-busy": KeyBusy("post:1"),
    }
    assert {error.code: str(error) for error in said.values()} == {
        "key-exists": "This job already exists: post:1 is failed. Nothing was added. To post again"
        " on purpose, give a new time.",
        "duplicate-job": "post:1: same kind, content and queue as a job that is still current."
        " Nothing was added. Allowed again at 2026-12-07 02:00:00 UTC or when that job is live.",
        "open-job-exists": "post:1: this post already has a job on this channel that is sending."
        " Nothing was added. Wait for its end, or cancel it while it is scheduled.",
        "key-busy": "post:1 is being added by someone else just now. Ask again in a moment.",
    }
    for code, error in said.items():
        assert (error.code, error.exit_code, error.key) == (code, 4, "post:1")
    exists, duplicate, under_way, _ = said.values()
    assert (exists.job_id, exists.state) == (7, "failed")
    assert (duplicate.holder, duplicate.lapses_at) == (7, at)
    assert (under_way.holder, under_way.state) == (7, "sending")


def test_a_conflict_names_its_code_and_state() -> None:
    plain, told = Conflict("no"), Conflict("no", code="too-late", state="unknown")
    assert (str(plain), plain.code, plain.state, plain.exit_code) == ("no", "conflict", None, 4)
    assert (str(told), told.code, told.state) == ("no", "too-late", "unknown")


# What is counted


def test_counts_go_up_by_label() -> None:
    tally = Tally()
    tally.count(Count.LOOKS, "found")
    tally.count(Count.LOOKS, "found", by=2)
    tally.count(Count.LOOKS, "absent")
    tally.count(Count.RESCUES, "found")
    assert tally.counts(Count.LOOKS) == {("found",): 3, ("absent",): 1}
    assert tally.counts(Count.RESCUES) == {("found",): 1}
    assert tally.counts(Count.BROKEN) == {}


def test_lateness_is_in_the_bucket_it_does_not_exceed() -> None:
    tally = Tally()
    for seconds in (-3.0, 1.0, 1.001, 86_400.0, 86_401.0):
        tally.late(seconds, "fake")
    tally.late(0.5, "other")
    assert tally.lateness() == {
        "fake": Lateness((2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1), 172_803.001),
        "other": Lateness((1, *[0] * 11), 0.5),
    }
