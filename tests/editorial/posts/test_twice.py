"""What is live by one job of a post is not put there once more by another, but on purpose."""

from __future__ import annotations

import pytest

from publisher.editorial import schedules
from publisher.editorial.edits import Act
from publisher.editorial.schedules import Next
from publisher.engine import ledger
from publisher.engine.job import Hold, JobId, State
from tests.editorial.posts.conftest import Desk, refused_by
from tests.engine.ground import Lane, lost, not_sent, published, refused, refused_for_now


def cancel(desk: Desk, job: JobId) -> None:
    with desk.transaction() as conn:
        ledger.cancel(conn, job, who="chief")


def requeue(desk: Desk, job: JobId) -> None:
    with desk.transaction() as conn:
        ledger.requeue(conn, job, who="operator")


def restore(desk: Desk, job: JobId) -> None:
    with desk.transaction() as conn:
        ledger.restore(conn, job, who="chief")


def release(desk: Desk, job: JobId) -> None:
    with desk.transaction() as conn:
        ledger.release_hold(conn, job, who="chief")


def replaced(desk: Desk, page: Lane) -> tuple[int, JobId, JobId]:
    """A post that was refused once, and the job in its place, which waits."""
    post, (job,) = desk.out(page)
    desk.send(page, job, refused())
    (fix,) = desk.schedule(post, page).jobs
    return post, job, fix.job_id


def answered_late(desk: Desk, job: JobId) -> None:
    """The platform had stored what it refused."""
    token = desk.ground.attempt(job)["token"]
    ledger.record_late(desk.ground.conn, job, token, published(f"late {job}"), who="worker run 9")


@pytest.mark.parametrize("how", ["cancelled", "refused"])
def test_a_repeat_that_came_to_nothing_leaves_the_first_live(desk: Desk, how: str) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job)
    (repeat,) = desk.again(post, page).jobs
    if how == "cancelled":
        cancel(desk, repeat.job_id)
    else:
        desk.send(page, repeat.job_id, refused())
    ((after, about),) = schedules.options(desk.jobs(post)).values()
    assert (after, about.id) == (Next.AGAIN, job)
    assert refused_by(lambda: desk.schedule(post, page)).code == "already-live"
    (once_more,) = desk.again(post, page).jobs
    assert desk.job(once_more.job_id)["repeats"] == job
    desk.send(page, once_more.job_id)
    assert desk.job(once_more.job_id)["state"] == State.PUBLISHED


def test_a_repeat_is_restored_beside_what_it_repeats(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job)
    (repeat,) = desk.again(post, page).jobs
    cancel(desk, repeat.job_id)
    restore(desk, repeat.job_id)
    assert desk.job(repeat.job_id)["hold_reason"] is None
    desk.send(page, repeat.job_id)


def test_a_repeat_in_another_version_goes_on(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job)
    (repeat,) = desk.again(post, page).jobs
    desk.send(page, repeat.job_id, not_sent())
    desk.save(post, "Better")
    (change,) = desk.approve(post).changes
    assert change.act is Act.SUCCEEDED
    assert change.successor is not None
    assert desk.job(change.successor)["hold_reason"] is None
    desk.send(page, change.successor, not_sent())
    assert desk.job(change.successor)["hold_reason"] is None


@pytest.mark.parametrize("end", ["live", "in doubt, then followed no longer"])
def test_what_was_sent_in_its_place_keeps_a_cancelled_job_from_coming_back(
    desk: Desk, end: str
) -> None:
    page = desk.page()
    _post, job, fix = replaced(desk, page)
    cancel(desk, fix)
    requeue(desk, job)
    if end == "live":
        desk.send(page, job)
    else:
        desk.send(page, job, lost())
        desk.ground.sql("UPDATE jobs SET state = 'dropped' WHERE id = %s", job)
    assert refused_by(lambda: restore(desk, fix)).code == "already-live"
    assert desk.job(fix)["state"] == State.CANCELLED


def held_for_it(desk: Desk, job: JobId) -> bool:
    row = desk.job(job)
    return (row["state"], row["hold_reason"], row["token"]) == (State.SCHEDULED, Hold.LIVE, None)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_late_answer_holds_what_took_its_place(desk: Desk, *, is_claimed: bool) -> None:
    page = desk.page()
    post, job, fix = replaced(desk, page)
    claimed = desk.claim(page, fix) if is_claimed else None
    answered_late(desk, job)
    assert desk.job(job)["state"] == State.PUBLISHED
    assert held_for_it(desk, fix)
    assert claimed is None or desk.begin(claimed) is None
    assert desk.claim(page, fix) is None
    assert desk.ground.events(fix)[-1]["detail"] == {"reason": Hold.LIVE}
    assert refused_by(lambda: release(desk, fix)).code == "already-live"
    assert held_for_it(desk, fix)
    assert refused_by(lambda: desk.schedule(post, page)).code == "open-job-exists"
    cancel(desk, fix)
    assert refused_by(lambda: desk.schedule(post, page)).code == "already-live"


def test_a_late_answer_to_a_job_that_was_succeeded_holds_the_successor(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused_for_now())
    desk.save(post, "Better")
    (change,) = desk.approve(post).changes
    assert change.successor is not None
    answered_late(desk, job)
    assert desk.job(job)["state"] == State.CANCELLED
    assert held_for_it(desk, change.successor)


def test_an_approval_lets_nothing_go_that_stands_there_already(desk: Desk) -> None:
    page = desk.page()
    post, job, fix = replaced(desk, page)
    desk.save(post, "Better")
    assert desk.job(fix)["hold_reason"] == Hold.EDITED
    answered_late(desk, job)
    approved = desk.approve(post)
    assert [refusal.code for refusal in approved.refusals] == ["already-live"]
    assert desk.job(fix)["state"] == State.SCHEDULED
    assert desk.claim(page, fix) is None
