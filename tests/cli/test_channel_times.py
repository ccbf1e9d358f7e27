"""Posting times and the rules of a channel's times, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal


@pytest.fixture
def page_a(terminal: Terminal) -> str:
    """A page nothing is asked of."""
    words = ["channels", "add", "facebook_pages", "--name", "Page A", "--remote-id", "7"]
    terminal.done(*words, "--token-env", "T", T="token")
    return "Page A"


def test_posting_times_are_added_listed_and_removed(terminal: Terminal, page_a: str) -> None:
    words = ("channels", "posting-times", page_a)
    nothing = terminal.done(*words)
    assert "Page A has no posting times." in nothing
    assert 'Next: publisher channels posting-times 1 add "weekdays 09:00"' in nothing
    added = terminal.done(*words, "add", "weekdays 09:00", "sun 18:30")
    assert "Added 6 posting times." in added
    assert "Page A, UTC: Mon 09:00, Tue 09:00, Wed 09:00, Thu 09:00, Fri 09:00, Sun 18:30" in added
    assert added.count("Free: ") == 3
    assert "09:00 UTC · in " in added or "18:30 UTC · in " in added
    removed = terminal.done(*words, "remove", "weekdays 09:00", TZ="Nowhere/At_All")
    assert "Removed 5 posting times." in removed
    told = json.loads(terminal.done(*words, "--json"))
    assert told["times"] == [{"weekday": 7, "at": "18:30"}]
    assert (told["zone"], len(told["free"])) == ("UTC", 3)
    journal = terminal.done("channels", "show", page_a)
    assert "posting times added by" in journal
    assert "posting times removed by" in journal


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_nothing_to_do_is_not_as_wished(terminal: Terminal, page_a: str, verb: str) -> None:
    words = ("channels", "posting-times", page_a)
    if verb == "add":
        terminal.done(*words, "add", "mon 09:00")
    assert terminal.run(*words, verb, "mon 09:00").returncode == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "monday"), "Write it as mon 09:00"),
        (("add",), "Give times to add or remove"),
        (("list", "mon 09:00"), "Give times to add or remove"),
        (("forget", "mon 09:00"), "forget"),
    ],
)
def test_what_cannot_be_read_changes_nothing(
    terminal: Terminal, page_a: str, words: tuple[str, ...], said: str
) -> None:
    result = terminal.run("channels", "posting-times", page_a, *words)
    assert result.returncode == 2, result
    assert said in result.stderr
    assert "has no posting times" in terminal.done("channels", "posting-times", page_a)


def test_rules_are_set_and_shown(terminal: Terminal, page_a: str) -> None:
    before = terminal.done("channels", "set", page_a)
    assert "after fresh ones, one every 10m" in before
    words = ("--spacing", "30m", "--useful-for", "3h", "--backlog", "miss", "--late-after", "1h")
    assert "asked for, not needed" in before
    after = terminal.done("channels", "set", page_a, *words, "--alt-text")
    assert "needed before approval" in after
    assert "missed (what a standstill made more than 1h late)" in after
    (told,) = terminal.listed("channels", "show", page_a)
    assert told["rules"] == {
        "spacing_seconds": 1800.0,
        "useful_for_seconds": 10_800.0,
        "backlog": "miss",
        "late_after_seconds": 3600.0,
        "release_every_seconds": 600.0,
        "alt_text": True,
    }
    shown = terminal.done("channels", "show", page_a)
    assert "30m" in shown
    assert "rules of its times changed by" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spacing", "soon"), "Write it as 90s, 30m, 2h, 1d or 0."),
        (("--spacing", "2d"), "The spacing is at most 1d."),
        (("--backlog", "drop"), "There are: send, release, miss."),
    ],
)
def test_a_rule_it_cannot_have(
    terminal: Terminal, page_a: str, words: tuple[str, ...], said: str
) -> None:
    result = terminal.run("channels", "set", page_a, *words)
    assert result.returncode == 2, result
    assert said in result.stderr


def test_what_the_page_says(terminal: Terminal) -> None:
    """Each command of docs/times.md is one."""
    page = (Path(__file__).parents[2] / "docs/times.md").read_text()
    helped = terminal.done("channels", "set", "--help")
    for option in ("--spacing", "--useful-for", "--backlog", "--late-after", "--release-every"):
        assert option in page
        assert option in helped


def test_when_the_access_ends_is_said_and_shown(terminal: Terminal, page_a: str) -> None:
    nothing = terminal.done("channels", "list")
    assert "ACCESS ENDS" not in nothing
    token = ("--token-env", "T")
    again = ("channels", "reconnect", page_a, *token, "--access-ends")
    refused = terminal.run(*again, "2036-01-31T09:00", T="token")
    assert refused.returncode == 2
    assert "with its offset" in refused.stderr
    terminal.done(*again, "2036-01-31T09:00+07:00", T="token")
    (listed,) = terminal.listed("channels", "list")
    assert listed["access_ends_at"] == "2036-01-31T02:00:00.000000Z"
    assert "ACCESS ENDS" in terminal.done("channels", "list")
    assert "Access" in terminal.done("channels", "show", page_a)
    terminal.done("channels", "reconnect", page_a, *token, T="newer")
    (listed,) = terminal.listed("channels", "list")
    assert listed["access_ends_at"] is None
