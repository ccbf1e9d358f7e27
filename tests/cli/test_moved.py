"""What people do to jobs before they are sent, and what is refused."""

from __future__ import annotations

from publisher.sandbox.process import SandboxProcess
from tests.cli.conftest import Terminal


def state(terminal: Terminal, ref: str) -> str:
    return next(job["state"] for job in terminal.listed("jobs", "list") if job["ref"] == ref)


def test_a_job_is_cancelled_restored_held_released_and_moved(terminal: Terminal, page: str) -> None:
    terminal.import_posts("late,Page A,Later,2030-05-01 09:00+00:00")
    assert "cancelled" in terminal.done("jobs", "cancel", "late", "--reason", "not now")
    assert state(terminal, "late") == "cancelled"
    again = terminal.run("jobs", "cancel", "late")
    assert (again.returncode, again.stdout) == (4, "")
    terminal.done("jobs", "restore", "late")

    terminal.done("jobs", "hold", "late", "--reason", "ask first")
    assert "On hold" in terminal.done("jobs", "list")
    terminal.done("jobs", "release", "late")
    assert terminal.run("jobs", "release", "late").returncode == 4

    terminal.done("jobs", "reschedule", "late", "--at", "2030-05-02 09:00", "--zone", "Asia/Tehran")
    (job,) = terminal.listed("jobs", "list")
    assert job["run_at"] == "2030-05-02T05:30:00.000000Z"
    assert job["key"].endswith("at:2030-05-01T09:00:00.000000Z")  # stable for ever
    unreal = terminal.run("jobs", "reschedule", "late", "--at", "2030-05-02 09:00")
    assert unreal.returncode == 2
    assert "names no zone" in unreal.stderr
    events = terminal.done("jobs", "show", "late")
    for verb in ("cancel", "restore", "hold", "release_hold", "reschedule"):
        assert f"  {verb}  " in events


def test_many_at_once_leave_those_alone_that_cannot_be_moved(terminal: Terminal, page: str) -> None:
    terminal.import_posts(
        "a1,Page A,First,2030-05-01 09:00+00:00", "a2,Page A,Second,2030-05-01 10:00+00:00"
    )
    terminal.done("jobs", "cancel", "a1")
    result = terminal.run("jobs", "cancel", "a1", "a2", "nothing")
    assert result.returncode == 4
    assert "1 cancelled. Left alone: 2." in result.stdout
    assert state(terminal, "a2") == "cancelled"


def test_what_is_held_or_waits_for_a_retry_is_waited_for(
    terminal: Terminal, sandbox: SandboxProcess, page: str
) -> None:
    terminal.import_posts("held,Page A,Held,now", "later,Page A,Later,2030-05-01 09:00+00:00")
    terminal.done("jobs", "hold", "held")
    waited = terminal.run("jobs", "wait", "--timeout", "0.3")
    assert waited.returncode == 1
    assert "1 job is due and not settled (1 scheduled, 1 of them on hold)" in waited.stderr
    # What is not due does not keep anybody waiting.
    assert terminal.run("jobs", "wait", "later", "--timeout", "5").returncode == 0


def test_a_name_that_is_none_or_several_is_refused(terminal: Terminal, page: str) -> None:
    terminal.import_posts(*(f"r{n},Page A,Text {n},2030-05-01 09:00+00:00" for n in range(20)))
    none = terminal.run("jobs", "show", "zzz")
    assert (none.returncode, none.stdout) == (2, "")
    assert "There is no job 'zzz'" in none.stderr
    ids = [job["id"] for job in terminal.listed("jobs", "list")]
    assert len({one[:4] for one in ids}) == 20
    first = max((one[0] for one in ids), key=[one[0] for one in ids].count)
    several = terminal.run("jobs", "show", first)
    assert several.returncode == 2
    assert "more than one job" in several.stderr
    table = terminal.done("jobs", "list", "--limit", "5").splitlines()
    assert [line[:4] for line in table[1:6]] == [one[:4] for one in ids[-5:]]
    assert "The newest 5 of 20" in table[6]
