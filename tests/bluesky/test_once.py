"""The promise, on the reference server: one job is one record, whatever is lost on the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from publisher.adapters.bluesky.record import uri_of
from publisher.engine.adapter import LivePost
from publisher.engine.content import Post
from publisher.engine.evidence import Absent, Found, Inconclusive
from publisher.engine.outcome import (
    AlreadyGone,
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Proof,
    Published,
    Unknown,
    Withdrawn,
)
from tests.bluesky.account import RealAccount
from tests.bluesky.proxy import Loss

pytestmark = [pytest.mark.bluesky, pytest.mark.timeout(900)]


def test_published_and_found(account: RealAccount) -> None:
    task, outcome = account.send(account.job(Post("Open from nine")))
    assert isinstance(outcome, Published)
    assert outcome.remote_id == uri_of(account.did, task.platform_key or "")
    (record,) = account.pds.records(account.did)
    assert record["uri"] == outcome.remote_id
    assert record["value"]["text"] == "Open from nine"
    assert record["value"]["createdAt"].startswith("2026-07-08T09:00:00.")
    evidence = account.look(task)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == outcome.remote_id


def test_withdrawn_once_and_gone(account: RealAccount) -> None:
    task, outcome = account.send(account.job(Post("Goes again")))
    assert isinstance(outcome, Published)
    live = LivePost(outcome.remote_id, task.content)
    assert account.adapter.withdraw(account.channel, live) == Withdrawn()
    assert account.texts() == []
    commit = account.pds.commit(account.did)
    assert account.adapter.withdraw(account.channel, live) == AlreadyGone()
    assert account.pds.commit(account.did) == commit
    assert not isinstance(account.look(task), Found)
    elsewhere = LivePost(uri_of("did:plc:somebodyelse", "3kabc"), task.content)
    refused = account.adapter.withdraw(account.channel, elsewhere)
    assert isinstance(refused, CannotWithdraw)
    assert refused.reason is NotWithdrawn.REFUSED


def test_the_same_job_replayed_three_times_is_one_record(account: RealAccount) -> None:
    task, first = account.send(account.job(Post("Once")))
    commit = account.pds.commit(account.did)
    for _ in range(3):
        task, again = account.send(task)
        assert isinstance(first, Published)
        assert isinstance(again, Published)
        assert again.remote_id == first.remote_id
    assert account.texts() == ["Once"]
    assert account.pds.commit(account.did) == commit  # not even a change that changes nothing


def test_a_process_that_lost_all_progress_makes_the_same_record(account: RealAccount) -> None:
    job = account.job(Post("Rebuilt #now, see https://example.org/a?b=c"))
    account.send(job)
    commit = account.pds.commit(account.did)
    _, again = account.send(job, account.another_process())
    assert isinstance(again, Published)
    assert account.pds.commit(account.did) == commit


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.HALF_ANSWER])
def test_lost_answer_is_unknown_then_found_and_a_repeat_is_safe(
    account: RealAccount, loss: Loss
) -> None:
    task, ready = account.prepare(account.job(Post(f"Lost: {loss}")))
    account.proxy.lose(loss)
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Unknown)
    assert account.texts() == [f"Lost: {loss}"]
    assert isinstance(account.look(task), Found)
    _, again = account.send(replace(task, attempts=1))
    assert isinstance(again, Published)
    assert account.texts() == [f"Lost: {loss}"]


def test_lost_question_is_unknown_then_absent_and_a_repeat_publishes(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("Never arrived")))
    account.proxy.lose(Loss.QUESTION)
    assert isinstance(account.publish(task, ready), Unknown)
    early = account.look(task, gone=False)
    assert isinstance(early, Inconclusive)
    assert early.clean
    assert isinstance(account.look(task), Absent)
    _, again = account.send(replace(task, attempts=1))
    assert isinstance(again, Published)
    assert account.texts() == ["Never arrived"]


def test_four_at_once_are_one_record(account: RealAccount) -> None:
    """The key holds while the first request is still under way: ``repeat_is_atomic``."""
    task, ready = account.prepare(account.job(Post("All together")))
    with ThreadPoolExecutor(4) as pool:
        outcomes = [*pool.map(lambda _: account.publish(task, ready), range(4))]
    # A repository that two write at once may refuse one of them with 500: a doubt, and no twin.
    assert {type(outcome) for outcome in outcomes} <= {Published, Unknown}
    assert any(isinstance(outcome, Published) for outcome in outcomes)
    assert account.texts() == ["All together"]


def test_another_record_under_our_key_is_not_touched(account: RealAccount) -> None:
    job = account.job(Post("Ours"))
    theirs = {"$type": "app.bsky.feed.post", "text": "T", "createdAt": "2026-01-01T00:00:00Z"}
    place = {"repo": account.did, "collection": theirs["$type"], "rkey": job.platform_key}
    put = "com.atproto.repo.putRecord"
    assert account.pds.post(put, {**place, "record": theirs}, account.login.token).status == 200
    task, outcome = account.send(job)
    assert isinstance(outcome, Unknown)
    assert "There is a record under this post's key already." in outcome.detail
    evidence = account.look(task)
    assert isinstance(evidence, Inconclusive)
    assert not evidence.clean
    assert [candidate.text for candidate in evidence.candidates] == ["T"]
    assert account.texts() == ["T"]


def test_deleted_by_its_owner_is_absent(account: RealAccount) -> None:
    task, outcome = account.send(account.job(Post("Gone again")))
    assert isinstance(outcome, Published)
    rkey = outcome.remote_id.rpartition("/")[2]
    place = {"repo": account.did, "collection": "app.bsky.feed.post", "rkey": rkey}
    for _ in range(2):
        said = account.pds.post("com.atproto.repo.deleteRecord", place, account.login.token)
        assert said.status == 200
    assert account.texts() == []
    assert isinstance(account.look(task), Absent)


def test_no_connection_at_the_last_moment_is_proved_unsent(account: RealAccount) -> None:
    task, ready = account.prepare(account.job(Post("Nobody listens")))
    account.proxy.stop()
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT
    assert account.texts() == []
