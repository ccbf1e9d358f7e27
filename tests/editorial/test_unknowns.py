"""What people decide about posts that may be live: each use case, and each sentence of refusal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from publisher.editorial import unknowns, workers
from publisher.editorial.unknowns import Again, Decision, NotConfirmed, Seen, Signed, Unreadable
from publisher.engine import ledger
from publisher.engine.adapter import Capabilities, LookQuery, Promise
from publisher.engine.content import Post
from publisher.engine.errors import Conflict, NotFound, PublisherError
from publisher.engine.evidence import Candidate, Evidence, Inconclusive, NotThisPost
from publisher.engine.job import JobId, State, public_id
from publisher.engine.ledger import AlreadyDecided
from publisher.engine.matching import Sought
from publisher.engine.outcome import Proof, Published
from publisher.engine.recognition import not_found, recognise, unreadable
from publisher.engine.registry import Registry
from tests.engine.ground import Ground, Lane, Placed, Row, await_that, decided, lost
from tests.engine.platform import Fake
from tests.postgres import Postgres

S = State
HORIZON = timedelta(seconds=60)
WHY = Signed("ed", "I looked at the page")


@dataclass
class Wall(Fake):
    """A platform whose posts a test puts up; what is read of them is judged as adapters do."""

    can_look: bool = True
    shows: dict[str, Candidate] = field(default_factory=dict)
    away: bool = False
    while_read: Callable[[], None] = lambda: None

    def capabilities(self, content: str, progress: object = None) -> Capabilities:  # noqa: ARG002 - as the port has it
        return Capabilities(
            "text",
            "post",
            Promise.AT_MOST_ONCE_WITH_EVIDENCE,
            can_look=self.can_look,
            listing_is_exhaustive=False,
            text_limit=1000,
        )

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        self.while_read()
        if self.away:
            return unreadable("nobody answers.")
        post = self.shows.get(given)
        text = Post.from_json(query.task.content).text
        if post is None:
            return not_found("this Page")
        return recognise(Sought(text, query.began_at, query.now), post)


@dataclass
class Desk:
    """One channel, its platform, and people before it."""

    ground: Ground
    lane: Lane
    wall: Wall

    @property
    def registry(self) -> Registry:
        return Registry([self.wall])

    def doubt(self, **job: object) -> Placed:
        return self.lane.put(S.UNKNOWN, **job)

    def gone(self, job: Placed, minutes: float = 5) -> Placed:
        """The send's hand came back long ago, so that nothing of it can arrive."""
        back = timedelta(minutes=minutes)
        self.ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
        self.ground.sql(
            "UPDATE attempts SET begun_at = begun_at - %s, settled_at = settled_at - %s"
            " WHERE job_id = %s",
            back,
            back,
            job.id,
        )
        self.ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")
        return job

    def see(self, job: Placed, latest: int | None = None) -> Seen:
        with self.ground.app.engine.begin() as conn:
            return unknowns.see(conn, self.registry, job.id, horizon=HORIZON, latest=latest)

    def put_up(self, job: Placed, remote_id: str, **changes: object) -> Candidate:
        text = self.ground.one("SELECT content FROM job_contents WHERE job_id = %s", job.id)
        values = {
            "remote_id": remote_id,
            "text": Post.from_json(text).text,
            "created_at": datetime.now(UTC),
            "permalink": f"https://e.org/{remote_id}",
        }
        post = Candidate(**{**values, **changes})  # type: ignore[arg-type]
        self.wall.shows[remote_id] = post
        return post

    def looked(self, job: Placed, evidence: Evidence, attempt: int = 1) -> None:
        ledger.record_look(
            self.ground.conn,
            job_id=job.id,
            attempt=attempt,
            token=job.token,
            by="reconciler",
            took=0.1,
            evidence={"kind": type(evidence).__name__, **asdict(evidence)},
        )

    def live(self, seen: Seen, given: str, also: str = "", signed: Signed = WHY) -> Decision:
        return unknowns.decide_live(
            self.ground.app.engine,
            self.registry,
            seen,
            given,
            signed,
            horizon=HORIZON,
            also=also,
        )

    def absent(self, seen: Seen, again: Again | None, signed: Signed = WHY) -> Decision:
        return unknowns.decide_absent(self.ground.app.engine, seen, again, signed, horizon=HORIZON)

    def again(self, seen: Seen, **how: object) -> Decision:
        return self.absent(seen, Again(seen.channel.name, **how))  # type: ignore[arg-type]

    def attest(self, seen: Seen, signed: Signed = WHY) -> Decision:
        return unknowns.decide_attested(self.ground.app.engine, seen, signed)

    def drop(self, seen: Seen, signed: Signed = WHY) -> Decision:
        return unknowns.drop(self.ground.app.engine, seen, signed)

    def verdicts(self, job: Placed) -> list[Row]:
        return self.ground.sql("SELECT * FROM verdicts WHERE job_id = %s ORDER BY id", job.id)

    def bound(self, job: Placed) -> set[str]:
        rows = self.ground.sql("SELECT remote_id FROM remote_posts WHERE job_id = %s", job.id)
        return {row["remote_id"] for row in rows}

    def untouched(self, job: Placed) -> bool:
        return (
            self.ground.state(job.id) is S.UNKNOWN
            and not self.verdicts(job)
            and not self.bound(job)
        )


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def desk(ground: Ground) -> Desk:
    ground.sql("UPDATE jobs SET state = 'dropped' WHERE state = 'unknown'")
    return Desk(ground, ground.lane(), Wall())


@pytest.fixture
def job(desk: Desk) -> Placed:
    return desk.doubt()


# It is live


def test_a_post_that_was_read_is_bound(desk: Desk, job: Placed) -> None:
    post = desk.put_up(job, "501")
    decision = desk.live(desk.see(job), "501")
    assert decision == Decision(job.id, S.PUBLISHED, post, None, was_read=True)
    assert desk.bound(job) == {"501"}
    (verdict,) = desk.verdicts(job)
    assert (verdict["decision"], verdict["who"], verdict["reason"]) == ("live", "ed", WHY.reason)
    assert (verdict["attempt"], verdict["token"]) == (1, job.token)


def test_no_transaction_is_open_while_the_platform_is_asked(desk: Desk, job: Placed) -> None:
    desk.put_up(job, "501")
    open_: list[int] = []
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = 'test app'"
        " AND xact_start IS NOT NULL"
    )
    desk.wall.while_read = lambda: open_.append(desk.ground.one(query, desk.ground.name))
    desk.live(desk.see(job), "501")
    assert open_ == [0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"created_at": datetime(2026, 1, 1, 8, 40, tzinfo=UTC)}, "before we sent at"),
        ({"text": "Something else"}, "its text differs here: we sent “"),
        ({"ours": False}, "somebody else made it"),
    ],
)
def test_another_post_is_refused_and_nothing_is_recorded(
    desk: Desk, job: Placed, changes: dict[str, object], why: str
) -> None:
    desk.put_up(job, "501", **changes)
    with pytest.raises(Conflict) as refused:
        desk.live(desk.see(job), "501")
    assert (refused.value.code, refused.value.exit_code) == ("not-this-post", 4)
    assert str(refused.value).startswith("That link is not this post: ")
    assert why in str(refused.value)
    assert str(refused.value).endswith("Nothing was recorded.")
    assert desk.untouched(job)


def test_a_post_of_another_job_is_refused_with_its_name(desk: Desk, job: Placed) -> None:
    other = desk.doubt()
    desk.put_up(other, "501")
    desk.live(desk.see(other), "501")
    desk.put_up(job, "501")
    with pytest.raises(Conflict) as refused:
        desk.live(desk.see(job), "501")
    assert refused.value.code == "not-this-post"
    assert str(refused.value) == (
        f"That link is not this post: it is already bound to {public_id(other.id)}. "
        "Nothing was recorded."
    )
    assert desk.untouched(job)


def test_what_cannot_be_read_proves_nothing(desk: Desk, job: Placed) -> None:
    desk.wall.away = True
    with pytest.raises(Unreadable) as refused:
        desk.live(desk.see(job), "501")
    assert (refused.value.code, refused.value.exit_code) == ("cannot-be-read", 3)
    assert str(refused.value) == (
        "That link cannot be checked just now: nobody answers. Nothing was recorded."
    )
    assert desk.untouched(job)


def test_where_nobody_can_read_the_word_is_a_persons(desk: Desk, job: Placed) -> None:
    desk.wall.can_look = False
    desk.put_up(job, "501")
    decision = desk.live(desk.see(job), "501")
    assert not decision.was_read
    assert desk.verdicts(job)[0]["detail"]["checked"] == "the link alone: nobody can read the post"


def test_two_live_copies_are_both_kept(desk: Desk, job: Placed) -> None:
    desk.put_up(job, "501")
    desk.put_up(job, "502")
    decision = desk.live(desk.see(job), "501", also="502")
    assert decision.also is not None
    assert decision.also.remote_id == "502"
    assert desk.ground.row(job.id)["remote_id"] == "501"
    assert desk.verdicts(job)[0]["detail"]["also"] == [
        {"remote_id": "502", "permalink": "https://e.org/502"}
    ]
    # No other job can take the second one for its own.
    other = desk.doubt()
    desk.put_up(other, "502")
    with pytest.raises(Conflict, match=f"already bound to {public_id(job.id)}"):
        desk.live(desk.see(other), "502")


def test_the_same_post_twice_is_no_second_copy(desk: Desk, job: Placed) -> None:
    desk.put_up(job, "501")
    with pytest.raises(NotConfirmed, match="Both links name the same post, 501"):
        desk.live(desk.see(job), "501", also="501")
    assert desk.untouched(job)


def test_a_second_copy_of_another_job_undoes_the_whole(desk: Desk, job: Placed) -> None:
    other = desk.doubt()
    desk.put_up(other, "502")
    desk.live(desk.see(other), "502")
    desk.put_up(job, "501")
    desk.put_up(job, "502")
    with pytest.raises(Conflict, match="is not this post"):
        desk.live(desk.see(job), "501", also="502")
    assert desk.untouched(job)


def test_a_person_may_attest(desk: Desk, job: Placed) -> None:
    assert desk.attest(desk.see(job)).state is S.PUBLISHED
    row = desk.ground.row(job.id)
    assert row["remote_id"] is None
    assert row["attested_at"] is not None


# It is not live


def test_send_again_is_locked_with_what_unlocks_it(desk: Desk, job: Placed) -> None:
    desk.ground.sql("UPDATE attempts SET reason = 'worker_died' WHERE job_id = %s", job.id)
    seen = desk.see(job)
    assert seen.locked is not None
    # Said before anybody has to type a name.
    for again in (Again(""), Again(seen.channel.name)):
        with pytest.raises(Conflict) as refused:
            desk.absent(seen, again)
        assert refused.value.code == "sender-may-be-alive"
        assert str(refused.value).startswith("Sending again is locked: ")
    assert desk.untouched(job)


def test_send_again_is_locked_until_a_time_while_it_may_arrive(desk: Desk, job: Placed) -> None:
    seen = desk.see(job)
    with pytest.raises(Conflict) as refused:
        desk.again(seen)
    unlocks_at = seen.doubt.sender.unlocks_at(HORIZON)
    assert unlocks_at is not None
    assert f"Sending again is locked until {unlocks_at:%Y-%m-%d %H:%M:%S}" in str(refused.value)
    assert "what it wrote may still arrive" in str(refused.value)


def test_send_again_needs_the_channels_name(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    seen = desk.see(job)
    for typed in ("", "Page", seen.channel.name.upper()):
        with pytest.raises(NotConfirmed) as refused:
            desk.absent(seen, Again(typed))
        assert refused.value.code == "not-confirmed"
        assert str(refused.value) == (
            f"To send it again, confirm with the channel's name, {seen.channel.name}. "
            "Nothing was changed."
        )
    assert desk.untouched(job)
    assert desk.again(seen).state is S.SCHEDULED
    assert desk.ground.attempt(job.id)["proof"] == Proof.ABSENT


def test_against_candidates_it_is_forced_and_says_so(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    alike = desk.put_up(job, "501")
    other = desk.put_up(job, "502")
    desk.looked(job, Inconclusive("2 posts on the page could be this one", (alike, other), 9))
    seen = desk.see(job)
    assert seen.candidates == (alike, other)
    decision = desk.again(seen)
    assert decision.forced
    assert desk.ground.attempt(job.id)["proof"] == Proof.FORCED
    assert desk.verdicts(job)[0]["detail"]["forced"] is True


def test_candidates_of_an_earlier_attempts_look_force_nothing(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    desk.looked(job, Inconclusive("alike", (desk.put_up(job, "501"),), 9))
    desk.again(desk.see(job))
    second = desk.lane.sending(job.id)
    desk.lane.end(second, lost())
    desk.gone(second)
    assert desk.see(job).candidates == ()


def test_too_late_unless_it_is_useful_longer(desk: Desk) -> None:
    until = datetime.now(UTC) + timedelta(seconds=1)
    job = desk.gone(desk.doubt(useful_until=until))
    desk.ground.sql(
        "UPDATE jobs SET useful_until = clock_timestamp() - interval '1 minute' WHERE id = %s",
        job.id,
    )
    with pytest.raises(Conflict) as refused:
        desk.again(desk.see(job))
    assert refused.value.code == "too-late"
    assert "stops being useful at" in str(refused.value)
    assert desk.untouched(job)
    longer = datetime.now(UTC) + timedelta(hours=1)
    at = datetime.now(UTC) + timedelta(minutes=30)
    decision = desk.again(desk.see(job), at=at, useful_until=longer)
    assert decision.send_at == at
    row = desk.ground.row(job.id)
    assert (row["run_at"], row["useful_until"]) == (at, longer)


def test_to_give_up_needs_no_name(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    assert desk.absent(desk.see(job), None).state is S.FAILED


def test_drop(desk: Desk, job: Placed) -> None:
    assert desk.drop(desk.see(job)).state is S.DROPPED


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_decision_owes_a_reason(desk: Desk, job: Placed, reason: str) -> None:
    desk.gone(job)
    desk.put_up(job, "501")
    seen, signed = desk.see(job), Signed("ed", reason)
    for decide in (
        lambda: desk.live(seen, "501", signed=signed),
        lambda: desk.attest(seen, signed),
        lambda: desk.absent(seen, None, signed),
        lambda: desk.drop(seen, signed),
    ):
        with pytest.raises(NotConfirmed, match="needs a reason"):
            decide()
    assert desk.untouched(job)


# One verdict, about one attempt


def test_twenty_at_once_one_effect_and_nineteen_are_told(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    desk.put_up(job, "501")
    start = Barrier(20)

    def decide(number: int) -> Decision | PublisherError:
        signed = Signed(f"person {number}", "saw the page")
        seen = desk.see(job)
        start.wait(30)
        try:
            match number % 4:
                case 0:
                    return desk.live(seen, "501", signed=signed)
                case 1:
                    return desk.attest(seen, signed)
                case 2:
                    return desk.absent(seen, Again(seen.channel.name), signed)
                case _:
                    return desk.drop(seen, signed)
        except PublisherError as error:
            return error

    with ThreadPoolExecutor(20) as pool:
        ends = list(pool.map(decide, range(20)))
    (won,) = [end for end in ends if isinstance(end, Decision)]
    told = [end for end in ends if isinstance(end, AlreadyDecided)]
    assert len(told) == 19, ends
    (verdict,) = desk.verdicts(job)
    assert desk.ground.state(job.id) is won.state
    for error in told:
        assert (error.code, error.exit_code) == ("already-decided", 4)
        assert re.search(
            rf"is decided already: {verdict['who']} recorded at [\d:]+ \w+ that .*"
            rf"\(saw the page\); it is {won.state}\. Nothing was changed\.",
            str(error),
        )


def test_who_comes_after_is_told_what_was_decided(desk: Desk, job: Placed) -> None:
    desk.attest(desk.see(job))
    with pytest.raises(AlreadyDecided) as told:
        desk.see(job)
    assert "ed recorded at" in str(told.value)
    assert "that it was seen on the page (I looked at the page); it is published" in str(told.value)
    never = desk.lane.put(S.SCHEDULED)
    with pytest.raises(AlreadyDecided, match="is not in doubt: it is scheduled"):
        desk.see(never)
    with pytest.raises(NotFound):
        desk.see(Placed(JobId(2**39), job.token))


def test_an_old_page_never_judges_a_new_attempt(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    desk.put_up(job, "501")
    page = desk.see(job)  # opened now, decided on later
    desk.again(desk.see(job))
    second = desk.lane.sending(job.id)
    desk.lane.end(second, lost())
    desk.gone(second)
    assert desk.ground.state(job.id) is S.UNKNOWN
    for decide in (
        lambda: desk.live(page, "501"),
        lambda: desk.attest(page),
        lambda: desk.again(page),
        lambda: desk.absent(page, None),
        lambda: desk.drop(page),
    ):
        with pytest.raises(AlreadyDecided) as told:
            decide()
        assert told.value.code == "look-is-old"
        assert "was sent again since you looked" in str(told.value)
    assert len(desk.verdicts(job)) == 1
    assert desk.ground.attempt(job.id, 2)["proof"] is None
    # So is one that names the attempt it was about.
    with pytest.raises(Conflict, match="was sent again since you looked"):
        desk.see(job, latest=1)
    assert desk.see(job, latest=2).doubt.attempt == 2


def test_a_late_published_stops_the_second_send(desk: Desk, job: Placed) -> None:
    desk.gone(job)
    desk.again(desk.see(job))
    end = decided(Published("501"))
    late = ledger.record_late(desk.ground.conn, job.id, job.token, end, who="worker run 1")
    assert late is ledger.Late.MOVED
    assert desk.ground.state(job.id) is S.PUBLISHED
    desk.ground.sql("UPDATE jobs SET queue = 'alone' WHERE id = %s", job.id)
    assert desk.lane.claim(queues=["alone"]) == []
    assert desk.ground.row(job.id)["attempts"] == 1


def test_a_row_that_somebody_holds_is_waited_for_but_not_for_ever(
    desk: Desk, job: Placed, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = desk.see(job)
    with desk.ground.owner() as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        monkeypatch.setattr(unknowns, "_LOCK_SECONDS", 1)
        with pytest.raises(Conflict, match="is being changed by somebody else") as busy:
            desk.attest(seen)
        assert busy.value.code == "busy"
        assert desk.untouched(job)
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(desk.attest, seen)
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            await_that(lambda: desk.ground.one(waits))
            holder.execute("ROLLBACK")
            assert waiting.result(30).state is S.PUBLISHED


# At the desk


def test_those_that_need_a_person_come_first(desk: Desk) -> None:
    checking, asked, older = desk.doubt(), desk.doubt(), desk.doubt()
    desk.ground.sql("UPDATE doubts SET since = since - interval '41 minutes' WHERE job_id = %s",
                    older.id)  # fmt: skip
    desk.ground.sql(
        "UPDATE doubts SET asked_at = clock_timestamp(), asked_reason = '2 could be it',"
        " next_look_at = NULL WHERE job_id = ANY(%s)",
        [asked.id, older.id],
    )
    alike = desk.put_up(asked, "501")
    desk.looked(asked, Inconclusive("could be", (alike,), 14))
    with desk.ground.app.engine.begin() as conn:
        rows = unknowns.listing(conn)
    assert [row.id for row in rows] == [older.id, asked.id, checking.id]
    assert [row.needs_a_person for row in rows] == [True, True, False]
    assert rows[1].evidence is not None
    assert (rows[1].evidence["searched"], rows[0].evidence) == (14, None)


def test_one_of_twenty_takes_it(desk: Desk, job: Placed) -> None:
    start = Barrier(20)

    def take(number: int) -> str:
        seen = desk.see(job)
        start.wait(30)
        try:
            with desk.ground.app.engine.begin() as conn:
                unknowns.take(conn, seen, who=f"ops-{number}")
        except Conflict as error:
            return str(error).partition(" has taken")[0]
        return f"ops-{number}"

    with ThreadPoolExecutor(20) as pool:
        named = Counter(pool.map(take, range(20)))
    assert len(named) == 1
    assert desk.see(job).doubt.taken_by in named


def test_take_hand_over_snooze_and_look_now_are_journalled(desk: Desk, job: Placed) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    desk.ground.sql(
        "UPDATE doubts SET asked_at = clock_timestamp(), asked_reason = 'x', next_look_at = NULL"
        " WHERE job_id = %s",
        job.id,
    )
    with desk.ground.app.engine.begin() as conn:
        seen = desk.see(job)
        unknowns.take(conn, seen, who="ops-1")
        unknowns.take(conn, seen, who="ops-1")
        unknowns.hand_over(conn, seen, to="ops-2", note="I sleep", who="ops-1")
        unknowns.snooze(conn, seen, until=until, who="ops-2")
        unknowns.look_now(conn, seen, who="ops-2")
    (row,) = desk.ground.sql("SELECT * FROM doubts WHERE job_id = %s", job.id)
    assert (row["taken_by"], row["snoozed_until"]) == ("ops-2", until)
    assert row["next_look_at"] is not None
    told = [(event["event"], event["who"]) for event in desk.ground.events(job.id)]
    assert told == [
        ("take", "ops-1"),
        ("take", "ops-1"),
        ("hand_over", "ops-1"),
        ("snooze", "ops-2"),
        ("look_now", "ops-2"),
    ]
    assert desk.ground.events(job.id)[2]["detail"] == {"to": "ops-2", "note": "I sleep"}
    desk.drop(desk.see(job))
    with (
        desk.ground.app.engine.begin() as conn,
        pytest.raises(AlreadyDecided, match="no longer followed"),
    ):
        unknowns.take(conn, seen, who="ops-1")
    with desk.ground.app.engine.begin() as conn, pytest.raises(NotConfirmed):
        unknowns.hand_over(conn, seen, to=" ", note="", who="ops-1")


# Worker runs, and the word that one is gone


@pytest.fixture
def dead(desk: Desk) -> tuple[int, Placed]:
    """A worker run that fell silent while it sent, and the doubt that rescue made of it."""
    run = desk.ground.incarnation(f"{desk.lane.queue}.spool")
    desk.lane.incarnation = run
    job = desk.doubt()
    desk.ground.sql("UPDATE attempts SET reason = 'worker_died' WHERE job_id = %s", job.id)
    desk.ground.sql(
        "UPDATE incarnations SET seen_at = seen_at - interval '10 minutes' WHERE id = %s", run
    )
    return run, job


def declare(
    desk: Desk, run: int, *, confirm: str = "here", reason: str = "it burnt down"
) -> workers.Gone:
    with desk.ground.app.engine.begin() as conn:
        return workers.declare_gone(
            conn,
            run,
            Signed("op", reason),
            confirm=confirm,
            silent_after=timedelta(seconds=75),
            horizon=HORIZON,
        )


def test_a_silent_run_is_listed_with_its_doubts(desk: Desk, dead: tuple[int, Placed]) -> None:
    run, _ = dead
    desk.lane.put(S.SENDING)
    with desk.ground.app.engine.begin() as conn:
        found = next(at for at in workers.listing(conn) if at.row.id == run)
    assert (found.holds, found.doubts) == (1, 1)


def test_stated_gone_unlocks_later_and_is_journalled(desk: Desk, dead: tuple[int, Placed]) -> None:
    run, job = dead
    held = desk.lane.put(S.SENDING)
    seen = desk.see(job)
    assert seen.locked is not None
    assert f"worker run {run} on here may still send the first one" in seen.locked
    assert f"`publisher workers declare-gone {run}`" in seen.locked

    gone = declare(desk, run)
    assert gone.unlocks_at - gone.declared_at == timedelta(minutes=15) + HORIZON
    for about in (job, held):
        (event,) = [e for e in desk.ground.events(about.id) if e["event"] == "declare_gone"]
        assert (event["who"], event["detail"]["reason"]) == ("op", "it burnt down")
        assert event["detail"]["run"] == run
    with pytest.raises(Conflict) as refused:
        desk.again(desk.see(job))
    assert f"is locked until {gone.unlocks_at:%Y-%m-%d %H:%M:%S}" in str(refused.value)
    # The first statement stays.
    assert declare(desk, run).declared_at == gone.declared_at

    desk.ground.sql(
        "UPDATE incarnations SET declared_gone_at = declared_gone_at - %s WHERE id = %s",
        timedelta(minutes=15) + HORIZON,
        run,
    )
    assert desk.again(desk.see(job)).state is S.SCHEDULED


def test_who_is_alive_or_over_is_not_gone(desk: Desk, dead: tuple[int, Placed]) -> None:
    run, _ = dead
    with pytest.raises(NotConfirmed, match="confirm with the name of its machine, here"):
        declare(desk, run, confirm="there")
    with pytest.raises(NotConfirmed, match="needs a reason"):
        declare(desk, run, reason=" ")
    with pytest.raises(NotFound, match="no worker run 99999"):
        declare(desk, 99999)
    desk.ground.sql("UPDATE incarnations SET seen_at = clock_timestamp() WHERE id = %s", run)
    with pytest.raises(Conflict) as alive:
        declare(desk, run)
    assert alive.value.code == "worker-alive"
    assert "so it is not gone. Nothing was recorded. Stop it instead." in str(alive.value)
    ledger.end(desk.ground.conn, run, "drained")
    with pytest.raises(Conflict) as over:
        declare(desk, run)
    assert over.value.code == "worker-over"
    assert desk.ground.one("SELECT declared_gone_at FROM incarnations WHERE id = %s", run) is None
