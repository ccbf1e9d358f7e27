"""Every mutant was tried, noticed or argued; and a survivor, where there is one, is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation import book
from tests.mutation.book import Line
from tests.mutation.catalogue import Mutant, mutants
from tests.mutation.lane import Broken, Lane

KILLER = "tests/mutation/test_ledger_of_mutants.py::test_a_survivor_is_told[a]"


@pytest.fixture(scope="module")
def stands() -> book.Report:
    return book.report(mutants(), book.read(), book.argued(), book.backlog())


def test_no_mutant_survives_without_an_argument(stands: book.Report) -> None:
    alive = [f"{each.id}: {each.was}" for each in stands.survivors]
    assert not alive, "a guard that no test misses: write the test, or argue in ARGUED.toml"


def test_every_argument_is_about_a_survivor(stands: book.Report) -> None:
    assert not stands.idle, "these are noticed now, or are gone: take them out of ARGUED.toml"


def test_every_mutant_was_tried_but_for_the_backlog(stands: book.Report) -> None:
    new = [each for each in stands.missing if each not in stands.waiting]
    files = ",".join(sorted({each.path for each in new}))
    minutes = max(round(stands.seconds * len(new) / 60), 1)
    assert not new, (
        f"{len(new)} mutants were never tried as their statements are now. "
        f'It takes about {minutes} minutes: make mutants ARGS="--only {files}"'
    )


def test_the_backlog_holds_nothing_that_was_tried(stands: book.Report) -> None:
    assert book.backlog() == {each.key for each in stands.waiting}, "run make mutants once"


def test_what_noticed_is_still_there() -> None:
    assert book.vanished(book.read().values()) == []


def mutant(name: str, digest: str = "1") -> Mutant:
    return Mutant(name, "a.py", "_A", "guard", "x", "true", digest, ())


def test_a_survivor_is_told() -> None:
    found = [mutant("killed"), mutant("alive"), mutant("argued"), mutant("new", "2")]
    lines = {
        each.key: each
        for each in (
            Line("killed", "1", "killed", KILLER, 2.0),
            Line("alive", "1", "survived", None, 4.0),
            Line("argued", "1", "survived", None, 6.0),
            Line("new", "1", "killed", KILLER, 4.0),
        )
    }
    report = book.report(found, lines, {"argued": "equal", "killed": "idle"})
    assert [each.id for each in report.survivors] == ["alive"]
    assert [each.id for each in report.settled] == ["argued"]
    assert [each.id for each in report.missing] == ["new"]
    assert report.waiting == ()
    assert book.report(found, lines, {}, frozenset({"new 2"})).waiting == report.missing
    assert report.idle == ("killed",)
    assert report.minutes == 1


def test_a_killer_that_is_gone_is_told() -> None:
    there = Line("a", "1", "killed", KILLER, 1.0)
    assert book.vanished([there]) == []
    gone = replace(there, by=f"{KILLER.split('::', maxsplit=1)[0]}::test_of_yesterday[a]")
    assert book.vanished([gone]) == [f"{KILLER.split('::', maxsplit=1)[0]}::test_of_yesterday"]


def test_the_newest_line_counts_and_what_is_gone_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for result in ("survived", "killed"):
        book.add(Line("a", "1", result, None, 1.0), path)
    book.add(Line("gone", "1", "killed", None, 1.0), path)
    book.tidy([mutant("a")], path)
    assert [line.result for line in book.read(path).values()] == ["killed"]
    assert len(path.read_text().splitlines()) == 1


def test_the_backlog_only_becomes_shorter(tmp_path: Path) -> None:
    path = tmp_path / "BACKLOG.txt"
    path.write_text("a 1\nb 1\n")
    book.shorten([mutant("a"), mutant("c")], path)
    assert book.backlog(path) == {"a 1"}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of two guards, of which its test misses one, and a piece that was never right."""
    root = tmp_path_factory.mktemp("planted")
    (root / "guards.py").write_text("def may(age, name):\n    return age > 3 and name != ''\n")
    (root / "test_it.py").write_text(
        "import guards\n\ndef test_age():\n    assert guards.may(4, 'a')\n"
        "    assert not guards.may(3, 'a')\n"
    )
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntimeout = 60\n")
    here = Path(__file__).parent
    (root / "tests/mutation").mkdir(parents=True)
    for name in ("warm.py", "forks.py"):
        (root / "tests/mutation" / name).write_text((here / name).read_text())
    return root


def test_a_planted_survivor_survives_and_its_neighbour_does_not(planted: Path) -> None:
    text = (planted / "guards.py").read_bytes()

    def without(guard: str, instead: str = "True") -> Mutant:
        at = text.index(guard.encode())
        change = (at, at + len(guard), instead.encode())
        return replace(mutant(guard), path="guards.py", changes=(change,))

    tests = [["test_it.py"]]
    with Lane.open(planted, needs_server=False) as lane:
        killed = lane.try_mutant(without("age > 3"), tests)
        assert (killed.result, killed.by) == ("killed", "test_it.py::test_age")
        assert lane.try_mutant(without("name != ''"), tests).result == "survived"
        unreadable = lane.try_mutant(without("age > 3", "SyntaxError("), tests)
        assert unreadable.result == "invalid"
        with pytest.raises(Broken):
            lane.try_mutant(without("age > 3"), [["no_such_test.py"]])
        assert (lane.tree / "guards.py").read_bytes() == text
    assert (planted / "guards.py").read_bytes() == text
