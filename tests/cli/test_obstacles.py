"""No command says that a job goes out while something keeps it: what, and what to do, is said."""

from __future__ import annotations

import psycopg
import pytest

from tests.cli.conftest import Terminal

pytestmark = pytest.mark.timeout(500)


def sql(terminal: Terminal, statement: str) -> None:
    with psycopg.connect(terminal.environment["PUBLISHER_DATABASE_URL"], autocommit=True) as conn:
        conn.execute("SET ROLE publisher_owner")
        conn.execute(statement.encode())


def test_brought_back_without_an_approval(terminal: Terminal, page: str) -> None:
    terminal.import_posts("late,Page A,Later,2030-05-01 09:00+00:00")
    terminal.done("jobs", "cancel", "late")
    terminal.done("posts", "withdraw", "late", "--reason", "wrong price")
    said = terminal.done("jobs", "restore", "late")
    assert "scheduled again" not in said
    assert " brought back. " in said
    assert "is on hold and not sent: approval withdrawn." in said
    assert "Next: publisher posts approve late" in said
    moved = terminal.done("jobs", "reschedule", "late", "--at", "2030-05-02T09:00:00Z")
    assert " moved. " in moved
    assert "is on hold and not sent: approval withdrawn." in moved
    terminal.done("posts", "approve", "late")
    freed = terminal.done("jobs", "reschedule", "late", "--at", "2030-05-03T09:00:00Z")
    assert "on hold" not in freed
    assert "Next: publisher jobs show " in freed


def test_tried_again_without_an_approval(terminal: Terminal, page: str) -> None:
    terminal.import_posts("lost,Page A,Later,now")
    sql(
        terminal,
        "UPDATE publisher.jobs SET state = 'missed', settled_at = clock_timestamp(),"
        " reason = 'too_late'",
    )
    terminal.done("posts", "withdraw", "lost")
    words = ("jobs", "requeue", "lost", "--useful-until", "2030-05-02T09:00:00Z")
    said = terminal.done(*words)
    assert "scheduled again" not in said
    assert "is on hold and not sent: approval withdrawn." in said
    assert "Next: publisher posts approve lost" in said


def test_on_a_channel_that_takes_nothing(terminal: Terminal, page: str) -> None:
    terminal.done("channels", "pause", "Page A")
    terminal.import_posts("one,Page A,One,2030-05-01 09:00+00:00")
    terminal.done("jobs", "hold", "one")
    said = terminal.done("jobs", "release", "one")
    assert " released. " in said
    assert "is not sent before Page A is resumed." in said
    assert "Next: publisher channels resume 1" in said
    terminal.done("posts", "new", "--text", "Two", "--channel", "Page A", "--ref", "two")
    terminal.done("posts", "approve", "two")
    said = terminal.done("posts", "schedule", "two", "--at", "2030-05-02T09:00:00Z")
    assert "Version 1 is scheduled: " in said
    assert "is not sent before Page A is resumed." in said
    said = terminal.done("channels", "reconnect", "Page A", "--token-env", "T", T="another")
    assert "It is paused, and nothing is sent before it is resumed." in said
    assert "Next: publisher channels resume 1" in said
    sql(
        terminal,
        "UPDATE publisher.gates SET blocked_at = clock_timestamp(),"
        " blocked_reason = 'needs_reconnecting'",
    )
    said = terminal.done("channels", "resume", "Page A")
    assert "is not paused, but nothing is sent before it has a new token." in said
    assert "Next: publisher channels reconnect 1" in said
    said = terminal.done("jobs", "reschedule", "one", "--at", "2030-05-04T09:00:00Z")
    assert "is not sent before Page A has a new token." in said


def test_a_draft_of_a_file_that_is_approved_on_a_paused_channel(
    terminal: Terminal, page: str
) -> None:
    file = terminal.folder / "drafts.csv"
    file.write_text("ref,channel,text,publish_at\nd,Page A,Hi,2030-05-01T09:00:00Z\n")
    terminal.done("posts", "import", "--draft", str(file))
    terminal.done("channels", "pause", "Page A")
    said = terminal.done("posts", "approve", "d")
    assert "Approved 1 post · 1 job scheduled" in said
    assert "is not sent before Page A is resumed." in said
    assert "Next: publisher channels resume 1" in said
