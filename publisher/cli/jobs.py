"""``publisher jobs``: see what stands where, and move what may still be moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from publisher import bootstrap
from publisher.cli import job_page, moments, obstacle, screen, session, waiting
from publisher.cli.exits import Exit
from publisher.cli.obstacle import Obstacle
from publisher.cli.screen import Column
from publisher.editorial import channels, times
from publisher.engine import ledger, queries
from publisher.engine.adapter import Capabilities
from publisher.engine.content import ContentError
from publisher.engine.errors import NotFound, PublisherError
from publisher.engine.job import JobId, State, public_id, rehearsed
from publisher.engine.ledger import Doubt, Moved
from publisher.engine.queries import JobDetail, JobRow
from publisher.engine.registry import Registry
from publisher.standing import stand
from publisher.words import _, many

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.db.connect import Database

app = typer.Typer(no_args_is_help=True)

_JOB_HELP = _("Id, a unique beginning of it, key, or the post's ref.")
Job = Annotated[str, typer.Argument(metavar="JOB", help=_JOB_HELP, show_default=False)]
Jobs = Annotated[list[str], typer.Argument(metavar="JOB…", help=_JOB_HELP, show_default=False)]
Reason = Annotated[str, typer.Option(help=_("Why; kept in the journal."), show_default=False)]
Zone = Annotated[
    str, typer.Option(help=_("Zone of the time, such as Asia/Ho_Chi_Minh."), show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]


@app.command(name="list", help=_("List jobs, the newest last."))
def list_jobs(
    *,
    state: Annotated[
        list[State] | None, typer.Option(help=_("Only in this state; may be repeated."))
    ] = None,
    channel: Annotated[str, typer.Option(help=_("Only of this channel, by name or id."))] = "",
    queue: Annotated[str, typer.Option(help=_("Only of this queue."))] = "",
    limit: Annotated[int, typer.Option(min=0, help=_("The newest so many; 0: all."))] = 50,
    json: Json = False,
) -> None:
    """Exit 0 whatever is listed; ``--json`` has no limit."""
    with session.transaction() as conn:
        channel_id = channels.find(conn, channel).id if channel else None
        states = tuple(state or ())
        if json:
            found = queries.job_rows(
                conn, states=states, channel_id=channel_id, queue=queue or None
            )
            screen.emit(map(as_json, found))
            return
        rows = list(
            queries.job_rows(
                conn,
                states=states,
                channel_id=channel_id,
                queue=queue or None,
                limit=limit or None,
            )
        )
        total = queries.job_count(conn, states=states, channel_id=channel_id, queue=queue or None)
        digits = queries.id_digits(conn)
    _show(rows, total, digits)


@app.command(help=_("Show one job with its evidence: is it on the page, and why do we say so?"))
def show(
    job: Job, *, json: Annotated[bool, typer.Option("--json", help=_("As JSON."))] = False
) -> None:
    """Exit 0 whatever is shown."""
    with session.transaction() as conn:
        detail = queries.job_detail(conn, queries.find_job(conn, job))
        doubt = _doubt(conn, detail)
        digits = queries.id_digits(conn)
    if json:
        screen.emit([job_page.as_json(detail)])
        return
    screen.say(*_page(detail, doubt, digits))


@app.command(help=_("Wait until no job that is due is scheduled, being prepared or being sent."))
def wait(
    job: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOB…]", help=_("Only these."), show_default=False),
    ] = None,
    *,
    timeout: Annotated[
        float | None, typer.Option(min=0, help=_("Seconds to wait at most."), show_default=False)
    ] = None,
) -> None:
    """Exit as ``waiting.verdict`` says: 0 all live, 3 some may be live, 1 some not, or time out.

    What counts is every job whose due time has come by the database's clock, or those named
    among them; what comes due meanwhile counts too.
    """
    with session.database() as database:
        only = None
        if job:
            with database.engine.begin() as conn:
                only = [queries.find_job(conn, text) for text in job]
        outcome = waiting.wait(database, session.settings(), timeout=timeout, only=only)
        with database.engine.begin() as conn:
            digits = queries.id_digits(conn)
    raise typer.Exit(waiting.tell(outcome, timeout=timeout, digits=digits))


@app.command(help=_("Call jobs off that have not begun to be sent."))
def cancel(job: Jobs, *, reason: Reason = "") -> None:
    """Exit 4 when one cannot be cancelled any more; the others are."""
    _each(
        job,
        lambda conn, job_id: ledger.cancel(conn, job_id, who=session.who(), reason=reason),
        _("cancelled"),
        "publisher jobs restore {id}",
    )


@app.command(help=_("Move a job to another time. Its key stays."))
def reschedule(
    job: Job,
    *,
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME", help=_("Local time with --zone, or with offset."), show_default=False
        ),
    ],
    zone: Zone = "",
) -> None:
    """Exit 2 for a time that is none, 4 when it is too late to move the job."""

    def move(conn: Connection, job_id: JobId) -> Moved:
        to = times.read(at, zone, now=queries.clock(conn), useful_for=_useful_for()).at
        return ledger.reschedule(conn, job_id, at=to, who=session.who())

    _each([job], move, _("moved"), "publisher jobs show {id}")


@app.command(help=_("Try jobs again that ended not published, where that is certain."))
def requeue(
    job: Jobs,
    *,
    useful_until: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help=_("Not to be sent later than this; needed for one that missed its time."),
            show_default=False,
        ),
    ] = "",
    zone: Zone = "",
) -> None:
    """Exit 4 when one may be live, is live, or needs a new useful time."""

    def again(conn: Connection, job_id: JobId) -> Moved:
        until = None
        if useful_until:
            until = times.read(
                useful_until, zone, now=queries.clock(conn), useful_for=timedelta(0)
            ).at
        return ledger.requeue(conn, job_id, who=session.who(), useful_until=until)

    _each(job, again, _("scheduled again"), "publisher jobs wait", held=_("brought back"))


@app.command(help=_("Keep jobs from being sent until they are released."))
def hold(job: Jobs, *, reason: Reason = "") -> None:
    """Exit 4 when the send of one has begun."""
    _each(
        job,
        lambda conn, job_id: ledger.hold(conn, job_id, who=session.who(), reason=reason),
        _("on hold"),
        "publisher jobs release {id}",
        is_to_go=False,
    )


@app.command(help=_("Let held jobs go on."))
def release(job: Jobs) -> None:
    """Exit 4 when one is not on hold."""
    _each(
        job,
        lambda conn, job_id: ledger.release_hold(conn, job_id, who=session.who()),
        _("released"),
        "publisher jobs show {id}",
    )


@app.command(help=_("Bring cancelled jobs back that were never begun."))
def restore(job: Jobs) -> None:
    """Exit 4 when one was begun or is not cancelled."""
    _each(
        job,
        lambda conn, job_id: ledger.restore(conn, job_id, who=session.who()),
        _("scheduled again"),
        "publisher jobs show {id}",
        held=_("brought back"),
    )


def page_of(database: Database, job_id: JobId) -> Iterator[str]:
    """What ``show`` shows of one job, line by line."""
    with database.engine.begin() as conn:
        detail = queries.job_detail(conn, job_id)
        doubt = _doubt(conn, detail)
        digits = queries.id_digits(conn)
    return _page(detail, doubt, digits)


def as_json(row: JobRow) -> dict[str, object]:
    """The fields acceptance scripts rely on, and no others."""
    return {
        "id": public_id(row.id),
        "key": row.key,
        "ref": row.ref,
        "kind": row.kind,
        "channel": row.channel,
        "state": str(row.state),
        "attempts": row.attempts,
        "run_at": moments.iso(row.run_at),
        "remote_id": row.remote_id,
        "permalink": row.permalink,
        "reason": row.reason,
    }


def columns() -> list[Column]:
    """What a table of jobs has."""
    return [
        Column(_("ID"), whole=True),
        Column(_("REF")),
        Column(_("CHANNEL")),
        Column(_("STATE")),
        Column(_("TRIES"), right=True),
        Column(_("DUE")),
        Column(_("LINK OR REASON")),
    ]


def cells(row: JobRow, digits: int) -> list[str]:
    """One job as a row of that table."""
    at = stand(row, tries=session.settings().tries)
    link = row.permalink or row.remote_id
    return [
        public_id(row.id)[:digits],
        row.ref or _rehearsal(row),
        row.channel,
        f"{at.mark} {at.label}",
        str(row.attempts),
        moments.short(row.due_at, row.now),
        link if link is not None else at.why,
    ]


def _rehearsal(row: JobRow) -> str:
    """What stands for the ref of a rehearsal's post, which no editor wrote."""
    named = rehearsed(row.key)
    return "" if named is None else _("[rehearsal {run}]").format(run=named[0])


def _show(rows: Sequence[JobRow], total: int, digits: int) -> None:
    if not rows:
        screen.say(_("There are no jobs."))
        screen.say_next("publisher posts import FILE")
        return
    screen.show_table(columns(), (cells(row, digits) for row in rows))
    if len(rows) < total:
        screen.say(
            _("The newest {shown:,} of {total:,}. All of them: --limit 0").format(
                shown=len(rows), total=total
            )
        )
    doubt = next((row for row in rows if row.state is State.UNKNOWN), None)
    if doubt is not None:
        screen.say_next(f"publisher unknowns show {public_id(doubt.id)[:digits]}")
    else:
        screen.say_next(f"publisher jobs show {public_id(rows[-1].id)[:digits]}")


def _each(
    jobs: Sequence[str],
    act: Callable[[Connection, JobId], Moved],
    done: str,
    then: str,
    *,
    held: str = "",
    is_to_go: bool = True,
) -> None:
    """Do one thing to each job in a transaction of its own; the worst exit code wins.

    A prefix is resolved in the transaction that acts, so that what is moved is what was named.
    ``held``: instead of ``done`` for a job that is on hold then. ``is_to_go``: whether it is worth
    a word that a job is not going to be sent.
    """
    moved: list[Moved] = []
    refused: list[PublisherError] = []
    kept: dict[JobId, Obstacle] = {}
    digits = 0
    with session.database() as database:
        for text in jobs:
            try:
                with database.engine.begin() as conn:
                    digits = digits or queries.id_digits(conn)
                    moved.append(act(conn, queries.find_job(conn, text)))
                    if is_to_go:
                        kept |= obstacle.of_jobs(conn, [moved[-1].job_id])
            except PublisherError as error:
                refused.append(error)
    for line in _told(moved, done, held or done, kept, digits):
        screen.say(line)
    for refusal in refused:
        screen.note(f"{refusal} ({refusal.code})")
    if len(jobs) > 1 and refused:
        screen.say(
            many("{n} {done}.", "{n} {done}.", len(moved), done=done)
            + " "
            + many("Left alone: {n}.", "Left alone: {n}.", len(refused))
        )
    if moved:
        first = moved[0].job_id
        usual = then.format(id=public_id(first)[:digits])
        screen.say_next(kept[first].then if first in kept else usual)
    if any(move.state is State.UNKNOWN for move in moved):
        raise typer.Exit(Exit.NEEDS_A_PERSON)
    if refused:
        raise typer.Exit(max(refusal.exit_code for refusal in refused))


def _told(
    moved: Sequence[Moved], done: str, held: str, kept: dict[JobId, Obstacle], digits: int
) -> Iterator[str]:
    for move in moved:
        name = public_id(move.job_id)[:digits]
        in_the_way = kept.get(move.job_id)
        if move.state is State.UNKNOWN:
            # A repeat that was safe had hidden whether the first try is on the page.
            yield _("{id} may be live: it was sent before. It is not sent again.").format(id=name)
        elif in_the_way is None:
            yield f"{name} {done}"
        else:
            what = held if in_the_way.is_hold else done
            yield screen.visible(f"{name} {what}. {in_the_way.said}")


def _page(detail: JobDetail, doubt: Doubt | None, digits: int) -> Iterator[str]:
    settings = session.settings()
    can = _capabilities(bootstrap.describing_registry(settings), detail)
    return job_page.lines(
        detail, can, doubt, digits=digits, tries=settings.tries, horizon=session.horizon()
    )


def _doubt(conn: Connection, detail: JobDetail) -> Doubt | None:
    """What is known of a job that may be live; None for any other."""
    return next(iter(ledger.doubts(conn, [detail.row.id])), None)


def _capabilities(registry: Registry, detail: JobDetail) -> Capabilities | None:
    """What the platform can do; None for one that this release has no adapter for."""
    try:
        return registry.adapter(detail.row.platform).capabilities(detail.content)
    except (NotFound, ContentError):
        return None


def _useful_for() -> timedelta:
    return timedelta(seconds=session.settings().useful_for_seconds)
