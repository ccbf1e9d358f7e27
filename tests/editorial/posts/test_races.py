"""Many at once: one effect; and an editor who never keeps a worker waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import text

from publisher.editorial import drafts, post_lock, schedules
from publisher.editorial.documents import Document
from publisher.editorial.posts import Destination
from publisher.editorial.version_rows import versions_of
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import Hold, State
from tests.editorial.posts.conftest import DAY, Desk, refused_by
from tests.engine.ground import await_that

AT_ONCE = 20


def at_once(act: Callable[[int], object], number: int = AT_ONCE) -> list[object]:
    """What ``number`` callers get who begin together: an answer, or the code of a refusal."""
    ready = Barrier(number)

    def one(n: int) -> object:
        ready.wait(30)
        try:
            return act(n)
        except PublisherError as refusal:
            return refusal.code

    with ThreadPoolExecutor(number) as pool:
        return [*pool.map(one, range(number))]


@pytest.fixture
def wide(desk: Desk) -> Desk:
    """As many connections as there are callers."""
    pool = desk.ground.app.engine.pool
    pool._max_overflow = AT_ONCE  # type: ignore[attr-defined]
    return desk


def test_twenty_submits_are_one(wide: Desk) -> None:
    post = wide.new(wide.page())
    answers = at_once(lambda n: wide.submit(post, who=f"person {n}"))
    assert sorted(map(str, answers)) == ["False"] * (AT_ONCE - 1) + ["True"]
    assert wide.told(post).count("submitted") == 1


def test_twenty_approvals_are_one(wide: Desk) -> None:
    page = wide.page()
    post, (job,) = wide.out(page)
    wide.save(post, "Better")
    answers = at_once(lambda n: wide.approve(post, who=f"person {n}").is_new)
    assert sorted(map(str, answers)) == ["False"] * (AT_ONCE - 1) + ["True"]
    assert wide.told(post).count("approved") == 2
    events = [event["event"] for event in wide.ground.events(job)]
    assert events == ["hold", "replace", "release_hold"]


def test_twenty_schedules_are_one_job(wide: Desk) -> None:
    page = wide.page()
    post = wide.new(page)
    wide.approve(post)
    answers = at_once(lambda _: len(wide.schedule(post, page).jobs))
    assert sorted(map(str, answers)) == ["1"] + ["open-job-exists"] * (AT_ONCE - 1)
    assert len(wide.jobs(post)) == 1


def test_twenty_schedules_of_one_time_are_one_job(wide: Desk) -> None:
    page = wide.page()
    post = wide.new(page)
    wide.approve(post)
    place = Destination(page.channel_id, datetime.now(UTC) + timedelta(hours=1), "UTC")

    def act(_: int) -> int:
        with wide.transaction() as conn:
            done = schedules.schedule(
                conn, post, [place], who="me", registry=wide.registry, useful_for=DAY
            )
        return len(done.jobs)

    answers = at_once(act)
    assert answers.count(1) == 1
    assert len(wide.jobs(post)) == 1


def test_twenty_repeats_are_one(wide: Desk) -> None:
    page = wide.page()
    post, (job,) = wide.out(page)
    wide.send(page, job)
    answers = at_once(lambda _: len(wide.again(post, page).jobs))
    assert answers.count(1) == 1
    assert len(wide.jobs(post)) == 2


def test_twenty_saves_on_one_revision_are_one_version(wide: Desk) -> None:
    post = wide.new(wide.page())
    with wide.transaction() as conn:
        opened = drafts.read(conn, post).revision
    answers = at_once(lambda n: wide.save(post, f"Text {n}", revision=opened).version.number)
    assert answers.count(2) == 1
    assert answers.count("edited-meanwhile") == AT_ONCE - 1
    with wide.transaction() as conn:
        assert len(versions_of(conn, post)) == 2


def test_who_saves_waits_for_a_begin_and_is_told(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    held = desk.claim(page, job)
    assert held is not None
    with desk.ground.engine.connect_driver() as worker:
        worker.autocommit = False
        # The begin of another worker's coordinator, on the point of its commit.
        worker.execute("SELECT FROM publisher.jobs WHERE id = %s FOR UPDATE", [job])
        with ThreadPoolExecutor(1) as pool:
            saving = pool.submit(desk.save, post, "Better")
            wait_until_blocked(desk)
            worker.rollback()
            assert saving.result(30).version.number == 2
    assert desk.begin(held) is None


def test_who_waits_too_long_is_told_and_keeps_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_lock, "PATIENCE_MS", 50)
    page = desk.page()
    post, (job,) = desk.out(page)
    with desk.ground.engine.connect_driver() as worker:
        worker.autocommit = False
        worker.execute("SELECT FROM publisher.jobs WHERE id = %s FOR UPDATE", [job])
        assert refused_by(lambda: desk.save(post, "Better")).code == "busy"
        worker.rollback()
    assert desk.save(post, "Better").is_new


def test_a_worker_passes_over_what_an_editor_holds(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    held = desk.claim(page, job)
    assert held is not None
    with desk.transaction() as conn:
        post_lock.lock(conn, post)
        assert desk.begin(held) is None  # at once, without waiting
    assert desk.job(job)["state"] == State.CLAIMED
    assert desk.begin(held) is not None


def test_a_requeue_that_races_an_edit_is_held(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    with desk.transaction() as conn:
        ledger.cancel(conn, job, who="editor")

    def restore() -> None:
        with desk.transaction() as conn:
            ledger.restore(conn, job, who="operator")

    with desk.transaction() as conn, ThreadPoolExecutor(1) as pool:
        post_lock.lock(conn, post)
        restoring = pool.submit(restore)
        wait_until_blocked(desk)
        conn.execute(
            text(
                "INSERT INTO publisher.post_versions (post_id, number, content, content_sha256,"
                " created_by) VALUES (:post, 2, :content, sha256(convert_to(:content, 'UTF8')),"
                " 'me')"
            ),
            {"post": post, "content": Document(Post("Better")).post.to_json()},
        )
        conn.commit()
        restoring.result(30)
    assert desk.job(job)["hold_reason"] == Hold.EDITED


def wait_until_blocked(desk: Desk) -> None:

    blocked = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND cardinality(pg_blocking_pids(pid)) > 0"
    )
    await_that(lambda: desk.ground.one(blocked) > 0)
