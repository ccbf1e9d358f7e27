"""Posts from the terminal: written, approved, scheduled, changed, fixed, put away."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(500)  # a dozen processes each, on a machine that has others


def shown(terminal: Terminal, post: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(terminal.done("posts", "show", post, "--json"))
    return found


def write(terminal: Terminal, text: str = "Hello", ref: str = "spring") -> None:
    said = terminal.done(
        "posts", "new", "--text", text, "--channel", "Page A", "--ref", ref, "--label", "news"
    )
    assert "Saved as version 1." in said
    assert f"Next: publisher posts submit {ref}   |   publisher posts approve {ref}" in said


def test_from_a_draft_to_the_page(terminal: Terminal, page: str) -> None:
    write(terminal)
    refused = terminal.run("posts", "schedule", "spring", "--at", "now")
    assert refused.returncode == 4
    assert "Version 1 of post spring is not approved. Nothing was scheduled." in refused.stderr
    assert "needs-approval" in refused.stderr
    said = terminal.done("posts", "submit", "spring", "--approver", "chief", "--json")
    assert json.loads(said)["status"] == "in_review"
    terminal.done("posts", "request-changes", "spring", "--comment", "Shorter")
    terminal.done("posts", "edit", "spring", "--text", "Hi")
    terminal.done("posts", "approve", "spring", "--version", "2", "--comment", "Good")
    said = terminal.done("posts", "schedule", "spring", "--at", "now")
    assert "Version 2 is scheduled: " in said
    with terminal.working():
        terminal.done("jobs", "wait")
    found = shown(terminal, "spring")
    assert (found["status"], found["labels"], found["text"]) == ("approved", ["news"], "Hi")
    assert [job["state"] for job in found["jobs"]] == ["published"]
    assert found["next"] == {"Page A": "again"}
    assert [line["event"] for line in found["journal"]] == [
        "created", "saved", "labelled", "submitted", "changes_requested", "saved", "approved",
        "scheduled",
    ]  # fmt: skip
    said = terminal.done("posts", "again", "spring", "--channel", "Page A", "--at", "now", "--json")
    assert json.loads(said)["jobs"][1]["repeats"] == found["jobs"][0]["id"]


def test_an_edit_holds_and_the_approval_lets_it_go(terminal: Terminal, page: str) -> None:
    write(terminal)
    terminal.done("posts", "approve", "spring")
    terminal.done("posts", "schedule", "spring", "--at", "2030-12-07 09:00", "--zone", "UTC")
    said = terminal.done("posts", "edit", "spring", "--text", "Better")
    assert "is on hold until the new version is approved" in said
    release = terminal.run("jobs", "release", "spring")
    assert release.returncode == 4
    assert "needs-approval" in release.stderr
    assert "until its post is approved" in terminal.done("jobs", "show", "spring")
    said = terminal.done("posts", "approve", "spring")
    assert "has the new version" in said
    said = terminal.done("posts", "withdraw", "spring", "--reason", "wrong price", "--json")
    (job,) = json.loads(said)["jobs"]
    assert (job["hold"], job["version"]) == ("approval withdrawn", 2)
    refused = terminal.run("posts", "trash", "spring")
    assert refused.returncode == 4
    assert "open-job-exists" in refused.stderr
    terminal.done("jobs", "cancel", "spring")
    assert "is in the trash" in terminal.done("posts", "trash", "spring")
    assert terminal.done("posts", "list").startswith("There are no posts.")
    assert "is back" in terminal.done("posts", "restore", "spring")
    assert "Draft · post spring" in terminal.done("posts", "show", "spring")


def test_the_channel_that_refused_is_fixed(terminal: Terminal, page: str) -> None:
    write(terminal)
    none = terminal.run(
        "posts", "fix", "spring", "--channel", "Page A", "--text", "Mended", "--at", "now"
    )
    assert none.returncode == 4
    assert "not-refused" in none.stderr
    terminal.done("posts", "approve", "spring")
    terminal.done("posts", "schedule", "spring", "--at", "now")
    terminal.done("jobs", "cancel", "spring")
    said = terminal.done(
        "posts", "fix", "spring", "--channel", "Page A", "--text", "Mended", "--at", "now", "--json"
    )
    found = json.loads(said)
    assert found["jobs"][1]["replaces"] == found["jobs"][0]["id"]
    with terminal.working():
        terminal.done("jobs", "wait", found["jobs"][1]["id"])
    assert shown(terminal, "spring")["next"] == {"Page A": "again"}


def test_a_refusal_that_was_a_lie_is_told_before_and_after(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    write(terminal, "Open on Sunndays #sandbox:accept-and-refuse")
    terminal.done("posts", "approve", "spring")
    terminal.done("posts", "schedule", "spring", "--at", "now")
    with terminal.working():
        assert terminal.run("jobs", "wait", "--timeout", "30").returncode == 1
        said = terminal.done(
            *("posts", "fix", "spring", "--channel", "Page A"),
            *("--text", "Open on Sundays", "--at", "now"),
        )
        assert "Page A: what was refused is looked for on the page first" in said
        first, second = shown(terminal, "spring")["jobs"]
        terminal.run("jobs", "wait", second["id"], "--timeout", "30")
    assert len(sandbox.control.posts(page)) == 1
    first, second = shown(terminal, "spring")["jobs"]
    assert (first["state"], second["state"]) == ("published", "scheduled")
    assert second["hold"] == "the post stands there already"
    terminal.done("jobs", "cancel", second["id"])
    assert shown(terminal, "spring")["next"] == {"Page A": "again"}


def test_one_form_for_one_channel_and_two_who_edit_at_once(terminal: Terminal, page: str) -> None:
    write(terminal)
    said = terminal.done(
        "posts",
        "edit",
        "spring",
        "--only",
        "Page A",
        "--text",
        "Own",
        "--if-revision",
        "2",
        "--json",
    )
    found = json.loads(said)
    assert found["revision"] == 3
    assert [*found["variants"].values()] == [{"text": "Own"}]
    second = terminal.run("posts", "edit", "spring", "--text", "Two", "--if-revision", "2")
    assert second.returncode == 4
    assert "edited-meanwhile" in second.stderr
    lines = second.stderr.splitlines()
    stored = next(n for n, line in enumerate(lines) if line.startswith("Stored by "))
    assert lines[stored].endswith(", revision 3:")
    assert lines[stored + 1 : stored + 5] == [
        "  Hello", "  On Page A: Own", "Yours, not saved:", "  Two",
    ]  # fmt: skip
    assert "Next: publisher posts edit spring --if-revision 3 --text …" in second.stderr
    same = terminal.done("posts", "edit", "spring", "--only", "Page A", "--same", "--json")
    assert json.loads(same)["variants"] == {}
    back = terminal.done("posts", "edit", "spring", "--back-to", "2", "--json")
    assert json.loads(back)["versions"][-1]["number"] == 4
    none = terminal.run("posts", "approve", "nothing")
    assert none.returncode == 2
    assert "There is no post with the ref or number nothing" in none.stderr


def test_a_live_post_is_deleted_from_its_page(
    terminal: Terminal, page: str, sandbox: SandboxProcess
) -> None:
    write(terminal)
    terminal.done("posts", "approve", "spring")
    refused = terminal.run("posts", "delete", "spring", "--channel", "Page A")
    assert (refused.returncode, "not-live" in refused.stderr) == (4, True)
    terminal.done("posts", "schedule", "spring", "--at", "now")
    with terminal.working():
        terminal.done("jobs", "wait")
        assert sandbox.control.texts(page) == ["Hello"]
        said = terminal.done(
            "posts", "delete", "spring", "--channel", "Page A", "--reason", "Wrong"
        )
        assert "It will be deleted from Page A: job " in said
        name = said.rpartition(" ")[2].strip()
        assert terminal.done("jobs", "wait", name)
    assert sandbox.control.texts(page) == []
    found = shown(terminal, "spring")
    (job,), (deletion,) = found["jobs"], found["deletions"]
    assert (job["state"], deletion["state"]) == ("published", "published")
    assert job["deleted_at"] == deletion["settled_at"]
    assert found["journal"][-1]["event"] == "deletion_asked"
    told = terminal.done("posts", "show", "spring")
    assert "again only on purpose" in told
    assert "gone from the page" in told
    told = terminal.done("jobs", "show", job["id"])
    assert told.startswith("NOT on the page")
    assert "It was deleted from the page by" in told
    assert "withdraw" in told
    told = terminal.done("jobs", "show", name)
    assert told.startswith("NOT on the page")
    assert "Deletes   " in told
    assert "Hello" in told
    again = terminal.run("posts", "delete", "spring", "--channel", "Page A")
    assert (again.returncode, "already-deleted" in again.stderr) == (4, True)
    assert "invariants held" in terminal.done("audit")


def test_an_edit_writes_over_nobody_who_saved_while_it_waited(
    terminal: Terminal, page: str
) -> None:
    write(terminal)
    with (
        psycopg.connect(terminal.environment["PUBLISHER_DATABASE_URL"]) as conn,
        ThreadPoolExecutor(1) as pool,
    ):
        conn.execute("SET ROLE publisher_owner; SET search_path = publisher")
        conn.execute("SELECT FROM posts WHERE ref = 'spring' FOR UPDATE")
        editing = pool.submit(terminal.run, "posts", "edit", "spring", "--text", "Over it")
        while not conn.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert not editing.done(), editing.result()
        conn.execute(
            "UPDATE post_drafts SET revision = revision + 1, saved_by = 'somebody else',"
            " document = replace(document, 'Hello', 'Half a sen')"
        )
        conn.commit()
        refused = editing.result()
    assert refused.returncode == 4, refused
    assert "somebody else saved this post" in refused.stderr
    assert len(shown(terminal, "spring")["versions"]) == 1
