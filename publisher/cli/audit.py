"""``publisher audit``: whether the journal keeps its promises, and where it does not."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from publisher.cli import screen, session
from publisher.cli.exits import Exit
from publisher.cli.screen import Column
from publisher.db.roles import Role
from publisher.engine import audit as engine
from publisher.engine import ledger, queries
from publisher.engine.audit import AuditImpossible, Broken, Invariant, Report, Severity
from publisher.engine.job import public_id
from publisher.words import _, many


def audit(
    *,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help=_(
                "The whole history, not only jobs that are not over or ended within {days} days."
                " Reads every row once or twice: seconds for a million jobs."
            ).format(days=engine.DAYS),
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help=_("Only this invariant; may be repeated."), show_default=False
        ),
    ] = None,
    catalogue: Annotated[
        bool, typer.Option("--list", help=_("Say what would be asked, and ask nothing."))
    ] = False,
    patience: Annotated[float, typer.Option(min=0.1, help=_("Seconds for one question."))] = 30.0,
) -> None:
    """Exit 0 when all hold, 3 when something needs a person, 2 when one could not be asked.

    Reads one snapshot of the primary, changes nothing, and takes no lock that anybody waits for.
    """
    wanted = _wanted(only or [])
    if catalogue:
        _list(wanted, json=json)
        return
    with session.database(Role.ENGINE) as database:
        try:
            with database.connect_driver(application_name="publisher audit") as conn:
                report = engine.audit(
                    conn,
                    full=full,
                    only={one.id for one in wanted},
                    alerted=bool(session.settings().alert_channels),
                    patience=patience,
                )
        except ledger.DatabaseTrouble as error:
            said = str(error).partition("\n")[0]
            message = _("The audit could not be made: {said}").format(said=said)
            raise AuditImpossible(message) from error
        if json:
            screen.emit(_as_json(one, report) for one in wanted)
        else:
            with database.engine.begin() as conn:
                digits = queries.id_digits(conn)
            _show(report, digits, full=full)
    if report.broken:
        raise typer.Exit(Exit.NEEDS_A_PERSON)
    if report.unasked:
        raise typer.Exit(Exit.USAGE)


def _wanted(only: list[str]) -> list[Invariant]:
    ids = {text.upper() for text in only}
    known = {one.id for one in engine.CATALOGUE}
    if unknown := sorted(ids - known):
        message = _("There is no invariant {ids}. All of them: publisher audit --list")
        raise typer.BadParameter(message.format(ids=", ".join(unknown)), param_hint="--only")
    return [one for one in engine.CATALOGUE if not ids or one.id in ids]


def _list(wanted: list[Invariant], *, json: bool) -> None:
    if json:
        screen.emit(_told(one) for one in wanted)
        return
    columns = [Column(_("ID"), whole=True), Column(_("SEVERITY"), whole=True), Column(_("HOLDS"))]
    screen.show_table(columns, ([one.id, _name(one.severity), one.title] for one in wanted))
    screen.say_next("publisher audit", "publisher audit --full")


def _show(report: Report, digits: int, *, full: bool) -> None:
    for broken in report.broken:
        screen.say(*_lines(broken, digits, full=full), "")
    for one, why in report.unasked:
        screen.say(_("{id} could not be asked: {why}").format(id=one.id, why=screen.visible(why)))
    held = report.asked - len(report.broken) - len(report.unasked)
    took = f"{report.took:.1f}"
    if report.broken:
        counted = Counter(broken.invariant.severity for broken in report.broken)
        kinds = ", ".join(f"{_name(kind)}: {counted[kind]}" for kind in Severity if counted[kind])
        screen.say(
            many(
                "{n} of {asked} invariants is broken ({kinds}); {held} held; {took} s.",
                "{n} of {asked} invariants are broken ({kinds}); {held} held; {took} s.",
                len(report.broken),
                asked=report.asked,
                kinds=kinds,
                held=held,
                took=took,
            )
        )
    else:
        screen.say(
            many("{n} invariant held in {took} s.", "{n} invariants held in {took} s.", held,
                 took=took)
        )  # fmt: skip
    if report.jobs is not None:
        screen.say(
            many(
                "Looked at {n} job that is not over, or ended within {days} days. All: --full",
                "Looked at {n} jobs that are not over, or ended within {days} days. All: --full",
                report.jobs,
                days=engine.DAYS,
            )
        )
    jobs = (row.job_id for broken in report.broken for row in broken.rows)
    if (first := next((job for job in jobs if job is not None), None)) is not None:
        screen.say_next(f"publisher jobs show {public_id(first)[:digits]}")


def _lines(broken: Broken, digits: int, *, full: bool) -> list[str]:
    one = broken.invariant
    rows = (
        [
            "" if row.job_id is None else public_id(row.job_id)[:digits],
            "" if row.attempt is None else str(row.attempt),
            row.channel or ("" if row.channel_id is None else str(row.channel_id)),
            row.detail,
        ]
        for row in broken.rows
    )
    columns = [
        Column(_("JOB"), whole=True),
        Column(_("TRY"), right=True),
        Column(_("CHANNEL")),
        Column(_("WHAT STANDS THERE")),
    ]
    lines = [
        _("{id} · {severity} · does not hold: {title}").format(
            id=one.id, severity=_name(one.severity), title=one.title
        ),
        f"   {one.meaning}",
        *(f"   {line}" for line in screen.table_lines(columns, rows)),
    ]
    if broken.total > len(broken.rows):
        more = _("   The first {shown} of {total:,}.")
        lines.append(more.format(shown=len(broken.rows), total=broken.total))
    again = f"publisher audit --only {one.id}" + (" --full" if full else "")
    return [*lines, _("   Ask again: {command}").format(command=again)]


def _name(severity: Severity) -> str:
    return {
        Severity.DUPLICATE: _("duplicate"),
        Severity.LOST: _("lost"),
        Severity.SILENT: _("silent"),
        Severity.UNTRUE: _("untrue"),
        Severity.CUSTODY: _("custody"),
    }[severity]


def _told(one: Invariant) -> dict[str, object]:
    return {
        "id": one.id,
        "severity": str(one.severity),
        "title": one.title,
        "meaning": one.meaning,
    }


def _as_json(one: Invariant, report: Report) -> dict[str, object]:
    """One invariant: ``held`` is null where it could not be asked."""
    broken = next((at for at in report.broken if at.invariant is one), None)
    why = next((why for at, why in report.unasked if at is one), None)
    return _told(one) | {
        "held": None if why is not None else broken is None,
        "count": 0 if broken is None else broken.total,
        "seconds": round(report.each[one.id], 3),
        "error": why,
        "rows": [
            {
                "job": None if row.job_id is None else public_id(row.job_id),
                "attempt": row.attempt,
                "channel": row.channel_id,
                "detail": row.detail,
            }
            for row in (() if broken is None else broken.rows)
        ],
    }
