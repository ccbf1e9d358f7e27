"""What a report says on a terminal, and what it ends with."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from publisher.rehearsal.conduct import Progress
from publisher.rehearsal.report import terminal, ticker
from publisher.rehearsal.report.report import Failure, Report, Settled, Told
from publisher.rehearsal.report.ticker import Ticker
from tests.rehearsal import samples

FILES = [Path("rehearsals/41") / name for name in ("index.html", "junit.xml", "report.json")]


def said(report: Report) -> list[str]:
    return [*terminal.lines(report, files=FILES)]


@pytest.mark.parametrize(
    ("report", "word", "code"),
    [
        (samples.kept(), "PASSED", 0),
        (samples.broken(), "FAILED", 1),
        (samples.left_behind(), "FAILED", 1),
        (samples.too_little(), "PROVES TOO LITTLE", 3),
    ],
    ids=["kept", "broken", "left behind", "too little"],
)
def test_the_word_at_the_end_and_the_exit_code_agree(report: Report, word: str, code: int) -> None:
    assert report.exit_code == code
    ends = [line for line in said(report) if line.startswith(("PASSED", "FAILED", "PROVES"))]
    assert len(ends) == 1
    assert ends[0].startswith(word)
    assert ends[0].endswith("rehearsals/41/  index.html  junit.xml  report.json")


def test_a_run_that_kept_everything_says_what_that_is_worth() -> None:
    text = "\n".join(said(samples.kept()))
    assert "3,214 approved · 2,961 on the page · 2,920 live in the journal" in text
    assert "duplicates 0   lost 0   unreported 0   false success 0" in text
    assert "below 1 in 6,071 (95 %)" in text
    assert "22 of 22 broken variants caught" in text
    assert "Next:" not in text


def test_what_broke_is_said_before_anything_else() -> None:
    lines = said(samples.broken())
    page = lines.index("    14:02:01.800000  http://127.0.0.1:8801/101_502  taken down since")
    journal = next(n for n, line in enumerate(lines) if "rescued" in line)
    rule = next(n for n, line in enumerate(lines) if "✘ duplicate: c217-3" in line)
    replay = lines.index("Replay    publisher rehearse replay 217")
    table = next(n for n, line in enumerate(lines) if line.startswith("Page against journal"))
    assert page < journal < rule < replay < table
    assert sum("duplicate: c217-3" in line for line in lines) == 1
    assert lines[-1] == "Next: publisher rehearse replay 217"


def test_control_characters_of_a_post_do_nothing_to_a_terminal() -> None:
    text = "\n".join(said(samples.broken()))
    assert not {"\x00", "\x07", "\x1b", "\u202e"} & set(text)
    assert "zero ␀ bell ␇ escape ␛[31m" in text


def test_a_variant_that_got_through_is_named_and_fails_the_run() -> None:
    report = samples.kept()
    report.proof = {"fence by number": None}
    assert report.exit_code == 1
    assert "  ✘ got through: fence by number" in said(report)
    assert "  a broken variant got through: fence by number" in said(report)


def test_what_was_never_met_is_named_and_so_is_what_had_no_case() -> None:
    lines = said(samples.too_little())
    assert "    unknown → dropped  (changes of state)" in lines
    assert any(line.startswith("  – one job, two workers") and "no case" in line for line in lines)
    assert "  server stopped midway: 44 of 46" in lines
    assert lines[-1] == "Next: publisher rehearse random --more 50"


def test_what_is_left_on_a_real_page_is_listed() -> None:
    lines = said(samples.left_behind())
    assert "  https://www.facebook.com/101/posts/501" in lines
    assert "  3 posts are still on a real page" in lines
    assert lines[-1] == "Next: publisher rehearse clean"


def test_of_a_long_journal_the_lines_around_the_last_post_are_shown() -> None:
    journal = tuple(f"14:{minute:02}:00.000000  looked" for minute in range(60))
    page = ("14:05:30.000000  https://page.example/1", "14:30:30.000000  https://page.example/2")
    told = Told("c1-1", "duplicate: c1-1", page, journal)
    lines = [*terminal.failures([Failure("random", 1, ("duplicate: c1-1",), (), (told,), "again")])]
    shown = [line.strip() for line in lines if line.endswith("looked")]
    assert shown == list(journal[23:39])
    assert "    … 23 lines before" in lines
    assert "    … 21 lines after" in lines


def test_many_failures_are_named_all_and_told_in_part() -> None:
    many = [Failure("random", n, (f"lost: c{n}-1",), (), (), f"replay {n}") for n in range(1, 10)]
    lines = [*terminal.failures(many)]
    assert [line for line in lines if line.startswith("Replay")] == [
        f"Replay    replay {n}" for n in (1, 2, 3)
    ]
    assert all(f"  replay {n}" in lines for n in range(4, 10))


# The line that moves


def some(done: int, of: int = 400, last: str = "publish: all of it × kill") -> Progress:
    return Progress(done, of, time.monotonic() - done, "random", last)


@pytest.mark.parametrize("width", [8, 20, 30, 40, 60, 80, 200])
def test_the_moving_line_never_wraps(width: int) -> None:
    for last in ("", "鉄" * 60, "publish: all of it × kill"):
        for done in (0, 1, 324, 400):
            shown = ticker.line(some(done, last=last), width)
            assert ticker.cell_len(shown) <= width
            assert f"{done}/400" in shown


def test_the_moving_line_says_how_far_it_is_what_struck_and_how_long() -> None:
    shown = ticker.line(some(324), 100)
    assert shown.startswith(
        "  ████████████████░░░░ 324/400   publish: all of it × kill   about 1:1"
    )


class Screen(io.StringIO):
    """A terminal that keeps what was written to it."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_that_stays_does_not_run_into_the_moving_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    with Ticker(screen) as shown:
        shown.watch(some(1, 2))
        shown.say("seed 217 broke a rule\nwith a trace")
        shown.watch(some(2, 2))
    for piece in screen.getvalue().split("\r\x1b[K"):
        *stay, moving = piece.split("\n")
        assert not any("█" in line for line in stay)
        assert "seed" not in moving
    assert "seed 217 broke a rule\nwith a trace\n" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_elsewhere_a_plain_line_comes_after_each_tenth_and_never_twice() -> None:
    stream = io.StringIO()
    shown = Ticker(stream)
    for done in range(401):
        shown.watch(some(done))
    for done in range(401, 441):  # what was missed is tried again
        shown.watch(some(done, 440))
    lines = stream.getvalue().splitlines()
    assert "\r" not in stream.getvalue()
    assert [line.split()[0] for line in lines] == [f"{n}/400" for n in range(40, 401, 40)]


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    Ticker(screen).watch(some(200))
    assert "\x1b" not in screen.getvalue()
    assert screen.getvalue().endswith("\n")


def test_too_few_settled_doubts_fail_the_run_and_name_their_platform_alone() -> None:
    report = samples.kept()
    few = Settled("bluesky", 43, 44, is_enough=False)
    report.settled = [Settled("all", 3, 44, is_enough=False), few]
    assert report.exit_code == 1
    reasons = [line for line in said(report) if "too few" in line]
    assert reasons == ["  too few doubts settled by themselves: bluesky 43 of 44 (97.7 %)"]


def test_a_schedule_in_which_everything_broke_does_not_hide_the_rest() -> None:
    rules = (*(f"lost: c1-{n}" for n in range(60)), f"w1 broke: x\n{'y' * 999}\nlast")
    stories = tuple(Told(f"c1-{n}", f"lost: c1-{n}", (), ()) for n in range(5))
    failure = Failure("random", 1, rules[::-1], ("begin (after) kill",), stories, "again")
    lines = [*terminal.failures([failure])]
    assert len(lines) < 40
    assert max(map(len, lines)) < 320
    assert "  … 51 more, see the report" in lines
    assert "    last" in lines
    assert "BROKEN    seed 1 of random · 61 rules" in lines
    assert "Replay    again" in lines
