"""``publisher doctor``: what is wrong with this deployment, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.cli.exits import Exit
from publisher.cli.screen import Column
from publisher.doctor import examination
from publisher.doctor.catalogue import CHECKS
from publisher.doctor.examination import Report, Result
from publisher.doctor.finding import Finding, Severity
from publisher.words import _, many


def doctor(
    *,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask-platforms",
            help=_("Ask each platform, too, whether it takes our access. Only reads."),
        ),
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help=_("List the checks instead of making them."))
    ] = False,
    json: Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))] = False,
) -> None:
    """Exit 0 when all is well or there are only notes, 3 with a warning or an error."""
    if listing:
        _list_checks(json=json)
        return
    report = examination.examine(session.settings(), ask_platforms=ask)
    if json:
        screen.emit(_as_json(report))
    else:
        screen.say(*_lines(report), _summary(report))
    if not report.is_well:
        raise typer.Exit(Exit.NEEDS_A_PERSON)


def _lines(report: Report) -> Iterable[str]:
    yield from map(_line, report.database)
    for group, results in groupby(report.results, key=lambda result: result.check.group):
        found = [finding for result in results for finding in result.findings]
        if found:
            yield f"{_(group)}:"
            yield from map(_line, found)


def _line(finding: Finding) -> str:
    mark = {
        Severity.ERROR: _("error"),
        Severity.WARNING: _("warning"),
        Severity.NOTE: _("note"),
    }[finding.severity]
    said = f"{_sentence(finding.what)} {finding.remedy}"
    return screen.visible(f"  {mark:<8} {said} ({finding.code})")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _summary(report: Report) -> str:
    done = [result for result in report.results if result.done]
    left = len(report.results) - len(done)
    parts = [
        many(one, more, count)
        for one, more, count in (
            ("{n} error", "{n} errors", report.count(Severity.ERROR)),
            ("{n} warning", "{n} warnings", report.count(Severity.WARNING)),
            ("{n} note", "{n} notes", report.count(Severity.NOTE)),
        )
        if count
    ]
    said = ", ".join(parts) if parts else _("all well")
    line = many("{n} check: {said}", "{n} checks: {said}", len(done), said=said)
    if left:
        line += many(
            "; {n} more needs the database and its schema",
            "; {n} more need the database and its schema",
            left,
        )
    return line


def _as_json(report: Report) -> Iterable[dict[str, object]]:
    for finding in report.database:
        yield _finding_as_json(finding, None)
    for result in report.results:
        for finding in result.findings:
            yield _finding_as_json(finding, result)


def _finding_as_json(finding: Finding, result: Result | None) -> dict[str, object]:
    return {
        "severity": finding.severity,
        "code": finding.code,
        "check": None if result is None else result.check.name,
        "group": None if result is None else result.check.group,
        "what": _sentence(finding.what),
        "remedy": finding.remedy,
    }


def _list_checks(*, json: bool) -> None:
    if json:
        screen.emit(
            {
                "check": check.name,
                "group": check.group,
                "question": check.question,
                "codes": check.codes,
            }
            for check in CHECKS
        )
        return
    screen.show_table(
        [Column(_("GROUP")), Column(_("CHECK"), whole=True), Column(_("WHAT IT ASKS"))],
        ([_(check.group), check.name, _(check.question)] for check in CHECKS),
    )
    screen.say_next("publisher doctor")
