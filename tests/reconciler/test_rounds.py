"""Rounds of the reconciler in this process: what it is shown, and what it writes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.adapter import LookQuery
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
from publisher.engine.job import JobId, State
from publisher.engine.registry import Registry
from publisher.engine.tally import Count, Tally
from reconciler.judge import ItIsAbsent, Patience
from reconciler.loop import Reconciler
from reconciler.reconcile import Look, apply, prepare
from reconciler.reconcile import look as ask_platform
from tests.engine.ground import Driver, Placed, await_that, lost
from tests.reconciler.conftest import Connect
from tests.reconciler.desk import (
    ATOMIC,
    BLIND,
    HOOK,
    HORIZON,
    KEYED,
    PATIENCE,
    WHOLE,
    Desk,
    bound,
    candidate,
    claim_one,
    cut,
    doubt_of,
    due,
    is_doubted,
    looks,
    row,
    sender_is_gone,
    verdicts,
)

S = State
NOTHING = Inconclusive("nothing like it", clean=True)


def shown(desk: Desk, *evidence: Evidence | Exception) -> None:
    desk.platform.evidence.extend(evidence)


@pytest.fixture
def job(desk: Desk) -> Placed:
    desk.lane.incarnation = desk.ground.incarnation()
    return desk.lane.put(S.UNKNOWN)


# What follows from what is seen


def test_found_is_published_by_itself(desk: Desk, job: Placed) -> None:
    shown(desk, Found("501", "https://example.org/501"))
    assert desk.round()
    assert (desk.state(job), bound(desk.ground, job)) == (S.PUBLISHED, ["501"])
    (told,) = verdicts(desk.ground, job)
    assert (told["decision"], told["who"], told["attempt"]) == ("live", "reconciler", 1)
    (look,) = looks(desk.ground, job)
    assert (look["by"], look["attempt"], look["token"]) == ("reconciler", 1, job.token)
    assert look["evidence"]["kind"] == "Found"
    assert look["ended_at"] >= look["begun_at"]
    assert desk.told == []
    assert not desk.round()


def test_what_is_asked_of_the_platform(desk: Desk, job: Placed) -> None:
    other = desk.lane.put(S.PUBLISHED)
    sender_is_gone(desk.lane, job)
    desk.round()
    (query,) = desk.platform.looks
    attempt = desk.ground.attempt(job.id)
    assert isinstance(query, LookQuery)
    assert query.began_at == attempt["begun_at"]
    assert query.bound == frozenset(bound(desk.ground, other))
    assert query.sender_is_gone
    assert query.task.job_id == job.id
    assert query.task.token == job.token
    assert query.task.attempts == 1


def test_while_the_sender_may_write_the_platform_is_told_so(desk: Desk, job: Placed) -> None:
    desk.round()
    assert not desk.platform.looks[0].sender_is_gone


def test_nothing_is_proved_and_it_looks_again_later(desk: Desk, job: Placed) -> None:
    shown(desk, NOTHING)
    desk.round()
    kept = row(desk.ground, job)
    assert (kept["looks"], kept["last_look"], kept["asked_at"]) == (1, "nothing like it", None)
    wait = kept["next_look_at"] - datetime.now(UTC)
    assert timedelta(seconds=25) < wait <= timedelta(seconds=30)
    assert not desk.round()


def test_looks_end_and_a_person_is_asked_once(desk: Desk, job: Placed) -> None:
    shown(desk, *[NOTHING] * 6)
    for _ in range(4):
        assert desk.round()
        due(desk.ground, job.id)
    kept = row(desk.ground, job)
    assert (kept["looks"], kept["asked_reason"]) == (4, "nothing like it")
    assert desk.told == [(job.id, "nothing like it")]
    desk.round()  # a person asked for one more
    assert row(desk.ground, job)["next_look_at"] is None
    assert len(desk.told) == 1
    assert len(looks(desk.ground, job)) == 5


def test_after_the_last_look_nothing_is_due(desk: Desk, job: Placed) -> None:
    desk.ground.sql("UPDATE doubts SET looks = 3 WHERE job_id = %s", job.id)
    shown(desk, NOTHING)
    desk.round()
    assert row(desk.ground, job)["next_look_at"] is None
    assert not desk.round()


def test_two_candidates_ask_and_are_kept_side_by_side(desk: Desk, job: Placed) -> None:
    two = (candidate("1", ours=True), candidate("2", permalink="https://example.org/2"))
    shown(desk, Inconclusive("two alike", two, searched=9), Found("2"))
    desk.round()
    assert desk.told == [(job.id, "2 posts on the page could be it")]
    (look,) = looks(desk.ground, job)
    assert [one["remote_id"] for one in look["evidence"]["candidates"]] == ["1", "2"]
    assert look["evidence"]["candidates"][1]["permalink"] == "https://example.org/2"
    assert desk.state(job) is S.UNKNOWN
    due(desk.ground, job.id)
    desk.round()  # one of them was taken down
    assert bound(desk.ground, job) == ["2"]
    assert len(desk.told) == 1


def test_a_page_that_cannot_be_looked_at_is_a_persons_at_once(desk: Desk, job: Placed) -> None:
    desk.platform.can = BLIND
    desk.round()
    assert desk.platform.looks == []
    assert desk.told == [(job.id, "this platform cannot be looked at")]
    assert row(desk.ground, job)["next_look_at"] is None
    assert looks(desk.ground, job) == []


def test_a_receiver_that_knows_it_by_its_key_is_sent_it_again(desk: Desk, job: Placed) -> None:
    """Such as a webhook's: it cannot be looked at, and a repeat cannot double it."""
    desk.platform.can = HOOK
    desk.round()
    assert (desk.platform.looks, desk.told) == ([], [])
    assert desk.state(job) is S.SCHEDULED
    (told,) = verdicts(desk.ground, job)
    assert told["decision"] == "repeat"


def test_a_send_the_database_lost_is_a_persons(desk: Desk) -> None:
    job = desk.lane.put(S.SCHEDULED)
    ledger.spool_found(
        desk.conn, job_id=job.id, attempt=1, token=job.token, incarnation=3, line={}, who="rescue"
    )
    desk.round()
    assert desk.told == [(job.id, "the database lost the record of this send")]
    assert desk.platform.looks == []


def test_without_an_adapter_a_person_is_asked(desk: Desk, job: Placed) -> None:
    desk.reconciler(registry=Registry([])).once(desk.conn, desk.pool)
    (told,) = desk.told
    assert told[0] == job.id
    assert "fake" in told[1]
    assert row(desk.ground, job)["asked_reason"] == told[1]


def test_a_look_that_breaks_proves_nothing(desk: Desk, job: Placed) -> None:
    shown(desk, RuntimeError("boom"), Found("7"))
    desk.round()
    assert row(desk.ground, job)["last_look"] == "the look broke: RuntimeError"
    assert desk.state(job) is S.UNKNOWN
    due(desk.ground, job.id)
    desk.round()
    assert desk.state(job) is S.PUBLISHED


@pytest.mark.parametrize("remote_id", ["", "x" * 501, "with\0NUL", "two\nlines"])
def test_an_id_that_cannot_be_kept_decides_nothing(desk: Desk, job: Placed, remote_id: str) -> None:
    shown(desk, Found(remote_id))
    desk.round()
    assert row(desk.ground, job)["last_look"] == "what was found has an id that cannot be kept"
    assert bound(desk.ground, job) == []


def test_garbage_in_words_and_links_is_kept_as_far_as_it_can_be(desk: Desk, job: Placed) -> None:
    shown(desk, Inconclusive("\0\ud800 what", (candidate("\0"),)), Found("7", "https://e.org/\0"))
    desk.round()
    assert row(desk.ground, job)["last_look"].endswith(" what")
    due(desk.ground, job.id)
    desk.round()
    (kept,) = desk.ground.sql("SELECT permalink FROM remote_posts WHERE job_id = %s", job.id)
    assert kept["permalink"] is None


# Sending again by itself


def test_an_atomic_key_is_repeated_at_once_the_sender_alive_or_not(desk: Desk) -> None:
    desk.platform.can = ATOMIC
    job = desk.lane.sending()
    desk.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", job.id)
    ledger.rescue(desk.conn, grace=0, deaths=3, who="rescue")
    shown(desk, Inconclusive("it could not be read"))
    desk.round()
    kept = desk.ground.row(job.id)
    assert (kept["state"], kept["repeat_until"]) == (S.SCHEDULED, None)
    assert kept["run_at"] > datetime.now(UTC) + timedelta(seconds=25)
    assert verdicts(desk.ground, job)[0]["decision"] == "repeat"


def test_any_other_key_waits_for_r4_the_horizon_and_a_clean_look(desk: Desk, job: Placed) -> None:
    desk.platform.can = KEYED
    shown(desk, NOTHING, Inconclusive("unread"), NOTHING)
    desk.round()  # clean, but the sender is not gone for long
    assert desk.state(job) is S.UNKNOWN
    sender_is_gone(desk.lane, job)
    due(desk.ground, job.id)
    desk.round()  # gone, but not clean
    assert desk.state(job) is S.UNKNOWN
    due(desk.ground, job.id)
    desk.round()
    assert desk.state(job) is S.SCHEDULED
    begun = desk.ground.attempt(job.id)["begun_at"]
    until = desk.ground.row(job.id)["repeat_until"]
    assert until == begun + timedelta(seconds=3600 - 60)


def test_a_key_that_is_about_to_lapse_is_not_repeated(desk: Desk, job: Placed) -> None:
    desk.platform.can = KEYED
    sender_is_gone(desk.lane, job, since=timedelta(seconds=3600 - 60 - 29))
    shown(desk, NOTHING)
    desk.round()
    assert desk.state(job) is S.UNKNOWN


def test_the_key_lives_from_the_first_send(desk: Desk, job: Placed) -> None:
    """However often it was repeated since."""
    desk.platform.can = KEYED
    sender_is_gone(desk.lane, job, since=timedelta(minutes=30))
    shown(desk, NOTHING, NOTHING)
    desk.round()
    until = desk.ground.row(job.id)["repeat_until"]
    again = desk.lane.sending(job.id)
    desk.lane.end(again, lost())
    desk.ground.sql(
        "UPDATE attempts SET settled_at = settled_at - %s WHERE number = 2 AND job_id = %s",
        HORIZON,
        job.id,
    )
    desk.round()
    assert desk.state(job) is S.SCHEDULED
    assert desk.ground.row(job.id)["repeat_until"] == until
    assert len(verdicts(desk.ground, job)) == 2


def test_a_repeat_that_was_called_off_is_not_taken_up_again(desk: Desk, job: Placed) -> None:
    desk.platform.can = ATOMIC
    shown(desk, NOTHING, NOTHING)
    desk.round()
    with desk.ground.app.engine.begin() as conn:
        ledger.cancel(conn, job.id, who="ed")
    desk.round()
    assert desk.state(job) is S.UNKNOWN
    assert len(verdicts(desk.ground, job)) == 1
    shown(desk, Found("late"))
    due(desk.ground, job.id)
    desk.round()  # the first one shows
    assert bound(desk.ground, job) == ["late"]


def test_absence_asks_by_default(desk: Desk, job: Placed) -> None:
    desk.platform.can = WHOLE
    sender_is_gone(desk.lane, job)
    shown(desk, Absent(12))
    desk.round()
    assert desk.state(job) is S.UNKNOWN
    assert desk.told == [(job.id, "it is not on the page (12 looked through); send it again?")]


def test_absence_is_sent_again_where_the_channel_says_so(desk: Desk, job: Placed) -> None:
    desk.platform.can = WHOLE
    desk.patience = replace(PATIENCE, requeue_absent=True)
    sender_is_gone(desk.lane, job)
    shown(desk, Absent(12))
    desk.round()
    assert desk.state(job) is S.SCHEDULED
    assert desk.ground.attempt(job.id)["proof"] == "absent"


# Decided meanwhile, lapsed, refused, broken


def meanwhile(desk: Desk, act: Callable[[], object], then: Evidence) -> None:
    """While the platform is being asked, something else happens."""

    class Interrupted:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def look(self, _query: LookQuery) -> Evidence:
            act()
            return then

    desk.reconciler(registry=Registry([Interrupted(desk.platform)])).once(desk.conn, desk.pool)  # type: ignore[list-item]


def sent_again(desk: Desk, connect: Connect, job: Placed) -> None:
    conn = connect()
    (doubt,) = ledger.doubts(conn, [job.id])
    ledger.confirm_absent(
        conn, doubt, send=True, send_at=None, who="ed", reason="gone", horizon=timedelta(0)
    )
    desk.lane.end(desk.lane.sending(job.id), lost())


@pytest.mark.parametrize(
    "then", [Found("old"), Absent(1), Inconclusive("two", (candidate("1"), candidate("2")))]
)
def test_an_old_look_never_judges_a_new_attempt(
    desk: Desk, connect: Connect, job: Placed, then: Evidence
) -> None:
    desk.platform.can = WHOLE
    desk.patience = replace(PATIENCE, requeue_absent=True)
    sender_is_gone(desk.lane, job)
    meanwhile(desk, lambda: sent_again(desk, connect, job), then)
    assert desk.state(job) is S.UNKNOWN
    assert bound(desk.ground, job) == []
    assert [told["who"] for told in verdicts(desk.ground, job)] == ["ed"]
    kept = row(desk.ground, job)
    assert (kept["looks"], kept["asked_at"], kept["last_look"]) == (0, None, None)
    assert looks(desk.ground, job) == []
    assert desk.told == []


def test_decided_while_it_looked(desk: Desk, connect: Connect, job: Placed) -> None:
    def drop() -> None:
        conn = connect()
        ledger.drop(conn, ledger.doubts(conn, [job.id])[0], who="ed", reason="never mind")

    meanwhile(desk, drop, Found("7"))
    assert desk.state(job) is S.DROPPED
    assert bound(desk.ground, job) == []


def test_decided_between_the_check_and_the_verdict(desk: Desk, job: Placed) -> None:
    doubt, token = claim_one(desk.conn, job)
    at = prepare(desk.conn, Registry([desk.platform]), doubt, token)
    ledger.drop(desk.conn, doubt, who="ed", reason="never mind")
    apply(desk.conn, at, ItIsAbsent("not there", send=True), desk.patience, _nobody)
    assert desk.state(job) is S.DROPPED
    assert len(verdicts(desk.ground, job)) == 1


def _nobody(conn: Driver, doubt: ledger.Doubt, reason: str) -> None:
    raise AssertionError(reason)


def test_a_lapsed_look_records_nothing_and_raises_no_alert(
    desk: Desk, connect: Connect, job: Placed
) -> None:
    taken: list[UUID] = []

    def lapse() -> None:
        desk.ground.sql(
            "UPDATE doubts SET lease_until = now() - interval '1 s' WHERE job_id = %s", job.id
        )
        taken.append(claim_one(connect(), job)[1])

    two = Inconclusive("two", (candidate("1"), candidate("2")))
    meanwhile(desk, lapse, two)
    kept = row(desk.ground, job)
    assert (kept["looks"], kept["look_token"]) == (0, taken[0])
    assert (looks(desk.ground, job), desk.told) == ([], [])


def test_an_id_bound_elsewhere_meanwhile_asks_and_the_looks_still_end(
    desk: Desk, connect: Connect, job: Placed
) -> None:
    other = desk.lane.put(S.PUBLISHED)
    (theirs,) = bound(desk.ground, other)
    shown(desk, *[Found(theirs)] * 9)
    while desk.round():
        if row(desk.ground, job)["next_look_at"] is not None:
            due(desk.ground, job.id)
    kept = row(desk.ground, job)
    assert kept["looks"] == desk.patience.limit
    assert "already bound to" in kept["asked_reason"]
    assert len(desk.told) == 1
    assert bound(desk.ground, other) == [theirs]
    assert desk.state(job) is S.UNKNOWN


def test_what_the_database_refuses_of_one_keeps_no_other_waiting(desk: Desk, job: Placed) -> None:
    """An attempt that is known to be live keeps its job from being sent, whoever says so."""
    desk.platform.can = ATOMIC
    desk.ground.sql(
        "UPDATE attempts SET outcome = 'published', remote_id = 'r' WHERE job_id = %s", job.id
    )
    other = desk.lane.put(S.UNKNOWN)
    seen: Mapping[int, Evidence] = {job.id: NOTHING, other.id: Found("8")}
    desk.platform.look = lambda query: seen[query.task.job_id]  # type: ignore[method-assign]
    desk.round()
    assert desk.state(other) is S.PUBLISHED
    assert desk.state(job) is S.UNKNOWN
    for _ in range(3):
        due(desk.ground, job.id)
        desk.round()
    kept = row(desk.ground, job)
    assert kept["looks"] == 4
    assert kept["asked_reason"] == "what was seen could not be recorded: ProgrammingError"
    assert len(desk.told) == 1
    assert not desk.round()


def test_a_lock_that_is_held_is_waited_out(desk: Desk, connect: Connect, job: Placed) -> None:
    shown(desk, Found("7"), Found("7"))
    holder = connect()
    with holder.transaction():
        holder.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        desk.round()
    assert row(desk.ground, job)["look_token"] is None
    due(desk.ground, job.id)
    desk.round()
    assert desk.state(job) is S.PUBLISHED


def test_four_at_a_time_and_then_the_rest(desk: Desk) -> None:
    jobs = [desk.lane.put(S.UNKNOWN) for _ in range(6)]
    shown(desk, *(Found(f"id {number}") for number in range(6)))
    assert desk.round()
    assert [desk.state(job) for job in jobs].count(S.PUBLISHED) == 4
    assert desk.round()
    assert not desk.round()
    assert all(desk.state(job) is S.PUBLISHED for job in jobs)


# The loop


def running(desk: Desk, **how: Any) -> tuple[Reconciler, Thread, list[int]]:  # noqa: ANN401 - of Reconciler
    reconciler, codes = desk.reconciler(**how), list[int]()
    thread = Thread(target=lambda: codes.append(reconciler.run()), daemon=True)
    thread.start()
    return reconciler, thread, codes


def test_it_looks_until_it_is_told_to_stop(desk: Desk, job: Placed) -> None:
    shown(desk, Found("7"))
    reconciler, thread, codes = running(desk)
    await_that(lambda: desk.state(job) is S.PUBLISHED)
    later = desk.lane.put(S.UNKNOWN)
    shown(desk, Found("8"))
    await_that(lambda: desk.state(later) is S.PUBLISHED)
    reconciler.stop()
    thread.join(10)
    assert codes == [0]


def test_told_to_stop_it_ends_the_look_under_way(desk: Desk, job: Placed) -> None:
    looking, go_on = Event(), Event()

    def slow(query: LookQuery) -> Evidence:
        looking.set()
        assert go_on.wait(20)
        return Found("7")

    desk.platform.look = slow  # type: ignore[method-assign]
    reconciler, thread, codes = running(desk)
    assert looking.wait(20)
    reconciler.stop()
    go_on.set()
    thread.join(10)
    assert codes == [0]
    assert desk.state(job) is S.PUBLISHED


def test_a_database_that_is_away_is_waited_for(desk: Desk, job: Placed) -> None:
    """Cut while the platform was asked: what was seen is lost, and looked for again at once."""
    opened: list[Driver] = []
    refusals = ["nobody\nthere", ""]

    def connect() -> Driver:
        if opened and refusals:
            raise psycopg.OperationalError(refusals.pop())
        opened.append(desk.ground.engine.connect_driver())
        return opened[-1]

    def look(query: LookQuery) -> Evidence:
        desk.platform.looks.append(query)
        if len(desk.platform.looks) == 1:
            cut(desk.ground, opened[-1])
        return Found("7")

    desk.platform.look = look  # type: ignore[method-assign]
    reconciler, thread, codes = running(desk, connect=connect)
    await_that(lambda: desk.state(job) is S.PUBLISHED)
    reconciler.stop()
    thread.join(10)
    assert codes == [0]
    assert (len(opened), refusals, len(desk.platform.looks)) == (2, [], 2)


def test_a_database_that_turned_unfit_ends_it(desk: Desk) -> None:
    opened = desk.ground.engine.connect_driver()
    calls: list[int] = []

    def connect() -> Driver:
        calls.append(1)
        if len(calls) == 1:
            return opened
        message = "it forgets"
        raise PublisherError(message)

    opened.close()
    assert desk.reconciler(connect=connect).run() == 1


def test_stopped_before_it_began(desk: Desk) -> None:
    reconciler = desk.reconciler()
    reconciler.stop()
    assert reconciler.run() == 0


def test_stopped_while_the_database_is_away(desk: Desk) -> None:
    opened = desk.ground.engine.connect_driver()
    opened.close()
    calls: list[int] = []

    def connect() -> Driver:
        calls.append(1)
        if len(calls) == 1:
            return opened
        reconciler.stop()
        message = ""
        raise psycopg.OperationalError(message)

    reconciler = desk.reconciler(connect=connect)
    assert reconciler.run() == 0


def test_now_and_then_it_tells_of_what_nobody_was_told_of(desk: Desk) -> None:
    swept: list[Driver] = []
    reconciler = desk.reconciler(sweep=swept.append)
    reconciler.once(desk.conn, desk.pool)
    reconciler.once(desk.conn, desk.pool)
    assert swept == [desk.conn]


def test_looks_are_counted_by_what_they_found(desk: Desk, job: Placed) -> None:
    shown(desk, Found("7"))
    tally = Tally()
    desk.reconciler(tally=tally).once(desk.conn, desk.pool)
    assert tally.counts(Count.LOOKS) == {("Found",): 1}


def test_a_look_takes_no_database(desk: Desk, job: Placed) -> None:
    doubt, token = claim_one(desk.conn, job)
    at = prepare(desk.conn, Registry([desk.platform]), doubt, token)
    assert isinstance(at, Look)
    shown(desk, Found("7"))
    desk.conn.close()
    evidence, took = ask_platform(at, Patience())
    assert evidence == Found("7")
    assert took >= 0
    assert is_doubted(desk.ground, JobId(job.id))
    assert doubt_of(desk.ground, job).looks == 0
