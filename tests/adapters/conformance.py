"""What every adapter must do. Subclass ``Conformance`` and give it a ``stand`` fixture.

Everything goes over real sockets to a platform that keeps its own record; what the adapter says is
compared with that record.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.adapter import LookQuery, Promise
from publisher.engine.content import Post
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawn,
)
from tests.adapters.stand import (
    Attempt,
    Fault,
    Stand,
    capabilities,
    look,
    make_permit,
    make_task,
    photo_post,
    prepare,
    send,
    send_ready,
    text_post,
    withdraw,
)

LOST_DELETIONS = [
    Fault.LOSE_ANSWER,
    Fault.RESET,
    Fault.HALF_ANSWER,
    Fault.GARBAGE,
    Fault.SERVER_ERROR,
    Fault.GATEWAY,
    Fault.DROPPED,
]
REFUSED_DELETIONS = {
    Fault.LIMITED: NotWithdrawn.RATE_LIMITED,
    Fault.REFUSED: NotWithdrawn.REFUSED,
}
ACCEPTED_UNANSWERED = [
    Fault.LOSE_ANSWER,
    Fault.RESET,
    Fault.HALF_ANSWER,
    Fault.GARBAGE,
    Fault.SERVER_ERROR,
    Fault.GATEWAY,
    Fault.TIMEOUT_PAGE,
    Fault.NO_ID,
]

CORPUS = {
    "family emoji": "Saturday 👨‍👩‍👧‍👦 for all 🏳️‍🌈 👩🏽‍🚀",
    "flags": "🇻🇳🇮🇷🏴󠁧󠁢󠁳󠁣󠁴󠁿 match tonight",
    "combining marks": "Z̷̢a̴͓l̸g̶o and q̃ and ẹ́",
    "CJK": "今日は晴れ。明天见!안녕하세요 𠮷野家",
    "Vietnamese NFC": unicodedata.normalize("NFC", "Bản tin hôm nay: giữ gìn tiếng Việt"),
    "Vietnamese NFD": unicodedata.normalize("NFD", "Bản tin hôm qua: giữ gìn tiếng Việt"),
    "Persian with ZWNJ": "می‌خواهم نامه‌های شما را بخوانم؛ «سلام»",
    "NFD inside a URL": "Read https://example.org/" + unicodedata.normalize("NFD", "bản-tin?q=ữ"),
    "marks of form encoding": "' \" & < > + % %20 &amp; a=b;c #tag \\ / {json} [0]",
    "white space": "  two  blanks\tand\ttabs\r\nCRLF\n\n\nlines\u00a0hard  ",
    "looks like a file": '--boundary\r\nContent-Disposition: form-data; name="x"\r\n\r\n--',
}


class Conformance:
    """The cases, in the order of a post's life."""

    @pytest.fixture
    def stand(self) -> Stand:
        """Give the adapter under test with a channel of its own."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def canary(self, stand: Stand, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        """After each case, look for the credential in everything that came out of it."""
        caplog.set_level("DEBUG")
        yield
        assert stand.secret not in repr(stand.seen)
        assert stand.secret not in caplog.text

    def test_published_with_its_id_and_found_by_a_look(self, stand: Stand) -> None:
        attempt, outcome = send(stand, text_post("Open from nine"))
        assert isinstance(outcome, Published)
        assert stand.texts() == ["Open from nine"]
        assert_found(stand, attempt.query(), outcome)

    @pytest.mark.parametrize("name", CORPUS)
    def test_text_byte_for_byte(self, stand: Stand, name: str) -> None:
        attempt, outcome = send(stand, text_post(CORPUS[name]))
        assert isinstance(outcome, Published)
        assert [text.encode() for text in stand.texts()] == [CORPUS[name].encode()]
        assert_found(stand, attempt.query(), outcome)

    def test_photos_with_their_text_and_found(self, stand: Stand) -> None:
        for number, photos in enumerate((("a",), ("a", "b", "c"))):
            attempt, outcome = send(stand, photo_post(f"Pictures {number}", *photos))
            assert isinstance(outcome, Published)
            assert_found(stand, attempt.query(), outcome)
        assert stand.texts() == ["Pictures 1", "Pictures 0"]

    def test_photo_without_text_is_told_from_another(self, stand: Stand) -> None:
        needs_look(stand)
        first, one = send(stand, photo_post("", "a"))
        second, other = send(stand, photo_post("", "a"))
        assert isinstance(one, Published)
        assert isinstance(other, Published)
        evidence = look(stand, first.query()), look(stand, second.query())
        assert [type(found) for found in evidence] == [Found, Found]
        assert [found.remote_id for found in evidence if isinstance(found, Found)] == [
            one.remote_id,
            other.remote_id,
        ]

    def test_no_connection_is_proved_unsent(self, stand: Stand) -> None:
        attempt, outcome = send(stand, text_post("Nobody listens"), channel=stand.unreachable)
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.NOT_SENT
        assert not attempt.permit.used
        assert stand.texts() == []

    @pytest.mark.parametrize("fault", ACCEPTED_UNANSWERED)
    def test_lost_answer_is_unknown_then_found(self, stand: Stand, fault: Fault) -> None:
        stand.misbehave(fault)
        attempt, outcome = send(stand, text_post(f"Taken, then {fault}"))
        assert isinstance(outcome, Unknown)
        assert stand.texts() == [f"Taken, then {fault}"]
        assert_found(stand, attempt.query(outcome))

    @pytest.mark.parametrize("fault", [Fault.DROPPED, Fault.REDIRECTED, Fault.STRANGE_REFUSAL])
    def test_no_proof_is_unknown(self, stand: Stand, fault: Fault) -> None:
        stand.misbehave(fault)
        attempt, outcome = send(stand, text_post(f"Not taken, {fault}"))
        assert isinstance(outcome, Unknown)
        assert stand.texts() == []
        assert_nothing_there(stand, attempt)

    def test_never_answered_is_unknown_within_the_budget(self, stand: Stand) -> None:
        stand.misbehave(Fault.SILENT)
        _, outcome = send(stand, text_post("Hello?"), budget=0.5)
        assert isinstance(outcome, Unknown)
        assert outcome.reason is Reason.NO_ANSWER

    def test_rate_limit_waits_and_rests_the_channel(self, stand: Stand) -> None:
        stand.misbehave(Fault.LIMITED)
        attempt, outcome = send(stand, text_post("Too much today"))
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.REFUSED
        assert outcome.row
        assert outcome.rest_channel
        assert outcome.retry_after is not None
        assert outcome.retry_after > 0
        assert_nothing_there(stand, attempt)

    def test_false_limit_is_caught_by_the_look_before_the_next_send(self, stand: Stand) -> None:
        needs_look(stand)
        stand.misbehave(Fault.FALSE_LIMIT)
        attempt, outcome = send(stand, text_post("Taken, in spite of what it says"))
        assert isinstance(outcome, Deferred)
        assert isinstance(look(stand, attempt.query()), Found)

    def test_refused_for_good(self, stand: Stand) -> None:
        stand.misbehave(Fault.REFUSED)
        _, outcome = send(stand, text_post("Not like this"))
        assert isinstance(outcome, Rejected)
        assert outcome.row

    def test_duplicate_on_a_first_attempt_is_the_data(self, stand: Stand) -> None:
        needs_fault(stand, Fault.DUPLICATE)
        stand.misbehave(Fault.DUPLICATE)
        _, outcome = send(stand, text_post("Said before"))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.DUPLICATE_CONTENT

    def test_duplicate_on_a_later_attempt_is_a_doubt(self, stand: Stand) -> None:
        needs_fault(stand, Fault.DUPLICATE)
        stand.misbehave(Fault.DUPLICATE)
        _, outcome = send(stand, text_post("Said before, perhaps by us"), attempts=1)
        assert isinstance(outcome, Unknown)

    def test_refused_token_needs_a_person(self, stand: Stand) -> None:
        assert stand.adapter.check(stand.channel).usable
        task = make_task(stand.channel, text_post("Who are you"))
        ready = prepare(stand, task)
        stand.misbehave(Fault.TOKEN_REFUSED, times=None)
        _, outcome = send_ready(stand, task, ready)
        assert isinstance(outcome, Unauthorized)
        health = stand.adapter.check(stand.channel)
        stand.seen.append(health)
        assert not health.usable
        assert stand.texts() == []

    def test_credential_that_cannot_be_opened_is_an_outcome(self, stand: Stand) -> None:
        task = make_task(stand.broken, text_post("Locked out"))
        assert stand.adapter.prepared(task) is None
        assert isinstance(stand.adapter.step(task), Unauthorized)
        ready = prepare(stand, make_task(stand.channel, text_post("Locked out")))
        permit = make_permit(task)
        outcome = stand.adapter.publish(task, ready, permit)
        assert isinstance(outcome, Deferred)
        assert outcome.proof is Proof.NOT_SENT
        assert not permit.used
        assert isinstance(look(stand, Attempt(task, permit).query()), Inconclusive)
        assert not stand.adapter.check(stand.broken).usable

    def test_another_jobs_id_is_never_found_for_ours(self, stand: Stand) -> None:
        _, first = send(stand, text_post("The first of the day"))
        assert isinstance(first, Published)
        stand.misbehave(Fault.OLDER_ID)
        attempt, outcome = send(stand, text_post("The second of the day"))
        # That the id is bound already only the ledger can know; it makes Unknown of this.
        assert isinstance(outcome, Published | Unknown)
        if isinstance(outcome, Published):
            assert outcome.remote_id == first.remote_id
        evidence = look(stand, attempt.query(bound=frozenset({first.remote_id})))
        assert not isinstance(evidence, Found)
        assert stand.texts() == ["The first of the day"]

    def test_a_repeated_step_puts_nothing_on_the_page(self, stand: Stand) -> None:
        task = make_task(stand.channel, photo_post("Twice uploaded", "a", "b"))
        for _ in range(2):
            stand.seen.append(stand.adapter.step(task))
        ready = prepare(stand, task)
        assert stand.texts() == []
        task = replace(task, progress=ready.progress)
        outcome = stand.adapter.publish(task, ready, make_permit(task))
        assert isinstance(outcome, Published)
        assert stand.texts() == ["Twice uploaded"]

    def test_a_permit_is_one_request(self, stand: Stand) -> None:
        task = make_task(stand.channel, text_post("Once"))
        ready, permit = prepare(stand, task), make_permit(task)
        assert isinstance(stand.adapter.publish(task, ready, permit), Published)
        again = stand.adapter.publish(task, ready, permit)
        assert isinstance(again, Unknown | Deferred)
        assert stand.texts() == ["Once"]

    def test_a_late_permit_sends_nothing(self, stand: Stand) -> None:
        task = make_task(stand.channel, text_post("Too late"))
        ready, permit = prepare(stand, task), make_permit(task, window=-1.0)
        outcome = stand.adapter.publish(task, ready, permit)
        assert isinstance(outcome, Deferred)
        assert outcome.reason is Reason.PERMIT_LATE
        assert not permit.used
        assert stand.texts() == []

    def test_a_permit_for_other_content_sends_nothing(self, stand: Stand) -> None:
        task = make_task(stand.channel, text_post("This"))
        other = make_permit(make_task(stand.channel, text_post("That")))
        outcome = stand.adapter.publish(task, prepare(stand, task), other)
        assert isinstance(outcome, Deferred)
        assert not other.used
        assert stand.texts() == []

    def test_withdrawn_once_and_gone(self, stand: Stand) -> None:
        needs_delete(stand)
        send(stand, text_post("Stays, before"))
        attempt, outcome = send(stand, text_post("Goes"))
        assert isinstance(outcome, Published)
        send(stand, text_post("Stays, after"))
        assert stand.texts() == ["Stays, after", "Goes", "Stays, before"]
        assert withdraw(stand, attempt, outcome) == Withdrawn()
        assert stand.texts() == ["Stays, after", "Stays, before"]
        assert withdraw(stand, attempt, outcome) == AlreadyGone()
        assert stand.texts() == ["Stays, after", "Stays, before"]
        assert not isinstance(look(stand, attempt.query()), Found)

    def test_a_whole_album_is_withdrawn(self, stand: Stand) -> None:
        needs_delete(stand)
        attempt, outcome = send(stand, photo_post("Three of them", "a", "b", "c"))
        assert isinstance(outcome, Published)
        assert withdraw(stand, attempt, outcome) == Withdrawn()
        assert stand.texts() == []
        assert withdraw(stand, attempt, outcome) == AlreadyGone()

    @pytest.mark.parametrize("fault", [*LOST_DELETIONS, *REFUSED_DELETIONS])
    def test_a_deletion_that_was_not_confirmed_may_be_repeated(
        self, stand: Stand, fault: Fault
    ) -> None:
        needs_delete(stand)
        attempt, outcome = send(stand, text_post("Goes in the end"))
        assert isinstance(outcome, Published)
        stand.misbehave(fault, endpoint="delete")
        end = withdraw(stand, attempt, outcome)
        assert isinstance(end, CannotWithdraw)
        assert end.detail
        if fault in REFUSED_DELETIONS:
            assert end.reason is REFUSED_DELETIONS[fault]
            assert stand.texts() == ["Goes in the end"]
        else:
            assert end.reason is NotWithdrawn.UNCLEAR
        assert isinstance(withdraw(stand, attempt, outcome), Withdrawn | AlreadyGone)
        assert stand.texts() == []

    def test_only_a_post_of_the_channel_is_withdrawn(self, stand: Stand) -> None:
        needs_delete(stand)
        attempt, outcome = send(stand, text_post("Ours"))
        assert isinstance(outcome, Published)
        for remote_id in (
            "",
            "x",
            "1_2",
            "-1001/2",
            "../me",
            "at://did:plc:x/app.bsky.feed.post/1",
        ):
            end = withdraw(stand, attempt, replace(outcome, remote_id=remote_id))
            # Of an id without a mark of whose it is, a server says that it has none.
            assert isinstance(end, CannotWithdraw | AlreadyGone)
        assert stand.texts() == ["Ours"]

    def test_nothing_is_withdrawn_without_access(self, stand: Stand) -> None:
        needs_delete(stand)
        attempt, outcome = send(stand, text_post("Stays"))
        assert isinstance(outcome, Published)
        locked = withdraw(stand, attempt, outcome, channel=stand.broken)
        assert isinstance(locked, CannotWithdraw)
        assert locked.reason is NotWithdrawn.NEEDS_RECONNECTING
        away = withdraw(stand, attempt, outcome, channel=stand.unreachable)
        assert isinstance(away, CannotWithdraw)
        stand.misbehave(Fault.TOKEN_REFUSED, times=None)
        refused = withdraw(stand, attempt, outcome)
        assert isinstance(refused, CannotWithdraw)
        assert refused.reason is NotWithdrawn.NEEDS_RECONNECTING
        assert stand.texts() == ["Stays"]

    def test_look_among_look_alikes(self, stand: Stand) -> None:
        needs_look(stand)
        text = "Winter market on Saturday, from ten to four, at the old mill"
        stand.post_by_someone(text[:-1])
        stand.post_by_someone(text + "!")
        stand.post_by_someone(text.replace("Saturday", "Sunday"))
        stand.post_by_someone(text, at=datetime.now(UTC) - timedelta(days=7))
        attempt = lost_before_sending(stand, text)
        evidence = look(stand, attempt.query())
        if capabilities(stand, attempt.task).promise is Promise.EXACTLY_ONCE:
            # Asked for by its key: nothing is like it, and what is not there is not there.
            assert isinstance(evidence, Absent)
        else:
            assert not isinstance(evidence, Found | Absent)
        stand.misbehave(Fault.LOSE_ANSWER)
        attempt, outcome = send(stand, text_post(text))
        assert isinstance(outcome, Unknown)
        stand.post_by_someone(text + " again")
        evidence = look(stand, attempt.query())
        assert isinstance(evidence, Found)
        assert stand.texts()[1] == text

    def test_of_equal_posts_a_bound_one_is_not_ours(self, stand: Stand) -> None:
        needs_look(stand)
        first, one = send(stand, text_post("Good morning"))
        second, other = send(stand, text_post("Good morning"))
        assert isinstance(one, Published)
        assert isinstance(other, Published)
        both = look(stand, second.query())
        if isinstance(both, Inconclusive):
            assert {post.remote_id for post in both.candidates} == {one.remote_id, other.remote_id}
        else:  # where something tells them apart, it tells the right one
            assert_found(stand, second.query(), other)
        evidence = look(stand, second.query(bound=frozenset({one.remote_id})))
        assert isinstance(evidence, Found)
        assert evidence.remote_id == other.remote_id
        assert first.permit.used

    def test_a_listing_of_several_pages_is_read_to_its_end(self, stand: Stand) -> None:
        needs_look(stand)
        attempt, outcome = send(stand, text_post("Far down the page"))
        assert isinstance(outcome, Published)
        stand.fill_listing(230)
        evidence = look(stand, attempt.query())
        assert isinstance(evidence, Found)
        assert evidence.remote_id == outcome.remote_id

    def test_a_listing_that_hides_or_fails_proves_no_absence(self, stand: Stand) -> None:
        needs_look(stand)
        attempt, _ = send(stand, text_post("Hidden from view"))
        stand.hide_newest()
        evidence = look(stand, attempt.query())
        may_trust = capabilities(stand, attempt.task).listing_is_exhaustive
        assert isinstance(evidence, Inconclusive) or may_trust
        stand.fail_listing()
        evidence = look(stand, attempt.query())
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean

    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_text_at_its_limit(self, stand: Stand, over: int) -> None:
        limit = stand.adapter.capabilities(text_post("").to_json()).text_limit
        post = text_post("é" * (limit + over))
        problems = stand.adapter.problems(post.to_json())
        assert [problem.code for problem in problems] == (["text-too-long"] if over > 0 else [])
        if over > 0:
            assert f"{limit + over:,}" in problems[0].message
            refused = stand.adapter.step(make_task(stand.channel, post))
            assert isinstance(refused, Rejected)
        else:
            _, outcome = send(stand, post)
            assert isinstance(outcome, Published)
            assert len(stand.texts()[0]) == limit + over

    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_photos_at_their_limit(self, stand: Stand, over: int) -> None:
        one = photo_post("", "a")
        capabilities = stand.adapter.capabilities(one.to_json())
        many = photo_post("Many", *["a"] * (capabilities.media_limit + over))
        wanted = ["too-many-media"] if over > 0 else []
        assert [problem.code for problem in stand.adapter.problems(many.to_json())] == wanted
        big = replace(one.media[0], size=capabilities.media_bytes + over)
        heavy = Post("Heavy", media=(big,))
        wanted = ["media-size"] if over > 0 else []
        assert [problem.code for problem in stand.adapter.problems(heavy.to_json())] == wanted

    def test_what_cannot_be_a_post_is_said_before(self, stand: Stand) -> None:
        nothing, nul = text_post(" \n"), '{"link":null,"media":[],"text":"a\\u0000b"}'
        half = '{"link":null,"media":[],"text":"a\\ud83d"}'
        for content in (nothing.to_json(), nul, half, "", "{}", "null", "[]", '{"text":1}'):
            problems = stand.adapter.problems(content)
            assert problems, content
            assert all(problem.message.endswith(".") for problem in problems)
            assert stand.adapter.capabilities(content).can_look in (True, False)


def lost_before_sending(stand: Stand, text: str) -> Attempt:
    """An attempt that was begun and never reached the platform."""
    task = make_task(stand.channel, text_post(text))
    return Attempt(task, make_permit(task))


def assert_nothing_there(stand: Stand, attempt: Attempt) -> None:
    """A look at a page without the post: clean, or absent where the listing may be trusted."""
    evidence = look(stand, attempt.query())
    can = capabilities(stand, attempt.task)
    if can.listing_is_exhaustive:
        assert isinstance(evidence, Absent)
    else:
        assert isinstance(evidence, Inconclusive)
        assert evidence.clean is can.can_look


def assert_found(stand: Stand, query: LookQuery, outcome: Published | None = None) -> None:
    """A look finds the post, under the id it was published with; where none can be had, nothing."""
    evidence = look(stand, query)
    if not capabilities(stand, query.task).can_look:
        assert isinstance(evidence, Inconclusive)
        assert not evidence.clean
        return
    assert isinstance(evidence, Found)
    assert outcome is None or evidence.remote_id == outcome.remote_id


def needs_look(stand: Stand) -> None:
    """Leave a case out that is about looking, on a platform that cannot be looked at."""
    if not stand.adapter.capabilities(text_post("").to_json()).can_look:
        pytest.skip("this platform cannot be looked at")


def needs_delete(stand: Stand) -> None:
    """Leave a case out that is about taking down, on a platform that keeps what it has."""
    if not stand.adapter.capabilities(text_post("").to_json()).can_delete:
        pytest.skip("this platform takes nothing down")


def needs_fault(stand: Stand, fault: Fault) -> None:
    """Leave a case out that is about an answer this platform never gives: ``stand.lacks``."""
    if fault in getattr(stand, "lacks", ()):
        pytest.skip(f"this platform never answers so: {fault}")
