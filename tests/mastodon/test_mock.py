"""The Mastodon adapter on a server that others wrote: post, replay, lost answers, look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher.adapters.mastodon.servers import Server, ServerKind
from publisher.engine.adapter import LivePost
from publisher.engine.content import Post
from publisher.engine.evidence import Found, Inconclusive
from publisher.engine.outcome import (
    AlreadyGone,
    Deferred,
    Proof,
    Published,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawn,
)
from tests.adapters.conformance import CORPUS
from tests.adapters.stand import photo_post, text_post
from tests.bluesky.proxy import Loss
from tests.mastodon.account import MockAccount

pytestmark = [pytest.mark.mastodon, pytest.mark.timeout(600)]


def now() -> datetime:
    return datetime.now(UTC)


def test_published_and_found(account: MockAccount) -> None:
    began_at = now()
    task, ready = account.prepare(text_post("Open from nine"))
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Published)
    assert outcome.permalink is not None
    assert account.texts() == ["Open from nine"]
    evidence = account.look(task, began_at)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == outcome.remote_id


def test_withdrawn_once_and_gone(account: MockAccount) -> None:
    began_at = now()
    task, ready = account.prepare(text_post("Goes again"))
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Published)
    live = LivePost(outcome.remote_id, task.content)
    assert account.adapter.withdraw(account.channel, live) == Withdrawn()
    assert account.texts() == []
    assert account.adapter.withdraw(account.channel, live) == AlreadyGone()
    assert not isinstance(account.look(task, began_at), Found)


@pytest.mark.parametrize("name", CORPUS)
def test_text_byte_for_byte_and_found_again(account: MockAccount, name: str) -> None:
    began_at = now()
    task, ready = account.prepare(text_post(CORPUS[name]))
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Published)
    assert [text.encode() for text in account.texts()] == [CORPUS[name].encode()]
    evidence = account.look(task, began_at)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == outcome.remote_id


def test_the_same_job_replayed_three_times_is_one_post(account: MockAccount) -> None:
    task, ready = account.prepare(text_post("Once"))
    outcomes = [account.publish(task, ready, attempts) for attempts in range(4)]
    ids = {outcome.remote_id for outcome in outcomes if isinstance(outcome, Published)}
    assert len(ids) == 1
    assert len(outcomes) == 4
    assert account.texts() == ["Once"]


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.HALF_ANSWER])
def test_lost_answer_is_unknown_then_found(account: MockAccount, loss: Loss) -> None:
    began_at = now()
    task, ready = account.prepare(text_post(f"Lost: {loss}"))
    account.proxy.lose(loss)
    assert isinstance(account.publish(task, ready), Unknown)
    evidence = account.look(task, began_at)
    assert isinstance(evidence, Found)
    again = account.publish(task, ready, 1)
    assert isinstance(again, Published)
    assert again.remote_id == evidence.remote_id
    assert account.texts() == [f"Lost: {loss}"]


def test_lost_question_is_unknown_and_a_clean_look(account: MockAccount) -> None:
    began_at = now()
    task, ready = account.prepare(text_post("Never arrived"))
    account.proxy.lose(Loss.QUESTION)
    assert isinstance(account.publish(task, ready), Unknown)
    evidence = account.look(task, began_at)
    # Its source names no Mastodon, so its listing is not trusted with an absence.
    assert isinstance(evidence, Inconclusive)
    assert evidence.clean
    assert account.texts() == []


def test_pictures_with_their_text_are_found_by_their_ids(account: MockAccount) -> None:
    began_at = now()
    first, ready = account.prepare(photo_post("", "a"))
    one = account.publish(first, ready)
    second, ready = account.prepare(photo_post("", "a", "b", "c"))
    account.proxy.lose(Loss.ANSWER)
    assert isinstance(one, Published)
    assert isinstance(account.publish(second, ready), Unknown)
    found = account.look(first, began_at), account.look(second, began_at)
    assert [type(evidence) for evidence in found] == [Found, Found]
    ids = [evidence.remote_id for evidence in found if isinstance(evidence, Found)]
    assert ids[0] == one.remote_id
    assert ids[1] != one.remote_id


def test_of_equal_posts_the_earlier_one_is_not_ours(account: MockAccount) -> None:
    began_at = now()
    first, ready = account.prepare(text_post("Good morning"))
    one = account.publish(first, ready)
    second, ready = account.prepare(text_post("Good morning"))
    other = account.publish(second, ready)
    assert isinstance(one, Published)
    assert isinstance(other, Published)
    evidence = account.look(second, began_at)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == other.remote_id
    assert isinstance(account.look(first, began_at), Inconclusive)


def test_a_busy_account_is_read_to_its_end(account: MockAccount) -> None:
    began_at = now()
    task, ready = account.prepare(text_post("Far down the page"))
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Published)
    for number in range(90):
        noise, prepared = account.prepare(text_post(f"{number:x}" * 30))
        assert isinstance(account.publish(noise, prepared), Published)
    evidence = account.look(task, began_at)
    assert isinstance(evidence, Found)
    assert evidence.remote_id == outcome.remote_id


def test_link_stands_in_the_text(account: MockAccount) -> None:
    began_at = now()
    task, ready = account.prepare(Post("Read this", link="https://example.org/a?b=c&d=e"))
    assert isinstance(account.publish(task, ready), Published)
    assert account.texts() == ["Read this\n\nhttps://example.org/a?b=c&d=e"]
    assert isinstance(account.look(task, began_at), Found)


@pytest.mark.parametrize(("over", "kind"), [(-1, Published), (0, Published), (1, Rejected)])
def test_limit(account: MockAccount, over: int, kind: type) -> None:
    task, ready = account.prepare(text_post("x" * 400))
    long = text_post("x" * (500 + over))
    assert isinstance(account.publish(replace(task, content=long.to_json()), ready), kind)


def test_refused_token_is_for_a_person(account: MockAccount) -> None:
    task, ready = account.prepare(text_post("Who are you"))
    assert account.adapter.check(account.channel).usable
    account.token, good = "no-such-token", account.token
    assert isinstance(account.publish(task, ready), Unauthorized)
    assert not account.adapter.check(account.channel).usable
    account.token = good
    assert account.texts() == []


def test_no_connection_is_proved_unsent(account: MockAccount) -> None:
    task, ready = account.prepare(text_post("Nobody listens"))
    account.proxy.stop()
    outcome = account.publish(task, ready)
    assert isinstance(outcome, Deferred)
    assert outcome.proof is Proof.NOT_SENT


def test_what_the_server_says_of_itself(account: MockAccount) -> None:
    task, _ = account.prepare(text_post("Which are you"))
    server = Server.kept(task.progress)
    assert server is not None
    assert (server.kind, server.characters, server.media) == (ServerKind.OTHER, 500, 4)
    assert server.version.startswith("4.")
