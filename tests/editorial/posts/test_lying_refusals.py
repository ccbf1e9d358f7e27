"""A refusal that was a lie, and the mended post after it: real workers and a real platform.

The platform stores the post and answers with a refusal of its closed list. Whoever mends the post
and schedules it again must not have both on the page, where the page can be looked at.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from publisher.editorial import schedules
from publisher.editorial.schedules import Next
from publisher.engine import ledger, retry
from publisher.engine.audit import audit
from publisher.engine.errors import Conflict
from publisher.engine.job import Hold, JobId, State
from publisher.engine.outcome import Reason
from publisher.sandbox.behaviours import Behaviour
from tests.editorial.posts.conftest import refused_by, rules
from tests.editorial.posts.site import Site
from tests.engine.ground import Ground, Row, await_that
from tests.reconciler.stage import Channel

S = State


@pytest.fixture(scope="module")
def site(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site.open(ground, tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture(params=["facebook_pages", "mastodon", "bluesky"])
def page(site: Site, request: pytest.FixtureRequest) -> Channel:
    rules(site.stage.ground)
    return site.stage.channel(request.param)


@pytest.fixture
def facebook(site: Site) -> Channel:
    rules(site.stage.ground)
    return site.stage.channel("facebook_pages")


def refused(site: Site, page: Channel, behaviour: Behaviour, text: str) -> tuple[int, JobId]:
    """A post whose send ended so, as not published."""
    page.behave(behaviour)
    post = site.desk.new(site.lane(page), text=text)
    site.desk.approve(post)
    job = site.due_in(post, page, 0.0)
    site.stage.await_state(job, S.FAILED)
    return post, job


def mended(site: Site, post: int, page: Channel, text: str) -> JobId:
    """The fix, scheduled to go at once."""
    site.desk.save(post, text)
    site.desk.approve(post)
    return site.due_in(post, page, 0.0)


def alerted(site: Site, job: JobId) -> list[Row]:
    return [event for event in site.stage.ground.events(job) if event["event"] == "alert"]


def nothing_is_wrong(site: Site) -> None:
    report = audit(site.stage.ground.conn, full=True)
    assert not [(one.invariant.id, one.rows) for one in report.broken]


def test_what_was_stored_and_refused_is_found_and_not_sent_in_its_new_form(
    site: Site, page: Channel
) -> None:
    post, first = refused(site, page, Behaviour.ACCEPT_AND_REFUSE, "Open on Sunndays")
    assert page.texts() == ["Open on Sunndays"]
    second = mended(site, post, page, "Open on Sundays")
    row = site.stage.await_state(second, S.CANCELLED)
    assert row["reason"] == Reason.REPLACED_IS_LIVE
    assert row["attempts"] == 0
    assert page.texts() == ["Open on Sunndays"]
    live = site.stage.row(first)
    assert (live["state"], live["remote_id"]) == (S.PUBLISHED, page.ids()[0])
    (look,) = site.stage.looks(first)
    assert look["evidence"]["remote_id"] == page.ids()[0]
    cancelled = site.stage.ground.events(second)[-1]
    assert (cancelled["event"], cancelled["detail"]["reason"]) == ("cancel", "replaced_is_live")
    # What may be done there now is what may be done with a live post.
    after, newest = schedules.options(site.desk.jobs(post))[page.id]
    assert (after, newest.id) == (Next.AGAIN, first)
    assert refused_by(lambda: site.due_in(post, page, 0.0)).code == "already-live"
    # Whoever brings it back all the same sends nothing.
    with site.desk.transaction() as conn:
        ledger.restore(conn, second, who="operator")
    await_that(lambda: len(site.stage.ground.events(second)) > 2)
    site.stage.await_state(second, S.CANCELLED)
    assert page.texts() == ["Open on Sunndays"]
    nothing_is_wrong(site)


def test_what_was_refused_in_truth_is_followed_by_its_new_form_once(
    site: Site, page: Channel
) -> None:
    post, first = refused(site, page, Behaviour.REFUSE_INVALID, "Open on Sunndays")
    second = mended(site, post, page, "Open on Sundays")
    site.stage.await_state(second, S.PUBLISHED)
    assert page.texts() == ["Open on Sundays"]
    assert site.stage.row(first)["state"] == S.FAILED
    (look,) = site.stage.looks(first)
    assert look["ended_at"] <= site.stage.ground.attempt(second)["begun_at"]
    nothing_is_wrong(site)


def test_a_lie_about_a_limit_and_an_edit_in_between(site: Site, facebook: Channel) -> None:
    """The first was to be tried again when a newer version took its place, and is cancelled."""
    facebook.behave(Behaviour.ACCEPT_AND_LIMIT, seconds=0.5)
    post = site.desk.new(site.lane(facebook), text="Tickets form nine")
    site.desk.approve(post)
    first = site.due_in(post, facebook, 0.0)
    await_that(lambda: facebook.texts() == ["Tickets form nine"])
    await_that(lambda: site.stage.was_ever(first) == ["deferred"])
    with site.desk.transaction() as conn:
        ledger.pause(conn, facebook.id, who="me")
    site.desk.save(post, "Tickets from nine")
    (change,) = site.desk.approve(post).changes
    second = change.successor
    if second is None:  # a worker was quicker, and found it by itself
        pytest.skip("the first was looked for before the edit")
    site.stage.ground.sql("UPDATE gates SET paused_at = NULL, paused_by = NULL, not_before = NULL")
    site.stage.await_state(second, S.CANCELLED)
    assert facebook.texts() == ["Tickets form nine"]
    row = site.stage.row(first)
    assert (row["state"], row["attempts"]) == (S.CANCELLED, 1)
    assert site.stage.was_ever(first) == ["published"]
    nothing_is_wrong(site)


def test_each_of_a_line_of_refusals_is_looked_for(site: Site, facebook: Channel) -> None:
    """Two refusals: the first was the lie."""
    post, first = refused(site, facebook, Behaviour.ACCEPT_AND_REFUSE, "Frist words of it")
    facebook.behave(Behaviour.UNREADABLE, endpoint="list", times=1)
    second = mended(site, post, facebook, "Second words of it")
    with site.desk.transaction() as conn:
        try:
            ledger.cancel(conn, second, who="editor")
        except Conflict:
            pytest.skip("it had ended by then")
    third = mended(site, post, facebook, "Third words of it")
    site.stage.await_state(third, S.CANCELLED)
    assert facebook.texts() == ["Frist words of it"]
    assert site.stage.row(first)["state"] == S.PUBLISHED
    nothing_is_wrong(site)


def test_what_resembles_it_keeps_the_new_form_for_a_person(site: Site, facebook: Channel) -> None:
    post, first = refused(site, facebook, Behaviour.REFUSE_INVALID, "The mill is open on Sunndays")
    site.stage.control.foreign_post(facebook.page, "The mill is open on Sundays, says my aunt")
    second = mended(site, post, facebook, "The mill is open on Sundays")
    await_that(lambda: site.desk.job(second)["hold_reason"] == Hold.REPLACED)
    row = site.desk.job(second)
    assert (row["state"], row["reason"], row["attempts"]) == (S.SCHEDULED, "replaced_unclear", 0)
    assert len(facebook.texts()) == 1
    # An edit and its approval do not let it go, only a person who has looked does.
    site.desk.save(post, "The mill is open every Sunday")
    site.desk.approve(post)
    assert site.desk.job(second)["hold_reason"] == Hold.REPLACED
    with site.desk.transaction() as conn:
        ledger.release_hold(conn, second, who="operator")
    site.stage.await_state(second, S.PUBLISHED)
    assert facebook.texts()[0] == "The mill is open every Sunday"
    assert site.stage.row(first)["state"] == S.FAILED
    nothing_is_wrong(site)


def test_a_person_lets_it_go_and_the_first_is_there_after_all(
    site: Site, facebook: Channel
) -> None:
    """Only a find stops it then, and it does."""
    post, first = refused(site, facebook, Behaviour.ACCEPT_AND_REFUSE, "The ferry runs form six")
    (its_id,) = facebook.ids()
    site.stage.control.foreign_post(facebook.page, "The ferry runs form six, they say")
    site.stage.ground.sql("UPDATE gates SET paused_at = now(), paused_by = 'me'")
    second = mended(site, post, facebook, "The ferry runs from six")
    at = datetime.now(UTC) - timedelta(seconds=1)
    site.stage.ground.sql(
        "INSERT INTO job_events (job_id, event, who, detail, at) VALUES"
        " (%s, 'hold', 'worker run 1', '{\"reason\": \"replaced_unclear\"}', %s),"
        " (%s, 'release_hold', 'operator', '{}', clock_timestamp())",
        second, at, second,
    )  # fmt: skip
    site.stage.ground.sql("UPDATE gates SET paused_at = NULL, paused_by = NULL")
    site.stage.await_state(second, S.CANCELLED)
    assert site.stage.row(first)["remote_id"] == its_id
    assert len(facebook.texts()) == 2


def test_a_page_that_cannot_be_read_is_read_again_before_anything_is_sent(
    site: Site, facebook: Channel
) -> None:
    post, first = refused(site, facebook, Behaviour.ACCEPT_AND_REFUSE, "Doors at ate")
    facebook.behave(Behaviour.FAIL_500, endpoint="list", times=2)
    second = mended(site, post, facebook, "Doors at eight")
    site.stage.await_state(second, S.CANCELLED)
    assert facebook.texts() == ["Doors at ate"]
    kinds = [look["evidence"]["kind"] for look in site.stage.looks(first)]
    assert kinds[-1] == "Found"
    nothing_is_wrong(site)


def test_who_finds_it_and_dies_has_told_enough(site: Site, facebook: Channel) -> None:
    """The older job is known to be live, the newer one is still to be sent: as after a crash."""
    post, first = refused(site, facebook, Behaviour.ACCEPT_AND_REFUSE, "Bring your won cup")
    site.stage.ground.sql("UPDATE gates SET paused_at = now(), paused_by = 'me'")
    second = mended(site, post, facebook, "Bring your own cup")
    attempt = site.stage.ground.attempt(first)
    found = retry.found(facebook.ids()[0], None, attempt=1, about=attempt["token"])
    late = ledger.record_late(
        site.stage.ground.conn, first, attempt["token"], found, who="worker run 1"
    )
    assert late is ledger.Late.MOVED
    site.stage.ground.sql("UPDATE gates SET paused_at = NULL, paused_by = NULL")
    site.stage.await_state(second, S.CANCELLED)
    assert facebook.texts() == ["Bring your won cup"]
    assert site.stage.looks(first) == []
    nothing_is_wrong(site)


def test_a_worker_that_is_killed_while_it_looks_leaves_nothing_undone(
    site: Site, facebook: Channel
) -> None:
    """Its lease runs out, another worker takes the job up, and looks."""
    post, first = refused(site, facebook, Behaviour.ACCEPT_AND_REFUSE, "Close at nime")
    facebook.behave(Behaviour.HANG, endpoint="list", times=1)
    second = mended(site, post, facebook, "Close at nine")
    await_that(lambda: site.desk.job(second)["hand_at"] is not None)
    (run,) = site.stage.ground.sql(
        "SELECT i.pid FROM incarnations i JOIN jobs j ON j.incarnation = i.id WHERE j.id = %s",
        second,
    )
    os.kill(run["pid"], signal.SIGKILL)
    site.stage.await_state(second, S.CANCELLED, within=60)
    assert facebook.texts() == ["Close at nime"]
    assert site.stage.row(first)["state"] == S.PUBLISHED
    nothing_is_wrong(site)
