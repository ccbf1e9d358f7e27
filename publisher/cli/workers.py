"""``publisher workers``: see worker runs; state that the machine of one is gone."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated

import typer

from publisher.cli import moments, screen, session
from publisher.cli.screen import Column
from publisher.editorial import workers
from publisher.editorial.unknowns import Signed
from publisher.engine.queries import WorkerRun
from publisher.engine.sender import DECLARED_MARGIN
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)


@app.command(name="list", help=_("List worker runs that are not over, or that left doubts."))
def list_workers(
    *,
    every: Annotated[bool, typer.Option("--all", help=_("Those that are over, too."))] = False,
    json: Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))] = False,
) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction() as conn:
        runs = workers.listing(conn, every=every)
    if json:
        screen.emit(map(_as_json, runs))
        return
    if not runs:
        screen.say(_("No worker runs."))
        screen.say_next("publisher worker")
        return
    silent = [at for at in runs if _is_silent(at)]
    screen.say(
        " · ".join(
            [
                many("{n} works", "{n} work", sum(_works(at) for at in runs)),
                many("{n} is silent", "{n} are silent", len(silent)),
            ]
        )
    )
    screen.show_table(
        [
            Column(_("RUN"), whole=True, right=True),
            Column(_("HOST"), whole=True),
            Column(_("PID"), right=True),
            Column(_("STARTED")),
            Column(_("SEEN")),
            Column(_("HOLDS"), right=True),
            Column(_("DOUBTS"), right=True),
            Column(_("STATE")),
        ],
        map(_cells, runs),
    )
    locking = next((at for at in silent if at.doubts and at.row.declared_gone_at is None), None)
    if locking is not None:
        screen.say(
            many(
                "Run {run} keeps {n} doubt locked: stop it, or state its machine gone.",
                "Run {run} keeps {n} doubts locked: stop it, or state its machine gone.",
                locking.doubts,
                run=locking.row.id,
            )
        )
        host = locking.row.host
        screen.say_next(
            f"publisher workers declare-gone {locking.row.id} --confirm {host} --reason …"
        )
    else:
        screen.say_next("publisher unknowns list", "publisher jobs list")


@app.command(
    name="declare-gone",
    help=_(
        "State that the machine of a worker run is switched off or lost for good. Its doubts may"
        " be decided {margin} and the horizon later. If it comes back and sends, there are two."
    ).format(margin=moments.duration(DECLARED_MARGIN.total_seconds())),
)
def declare_gone(
    run: Annotated[int, typer.Argument(help=_("Number of the worker run."), show_default=False)],
    *,
    reason: Annotated[str, typer.Option(help=_("Why; kept in the journal."), show_default=False)],
    confirm: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help=_("The machine's name; else it is asked for."),
            show_default=False,
        ),
    ] = "",
    by: Annotated[
        str, typer.Option(metavar="NAME", help=_("Who states it."), show_default=False)
    ] = "",
) -> None:
    """Exit 4 for a run that is alive or over, 2 for one that is not confirmed."""
    if not confirm and sys.stdin.isatty():
        confirm = typer.prompt(_("Type the name of its machine"), default="", show_default=False)
    settings = session.settings()
    with session.transaction() as conn:
        gone = workers.declare_gone(
            conn,
            run,
            Signed(by or session.who(), reason),
            confirm=confirm,
            silent_after=timedelta(seconds=settings.rescue_after_seconds),
            horizon=session.horizon(),
        )
        others = [
            at for at in workers.listing(conn)
            if at.row.host == gone.run.row.host and at.row.id != run and _is_silent(at)
        ]  # fmt: skip
    row = gone.run.row
    screen.say(
        _("Worker run {n} on {host} is stated gone since {when}.").format(
            n=run, host=screen.visible(row.host), when=f"{gone.declared_at:%H:%M:%S %Z}"
        ),
        _("What it sent may be decided as not live from {when} on.").format(
            when=moments.short(gone.unlocks_at, row.now)
        ),
    )
    if others:
        listed = ", ".join(str(at.row.id) for at in others)
        screen.say(_("Other silent runs of that machine: {runs}").format(runs=listed))
    screen.say_next("publisher unknowns list", "publisher workers list")


def _works(at: WorkerRun) -> bool:
    return at.row.ended_at is None and not _is_silent(at)


def _is_silent(at: WorkerRun) -> bool:
    row = at.row
    silent_for = (row.now - row.seen_at).total_seconds()
    return row.ended_at is None and silent_for >= session.settings().rescue_after_seconds


def _state(at: WorkerRun) -> str:
    row = at.row
    if row.ended_at is not None:
        return _("over: {why}").format(why=row.end_reason)
    if row.declared_gone_at is not None:
        return _("stated gone at {when}").format(when=f"{row.declared_gone_at:%H:%M %Z}")
    if _is_silent(at):
        return _("silent, not proved gone")
    return _("works")


def _cells(at: WorkerRun) -> list[str]:
    row = at.row
    return [
        str(row.id),
        row.host,
        str(row.pid),
        moments.short(row.started_at, row.now),
        moments.relative(row.seen_at, row.now),
        str(at.holds),
        str(at.doubts),
        _state(at),
    ]


def _as_json(at: WorkerRun) -> dict[str, object]:
    row = at.row
    return {
        "run": row.id,
        "host": row.host,
        "pid": row.pid,
        "started_at": moments.iso(row.started_at),
        "seen_at": moments.iso(row.seen_at),
        "silent": _is_silent(at),
        "ended_at": moments.iso(row.ended_at),
        "end_reason": row.end_reason,
        "declared_gone_at": moments.iso(row.declared_gone_at),
        "holds": at.holds,
        "doubts": at.doubts,
    }
