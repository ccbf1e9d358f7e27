"""What the database refuses whatever the code above it does."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from publisher.editorial import trash
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.job import Hold, JobId, NewJob, post_key
from publisher.engine.ledger.driver import driver_of
from tests.editorial.posts.conftest import Desk, refused_by, rules
from tests.engine.ground import Lane, refused


def raised(desk: Desk, query: str, *values: object) -> str | None:
    """The SQLSTATE with which the pages' role is refused, at the statement or at its commit."""

    def run() -> None:
        with desk.ground.app.connect_driver() as conn, conn.transaction():
            conn.execute("SELECT set_config('publisher.workspace', '*', true)")
            conn.execute(query.encode(), values)

    with pytest.raises(psycopg.Error) as caught:
        run()
    return caught.value.sqlstate


def version_id(desk: Desk, post: int, number: int = 1) -> int:
    found: int = desk.ground.one(
        "SELECT id FROM post_versions WHERE post_id = %s AND number = %s", post, number
    )
    return found


def job_of(desk: Desk, post: int, page: Lane, content: str, number: int = 1) -> NewJob:
    at = desk.ground.one("SELECT clock_timestamp()")
    return NewJob(
        key=post_key(post, page.channel_id, at), kind="publish", queue="publish",
        channel_id=page.channel_id, content=content, run_at=at, post_id=post,
        version_id=version_id(desk, post, number), version=number,
    )  # fmt: skip


def enqueued(desk: Desk, job: NewJob) -> str | None:
    with pytest.raises(psycopg.Error) as caught, desk.transaction() as conn:
        ledger.enqueue(conn, [job])
    return caught.value.sqlstate


def test_no_job_without_an_approval_or_with_other_bytes(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    hello = Post("Hello").to_json()
    assert enqueued(desk, job_of(desk, post, page, hello)) == "PB051"
    desk.approve(post)
    assert enqueued(desk, job_of(desk, post, page, Post("Hullo").to_json())) == "PB050"
    other = desk.new(page)
    desk.approve(other)
    foreign = job_of(desk, other, page, hello)
    assert enqueued(desk, NewJob(**{**_fields(foreign), "post_id": post})) == "PB050"
    desk.withdraw(post)
    assert enqueued(desk, job_of(desk, post, page, hello)) == "PB051"


def _fields(job: NewJob) -> dict[str, object]:
    return {name: getattr(job, name) for name in NewJob.__slots__}


def test_no_content_is_replaced_with_what_nobody_approved(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Better")
    with (
        pytest.raises(Exception, match=r"version 2 of post .* is not approved"),
        desk.transaction() as conn,
    ):
        ledger.replace(
            conn, job, content=Post("Better").to_json(), who="me", version=2,
            version_id=version_id(desk, post, 2),
        )  # fmt: skip
    assert desk.text(job) == "Hello"


def test_no_hold_is_taken_off_past_the_verbs(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Better")
    with desk.transaction() as conn:
        driver_of(conn).execute("UPDATE publisher.jobs SET hold_reason = NULL WHERE id = %s", [job])
    assert desk.job(job)["hold_reason"] == Hold.EDITED


def test_no_version_is_saved_beside_a_job_that_would_go_out_in_the_older(desk: Desk) -> None:
    page = desk.page()
    post, _ = desk.out(page)
    insert = (
        "INSERT INTO publisher.post_versions (post_id, number, content, content_sha256, created_by)"
        " VALUES (%s, 2, 'x', sha256('x'), 'me')"
    )
    assert raised(desk, insert, post) == "PB053"
    rules(desk.ground, edit_rule="keep")
    with desk.transaction() as conn:
        driver_of(conn).execute(insert, [post])


def test_no_approval_is_withdrawn_under_a_job_that_goes_by_it(desk: Desk) -> None:
    page = desk.page()
    post, _ = desk.out(page)
    update = (
        "UPDATE publisher.approvals SET withdrawn_at = clock_timestamp(), withdrawn_by = 'me'"
        " WHERE version_id = %s"
    )
    assert raised(desk, update, version_id(desk, post)) == "PB053"


def test_nobody_approves_their_own_work_where_another_must(desk: Desk) -> None:
    post = desk.new(desk.page())
    rules(desk.ground, approval_by_other=True)
    insert = "INSERT INTO publisher.approvals (version_id, approved_by) VALUES (%s, %s)"
    assert raised(desk, insert, version_id(desk, post), "writer") == "PB052"
    assert refused_by(lambda: desk.approve(post, who="writer")).code == "approval-by-other"
    assert desk.approve(post, who="chief").is_new


def test_an_account_is_itself_under_any_name(desk: Desk) -> None:
    rules(desk.ground, approval_by_other=True)
    page = desk.page()
    user = desk.ground.one(
        "INSERT INTO users (email, name) VALUES (%s, 'Ann') RETURNING id",
        f"{page.channel_id}@example.org",
    )
    ann, renamed = Somebody(user, "Ann"), Somebody(user, "Ann B.")
    other = desk.ground.one(
        "INSERT INTO users (email, name) VALUES (%s, 'Ann') RETURNING id",
        f"{page.channel_id}b@example.org",
    )
    post = desk.new(page, who=ann)
    assert refused_by(lambda: desk.approve(post, who=renamed)).code == "approval-by-other"
    assert desk.approve(post, who=Somebody(other, "Ann")).is_new


class Somebody:
    def __init__(self, number: int, name: str) -> None:
        self.id = number
        self.name = name


def test_a_version_is_what_its_hash_says(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    add = (
        "INSERT INTO publisher.version_variants (version_id, channel_id, content, content_sha256,"
        " own) VALUES (%s, %s, 'x', sha256('x'), '{text}')"
    )
    assert raised(desk, add, version_id(desk, post), page.channel_id) == "PB054"
    version = (
        "INSERT INTO publisher.post_versions (post_id, number, content, content_sha256, created_by,"
        " whole_sha256) VALUES (%s, 2, 'x', sha256('x'), 'me', sha256('y'))"
    )
    assert raised(desk, version, post) == "PB054"


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE publisher.post_events SET who = 'nobody'",
        "DELETE FROM publisher.post_events",
        "DELETE FROM publisher.version_variants",
        "DELETE FROM publisher.reviews",
        "DELETE FROM publisher.approvals",
        "DELETE FROM publisher.post_drafts",
        "UPDATE publisher.posts SET created_by = 'nobody'",
        "UPDATE publisher.reviews SET submitted_by = 'nobody'",
        "UPDATE publisher.post_drafts SET post_id = 1",
    ],
)
def test_what_the_pages_role_may_not(desk: Desk, query: str) -> None:
    desk.new(desk.page())
    assert raised(desk, query) == "42501"


def test_the_journal_is_only_added_to_by_anybody(desk: Desk) -> None:
    desk.new(desk.page())
    with desk.ground.owner() as conn, pytest.raises(psycopg.Error) as caught:
        conn.execute("UPDATE post_events SET who = 'nobody'")
    assert caught.value.sqlstate == "PB024"


def ends(desk: Desk, page: Lane, job: JobId) -> dict[str, Callable[[], object]]:
    return {
        "waits": lambda: None,
        "is claimed": lambda: desk.claim(page, job),
        "is sent": lambda: desk.sending(page, job),
    }


@pytest.mark.parametrize("state", ["waits", "is claimed", "is sent"])
def test_a_post_with_an_open_job_is_not_put_away(desk: Desk, state: str) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    ends(desk, page, job)[state]()
    code = "sending-now" if state == "is sent" else "open-job-exists"

    def put_away() -> bool:
        with desk.transaction() as conn:
            return trash.trash(conn, post, who="writer")

    assert refused_by(put_away).code == code
    update = (
        "UPDATE publisher.posts SET trashed_at = clock_timestamp(), trashed_by = 'me' WHERE id = %s"
    )
    assert raised(desk, update, post) == "PB056"


def test_nothing_of_a_post_in_the_trash_goes_out(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused())
    with desk.transaction() as conn:
        assert trash.trash(conn, post, who="writer")
        assert not trash.trash(conn, post, who="writer")
    for act in (
        lambda: desk.schedule(post, page),
        lambda: desk.save(post, "Other"),
        lambda: desk.approve(post),
        lambda: desk.submit(post),
        lambda: desk.back(post, 1),
    ):
        assert refused_by(act).code == "in-trash"
    with desk.transaction() as conn:
        ledger.requeue(conn, job, who="operator")
    assert desk.job(job)["hold_reason"] == Hold.APPROVAL
    assert enqueued(desk, job_of(desk, post, desk.page(), Post("Hello").to_json())) == "PB051"
    with desk.transaction() as conn:
        assert trash.restore(conn, post, who="writer")
        assert not trash.restore(conn, post, who="writer")
        ledger.release_hold(conn, job, who="operator")
    desk.send(page, job)
    assert desk.told(post)[-2:] == ["trashed", "restored"]


def test_a_post_stays_in_its_workspace(desk: Desk) -> None:
    page, far = desk.page(), desk.page()
    post = desk.new(page)
    elsewhere = desk.ground.one(
        "INSERT INTO workspaces (slug, name, zone) VALUES (%s, 'Other', 'UTC') RETURNING id",
        f"w{post}",
    )
    try:
        desk.ground.sql("SET session_replication_role = replica")
        desk.ground.sql(
            "UPDATE channels SET workspace_id = %s WHERE id = %s", elsewhere, far.channel_id
        )
        desk.ground.sql("RESET session_replication_role")
        desk.approve(post)
        assert refused_by(lambda: desk.schedule(post, far)).code == "not-found"
        target = "INSERT INTO publisher.post_targets VALUES (%s, %s)"
        assert raised(desk, target, post, far.channel_id) == "PB040"
    finally:
        desk.ground.sql("SET session_replication_role = replica")
        desk.ground.sql(
            "UPDATE channels SET workspace_id = (SELECT min(id) FROM workspaces) WHERE id = %s",
            far.channel_id,
        )
        desk.ground.sql("DELETE FROM workspaces WHERE id = %s", elsewhere)
        desk.ground.sql("RESET session_replication_role")
