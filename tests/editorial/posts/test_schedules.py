"""Scheduling channel by channel: the first time, after a refusal, and again on purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from publisher.editorial import drafts, schedules, trash
from publisher.editorial.documents import Document
from publisher.editorial.posts import Destination
from publisher.editorial.schedules import Next
from publisher.engine import ledger
from publisher.engine.audit import CATALOGUE, ask
from publisher.engine.content import Post, digest
from publisher.engine.errors import OpenJobExists
from publisher.engine.job import State
from tests.editorial.posts.conftest import DAY, Desk, own_text, refused_by, rules
from tests.engine.ground import lost, refused


def next_on(desk: Desk, post: int) -> dict[int, Next]:
    return {at: after for at, (after, _) in schedules.options(desk.jobs(post)).items()}


def test_one_job_for_each_channel_with_the_bytes_that_were_approved(desk: Desk) -> None:
    one, other = desk.page(), desk.page()
    document = own_text(Document(Post("For all")), other, "For the other")
    post = desk.new(one, other)
    saved = desk.save(post, document)
    desk.approve(post)
    done = desk.schedule(post, one, other)
    assert done.version.sha256 == saved.version.sha256
    assert [desk.text(job.job_id) for job in done.jobs] == ["For all", "For the other"]
    for job, page in zip(done.jobs, (one, other), strict=True):
        sending = desk.sending(page, job.job_id)
        sent = desk.ground.attempt(job.job_id)["content_sha256"]
        assert bytes(sent) == digest(document.post_for(page.channel_id).to_json())
        assert sending.content_sha256 == sent
    assert desk.told(post) == ["created", "saved", "saved", "approved", "scheduled", "scheduled"]
    (approved,) = [each for each in CATALOGUE if each.id == "T13"]
    assert (
        ask(desk.ground.conn, approved, None, alerted=True) is None
    )  # each against its own variant


def test_nothing_is_scheduled_that_was_changed_after_its_approval(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    assert refused_by(lambda: desk.schedule(post, page)).code == "needs-approval"
    desk.approve(post)
    desk.save(post, "Better")
    refusal = refused_by(lambda: desk.schedule(post, page))
    assert refusal.code == "needs-approval"
    assert "Version 1 was approved, then changed" in str(refusal)
    assert refused_by(lambda: desk.schedule(post, page, number=1)).code == "needs-approval"
    rules(desk.ground, edit_rule="keep")
    assert len(desk.schedule(post, page, number=1).jobs) == 1
    assert desk.text(desk.jobs(post)[0].id) == "Hello"


def test_an_older_approved_version_is_not_scheduled(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    desk.approve(post)
    desk.save(post, "Better")
    desk.approve(post)
    assert refused_by(lambda: desk.schedule(post, page, number=1)).code == "version-is-old"


def test_three_channels_one_refuses_and_the_fix_goes_out_only_there(desk: Desk) -> None:
    pages = [desk.page() for _ in range(3)]
    post, jobs = desk.out(*pages)
    for page, job in zip(pages[:2], jobs, strict=False):
        desk.send(page, job)
    desk.send(pages[2], jobs[2], refused())
    assert [*next_on(desk, post).values()] == [Next.AGAIN, Next.AGAIN, Next.FIX]
    with desk.transaction() as conn:
        assert schedules.require_fixable(conn, post, pages[2].channel_id).id == jobs[2]
    desk.save(post, own_text(Document(Post("Hello")), pages[2], "Hello, mended"))
    desk.approve(post)
    for page in pages[:2]:
        assert refused_by(lambda at=page: desk.schedule(post, at)).code == "already-live"
    (fix,) = desk.schedule(post, pages[2]).jobs
    assert desk.job(fix.job_id)["replaces"] == jobs[2]
    with desk.transaction() as conn:
        refusal = refused_by(lambda: ledger.requeue(conn, jobs[2], who="operator"))
    assert refusal.code == "open-job-exists"
    desk.send(pages[2], fix.job_id)
    with desk.transaction() as conn:
        refusal = refused_by(lambda: ledger.requeue(conn, jobs[2], who="operator"))
    assert refusal.code == "replaced"
    assert {job.id: job.state for job in desk.jobs(post)} == {
        jobs[0]: State.PUBLISHED, jobs[1]: State.PUBLISHED, jobs[2]: State.FAILED,
        fix.job_id: State.PUBLISHED,
    }  # fmt: skip
    assert [desk.text(job.id) for job in desk.jobs(post)] == ["Hello"] * 3 + ["Hello, mended"]
    assert refused_by(lambda: desk.schedule(post, pages[2])).code == "already-live"


@pytest.mark.parametrize("state", [State.UNKNOWN, State.DROPPED])
def test_what_may_be_live_is_neither_fixed_nor_repeated(desk: Desk, state: State) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, lost())
    if state is State.DROPPED:
        desk.ground.sql("UPDATE jobs SET state = 'dropped' WHERE id = %s", job)
    assert [*next_on(desk, post).values()] == [Next.DECIDE]
    for act in (
        lambda: desk.schedule(post, page),
        lambda: desk.again(post, page),
        lambda: fix(desk, post, page.channel_id),
        lambda: put_away(desk, post),
    ):
        assert refused_by(act).code == "unknown-not-retryable"
    assert len(desk.jobs(post)) == 1


def fix(desk: Desk, post: int, channel_id: int) -> object:
    with desk.transaction() as conn:
        return schedules.require_fixable(conn, post, channel_id)


def put_away(desk: Desk, post: int) -> bool:
    with desk.transaction() as conn:
        return trash.trash(conn, post, who="writer")


@pytest.mark.parametrize("proof", ["repeat_safe", "forced", None])
def test_a_repeat_that_hides_a_doubt_is_not_fixed(desk: Desk, proof: str | None) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused())
    desk.ground.sql("SET session_replication_role = replica")
    desk.ground.sql(
        "UPDATE attempts SET proof = %s, proved_by = %s, proved_at = %s WHERE job_id = %s",
        proof, proof and "tester", proof and "2026-12-07Z", job,
    )  # fmt: skip
    desk.ground.sql("RESET session_replication_role")
    assert refused_by(lambda: desk.schedule(post, page)).code == "unknown-not-retryable"
    assert refused_by(lambda: fix(desk, post, page.channel_id)).code == "unknown-not-retryable"


def test_again_is_a_new_time_that_names_the_first(desk: Desk) -> None:
    page = desk.page()
    post, (first,) = desk.out(page)
    assert isinstance(refused_by(lambda: desk.again(post, page)), OpenJobExists)
    desk.send(page, first)
    (second,) = desk.again(post, page).jobs
    assert desk.job(second.job_id)["repeats"] == first
    assert isinstance(refused_by(lambda: desk.again(post, page)), OpenJobExists)
    desk.send(page, second.job_id)
    assert [desk.job(job)["state"] for job in (first, second.job_id)] == ["published"] * 2


def test_again_is_for_what_is_live(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    desk.approve(post)
    assert refused_by(lambda: desk.again(post, page)).code == "not-live"
    (job,) = desk.schedule(post, page).jobs
    desk.send(page, job.job_id, refused())
    assert refused_by(lambda: desk.again(post, page)).code == "not-live"


def test_after_a_cancel_it_may_be_scheduled_anew_and_only_once(desk: Desk) -> None:
    page = desk.page()
    post, (first,) = desk.out(page)
    with desk.transaction() as conn:
        ledger.cancel(conn, first, who="editor")
    (second,) = desk.schedule(post, page).jobs
    assert desk.job(second.job_id)["replaces"] == first
    desk.send(page, second.job_id)
    with desk.transaction() as conn:
        assert refused_by(lambda: ledger.restore(conn, first, who="editor")).code == "replaced"


def test_what_the_platform_would_refuse_is_not_promised(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    saved = desk.save(post, "x" * 2001)
    first = next(one for one in saved.problems if one.stands_in_the_way)
    assert (first.channel_id, first.field, first.problem.code) == (
        page.channel_id, "text", "text-too-long",
    )  # fmt: skip
    refusal = refused_by(lambda: desk.approve(post))
    assert refusal.code == "text-too-long"
    assert "Nothing was approved." in str(refusal)
    assert "approved" not in desk.told(post)


def test_a_channel_is_named_once_and_exists(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page)
    desk.approve(post)
    assert refused_by(lambda: desk.schedule(post, page, page)).code == "channel-twice"
    assert refused_by(lambda: desk.schedule(post)).code == "channel-missing"


def test_it_is_useful_as_long_as_it_or_its_channel_says(desk: Desk) -> None:
    own, other, plain = desk.page(), desk.page(), desk.page()
    desk.ground.sql(
        "UPDATE gates SET useful_for = '2 hours' WHERE channel_id = %s", other.channel_id
    )
    post = desk.new(own, other, plain)
    desk.approve(post)
    at = datetime.now(UTC) + DAY
    until = at + timedelta(minutes=5)
    places = [
        Destination(own.channel_id, at, "UTC", until),
        Destination(other.channel_id, at, "UTC"),
        Destination(plain.channel_id, at, "UTC"),
    ]
    with desk.transaction() as conn:
        schedules.schedule(conn, post, places, who="me", registry=desk.registry, useful_for=DAY)
    assert [job.useful_until for job in desk.jobs(post)] == [
        until, at + timedelta(hours=2), at + DAY,
    ]  # fmt: skip


def test_a_fix_does_not_approve_what_somebody_is_still_writing(desk: Desk) -> None:
    refusing, other = desk.page(), desk.page()
    post, (job, waiting) = desk.out(refusing, other)
    desk.send(refusing, job, refused())
    with desk.transaction() as conn:
        draft = drafts.read(conn, post)
        drafts.autosave(
            conn, post, Document(Post("Half a sen")), revision=draft.revision, who="writer"
        )
    with desk.transaction() as conn:
        refusal = refused_by(lambda: schedules.require_fixable(conn, post, refusing.channel_id))
    assert refusal.code == "edited-meanwhile"
    assert desk.text(waiting) == "Hello"
    desk.save(post, "Half a sentence, and the rest")
    desk.approve(post)
    with desk.transaction() as conn:
        assert schedules.require_fixable(conn, post, refusing.channel_id).id == job
