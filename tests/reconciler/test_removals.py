"""Posts taken down by jobs of their own: a worker, a reconciler, and platforms over real HTTP."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from publisher.cli import doubt_page
from publisher.editorial import removals, unknowns
from publisher.engine import ledger, queries
from publisher.engine.audit import run as audit
from publisher.engine.errors import Conflict, OpenJobExists
from publisher.engine.job import JobId, State, public_id
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.process import SandboxProcess
from tests.engine.ground import Ground, await_that
from tests.reconciler.stage import HORIZON, Channel, Stage

S = State
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def stage(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One worker and one reconciler for all tests here."""
    folder = tmp_path_factory.mktemp("stage")
    with (
        SandboxProcess.start(folder / "sandbox", pages=0, accounts=0, fsync=False) as sandbox,
        Stage.open(ground, sandbox, folder) as opened,
    ):
        worker, reconciler = opened.worker(), opened.start("reconciler")
        worker.says("worker.started")
        reconciler.says("reconciler.started")
        yield opened
        for process in (worker, reconciler):
            process.send(signal.SIGTERM)
        assert [worker.ends(), reconciler.ends()] == [0, 0]


@pytest.fixture(params=["facebook_pages", "mastodon", "bluesky", "telegram"])
def page(stage: Stage, request: pytest.FixtureRequest) -> Channel:
    return stage.channel(request.param)


@pytest.fixture
def facebook(stage: Stage) -> Channel:
    return stage.channel()


def live(page: Channel, text: str = "The price is wrong", *, queue: str = "publish") -> JobId:
    job = page.post(text, queue=queue)
    page.stage.await_state(job, S.PUBLISHED)
    assert page.texts()[0] == text
    return job


def ask(stage: Stage, job: JobId) -> JobId:
    """Add the removal, as the desk does once it has asked its own questions."""
    with stage.ground.app.engine.begin() as conn:
        new = removals.new_job(
            queries.live_job(conn, job),
            now=queries.clock(conn),
            who="Chief",
            registry=stage.registry,
        )
        (added,) = ledger.enqueue(conn, [new])
    return added.job_id


def shown(stage: Stage, job: JobId) -> queries.JobRow:
    with stage.ground.app.engine.connect() as conn:
        return queries.job_detail(conn, job).row


def proofs(stage: Stage, job: JobId) -> list[str | None]:
    rows = stage.ground.sql("SELECT proof FROM attempts WHERE job_id = %s ORDER BY number", job)
    return [row["proof"] for row in rows]


def is_gone(stage: Stage, page: Channel, job: JobId, removal: JobId) -> None:
    """The page and the journal say the same, on both jobs."""
    ended = stage.await_state(removal, S.PUBLISHED)
    assert page.texts() == []
    assert ended["remote_id"] == f"removed:{public_id(removal)}"
    was = shown(stage, job)
    assert (was.state, was.deleted_at) == (S.PUBLISHED, ended["settled_at"])
    (told,) = [one for one in stage.ground.events(job) if one["event"] == "withdraw"]
    assert (told["who"], told["detail"]["how"]) == ("Chief", "deleted")
    assert told["detail"]["by"] == shown(stage, removal).key
    sends = stage.ground.one("SELECT count(*) FROM attempts WHERE job_id = %s", job)
    assert sends == 1
    nothing_is_wrong(stage)


def nothing_is_wrong(stage: Stage) -> None:
    """The audit finds nothing; a machine that is slow just now is none of its matters here."""
    with stage.ground.engine.connect_driver() as conn:
        report = audit.audit(conn)
    faults = [(one.invariant.id, one.rows) for one in report.broken]
    assert [fault for fault in faults if not fault[0].startswith("S")] == []
    assert report.unasked == ()


def test_it_is_deleted_and_both_jobs_say_so(stage: Stage, page: Channel) -> None:
    job = live(page)
    removal = ask(stage, job)
    is_gone(stage, page, job, removal)
    assert (stage.was_ever(removal), proofs(stage, removal)) == (["published"], [None])


def test_what_is_gone_already_is_deleted(stage: Stage, page: Channel) -> None:
    job = live(page)
    stage.control.take_down(page.ids()[0])
    removal = ask(stage, job)
    is_gone(stage, page, job, removal)
    assert stage.was_ever(removal) == ["published"]


@pytest.mark.parametrize(
    "behaviour",
    [Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_502, Behaviour.DROP, Behaviour.FAIL_500],
)
def test_an_answer_that_says_nothing_is_a_doubt_and_the_page_or_a_repeat_settles_it(
    stage: Stage, page: Channel, behaviour: Behaviour
) -> None:
    job = live(page)
    page.behave(behaviour, endpoint="delete", times=1)
    removal = ask(stage, job)
    is_gone(stage, page, job, removal)
    first = stage.ground.attempt(removal)
    assert first["reason"] == "removal_unclear"
    verdicts = [one["decision"] for one in stage.verdicts(removal)]
    if page.platform == "telegram":
        assert verdicts == ["repeat"]
    elif behaviour in {Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_502}:
        assert verdicts == ["live"]
        assert stage.looks(removal)[-1]["evidence"]["kind"] == "Found"
    else:
        assert verdicts == ["repeat"]
        assert stage.looks(removal)[0]["evidence"]["kind"] == "Absent"
        assert proofs(stage, removal) == ["repeat_safe", None]


def test_what_is_put_off_is_asked_for_later_after_a_look_where_one_can_be_had(
    stage: Stage, page: Channel
) -> None:
    job = live(page)
    page.behave(Behaviour.REFUSE_LIMITED, endpoint="delete", times=1)
    removal = ask(stage, job)
    await_that(lambda: stage.row(removal)["failures"] == 1)
    assert page.texts() == ["The price is wrong"]
    # The minute that the platform asked for is not waited out.
    stage.ground.sql("UPDATE gates SET not_before = NULL WHERE channel_id = %s", page.id)
    stage.ground.sql("UPDATE jobs SET run_at = now() WHERE id = %s", removal)
    is_gone(stage, page, job, removal)
    assert (stage.was_ever(removal), proofs(stage, removal)) == (
        ["deferred", "published"], ["refused", None],
    )  # fmt: skip
    looked = [look["evidence"]["kind"] for look in stage.looks(removal)]
    assert looked == ([] if page.platform == "telegram" else ["Absent"])


def test_a_refusal_ends_it_and_leaves_the_post_live(stage: Stage, facebook: Channel) -> None:
    job = live(facebook)
    facebook.behave(
        Behaviour.REFUSE_INVALID, endpoint="delete", times=1,
        error={"code": 200, "message": "Permissions error"},
    )  # fmt: skip
    removal = ask(stage, job)
    row = stage.await_state(removal, S.FAILED)
    assert row["reason"] in {"removal_refused", "missing_permission"}
    assert facebook.texts() == ["The price is wrong"]
    assert shown(stage, job).deleted_at is None
    nothing_is_wrong(stage)
    again = ask(stage, job)
    is_gone(stage, facebook, job, again)


def test_one_that_never_works_has_failed_once_a_look_sees_the_post_and_tries_are_over(
    stage: Stage, facebook: Channel
) -> None:
    job = live(facebook)
    facebook.behave(Behaviour.DROP, endpoint="delete", times=99)
    removal = ask(stage, job)
    stage.await_state(removal, S.FAILED, within=90)
    assert facebook.texts() == ["The price is wrong"]
    verdicts = [one["decision"] for one in stage.verdicts(removal)]
    assert verdicts == ["repeat"] * (len(verdicts) - 1) + ["absent"]
    assert stage.verdicts(removal)[-1]["reason"] == "the post is still there"
    assert stage.ground.sql("SELECT FROM doubts WHERE job_id = %s", removal) == []
    assert shown(stage, job).deleted_at is None
    nothing_is_wrong(stage)


def test_where_nobody_can_look_a_person_says_that_it_is_gone(stage: Stage) -> None:
    page = stage.channel("telegram")
    job = live(page)
    page.behave(Behaviour.DROP, endpoint="delete", times=99)
    removal = ask(stage, job)
    asked = "SELECT count(*) FROM doubts WHERE job_id = %s AND asked_at IS NOT NULL"
    await_that(lambda: stage.ground.one(asked, removal) == 1, within=90)
    horizon = timedelta(seconds=HORIZON)
    engine = stage.ground.app.engine
    with engine.connect() as conn:
        seen = unknowns.see(conn, stage.registry, removal, horizon=horizon)
    told = "\n".join(doubt_page.lines(seen, digits=10, tries=5, horizon=horizon))
    assert "May still be there" not in told  # that is a list's word
    assert told.startswith("MAYBE on the page")
    assert "It is gone" in told
    assert "--live" not in told
    signed = unknowns.Signed("Chief", "I looked")
    with pytest.raises(Conflict, match="leaves no link"):
        unknowns.decide_live(engine, stage.registry, seen, "5", signed, horizon=horizon)
    stage.control.take_down(page.ids()[0])
    decided = unknowns.decide_attested(engine, seen, signed)
    said = doubt_page.removal_told(decided, "id", "Chief")
    assert said == "id is through: Chief saw that the post is gone."
    assert shown(stage, job).deleted_at == stage.row(removal)["settled_at"]
    nothing_is_wrong(stage)


def test_a_worker_killed_while_it_asks_leaves_a_doubt_that_the_next_ends(
    stage: Stage, page: Channel
) -> None:
    """On a queue of its own, which the module's worker does not serve."""
    queue = f"killed {page.id}"
    first = stage.worker(QUEUES=queue)
    first.says("worker.started")
    job = live(page, queue=queue)
    page.behave(Behaviour.ACCEPT_AND_HANG, endpoint="delete", times=1)
    removal = ask(stage, job)
    await_that(lambda: page.texts() == [])
    assert stage.ground.state(removal) is S.SENDING
    first.send(signal.SIGKILL)
    first.ends()
    second = stage.worker(QUEUES=queue)
    second.says("worker.started")
    is_gone(stage, page, job, removal)
    assert stage.ground.attempt(removal)["reason"] == "worker_died"
    second.send(signal.SIGTERM)
    assert second.ends() == 0


def test_the_database_refuses_a_second_one_and_one_of_what_is_not_live(
    stage: Stage, facebook: Channel
) -> None:
    job = live(facebook)
    stage.ground.sql("UPDATE gates SET paused_at = now() WHERE channel_id = %s", facebook.id)
    first = ask(stage, job)
    with pytest.raises(OpenJobExists, match="is scheduled"):
        ask(stage, job)
    waiting = facebook.post("Not out yet")
    with pytest.raises(psycopg.Error, match="is not live on that channel"):
        ask(stage, waiting)
    with pytest.raises(psycopg.Error, match="is not live on that channel"):
        ask(stage, first)
