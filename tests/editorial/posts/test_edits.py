"""What an edit after the approval does to each job, by its state and by the workspace's rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from publisher.editorial.documents import Document
from publisher.editorial.edits import Act
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.job import Hold, State
from tests.editorial.posts.conftest import Desk, own_text, refused_by, rules
from tests.engine.ground import lost, not_sent, refused, refused_for_now

SOON = timedelta(minutes=5)


def test_an_edit_holds_what_waits_until_it_is_approved(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    saved = desk.save(post, "Better")
    assert [change.act for change in saved.changes] == [Act.HELD]
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    assert desk.claim(page, job) is None
    done = desk.approve(post)
    assert [change.act for change in done.changes] == [Act.REPLACED]
    assert desk.job(job)["hold_reason"] is None
    desk.send(page, job)
    assert desk.text(job) == "Better"


def test_what_is_not_approved_in_time_is_missed(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page, useful_for=timedelta(minutes=2))
    desk.save(post, "Better")
    desk.ground.sql("UPDATE jobs SET useful_until = clock_timestamp() WHERE id = %s", job)
    ledger.expire(desk.ground.conn, who="worker run 1")
    assert desk.job(job)["state"] == State.MISSED


def test_under_keep_the_approved_version_goes_out(desk: Desk) -> None:
    rules(desk.ground, edit_rule="keep")
    page = desk.page()
    post, (job,) = desk.out(page)
    assert desk.save(post, "Better").changes == ()
    desk.send(page, job)
    assert desk.text(job) == "Hello"


def test_under_keep_an_approval_takes_the_place_at_once(desk: Desk) -> None:
    rules(desk.ground, edit_rule="keep")
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Better")
    held = desk.claim(page, job)
    assert held is not None
    assert [change.act for change in desk.approve(post).changes] == [Act.REPLACED]
    assert desk.begin(held) is None  # its worker held the old text
    desk.send(page, job)
    assert desk.text(job) == "Better"


def test_a_claimed_job_is_taken_out_of_its_hand(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    held = desk.claim(page, job)
    assert held is not None
    desk.save(post, "Better")
    assert desk.begin(held) is None
    assert desk.job(job)["state"] == State.SCHEDULED


def test_too_late_while_it_is_sent_and_the_text_is_kept(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    sending = desk.sending(page, job)
    saved = desk.save(post, "Better")
    assert [refusal.code for refusal in saved.refusals] == ["sending-now"]
    assert saved.version.number == 2
    # It comes back unsent: the older version does not go out after all.
    assert page.end(sending, not_sent()).done
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    assert desk.ground.events(job)[-1]["event"] in ("hold", "defer")


def test_what_was_begun_and_is_not_on_the_page_has_a_successor(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused_for_now())
    desk.save(post, "Better")
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    done = desk.approve(post)
    assert [change.act for change in done.changes] == [Act.SUCCEEDED]
    successor = done.changes[0].successor
    assert successor is not None
    assert desk.job(job)["state"] == State.CANCELLED
    assert desk.job(successor)["replaces"] == job
    desk.send(page, successor)
    assert desk.text(successor) == "Better"
    with desk.transaction() as conn:
        refusal = refused_by(lambda: ledger.restore(conn, job, who="operator"))
    assert refusal.code in ("begun", "replaced")


def test_what_may_be_live_keeps_its_version(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, lost())
    saved = desk.save(post, "Better")
    assert [refusal.code for refusal in saved.refusals] == ["unknown-not-retryable"]
    done = desk.approve(post)
    assert [refusal.code for refusal in done.refusals] == ["unknown-not-retryable"]
    assert done.version.is_approved
    assert desk.job(job)["state"] == State.UNKNOWN
    assert desk.text(job) == "Hello"


def test_a_person_s_hold_outlives_the_approval(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    with desk.transaction() as conn:
        ledger.hold(conn, job, who="operator")
    desk.save(post, "Better")
    assert desk.job(job)["hold_reason"] == Hold.PERSON
    with desk.transaction() as conn:
        refusal = refused_by(lambda: ledger.release_hold(conn, job, who="operator"))
    assert refusal.code == "needs-approval"
    desk.approve(post)
    assert desk.job(job)["hold_reason"] == Hold.PERSON
    assert desk.text(job) == "Better"
    with desk.transaction() as conn:
        ledger.release_hold(conn, job, who="operator")
    assert desk.job(job)["hold_reason"] is None


def test_nobody_releases_what_an_edit_holds(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Better")
    before = desk.ground.everything(job)
    with desk.transaction() as conn:
        refusal = refused_by(lambda: ledger.release_hold(conn, job, who="operator"))
    assert refusal.code == "needs-approval"
    assert desk.ground.everything(job) == before


def test_going_back_lets_it_go_on(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Worse")
    saved = desk.back(post, 1)
    assert saved.version.number == 3
    assert saved.version.is_approved
    assert [change.act for change in saved.changes] == [Act.REPLACED]
    desk.send(page, job)
    assert desk.text(job) == "Hello"


def test_going_back_to_what_nobody_approved_holds(desk: Desk) -> None:
    page = desk.page()
    post = desk.new(page, text="First")
    desk.save(post, "Second")
    desk.approve(post)
    (job,) = desk.schedule(post, page).jobs
    saved = desk.back(post, 1)
    assert not saved.version.is_approved
    assert desk.job(job.job_id)["hold_reason"] == Hold.EDITED


def test_who_approved_does_not_carry_it_over_alone(desk: Desk) -> None:
    rules(desk.ground, approval_by_other=True)
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.save(post, "Worse")
    assert not desk.back(post, 1, who="chief").version.is_approved
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    desk.save(post, "Worse still")
    assert desk.back(post, 1, who="writer").version.is_approved
    assert desk.job(job)["hold_reason"] is None


def test_a_withdrawn_approval_holds_and_comes_back(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    assert desk.withdraw(post, reason="wrong price").numbers == (1,)
    assert desk.job(job)["hold_reason"] == Hold.APPROVAL
    assert desk.claim(page, job) is None
    assert desk.approve(post).is_new
    assert desk.job(job)["hold_reason"] is None
    desk.send(page, job)


@pytest.mark.parametrize("rule", ["hold", "keep"])
def test_withdrawn_while_it_is_sent_it_is_not_sent_again(desk: Desk, rule: str) -> None:
    rules(desk.ground, edit_rule=rule)
    page = desk.page()
    post, (job,) = desk.out(page)
    sending = desk.sending(page, job)
    assert [refusal.code for refusal in desk.withdraw(post).refusals] == ["sending-now"]
    assert page.end(sending, not_sent()).done
    assert desk.job(job)["hold_reason"] == Hold.APPROVAL


@pytest.mark.parametrize("verb", ["restore", "requeue"])
def test_no_way_back_without_an_approval(desk: Desk, verb: str) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    if verb == "restore":
        with desk.transaction() as conn:
            ledger.cancel(conn, job, who="editor")
    else:
        desk.send(page, job, refused())
    desk.withdraw(post)
    with desk.transaction() as conn:
        act = ledger.restore if verb == "restore" else ledger.requeue
        act(conn, job, who="operator")
    assert desk.job(job)["hold_reason"] == Hold.APPROVAL
    assert desk.claim(page, job) is None


def test_an_edit_of_one_channel_s_text_reaches_only_that(desk: Desk) -> None:
    one, other = desk.page(), desk.page()
    post, (first, second) = desk.out(one, other)
    desk.save(post, own_text(Document(Post("Hello")), other, "Hello, other"))
    desk.approve(post)
    desk.send(one, first)
    desk.send(other, second)
    assert (desk.text(first), desk.text(second)) == ("Hello", "Hello, other")


def test_what_is_no_longer_useful_has_no_successor(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused_for_now())
    desk.save(post, "Better")
    desk.ground.sql("UPDATE jobs SET useful_until = clock_timestamp() WHERE id = %s", job)
    assert [refusal.code for refusal in desk.approve(post).refusals] == ["too-late"]
    assert len(desk.jobs(post)) == 1


def test_what_a_standstill_holds_back_takes_the_new_text_and_waits_on(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.ground.sql("UPDATE jobs SET hold_reason = %s WHERE id = %s", str(Hold.BACKLOG), job)
    desk.save(post, "Better")
    desk.ground.sql("UPDATE jobs SET hold_reason = NULL WHERE id = %s", job)
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    desk.ground.sql("UPDATE jobs SET hold_reason = %s WHERE id = %s", str(Hold.BACKLOG), job)
    desk.approve(post)
    assert (desk.job(job)["hold_reason"], desk.text(job)) == (Hold.BACKLOG, "Better")
    desk.ground.sql("UPDATE jobs SET hold_reason = NULL WHERE id = %s", job)
    assert desk.job(job)["hold_reason"] is None


def test_the_journal_tells_what_came_back_before_it_tells_why_it_is_held(desk: Desk) -> None:
    page = desk.page()
    post, (job,) = desk.out(page)
    desk.send(page, job, refused())
    desk.withdraw(post)
    with desk.transaction() as conn:
        ledger.requeue(conn, job, who="operator")
    told = [(event["event"], event["who"]) for event in desk.ground.events(job)]
    assert told[-2:] == [("requeue", "operator"), ("hold", "publisher")]
    assert desk.ground.events(job)[-1]["detail"] == {"reason": Hold.APPROVAL}
