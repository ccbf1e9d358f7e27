"""A worker and a reconciler as a user starts them, and platforms that lose answers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from publisher.engine.job import State
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess
from tests.adapters.liar import Asked, Liar, Said
from tests.engine.ground import Ground, await_that
from tests.reconciler.stage import HORIZON, TIMEOUT, Channel, Stage

S = State


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


@pytest.fixture
def page(stage: Stage) -> Channel:
    return stage.channel()


def bound(page: Channel) -> list[str]:
    rows = page.stage.ground.sql(
        "SELECT remote_id FROM remote_posts WHERE channel_id = %s", page.id
    )
    return [row["remote_id"] for row in rows]


# Facebook


@pytest.mark.parametrize(
    "behaviour", [Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_HANG, Behaviour.ACCEPT_AND_502]
)
def test_a_lost_answer_is_unknown_at_once_and_then_found(
    stage: Stage, page: Channel, behaviour: Behaviour
) -> None:
    page.behave(behaviour)
    job = page.post("The mill is open")
    row = stage.await_state(job, S.PUBLISHED)
    assert page.ids() == [row["remote_id"]] == bound(page)
    attempt = stage.ground.attempt(job)
    took = attempt["settled_at"] - attempt["begun_at"]
    assert took < timedelta(seconds=TIMEOUT + 2)
    if behaviour is Behaviour.ACCEPT_AND_HANG:
        assert took > timedelta(seconds=TIMEOUT * 0.9)
    assert attempt["reason"] in {"connection_lost", "no_answer", "server_error"}
    (verdict,) = stage.verdicts(job)
    assert (verdict["decision"], verdict["who"]) == ("live", "reconciler")
    assert stage.looks(job)[-1]["evidence"]["remote_id"] == row["remote_id"]


def test_two_equal_texts_stay_unknown_and_ask_with_both_side_by_side(
    stage: Stage, page: Channel
) -> None:
    twin = stage.control.foreign_post(page.page, "Alike", application=APPLICATION)
    page.behave(Behaviour.LOSE_ANSWER)
    job = page.post("Alike")
    await_that(lambda: len(stage.looks(job)) >= 2)
    (ours,) = [one for one in page.ids() if one != twin]
    candidates = stage.looks(job)[0]["evidence"]["candidates"]
    assert {one["remote_id"] for one in candidates} == {ours, twin}
    (doubt,) = stage.ground.sql("SELECT * FROM doubts WHERE job_id = %s", job)
    assert doubt["asked_reason"] == "2 posts on the page could be it"
    assert stage.row(job)["state"] == S.UNKNOWN
    assert bound(page) == []
    stage.control.take_down(twin)
    assert stage.await_state(job, S.PUBLISHED)["remote_id"] == ours


@pytest.mark.parametrize("application", [None, "someone else's"])
def test_somebody_elses_equal_post_is_never_bound(
    stage: Stage, page: Channel, application: str | None
) -> None:
    page.behave(Behaviour.DROP)
    job = page.post("The ferry is late")
    stage.control.foreign_post(page.page, "The ferry is late", application=application)
    await_that(lambda: len(stage.looks(job)) >= 3 or bound(page))
    assert bound(page) == []
    assert stage.row(job)["state"] == S.UNKNOWN
    assert len(page.ids()) == 1


def test_a_post_that_arrives_late_is_found_late(stage: Stage, page: Channel) -> None:
    page.behave(Behaviour.ACCEPT_LATE, seconds=1.0)
    job = page.post("Slow boat")
    row = stage.await_state(job, S.PUBLISHED)
    assert page.ids() == [row["remote_id"]]
    assert any(look["evidence"]["kind"] == "Inconclusive" for look in stage.looks(job))


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour.LISTING_GAP,
        Behaviour.LISTING_DELAYED,
        Behaviour.GARBAGE_ANSWER,
        Behaviour.HALF_ANSWER,
        Behaviour.FAIL_500,
    ],
)
def test_a_listing_that_lies_or_breaks_proves_nothing(
    stage: Stage, page: Channel, behaviour: Behaviour
) -> None:
    page.behave(Behaviour.LOSE_ANSWER)
    page.behave(behaviour, endpoint="list", times=6, seconds=60.0)
    job = page.post("Read me")
    row = stage.await_state(job, S.PUBLISHED)
    seen = [look["evidence"]["kind"] for look in stage.looks(job)]
    assert seen == ["Inconclusive"] * (len(seen) - 1) + ["Found"]
    assert len(seen) > 1
    assert page.ids() == [row["remote_id"]]


def _for_ever(asked: Asked) -> Said:
    """A page that takes posts without a word, and whose listing has no end."""
    if asked.method == "POST":
        return Said(b"", 200, missing=9)
    number = int(asked.query.get("after", "0")) + 1
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
    post = {"id": f"1_{number}", "message": "something else altogether", "created_time": at}
    paging = {"cursors": {"after": str(number)}, "next": "https://example.org/more"}
    return Said({"data": [post], "paging": paging})


def _in_a_circle(asked: Asked) -> Said:
    said = _for_ever(asked)
    if asked.method == "POST":
        return said
    assert isinstance(said.body, dict)
    return Said(said.body | {"paging": {"cursors": {"after": "1"}, "next": "https://e.org"}})


def _no_posts_at_all(asked: Asked) -> Said:
    return _for_ever(asked) if asked.method == "POST" else Said({"data": [1, None, "x"]})


@pytest.mark.parametrize("script", [_for_ever, _in_a_circle, _no_posts_at_all])
def test_a_page_that_never_ends_or_makes_no_sense_is_bounded(stage: Stage, script: object) -> None:
    with Liar(script) as liar:  # type: ignore[arg-type]
        page = stage.channel(url=liar.url)
        job = page.post("Hello")
        await_that(lambda: len(stage.looks(job)) >= 2)
        asked = [one for one in liar.asked if one.method == "GET"]
    kept = stage.looks(job)
    assert {look["evidence"]["kind"] for look in kept} == {"Inconclusive"}
    assert not any(look["evidence"]["clean"] for look in kept)
    assert len(asked) <= 10 * (len(kept) + 2)
    assert stage.row(job)["state"] == S.UNKNOWN
    assert len([one for one in liar.asked if one.method == "POST"]) == 1
    stage.ground.sql(
        "UPDATE doubts SET next_look_at = now() + interval '1 day' WHERE job_id = %s", job
    )


# Bluesky


@pytest.mark.parametrize(
    ("behaviour", "decided"),
    [
        (Behaviour.LOSE_ANSWER, ["live"]),
        (Behaviour.ACCEPT_AND_HANG, ["live"]),
        (Behaviour.DROP, ["repeat"]),
        (Behaviour.HANG, ["repeat"]),
    ],
)
def test_bluesky_settles_by_itself_with_one_record(
    stage: Stage, behaviour: Behaviour, decided: list[str]
) -> None:
    account = stage.channel("bluesky")
    account.behave(behaviour)
    job = account.post("Skeet")
    row = stage.await_state(job, S.PUBLISHED)
    assert account.texts() == ["Skeet"]
    assert [row["remote_id"]] == account.ids() == bound(account)
    assert [verdict["decision"] for verdict in stage.verdicts(job)] == decided


def test_bluesky_repeated_and_lost_again_is_one_record(stage: Stage) -> None:
    account = stage.channel("bluesky")
    account.behave(Behaviour.DROP, times=2)
    account.behave(Behaviour.LOSE_ANSWER, after=2)
    job = account.post("Third time lucky")
    stage.await_state(job, S.PUBLISHED)
    assert account.texts() == ["Third time lucky"]
    assert len(stage.was_ever(job)) == 3


# Mastodon


def test_mastodon_is_found(stage: Stage) -> None:
    account = stage.channel("mastodon")
    account.behave(Behaviour.LOSE_ANSWER)
    job = account.post("Toot")
    row = stage.await_state(job, S.PUBLISHED)
    assert account.ids() == [row["remote_id"]]
    assert [verdict["decision"] for verdict in stage.verdicts(job)] == ["live"]


def test_mastodon_is_repeated_only_when_nothing_can_arrive_and_nothing_is_there(
    stage: Stage,
) -> None:
    account = stage.channel("mastodon")
    account.behave(Behaviour.DROP)
    job = account.post("Toot again")
    row = stage.await_state(job, S.PUBLISHED)
    assert account.texts() == ["Toot again"]
    assert account.ids() == [row["remote_id"]]
    (verdict,) = stage.verdicts(job)
    assert verdict["decision"] == "repeat"
    first = stage.ground.attempt(job)
    over = first["settled_at"] + timedelta(seconds=HORIZON)
    last = [look for look in stage.looks(job) if look["ended_at"] <= verdict["at"]][-1]
    assert last["begun_at"] >= over - timedelta(milliseconds=50)
    assert last["evidence"]["kind"] == "Absent"
    assert first["proof"] == "repeat_safe"
    # Nobody dared before, though every look was clean.
    early = [look for look in stage.looks(job) if look["begun_at"] < over]
    assert early
    assert all(look["evidence"].get("clean", True) for look in early)


def test_mastodon_repeated_and_lost_again_shows_the_first_and_is_found(stage: Stage) -> None:
    """The key is honoured: what the repeat made is the first one's status, with its time."""
    account = stage.channel("mastodon")
    account.behave(Behaviour.ACCEPT_AND_HANG)
    account.behave(Behaviour.LISTING_GAP, endpoint="list", times=8)
    account.behave(Behaviour.LOSE_ANSWER, after=1)
    job = account.post("Echo")
    row = stage.await_state(job, S.PUBLISHED, within=30)
    assert account.ids() == [row["remote_id"]]
    assert stage.was_ever(job) == ["unknown", "published"]
