"""A report on the terminal: what broke first, then the page against the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.cells import cell_len

from publisher.rehearsal.report import phrases
from publisher.rehearsal.report.phrases import MARKS, paragraph, visible
from publisher.rehearsal.report.report import WORDS, Failure, Outcome, Reached, Report, Told
from publisher.words import _, many

_IN_FULL: Final = 3
"""Failures that are told in full: what broke first explains most of the rest."""
_BEFORE: Final = 8
_AFTER: Final = 8
"""Lines of the journal around a break."""
_LINES: Final = 5
"""Lines of one broken rule: what a traceback ends with."""
_LONGEST: Final = 300
_POSTS: Final = 2
_RULES: Final = 8
"""Posts that are told of, and rules that are named, in one schedule; the page has the rest."""
_NAMED: Final = 30
"""Things never met that are named here; the files name all of them."""
_LABEL: Final = 10
_WIDE: Final = 90
"""Columns of a list, after its label."""


def lines(report: Report, *, files: Sequence[Path] = ()) -> Iterator[str]:
    """Tell it all. ``files``: where it is written, too."""
    yield " · ".join((phrases.title(report), *phrases.about(report)))
    if report.failures:
        yield ""
        yield from failures(report.failures)
    yield from _table(report)
    yield from _checklist(report)
    yield from _ran(report)
    yield from _reached(report)
    yield from _proof(report)
    yield from _left_behind(report)
    yield from _labelled(_("Bound"), phrases.bound(report.bound))
    for note in report.notes:
        yield from _labelled(_("Note"), visible(note))
    yield from _end(report, files)


def failures(broken: Sequence[Failure]) -> Iterator[str]:
    """What broke: on the page, in the journal, which rule, what struck, and how to run it again."""
    for failure in broken[:_IN_FULL]:
        yield from _failure(failure)
        yield ""
    for failure in broken[_IN_FULL:]:
        first = visible(failure.rules[0].splitlines()[0]) if failure.rules else ""
        yield from _labelled(_("BROKEN"), f"{phrases.name(failure)}: {first[:100]}")
        yield f"  {visible(failure.replay)}"
    if broken[_IN_FULL:]:
        yield ""


def _failure(failure: Failure) -> Iterator[str]:
    rules = many("{n} rule", "{n} rules", len(failure.rules))
    yield from _labelled(_("BROKEN"), f"{phrases.name(failure)} · {rules}")
    stories = failure.stories[:_POSTS]
    for told in stories:
        yield from _told(told)
    told_of = {told.rule for told in stories}
    others = [rule for rule in failure.rules if rule not in told_of]
    for rule in others[:_RULES]:
        yield from _rule(rule)
    if more := len(others[_RULES:]):
        yield f"  … {many('{n} more, see the report', '{n} more, see the report', more)}"
    struck = failure.struck or (_("nothing"),)
    for number, what in enumerate(struck):
        yield from _labelled("" if number else _("Struck"), visible(what))
    yield from _labelled(_("Replay"), visible(failure.replay))


def _told(told: Told) -> Iterator[str]:
    yield f"  {phrases.post(told)}"
    yield f"  {phrases.on_the_page(told)}"
    for line in told.page or (_("nothing"),):
        yield f"    {visible(line)}"
    yield f"  {_('In the journal')}"
    around, before, after = _around(told)
    if before:
        yield f"    … {many('{n} line before', '{n} lines before', before)}"
    for line in around or (_("nothing"),):
        yield f"    {visible(line)}"
    if after:
        yield f"    … {many('{n} line after', '{n} lines after', after)}"
    yield from _rule(told.rule)


def _rule(rule: str) -> Iterator[str]:
    said = paragraph(rule)
    cut = [*said[:1], "…", *said[-_LINES:]] if len(said) > _LINES + 2 else said
    for number, line in enumerate(cut):
        shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
        yield f"    {shown}" if number else f"  {MARKS[False]} {shown}"


def _around(told: Told) -> tuple[Sequence[str], int, int]:
    """Lines of the journal around the last post on the page, and how many are left out.

    Both begin with a time of day. With nothing on the page it is the end that tells.
    """
    journal = told.journal
    if len(journal) <= _BEFORE + _AFTER:
        return journal, 0, 0
    at = max((line.split()[0] for line in told.page if line.split()), default="")
    middle = sum(line < at for line in journal) if at else len(journal)
    first = max(0, min(middle - _BEFORE, len(journal) - _BEFORE - _AFTER))
    last = first + _BEFORE + _AFTER
    return journal[first:last], first, len(journal) - last


def _table(report: Report) -> Iterator[str]:
    yield f"{_('Page against journal')}   {' · '.join(phrases.posts(report))}"
    elsewhere = ", ".join(phrases.elsewhere(report)) or _("none")
    yield "  " + _("not on the page: {what}").format(what=elsewhere)
    words = [*WORDS, *(word for word in report.rules if word not in WORDS)]
    rules = "   ".join(f"{phrases.rule(word)} {report.rules.get(word, 0):,}" for word in words)
    beside = "; ".join(filter(None, (phrases.doubts(report), phrases.lied(report))))
    yield f"  {rules}"
    yield f"  {beside}"
    if report.settled:
        said = " · ".join(map(phrases.settled, report.settled))
        few = any(not one.is_enough for one in report.settled)
        mark = MARKS[not few]
        yield f"  {mark} " + _("doubts settled by themselves: {said}").format(said=said)
    if report.unsettled:
        rest = ", ".join(f"{n:,} {visible(why)}" for why, n in report.unsettled.items())
        yield "    " + _("the rest: {rest}").format(rest=rest)


def _checklist(report: Report) -> Iterator[str]:
    if not report.checklist:
        return
    yield _("Before you adopt")
    widest = max(cell_len(_(one.says)) for one in report.checklist)
    for one in report.checklist:
        held, count = phrases.check(one)
        yield f"  {MARKS[held]} {_filled(_(one.says), widest)}   {count}"


def _ran(report: Report) -> Iterator[str]:
    if len(report.ran) > 1:
        said = [
            phrases.seeds(ran) + (_(" ({n} broken)").format(n=ran.broken) if ran.broken else "")
            for ran in report.ran
        ]
        yield from _listed(_("Ran"), said)


def _reached(report: Report) -> Iterator[str]:
    if not report.reached:
        return
    counts = [f"{one.count:,}/{one.of:,} {_(one.what)}" for one in report.reached]
    yield from _listed(_("Reached"), counts)
    missing = report.missing
    if not missing:
        return
    yield "  " + _("never met:")
    for one in report.reached:
        yield from _missing(one)


def _missing(one: Reached) -> Iterator[str]:
    for name in one.missing[:_NAMED]:
        yield f"    {visible(name)}  ({_(one.what)})"
    if more := len(one.missing[_NAMED:]):
        rest = many("{n} more, see the report", "{n} more, see the report", more)
        yield f"    … {rest}  ({_(one.what)})"


def _proof(report: Report) -> Iterator[str]:
    label = _("Can it fail?")
    if report.proof is None:
        yield f"{label}  {phrases.not_proved()}"
        return
    yield f"{label}  {phrases.caught(report.proof)}"
    for name in report.through:
        yield f"  {MARKS[False]} " + _("got through: {name}").format(name=visible(name))


def _left_behind(report: Report) -> Iterator[str]:
    if not report.left_behind:
        return
    yield _("Left behind: could not be taken down. Delete them on the page, by hand.")
    for link in report.left_behind:
        yield f"  {visible(link)}"


def _end(report: Report, files: Sequence[Path]) -> Iterator[str]:
    where = _files(files)
    reasons = phrases.reasons(report)
    if report.outcome is Outcome.KEPT:
        yield from _labelled(phrases.outcome(report), where or phrases.lasted(report.seconds))
        return
    yield from _labelled(phrases.outcome(report), where)
    for reason in reasons:
        yield f"  {reason}"
    if commands := phrases.next_commands(report):
        yield _("Next: {commands}").format(commands="   |   ".join(map(visible, commands)))


def _files(files: Iterable[Path]) -> str:
    folders: dict[Path, list[str]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file.name)
    return "   ".join(f"{folder}/  {'  '.join(names)}" for folder, names in folders.items())


def _listed(label: str, items: Sequence[str]) -> Iterator[str]:
    """A label, and items in as many lines as they need."""
    line = ""
    for item in items:
        longer = f"{line} · {item}" if line else item
        if line and cell_len(longer) > _WIDE:
            yield from _labelled(label, line)
            label, longer = "", item
        line = longer
    yield from _labelled(label, line)


def _labelled(label: str, text: str) -> Iterator[str]:
    yield f"{_filled(label, _LABEL)}{' ' if cell_len(label) >= _LABEL else ''}{text}".rstrip()


def _filled(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))
