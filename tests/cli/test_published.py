"""From a file to the Page and back: import, worker, wait, list, show."""

from __future__ import annotations

import json

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal

CONTRACT = [
    "id", "key", "ref", "kind", "channel", "state", "attempts", "run_at", "remote_id", "permalink",
    "reason",
]  # fmt: skip


def test_what_is_imported_is_on_the_page_once_and_listed(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    said = terminal.import_posts("one,Page A,Xin chào,now", "two,Page A,سلام,now")
    assert "2 rows · 2 added · 0 there already · 0 bad" in said
    with terminal.working():
        waited = terminal.run("jobs", "wait", "--timeout", "30")
    assert waited.returncode == 0, waited
    assert waited.stdout.startswith("2 due · 2 live · 0 may be live · 0 not published")

    jobs = terminal.listed("jobs", "list")
    assert [list(job) for job in jobs] == [CONTRACT, CONTRACT]
    assert [(job["ref"], job["state"], job["attempts"]) for job in jobs] == [
        ("one", "published", 1),
        ("two", "published", 1),
    ]
    on_page = {post["id"]: post["message"] for post in sandbox.control.posts(page)}
    assert on_page == {jobs[0]["remote_id"]: "Xin chào", jobs[1]["remote_id"]: "سلام"}
    assert jobs[0]["key"].startswith("post:")
    assert jobs[0]["channel"] == "Page A"
    assert jobs[0]["run_at"].endswith("Z")
    assert len(jobs[0]["id"]) == 10

    again = terminal.import_posts("one,Page A,Xin chào,now", "two,Page A,سلام,now")
    assert "2 rows · 0 added · 2 there already · 0 bad" in again
    assert terminal.listed("jobs", "list") == jobs


def test_show_answers_first_whether_it_is_on_the_page(terminal: Terminal, page: str) -> None:
    terminal.import_posts("one,Page A,Xin chào,now")
    (job,) = terminal.listed("jobs", "list")
    before = terminal.done("jobs", "show", job["id"][:4]).splitlines()
    assert before[0].startswith("NOT on the page · will be sent")
    with terminal.working():
        terminal.done("jobs", "wait", "--timeout", "30")
    for name in (job["id"], job["id"][:5], job["key"], "one"):
        lines = terminal.done("jobs", "show", name).splitlines()
        assert lines[0].startswith("YES, on the page")
        assert lines[-1].startswith("Next")
    shown = json.loads(terminal.done("jobs", "show", "one", "--json"))
    assert shown["on_page"] == "yes"
    assert shown["attempts"] == 1
    assert [send["outcome"] for send in shown["sends"]] == ["published"]


def test_a_lost_answer_is_a_doubt_with_its_evidence_and_is_never_sent_again(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    terminal.import_posts("lost,Page A,Whose answer is lost #sandbox:lose-answer,now")
    with terminal.working():
        waited = terminal.run("jobs", "wait", "--timeout", "30")
    assert waited.returncode == 3, waited
    assert "1 due · 0 live · 1 may be live · 0 not published" in waited.stdout

    text = terminal.done("jobs", "show", "lost")
    lines = text.splitlines()
    assert lines[0].startswith("MAYBE on the page · nothing is sent by itself; a look")
    assert "connection was cut before an answer came" in lines[1]
    assert "│ Whose answer is lost" in text
    assert "recorded first, then" in text
    assert "no status line came" in text
    assert "none, so nothing is sent again" in text
    assert "sending again is locked until" in text

    for verb in ("cancel", "requeue", "hold", "restore"):
        refused = terminal.run("jobs", verb, "lost")
        assert refused.returncode == 4, refused
        assert "may already be live" in refused.stderr
    for _ in range(3):
        with terminal.working():
            assert terminal.run("jobs", "wait", "--timeout", "10").returncode == 3
    assert len(sandbox.control.posts(page)) == 1


def test_a_refused_post_is_not_published_and_can_be_requeued(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    sandbox.control.behave("refuse-invalid", page=page, endpoint="feed", times=1)
    terminal.import_posts("bad,Page A,Refused once,now")
    with terminal.working():
        waited = terminal.run("jobs", "wait", "--timeout", "30")
        assert waited.returncode == 1, waited
        assert terminal.done("jobs", "show", "bad").startswith("NOT on the page · needs a person")
        assert "requeue" in terminal.done("jobs", "show", "bad").splitlines()[-1]
        terminal.done("jobs", "requeue", "bad")
        assert terminal.run("jobs", "wait", "bad", "--timeout", "30").returncode == 0
    assert [post["message"] for post in sandbox.control.posts(page)] == ["Refused once"]
