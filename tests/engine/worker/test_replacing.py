"""Before a job that took another's place is sent, that one is looked for; what then follows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine import ledger, retry
from publisher.engine.alert import Alert, Incident
from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive
from publisher.engine.job import Hold, JobId, NewJob, State
from publisher.engine.ledger import Conn
from publisher.engine.outcome import Outcome, Reason, Rejected
from publisher.engine.points import Point
from tests.engine.crew import Crew
from tests.engine.ground import await_that
from tests.engine.platform import REFUSED, Act, Page, SendPermit, Task, accept, refuse, unreachable

S = State


def lying(task: Task, permit: SendPermit, page: Page) -> Outcome:
    """Store the post, then refuse it for good."""
    accept(task, permit, page)
    return Rejected(Reason.CONTENT_REFUSED, "no", row=REFUSED)


def refused(crew: Crew, act: Act = lying, **changes: object) -> NewJob:
    """A job that failed; a platform that cannot be looked at refuses before it stores."""
    (first,) = crew.add(**changes)
    crew.fake.acts[first.key].append(act)
    with crew.working():
        crew.await_state(S.FAILED, S.UNKNOWN, jobs=[first])
    assert crew.state(first) is S.FAILED
    return first


def follows(crew: Crew, first: NewJob) -> NewJob:
    (second,) = crew.add(replaces=crew.id(first))
    return second


def settled(crew: Crew, job: NewJob, *states: State) -> None:
    with crew.working():
        crew.await_state(*states, jobs=[job])


def held(crew: Crew, job: NewJob) -> None:
    with crew.working():
        await_that(lambda: crew.row(job)["hold_reason"] == Hold.REPLACED)
    assert (crew.row(job)["state"], crew.row(job)["attempts"]) == (S.SCHEDULED, 0)
    assert not crew.fake.page.calls[job.key]


def test_what_is_found_is_live_and_the_newer_is_not_sent(crew: Crew) -> None:
    first = refused(crew)
    second = follows(crew, first)
    settled(crew, second, S.CANCELLED)
    assert crew.row(second)["reason"] == Reason.REPLACED_IS_LIVE
    assert crew.row(first)["remote_id"] == crew.fake.page.ids[first.key]
    assert crew.fake.looks[-1].task.key == first.key
    assert not crew.fake.page.calls[second.key]


@pytest.mark.parametrize(
    "evidence", [None, Absent(3), Inconclusive("not seen", searched=3, clean=True)]
)
def test_what_is_not_there_lets_the_newer_go(crew: Crew, evidence: Evidence | None) -> None:
    second = follows(crew, refused(crew, refuse))
    if evidence is not None:
        crew.fake.evidence.append(evidence)
    settled(crew, second, S.PUBLISHED)
    assert len(crew.fake.looks) == 1


def test_a_look_once_is_enough_for_every_further_try(crew: Crew) -> None:
    first = refused(crew, refuse)
    second = follows(crew, first)
    crew.fake.acts[second.key].append(unreachable)
    settled(crew, second, S.PUBLISHED)
    assert [query.task.key for query in crew.fake.looks] == [first.key]


def test_what_resembles_it_is_for_a_person_who_is_told(crew: Crew) -> None:
    told: list[Alert] = []

    def alarm(_conn: Conn, alert: Alert) -> None:
        told.append(alert)

    first = refused(crew, refuse)
    second = follows(crew, first)
    post = Candidate("p", "like it", datetime.now(UTC))
    crew.fake.evidence.append(Inconclusive("something resembles it", (post,), 1))
    with crew.working(alarm=alarm):
        await_that(lambda: crew.row(second)["hold_reason"] == Hold.REPLACED)
    assert [(one.incident, one.job_id) for one in told] == [(Incident.REPLACED, crew.id(second))]
    release(crew, second)
    crew.fake.evidence.append(Inconclusive("something resembles it", (post,), 1))
    settled(crew, second, S.PUBLISHED)
    assert len(crew.fake.looks) == 2


def release(crew: Crew, job: NewJob) -> None:
    with crew.ground.app.engine.begin() as conn:
        ledger.release_hold(conn, crew.id(job), who="operator")


def test_who_was_released_is_stopped_by_a_find_alone(crew: Crew) -> None:
    first = refused(crew)
    second = follows(crew, first)
    post = Candidate("p", "like it", datetime.now(UTC))
    crew.fake.evidence.append(Inconclusive("two could be it", (post, post), 2))
    held(crew, second)
    release(crew, second)
    settled(crew, second, S.CANCELLED)
    assert crew.state(first) is S.PUBLISHED


def test_cancelled_and_brought_back_is_not_released(crew: Crew) -> None:
    second = follows(crew, refused(crew, refuse))
    post = Candidate("p", "like it", datetime.now(UTC))
    crew.fake.evidence.extend([Inconclusive("something resembles it", (post,), 1)] * 2)
    held(crew, second)
    with crew.ground.app.engine.begin() as conn:
        ledger.cancel(conn, crew.id(second), who="editor")
    with crew.ground.app.engine.begin() as conn:
        ledger.restore(conn, crew.id(second), who="editor")
    held(crew, second)


def test_a_look_that_fails_is_made_again_and_then_for_a_person(crew: Crew) -> None:
    second = follows(crew, refused(crew, refuse))
    crew.fake.evidence.extend([RuntimeError("no page")] * 5)
    held(crew, second)
    assert len(crew.fake.looks) == 5


def test_the_whole_line_is_looked_for(crew: Crew) -> None:
    first = refused(crew)
    (second,) = crew.add(replaces=crew.id(first), run_at=datetime.now(UTC) + timedelta(days=1))
    with crew.ground.app.engine.begin() as conn:
        ledger.cancel(conn, crew.id(second), who="editor")
    third = follows(crew, second)
    settled(crew, third, S.CANCELLED)
    assert crew.state(first) is S.PUBLISHED


def test_what_never_left_this_machine_needs_no_look(crew: Crew) -> None:
    (first,) = crew.add(useful_until=datetime.now(UTC) + timedelta(seconds=20))
    crew.fake.acts[first.key].extend([unreachable] * 9)
    settled(crew, first, S.FAILED)
    settled(crew, follows(crew, first), S.PUBLISHED)
    assert crew.fake.looks == []


def test_where_nothing_can_be_seen_the_platforms_word_has_to_do(crew: Crew) -> None:
    first = refused(crew, refuse)
    crew.fake.can_look = False
    settled(crew, follows(crew, first), S.PUBLISHED)
    assert crew.fake.looks == []


def doubtful(crew: Crew, first: NewJob) -> None:
    """As nothing that is replaced should be: a person had taken the risk."""
    crew.ground.sql("UPDATE attempts SET proof = 'forced' WHERE job_id = %s", crew.id(first))


@pytest.mark.parametrize("can_look", [True, False])
def test_what_is_not_certain_waits_for_a_person(crew: Crew, *, can_look: bool) -> None:
    first = refused(crew, refuse)
    doubtful(crew, first)
    crew.fake.can_look = can_look
    second = follows(crew, first)
    held(crew, second)
    release(crew, second)
    settled(crew, second, S.PUBLISHED)


def test_a_line_in_a_dead_runs_file_makes_it_uncertain(crew: Crew) -> None:
    first = refused(crew, refuse)
    crew.ground.sql(
        "INSERT INTO orphans (incarnation, job_id, token, line)"
        " VALUES ('1', %s, gen_random_uuid(), '{}')",
        crew.id(first),
    )
    held(crew, follows(crew, first))


def test_an_id_that_is_anothers_or_cannot_be_kept_proves_nothing(crew: Crew) -> None:
    (other,) = crew.add()
    settled(crew, other, S.PUBLISHED)
    for remote_id in (crew.row(other)["remote_id"], "x" * 501):
        second = follows(crew, refused(crew, refuse))
        crew.fake.evidence.append(Found(remote_id))
        held(crew, second)


def test_whoever_holds_the_older_one_is_waited_for(crew: Crew) -> None:
    first = refused(crew)
    second = follows(crew, first)
    with crew.connect() as conn:
        conn.autocommit = False
        conn.execute("SELECT FROM publisher.jobs WHERE id = %s FOR UPDATE", [crew.id(first)])
        with crew.working():
            await_that(lambda: crew.row(second)["reason"] is not None)
            assert "is held by somebody" in crew.row(second)["reason"]
            conn.rollback()
            crew.await_state(S.CANCELLED, jobs=[second])


def test_a_worker_that_dies_before_it_ends_the_newer_one(crew: Crew) -> None:
    """What it wrote of the older one is enough for whoever comes after it."""
    first = refused(crew)
    second = follows(crew, first)
    crew.dies_at(Point.BEFORE_SETTLE)
    assert crew.state(first) is S.PUBLISHED
    assert crew.state(second) is not S.CANCELLED
    settled(crew, second, S.CANCELLED)
    assert len(crew.fake.looks) == 1
    assert not crew.fake.page.calls[second.key]


def test_what_is_live_by_then_is_not_looked_for(crew: Crew) -> None:
    first = refused(crew)
    second = follows(crew, first)
    token = crew.ground.attempt(crew.id(first))["token"]
    found = retry.found("late", None, attempt=1, about=token)
    assert ledger.record_late(crew.ground.conn, crew.id(first), token, found, who="x") is (
        ledger.Late.MOVED
    )
    settled(crew, second, S.CANCELLED)
    assert crew.fake.looks == []


def test_progress_of_other_content_is_not_told_to_the_look(crew: Crew) -> None:
    first = refused(crew, refuse)
    number: JobId = crew.id(first)
    crew.ground.sql(
        "UPDATE job_contents SET progress = %s, progress_sha256 = content_sha256"
        " WHERE job_id = %s",
        json.dumps({"upload": "u1"}), number,
    )  # fmt: skip
    settled(crew, follows(crew, first), S.PUBLISHED)
    assert crew.fake.looks[-1].task.progress == {"upload": "u1"}
    crew.ground.sql(
        "UPDATE job_contents SET progress_sha256 = sha256('x') WHERE job_id = %s", number
    )
    settled(crew, follows(crew, first), S.PUBLISHED)
    assert crew.fake.looks[-1].task.progress == {}
