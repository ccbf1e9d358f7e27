"""The log outlives the process, and says what was on the page."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from publisher.sandbox import log
from publisher.sandbox.journal import FILE, Journal
from publisher.sandbox.process import SandboxNotStarted, SandboxProcess

from .conftest import until

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import PageUnderTest


def _feed(url: str, message: str) -> str:
    given = {"access_token": "sandbox-token-101", "message": message}
    response = httpx.post(f"{url}/101/feed", data=given, trust_env=False)
    return str(response.json()["id"])


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    with SandboxProcess.start(tmp_path) as first:
        made = [_feed(first.url, f"Before {number}") for number in range(3)]
        first.control.behave("accept-late", seconds=0.2)
        first.control.revoke("102")
        first.control.take_down(made[0])
        late = {"access_token": "sandbox-token-101", "message": "Late"}
        with httpx.Client(trust_env=False) as client, pytest.raises(httpx.RemoteProtocolError):
            client.post(f"{first.url}/101/feed", data=late)
        first.kill()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"fact":"stored","post":{"id":"101_')  # the kill came in the middle of a line
    assert len(log.read(tmp_path).posts) in (2, 3)
    with SandboxProcess.start(tmp_path) as second:
        until(lambda: len(second.control.posts("101")) == 3)
        new = _feed(second.url, "After")
        posts = second.control.posts("101")
        assert [post["message"] for post in posts] == ["After", "Late", "Before 2", "Before 1"]
        assert len({*made, new, posts[1]["id"]}) == 5
        assert second.control.pages()[1]["revoked_subcode"] == 463
    read = log.read(tmp_path)
    assert [post.message for post in read.ever_posted if post.deleted_at] == ["Before 0"]
    assert read.promised == ()


def test_two_sandboxes_do_not_share_a_log(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append({"fact": "request"})()
    with pytest.raises(SandboxNotStarted, match="Another sandbox writes"):
        SandboxProcess.start(tmp_path)
    journal.close()


def test_facts_of_many_threads_are_all_written_in_their_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)

    def write(thread: int) -> None:
        for number in range(50):
            journal.append({"fact": "x", "thread": thread, "number": number})()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    for writer in range(8):
        numbers = [line["number"] for line in lines if line["thread"] == writer]
        assert numbers == list(range(50))


def test_the_log_counts_copies(page: PageUnderTest) -> None:
    for text in ("Twice", "Once", "Twice"):
        page.feed(text)
    page.control.foreign_post(page.id, "Once")
    page.call("DELETE", page.logged[0].id)
    read = log.read(page.sandbox.log)
    assert {key: n for key, n in read.duplicates().items() if key[0] == page.id} == {
        (page.id, "Twice"): 2
    }
    assert (read.copies("Twice", page.id), read.copies("Once", page.id)) == (2, 1)
    shown = page.control.log()["duplicates"]
    assert {"page": page.id, "message": "Twice", "copies": 2} in shown


def test_the_log_keeps_what_was_asked_and_no_token(page: PageUnderTest) -> None:
    page.feed("Asked", link="https://example.org/", client_mutation_id="m-1")
    request = page.requests[-1]
    assert (request.publishes, request.message, request.link) == (
        True,
        "Asked",
        "https://example.org/",
    )
    assert (request.client_mutation_id, request.answer, request.status) == ("m-1", "sent", 200)
    assert request.posts == (page.logged[0].id,)
    page.listing()
    assert (page.requests[-1].endpoint, page.requests[-1].publishes) == ("list", False)
    assert page.token not in (page.sandbox.log / FILE).read_text()


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert log.read(tmp_path / "none") == log.SandboxLog()


def test_many_requests_at_once_are_each_stored_once(page: PageUnderTest) -> None:
    page.control.delay(100)
    threads = [threading.Thread(target=page.raw, args=(f"Post {number}",)) for number in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page.control.delay(0)
    assert sorted(post.message for post in page.logged) == sorted(
        f"Post {number}" for number in range(300)
    )
