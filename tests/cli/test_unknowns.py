"""Doubts at a terminal: real workers, a real reconciler, a sandbox as the platform."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import PUBLISHER, Terminal

pytestmark = pytest.mark.timeout(300)  # dozens of processes, one after the other

TEXT = "The mill is open"
BRISK = {
    "PUBLISHER_LOOK_FIRST_SECONDS": "0.2",
    "PUBLISHER_LOOK_MAX_SECONDS": "0.4",
    "PUBLISHER_LOOK_LIMIT": "3",
    "PUBLISHER_TCP_USER_TIMEOUT_SECONDS": "0.3",
}
"""A horizon of half a second, and looks that end soon."""


@pytest.fixture
def desk(terminal: Terminal) -> Terminal:
    return Terminal(terminal.environment | BRISK, terminal.folder)


@contextmanager
def reconciling(desk: Terminal) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler"],
        env=desk.environment,
        cwd=desk.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert any("reconciler.started" in line for line in process.stderr)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said


def await_that(holds: Callable[[], Any], *, within: float = 40.0) -> Any:  # noqa: ANN401 - what it gave
    ends_at = time.monotonic() + within
    while not (answer := holds()):
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.05)
    return answer


def job(desk: Terminal, ref: str = "mill") -> dict[str, Any]:
    return next(one for one in desk.listed("jobs", "list") if one["ref"] == ref)


def lose(desk: Terminal, sandbox: SandboxProcess, page: str, ref: str = "mill") -> str:
    """A post whose answer was lost; returns its id on the Page."""
    sandbox.control.behave("lose-answer", page=page, endpoint="feed")
    desk.import_posts(f"{ref},Page A,{TEXT},now")
    with desk.working():
        assert desk.run("jobs", "wait", ref, "--timeout", "30").returncode == 3
    return str(sandbox.control.posts(page)[0]["id"])


def listed(desk: Terminal) -> list[str]:
    """The lines of the list; on a slow machine it says beside them that nobody looks."""
    return desk.run("unknowns", "list").stdout.splitlines()


def query(desk: Terminal, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The tests' back door, as the owner of every table."""
    with psycopg.connect(desk.environment["PUBLISHER_DATABASE_URL"], autocommit=True) as conn:
        conn.execute("SET ROLE publisher_owner")
        conn.execute("SET search_path = publisher")
        cursor = conn.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def refused(desk: Terminal, code: int, *words: str) -> str:
    result = desk.run("unknowns", *words)
    assert result.returncode == code, result
    assert result.stdout == "", result
    return result.stderr.strip()


# Found by itself


def test_a_lost_answer_is_shown_as_checking_and_found(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    post = lose(desk, sandbox, page)
    head, columns, row, *_, last = listed(desk)
    assert head.startswith("1 checking · oldest ")
    assert columns.split()[:2] == ["ID", "AGE"]
    assert "facebook_pages Page A" in row
    assert "cut before an answer" in row
    assert "none yet, next is due" in row
    assert row.endswith("machine")
    assert last == f"Next: publisher unknowns show {job(desk)['id'][:4]}"
    assert "? May be live: checking" in desk.done("jobs", "list")
    shown = desk.done("jobs", "show", "mill")
    assert shown.startswith("MAYBE on the page · nothing is sent by itself; a look at the page is")
    assert "Next      publisher unknowns show" in shown
    (told,) = desk.listed("unknowns", "list")
    assert (told["needs_a_person"], told["candidates"], told["can_look"]) == (False, [], True)

    with reconciling(desk):
        assert desk.run("jobs", "wait", "mill", "--timeout", "1").returncode in (0, 3)
        await_that(lambda: job(desk)["state"] == "published")
    assert job(desk)["remote_id"] == post
    assert listed(desk)[0] == "Nothing is in doubt."
    for words in (("show", "mill"), ("look", "mill"), ("take", "mill")):
        assert "is decided already: reconciler recorded at" in refused(desk, 4, *words)


def test_look_waits_for_what_it_finds(desk: Terminal, sandbox: SandboxProcess, page: str) -> None:
    lose(desk, sandbox, page)
    nobody = desk.run("unknowns", "look", "mill", "--wait", "--timeout", "0.3")
    assert nobody.returncode == 1
    assert "No look was made in 0 s. Is a reconciler running?" in nobody.stderr
    sandbox.control.behave("listing-gap", page=page, endpoint="list", times=3)
    with reconciling(desk):
        await_that(lambda: desk.listed("unknowns", "list")[0]["needs_a_person"])
        assert desk.listed("unknowns", "list")[0]["next_look_at"] is None
        assert "‽ May be live: needs a person" in desk.done("jobs", "list")
        found = desk.done("unknowns", "look", "mill", "--wait", "--by", "ops-1")
    assert "✔ Live" in found
    events = desk.done("jobs", "show", "mill")
    assert "look_now  ops-1" in events


def test_a_look_that_proves_nothing_exits_3(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    post = lose(desk, sandbox, page)
    sandbox.control.take_down(post)
    with reconciling(desk):
        result = desk.run("unknowns", "look", "mill", "--wait")
    assert result.returncode == 3, result
    assert "nothing like it is on the page" in result.stdout


# Two that could be it


@pytest.fixture
def two(desk: Terminal, sandbox: SandboxProcess, page: str) -> tuple[str, str]:
    """Our post and one equal to it, both on the Page; a person has been asked."""
    ours = lose(desk, sandbox, page)
    other = sandbox.control.foreign_post(page, TEXT, application=APPLICATION)
    with reconciling(desk):
        await_that(lambda: desk.listed("unknowns", "list")[0]["next_look_at"] is None)
    return ours, other


def test_two_equal_posts_stand_side_by_side_and_are_both_kept(
    desk: Terminal, sandbox: SandboxProcess, page: str, two: tuple[str, str]
) -> None:
    ours, other = two
    head, _, row, *_ = listed(desk)
    assert head.startswith("1 needs a person · oldest ")
    assert "2 candidates" in row
    shown = desk.done("unknowns", "show", "mill")
    head, time_row, text_row, app_row, id_row, link_row = _table(shown)
    assert head == "WE SENT A B"
    assert len(time_row.split()) == 4
    assert text_row.split("  ")[-1].strip() == "same text"
    assert app_row.split()[:2] == ["app", "ours"]
    assert set(id_row.split()[2:]) == {ours, other}
    assert link_row.count("http://") == 2
    assert f"2 posts on the page could be this one ({other}, {ours})" in shown
    assert "Sender    worker run" in shown
    assert "It is live" in shown
    # Which of the two is not for us to suggest.
    assert "--attempt 1 --live LINK_OR_ID" in shown
    whole = json.loads(desk.done("unknowns", "show", "mill", "--json"))
    assert {one["remote_id"] for one in whole["candidates"]} == {ours, other}

    told = desk.done(
        *("unknowns", "resolve", "mill", "--attempt", "1", "--live", ours, "--also", other),
        *("--reason", "I see both", "--by", "ops-1"),
    )
    assert f"is live: {sandbox.url}/a/{ours}" in told
    assert f"There is a second copy: {sandbox.url}/a/{other}. Open it and delete it there" in told
    assert job(desk)["remote_id"] == ours
    page_of = desk.done("jobs", "show", "mill")
    assert "verdict  ops-1" in page_of
    assert other in page_of
    again = refused(desk, 4, "resolve", "mill", "--attest", "--reason", "me too")
    assert "is decided already: ops-1 recorded at" in again
    assert "that it is live (I see both); it is published. Nothing was changed." in again


def test_against_candidates_a_person_forces_it_and_is_told(
    desk: Terminal, sandbox: SandboxProcess, page: str, two: tuple[str, str]
) -> None:
    words = ("resolve", "mill", "--absent", "--send", "now", "--reason", "neither is ours")
    said = refused(desk, 2, *words)
    assert "confirm with the channel's name, Page A. Nothing was changed." in said
    told = desk.done("unknowns", *words, "--confirm", "Page A")
    assert "is sent again now." in told
    assert "Forced, against what the last look showed (2 posts could be it)." in told
    assert "a person took the risk" in desk.done("jobs", "show", "mill")


def _table(shown: str) -> list[str]:
    lines = shown.splitlines()
    at = next(n for n, line in enumerate(lines) if "WE SENT" in line)
    return [" ".join(lines[at].split()), *(line.strip() for line in lines[at + 1 : at + 6])]


# What is refused


def test_every_refusal_of_a_link_says_why(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    post = lose(desk, sandbox, page)
    early = sandbox.control.foreign_post(
        page, TEXT, created_at=datetime.now(UTC) - timedelta(hours=1), application=None
    )
    other_text = sandbox.control.foreign_post(page, "The mill is shut", application=None)
    elsewhere = sandbox.control.foreign_post(sandbox.control.add_pages(2)[1]["id"], TEXT)
    for given, why in (
        ("this one", "is no link to or id of a post on Facebook, such as"),
        (elsewhere, f"it belongs to another Page ({elsewhere.partition('_')[0]})"),
        (f"{page}_1", "no such post is on this Page; it was taken down, or it is somebody"),
        (early, "it was created at "),
        (other_text, "its text differs here: we sent “The mill is open”, it has “The mill is shut"),
    ):
        said = refused(desk, 4, "resolve", "mill", "--live", given, "--reason", "I see it")
        assert said.startswith(f"That link is not this post: {'' if why in said else why}"), given
        assert why in said
        assert said.endswith("Nothing was recorded. (not-this-post)")
    assert job(desk)["state"] == "unknown"

    # A second job whose post looks the same is bound to that one.
    desk.done("unknowns", "resolve", "mill", "--live", post, "--reason", "I see it")
    lose(desk, sandbox, page, "second")
    said = refused(desk, 4, "resolve", "second", "--live", post, "--reason", "I see it")
    assert f"it is already bound to {job(desk)['id']}. Nothing was recorded." in said

    sandbox.control.behave("fail-500", page=page, endpoint="read", times=9)
    said = refused(desk, 3, "resolve", "second", "--live", f"{page}_1", "--reason", "I see it")
    assert said.startswith("That link cannot be checked just now: Facebook answered: ")
    assert said.endswith("Nothing was recorded. (cannot-be-read)")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "Say one of --live LINK_OR_ID, --attest, --absent --send"),
        (("--attest", "--drop"), "Say one of"),
        (("--absent",), "--absent needs --send now"),
        (("--attest", "--send", "now"), "--absent needs --send now"),
        (("--attest", "--also", "1_1"), "--also goes with --live"),
        (("--absent", "--send", "no", "--useful-until", "2030-01-01 09:00Z"), "--useful-until"),
        (("--absent", "--send", "tomorrow"), "is not a time we can read"),
        (("--absent", "--send", "2026-01-01 09:00Z"), "already past"),
        (("--drop", "--attempt", "7"), "was sent again since you looked"),
        (("--drop", "--reason", " "), "needs a reason"),
    ],
)
def test_bad_usage_changes_nothing(
    desk: Terminal, sandbox: SandboxProcess, page: str, words: tuple[str, ...], says: str
) -> None:
    lose(desk, sandbox, page)
    result = desk.run("unknowns", "resolve", "mill", "--reason", "x", *words)
    assert result.returncode == (4 if "--attempt" in words else 2), result
    assert says in " ".join(result.stderr.replace("│", " ").split())
    assert job(desk)["state"] == "unknown"


def test_useful_until_refuses_a_late_send(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    sandbox.control.take_down(lose(desk, sandbox, page))
    query(desk, "UPDATE jobs SET useful_until = clock_timestamp() - interval '1 minute'")
    words = ("resolve", "mill", "--absent", "--confirm", "Page A", "--reason", "not there")
    await_that(
        lambda: json.loads(desk.done("unknowns", "show", "mill", "--json"))["locked"] is None
    )
    said = refused(desk, 4, *words, "--send", "now")
    assert "stops being useful at" in said
    assert said.endswith("(too-late)")
    at = ("--send", "2030-05-01 09:00", "--useful-until", "2030-05-01 12:00")
    told = desk.done("unknowns", *words, *at, "--zone", "Asia/Ho_Chi_Minh")
    assert "is sent again on Wed 1 May 2030" in told
    assert job(desk)["run_at"] == "2030-05-01T02:00:00.000000Z"


def test_the_desk(desk: Terminal, sandbox: SandboxProcess, page: str) -> None:
    lose(desk, sandbox, page)
    assert "is taken by ops-1." in desk.done("unknowns", "take", "mill", "--by", "ops-1")
    assert "ops-1 has taken job" in refused(desk, 4, "take", "mill", "--by", "ops-2")
    told = desk.done("unknowns", "hand-over", "mill", "--to", "ops-2", "--note", "I sleep")
    assert "is handed over to ops-2." in told
    assert listed(desk)[2].endswith("ops-2")
    desk.done("unknowns", "snooze", "mill", "--until", "2030-05-01 09:00Z")
    assert refused(desk, 2, "snooze", "mill", "--until", "2026-01-01 09:00Z")
    (row,) = desk.listed("unknowns", "list")
    assert row["snoozed_until"] == "2030-05-01T09:00:00.000000Z"
    assert "Taken     by ops-2" in desk.done("unknowns", "show", "mill")
    told = desk.done("unknowns", "resolve", "mill", "--attest", "--reason", "seen", "--by", "ops-2")
    assert "is live: ops-2 saw it on the page; there is no link." in told


def test_verdicts_of_several_processes_have_one_effect(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    post = lose(desk, sandbox, page)
    choices = [("--live", post), ("--attest",), ("--drop",), ("--live", post), ("--attest",)]

    def decide(choice: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return desk.run("unknowns", "resolve", "mill", *choice, "--reason", "saw it")

    with ThreadPoolExecutor(len(choices)) as pool:
        ends = list(pool.map(decide, choices))
    codes = sorted(end.returncode for end in ends)
    assert codes == [0, *[4] * (len(choices) - 1)], ends
    assert all("is decided already" in end.stderr for end in ends if end.returncode)
    assert query(desk, "SELECT count(*) FROM verdicts") == [(1,)]


# The sender: stopped, killed, stated gone


@contextmanager
def stopped_while_sending(
    desk: Terminal,
    sandbox: SandboxProcess,
    page: str,
    behaviour: str,
    **how: Any,  # noqa: ANN401 - of ``behave``
) -> Iterator[subprocess.Popen[str]]:
    """A real worker, frozen after it began to send; its job is doubted by another one."""
    sandbox.control.behave(behaviour, page=page, endpoint="feed", **how)
    desk.import_posts(f"mill,Page A,{TEXT},now")
    process = subprocess.Popen(
        [*PUBLISHER, "worker"],
        env=desk.environment,
        cwd=desk.folder,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        await_that(lambda: query(desk, "SELECT id FROM jobs WHERE state = 'sending'"))
        await_that(lambda: sandbox.control.rules()[0]["used"])
        # Another one beats on. After a silence of the whole fleet, and the database was made some
        # time ago, nobody is rescued for a while.
        with desk.working():
            process.send_signal(signal.SIGSTOP)
            query(desk, "UPDATE pulse SET rescue_not_before = clock_timestamp()")
            # Its lease, a publish's, would run for minutes.
            query(desk, "UPDATE jobs SET lease_until = clock_timestamp() - interval '10 minutes'")
            await_that(lambda: query(desk, "SELECT id FROM jobs WHERE state = 'unknown'"))
            yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(timeout=30)


SEND = (
    *("resolve", "mill", "--absent", "--send", "now", "--confirm", "Page A"),
    *("--reason", "the page is empty"),
)


def test_a_stopped_sender_locks_and_a_killed_one_unlocks_after_the_horizon(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    patient = Terminal(
        desk.environment | {"PUBLISHER_TCP_USER_TIMEOUT_SECONDS": "300"}, desk.folder
    )
    with stopped_while_sending(patient, sandbox, page, "hang", seconds=60) as process:
        said = refused(patient, 4, *SEND)
        assert said.startswith("Sending again is locked: worker run ")
        assert (
            " may still send the first one. It unlocks 300 s after that run is proved stopped"
            in said
        )
        assert "`publisher workers declare-gone " in said
        assert said.endswith("(sender-may-be-alive)")
        shown = patient.done("unknowns", "show", "mill")
        assert "It is not live  locked. Sending again is locked: worker run" in shown
        assert "is not proved gone; sending again stays locked" in shown

        process.kill()
        process.wait(timeout=30)
        # Another process takes the lock of its file, which proves that it has ended.
        await_that(lambda: "is locked until" in patient.run("unknowns", *SEND).stderr)
        assert job(patient)["state"] == "unknown"
        assert "; sending again is locked until" in patient.done("unknowns", "show", "mill")
        query(patient, "UPDATE incarnations SET ended_at = ended_at - interval '10 minutes'")
        assert "is sent again now." in patient.done("unknowns", *SEND)
        assert patient.run("jobs", "wait", "mill", "--timeout", "60").returncode == 0
    assert [post["message"] for post in sandbox.control.posts(page)] == [TEXT]
    assert job(patient)["attempts"] == 2


def test_its_machine_stated_gone_unlocks_later_and_a_late_published_stops_the_second_send(
    desk: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    with stopped_while_sending(desk, sandbox, page, "answer-slowly", seconds=20.0) as process:
        query(
            desk,
            "UPDATE incarnations SET seen_at = seen_at - interval '10 minutes' WHERE pid = %s",
            process.pid,
        )
        (run,) = [one for one in desk.listed("workers", "list") if one["silent"]]
        shown = desk.done("workers", "list")
        assert shown.startswith("1 works · 1 is silent")
        assert "silent, not proved gone" in shown
        assert f"Run {run['run']} keeps 1 doubt locked" in shown
        words = ("workers", "declare-gone", str(run["run"]), "--reason", "it burnt down")
        wrong = desk.run(*words, "--confirm", "another")
        assert wrong.returncode == 2
        assert f"confirm with the name of its machine, {run['host']}." in wrong.stderr
        told = desk.done(*words, "--confirm", run["host"], "--by", "op")
        assert "is stated gone since" in told
        assert "may be decided as not live from" in told
        assert "in 15 min" in told
        assert "declare_gone  op" in desk.done("jobs", "show", "mill")
        assert "Sending again is locked until" in refused(desk, 4, *SEND)

        query(
            desk, "UPDATE incarnations SET declared_gone_at = declared_gone_at - interval '1 hour'"
        )
        later = ("resolve", "mill", "--absent", "--send", "2030-05-01 09:00Z")
        desk.done(
            *("unknowns", *later, "--useful-until", "2030-05-01 12:00Z"),
            *("--confirm", "Page A", "--reason", "the page is empty"),
        )
        assert job(desk)["state"] == "scheduled"
        # It was not gone at all: it wakes up, and hears that its post is live.
        sandbox.control.heal()
        process.send_signal(signal.SIGCONT)
        await_that(lambda: job(desk)["state"] == "published")
    assert job(desk)["attempts"] == 1
    assert [post["message"] for post in sandbox.control.posts(page)] == [TEXT]


def test_a_worker_that_works_is_not_gone(desk: Terminal, page: str) -> None:
    with desk.working():
        (run,) = desk.listed("workers", "list")
        words = ("workers", "declare-gone", str(run["run"]), "--confirm", run["host"])
        result = desk.run(*words, "--reason", "x")
        assert (result.returncode, result.stdout) == (4, "")
        assert "ago, so it is not gone. Nothing was recorded. Stop it instead." in result.stderr
        assert desk.run("workers", "declare-gone", "99", "--reason", "x").returncode == 2
    assert "No worker runs." in desk.done("workers", "list")
    assert "over: " in desk.done("workers", "list", "--all")
