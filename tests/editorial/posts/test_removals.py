"""A post is to go from a page where it is live: who may not ask, and what the database holds to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from publisher.editorial import post_pages, removals
from publisher.editorial.removals import Asked
from publisher.engine import ledger, queries
from publisher.engine.adapter import Capabilities
from publisher.engine.errors import AlreadyDeleted, Conflict, NotFound, PublisherError
from publisher.engine.job import JobId, State, public_id
from publisher.engine.ledger.driver import driver_of
from publisher.engine.registry import Registry
from publisher.engine.removal import Removal, Removing
from tests.editorial.conftest import Stub
from tests.editorial.posts.conftest import CHIEF, Desk, refused_by
from tests.engine.ground import Lane, lost, published, refused

HORIZON = timedelta(seconds=60)


class Deleting(Stub):
    """A platform that takes down what it has."""

    def capabilities(self, content: str, progress: object = None) -> Capabilities:
        return replace(super().capabilities(content, progress), can_delete=True)  # type: ignore[arg-type]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.registry = Registry([Removing(Deleting())])
    return desk


def ask(desk: Desk, post: int, page: Lane, **how: Any) -> Asked:  # noqa: ANN401 - of delete
    with desk.transaction() as conn:
        return removals.delete(
            conn, post, page.channel_id, who=CHIEF,
            **{"registry": desk.registry, "horizon": HORIZON, **how},
        )  # fmt: skip


def live(desk: Desk, page: Lane) -> tuple[int, JobId]:
    post, (job,) = desk.out(page)
    desk.send(page, job)
    return post, job


def code(act: Any) -> str:  # noqa: ANN401 - what is to be refused
    return refused_by(act).code


def test_it_is_asked_for_by_a_job_that_names_the_other(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)
    asked = ask(desk, post, page, reason=" the price is wrong ")
    row = desk.job(asked.job.job_id)
    assert (row["kind"], row["removes"], row["post_id"], row["useful_until"]) == (
        "delete", job, None, None,
    )  # fmt: skip
    assert asked.job.key.startswith(f"delete:{public_id(job)}/channel:{page.channel_id}/at:")
    assert asked.removes.id == job
    content = desk.ground.one(
        "SELECT content FROM job_contents WHERE job_id = %s", asked.job.job_id
    )
    removal = Removal.read(content)
    assert removal is not None
    assert (removal.remote_id, removal.asked_by, removal.reason) == (
        f"remote {job}", CHIEF, "the price is wrong",
    )  # fmt: skip
    assert desk.told(post)[-1] == "deletion_asked"
    desk.send(page, asked.job.job_id, published("removed:1"))
    with desk.transaction() as conn:
        (shown,) = post_pages.read(conn, post).jobs
        (gone,) = post_pages.read(conn, post).removals
    assert (shown.state, shown.remote_id) == (State.PUBLISHED, f"remote {job}")
    assert shown.deleted_at == gone.settled_at == desk.job(asked.job.job_id)["settled_at"]


def test_neither_an_edit_nor_a_withdrawal_holds_it(desk: Desk) -> None:
    page = desk.page()
    post, _job = live(desk, page)
    asked = ask(desk, post, page)
    desk.save(post, "Another text")
    desk.withdraw(post)
    assert desk.job(asked.job.job_id)["hold_reason"] is None
    assert desk.claim(page, asked.job.job_id) is not None


def test_a_post_in_the_trash_may_still_go_from_its_page(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)
    desk.ground.sql("UPDATE posts SET trashed_at = now(), trashed_by = 'x' WHERE id = %s", post)
    assert ask(desk, post, page).removes.id == job


def test_what_is_not_live_is_refused_as_what_it_is(desk: Desk) -> None:
    page, other = desk.page(), desk.page()
    post, (job,) = desk.out(page)
    assert code(lambda: ask(desk, post, page)) == "not-live"
    assert code(lambda: ask(desk, post, other)) == "not-live"
    claimed = desk.sending(page, job)
    assert code(lambda: ask(desk, post, page)) == "sending-now"
    assert page.end(claimed, lost()).done
    assert code(lambda: ask(desk, post, page)) == "unknown-not-retryable"
    with pytest.raises(NotFound):
        ask(desk, 10**9, page)
    assert desk.ground.one("SELECT count(*) FROM jobs WHERE removes = %s", job) == 0


def test_what_a_person_only_saw_has_no_id_to_delete(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    assert page.end(desk.sending(page, job), lost()).done
    with desk.transaction() as conn:
        (doubt,) = ledger.doubts(conn, [job])
        ledger.confirm_published(
            conn, doubt, remote_id=None, permalink=None, who=CHIEF, reason="I saw it"
        )
    assert code(lambda: ask(desk, post, page)) == "no-link"


def test_a_platform_that_deletes_nothing_refuses_at_once(desk: Desk) -> None:
    page = desk.page()
    post, _job = live(desk, page)
    registry = Registry([Removing(Stub())])
    assert code(lambda: ask(desk, post, page, registry=registry)) == "cannot-delete"


def test_two_who_ask_at_once_have_one_job(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)

    def one(_number: int) -> str:
        try:
            return str(ask(desk, post, page).job.job_id)
        except PublisherError as error:
            return error.code

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(one, range(4)))
    assert sorted(ends)[1:] == ["open-job-exists"] * 3
    assert desk.ground.one("SELECT count(*) FROM jobs WHERE removes = %s", job) == 1


def test_what_is_gone_is_not_deleted_twice(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)
    asked = ask(desk, post, page)
    desk.send(page, asked.job.job_id, published("removed:2"))
    assert code(lambda: ask(desk, post, page)) == "already-deleted"
    with desk.transaction() as conn:
        new = removals.new_job(
            queries.live_job(conn, job), now=queries.clock(conn), who=CHIEF, registry=desk.registry
        )
        with pytest.raises(AlreadyDeleted):
            ledger.enqueue(conn, [new])


def test_a_refused_one_may_be_asked_for_again_and_not_brought_back_beside_that(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)
    first = ask(desk, post, page).job.job_id
    desk.send(page, first, refused())
    assert desk.job(first)["state"] == "failed"
    second = ask(desk, post, page).job.job_id
    with desk.transaction() as conn, pytest.raises(Conflict) as caught:
        ledger.requeue(conn, first, who=CHIEF)
    assert caught.value.code == "open-job-exists"
    assert public_id(second) in str(caught.value)
    desk.send(page, second, published("removed:3"))
    assert desk.job(job)["state"] == "published"


def test_an_earlier_send_that_may_still_arrive_stands_in_the_way(desk: Desk) -> None:
    """A key makes a repeat of what is there safe; of what is gone it would be a new post."""
    page = replace_run(desk)
    post, (job,) = desk.out(page)
    desk.sending(page, job)
    desk.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 hour' WHERE id = %s", job)
    ledger.rescue(desk.ground.conn, grace=0, deaths=3, who="test")
    with desk.transaction() as conn:
        (doubt,) = ledger.doubts(conn, [job])
        ledger.repeat(conn, doubt, until=None, after=-1, who=CHIEF, reason="its key is known")
    desk.send(page, job)
    refusal = refused_by(lambda: ask(desk, post, page))
    assert refusal.code == "send-may-arrive"
    assert "is proved stopped" in str(refusal)
    run = page.incarnation
    desk.ground.sql("UPDATE incarnations SET ended_at = now() WHERE id = %s", run)
    assert "would put the post back" in str(refused_by(lambda: ask(desk, post, page)))
    desk.ground.sql(
        "UPDATE incarnations SET ended_at = now() - interval '2 min' WHERE id = %s", run
    )
    assert ask(desk, post, page).removes.id == job


def replace_run(desk: Desk) -> Lane:
    """A page whose sends are of a run of their own."""
    page = desk.page()
    page.incarnation = desk.ground.incarnation(f"{page.channel_id}.spool")
    return page


def test_published_again_after_it_was_deleted(desk: Desk) -> None:
    page = desk.page()
    post, first = live(desk, page)
    desk.send(page, ask(desk, post, page).job.job_id, published("removed:4"))
    refusal = refused_by(lambda: desk.schedule(post, page))
    assert (refusal.code, "was live, and is deleted" in str(refusal)) == ("already-live", True)
    (again,) = desk.again(post, page).jobs
    assert desk.job(again.job_id)["repeats"] == first
    desk.send(page, again.job_id)
    assert ask(desk, post, page).removes.id == again.job_id
    named = refused_by(lambda: ask(desk, post, page, job_id=first))
    assert named.code == "already-deleted"


def test_what_is_deleted_is_no_neighbour_and_neither_is_its_removal(desk: Desk) -> None:
    page = desk.page()
    post, job = live(desk, page)

    def near() -> list[int]:
        with desk.transaction() as conn:
            at = queries.clock(conn)
            return [one.job_id for one in queries.neighbours(conn, page.channel_id, at)]

    assert near() == [job]
    asked = ask(desk, post, page)
    assert near() == [job]
    desk.send(page, asked.job.job_id, published("removed:5"))
    assert near() == []


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("UPDATE jobs SET removes = NULL WHERE id = %(id)s", "PB010"),
        ("UPDATE jobs SET removes = %(id)s WHERE id = %(id)s", "PB010"),
        ("UPDATE jobs SET removes = %(removes)s WHERE id = %(removes)s", "PB010"),
        ("UPDATE jobs SET kind = 'publish' WHERE id = %(id)s", "23514"),
        ("UPDATE jobs SET post_id = %(post)s WHERE id = %(id)s", "23514"),
    ],
)
def test_a_removal_keeps_what_it_removes(desk: Desk, statement: str, state: str) -> None:
    page = desk.page()
    post, job = live(desk, page)
    asked = ask(desk, post, page)
    given = {"id": asked.job.job_id, "removes": job, "post": post}
    with pytest.raises(psycopg.Error) as caught, desk.transaction() as conn:
        driver_of(conn).execute(statement.encode(), given)
    assert caught.value.sqlstate == state


def test_only_what_is_live_on_that_channel_can_be_removed(desk: Desk) -> None:
    page, other = desk.page(), desk.page()
    post, _job = live(desk, page)
    asked = ask(desk, post, page)
    _post, second = live(desk, page)
    with desk.transaction() as conn:
        new = removals.new_job(
            queries.live_job(conn, second),
            now=queries.clock(conn),
            who=CHIEF,
            registry=desk.registry,
        )
    for wrong in (
        replace(new, key="a", channel_id=other.channel_id),
        replace(new, key="b", removes=asked.job.job_id),
        replace(new, key="c", removes=10**9),
        replace(new, key="d", removes=None),
        replace(new, key="e", kind="publish"),
    ):
        with pytest.raises(psycopg.Error), desk.transaction() as conn:
            ledger.enqueue(conn, [wrong])
