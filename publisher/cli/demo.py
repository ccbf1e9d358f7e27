"""``publisher demo``: what ``make run`` and ``make doubt`` do, on a platform of our own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

import publisher
from publisher.cli import moments, screen, session, waiting
from publisher.cli.children import tell_death
from publisher.cli.exits import Exit
from publisher.cli.jobs import page_of
from publisher.cli.screen import Column
from publisher.cli.stage import Stage, stage
from publisher.cli.waiting import Outcome
from publisher.editorial import posts
from publisher.editorial.imports.importer import import_posts
from publisher.editorial.imports.report import Report
from publisher.editorial.posts import Destination, Draft
from publisher.engine import queries
from publisher.engine.content import Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId, State, public_id
from publisher.engine.queries import JobRow
from publisher.standing import stand
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)

_EXAMPLE: Final = Path("examples") / "approved-posts.csv"
_PATIENCE_SECONDS: Final = 600.0
_LOOK_PATIENCE_SECONDS: Final = 90.0
_POLL_SECONDS: Final = 0.2


class ExampleMissing(PublisherError):
    """The example file is not where it should be."""

    code = "example-missing"


@app.command(help=_("Publish the example posts to the sandbox, then serve it until Ctrl-C."))
def run(
    *,
    once: Annotated[
        bool, typer.Option("--once", help=_("End when all are settled instead of serving."))
    ] = False,
) -> None:
    """Exit 0 when all are live, 3 when some may be, 1 when some are not; 2 for a busy port."""
    began = time.monotonic()
    settings = session.settings()
    with stage(settings) as at:
        report = import_posts(
            at.app.database.engine, at.app.registry, settings, _example(), who=session.who()
        )
        if report.bad:
            for row in report.rows:
                screen.note(*(f"{row.ref}: {fault.message} {fault.fix}" for fault in row.faults))
            raise typer.Exit(report.exit_code)
        at.children.start_worker()
        only = _jobs_of(report)
        outcome = waiting.wait(
            at.app.database,
            settings,
            timeout=_PATIENCE_SECONDS,
            only=only,
            stop=at.children.is_over,
        )
        _show(at, only, outcome, report, time.monotonic() - began)
        code = waiting.verdict(outcome)
        dead = at.children.died()
        if not once and dead is None:
            _tell_addresses(at)
            dead = at.children.wait()
        if dead is not None:
            tell_death(dead)
            code = Exit.NOT_AS_WISHED
    raise typer.Exit(code if once or dead is not None else Exit.DONE)


@app.command(help=_("Lose an answer on purpose, then see how the post is found."))
def doubt() -> None:
    """Exit 0 when the post was found by itself and nothing was sent twice, else 1."""
    settings = session.settings()
    with stage(settings, share=True) as at:
        page = at.pages[0]
        text = f"{_('Whose answer was lost')} {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"
        screen.say(
            _("1. The platform will take the next post and cut the connection before answering.")
        )
        at.control.behave("lose-answer", page=page.remote_id, endpoint="feed", match=text)
        job_id = _schedule(at, text)
        worker = at.children.start_worker()
        waiting.wait(
            at.app.database,
            settings,
            timeout=_PATIENCE_SECONDS,
            only=[job_id],
            stop=at.children.is_over,
        )
        screen.say(_("2. What the product knows:"), "")
        screen.say(*(f"   {line}" for line in page_of(at.app.database, job_id)))
        screen.say(
            "", _("3. The worker is stopped and started again; five seconds pass. Nothing is sent.")
        )
        at.children.stop_one(worker)
        at.children.start_worker()
        time.sleep(5)
        screen.say(_("4. The reconciler starts: it looks at the Page, and never sends."))
        at.children.start_reconciler()
        row = _await_found(at, job_id)
        copies = [post for post in at.control.posts(page.remote_id) if post["message"] == text]
        with at.app.database.engine.begin() as conn:
            digits = queries.id_digits(conn)
        screen.say(
            many(
                "5. On the Page it stands {n} time. The journal says: {state}.",
                "5. On the Page it stands {n} times. The journal says: {state}.",
                len(copies),
                state=stand(row, tries=settings.tries).label,
            )
        )
        found = row.state is State.PUBLISHED and row.remote_id in {post["id"] for post in copies}
        if found:
            screen.say(
                _("   The look found it, as {id}: the same text, made after we sent, and no other")
                .format(id=row.remote_id),
                _("   is like it. Where a look cannot prove that, a person decides."),
            )  # fmt: skip
        else:
            screen.say(_("   It is never sent again by itself; a person looks and decides."))
        name = public_id(job_id)[:digits]
        verb = "jobs" if found else "unknowns"
        screen.say_next(f"publisher {verb} show {name}", "make run")
    raise typer.Exit(Exit.DONE if found and len(copies) == 1 else Exit.NOT_AS_WISHED)


def _await_found(at: Stage, job_id: JobId) -> JobRow:
    """The job once it is settled by a look, or as it stands when patience ends."""
    ends_at = time.monotonic() + _LOOK_PATIENCE_SECONDS
    while True:
        with at.app.database.engine.begin() as conn:
            row = next(queries.job_rows(conn, only=[job_id]))
        over = time.monotonic() >= ends_at or at.children.is_over()
        if row.state is not State.UNKNOWN or row.asked_at is not None or over:
            return row
        time.sleep(_POLL_SECONDS)


def _example() -> Path:
    """The example file: in the folder of the command, or beside the installed package."""
    for folder in (Path.cwd(), Path(publisher.__file__).parent.parent):
        if (folder / _EXAMPLE).is_file():
            return folder / _EXAMPLE
    message = _("There is no {file} here. Run this from the project's folder.")
    raise ExampleMissing(message.format(file=_EXAMPLE))


def _jobs_of(report: Report) -> list[JobId]:
    return [JobId(row.job_id) for row in report.rows if row.job_id is not None]


def _schedule(at: Stage, text: str) -> JobId:
    """One approved post, due now, on the first Page."""
    settings = at.app.settings
    with at.app.database.engine.begin() as conn:
        now = queries.clock(conn)
        place = Destination(at.pages[0].id, now, "UTC")
        draft = Draft(Post(text).to_json(), (place,), ref=f"doubt-{now:%Y%m%d-%H%M%S-%f}")
        versions = [one for one in posts.create(conn, [draft], who=session.who()) if one]
        posts.approve(conn, versions, who=session.who())
        (job,) = posts.schedule(
            conn,
            versions,
            useful_for=timedelta(seconds=settings.useful_for_seconds),
            registry=at.app.registry,
        )
    return job.job_id


def _show(
    at: Stage, only: Sequence[JobId], outcome: Outcome, report: Report, seconds: float
) -> None:
    counts = outcome.counts
    with at.app.database.engine.begin() as conn:
        rows = list(queries.job_rows(conn, only=only))
    screen.say(
        " · ".join(
            [
                many("{n} approved", "{n} approved", len(report.rows)),
                many("{n} live", "{n} live", counts.live),
                many("{n} may be live", "{n} may be live", counts.unknown),
                many("{n} not published", "{n} not published", counts.not_published),
            ]
        )
        + f"                {moments.duration(seconds)}"
    )
    screen.show_table(
        [
            Column(_("KEY"), whole=True),
            Column(_("CHANNEL")),
            Column(_("STATE")),
            Column(_("TRIES"), right=True),
            Column(_("REMOTE ID"), whole=True),
            Column(_("LINK")),
        ],
        (_cells(row, at) for row in rows),
    )
    if report.added == 0:
        screen.say(
            _("Nothing was added and nothing was posted again: every ref was there already.")
        )


def _cells(row: JobRow, at: Stage) -> list[str]:
    link = row.permalink or (f"{at.url}/a/{row.remote_id}" if row.remote_id else "")
    return [
        row.key.rpartition("at:")[0] + "at:…",
        row.channel,
        stand(row, tries=at.app.settings.tries).label.lower(),
        str(row.attempts),
        row.remote_id or "",
        link,
    ]


def _tell_addresses(at: Stage) -> None:
    home = at.app.settings.home.as_posix()
    for label, what, says in (
        (_("See"), f"{at.url}/", _("the Pages; nothing left this machine")),
        (_("Try"), "make doubt", _("in another terminal: lose an answer on purpose")),
        (_("Look"), "publisher jobs list", _("in .venv/bin; then: publisher jobs show ID")),
        (_("Stop"), "Ctrl-C", _("Again: make run (posts nothing twice)")),
        (_("Data"), f"{home}/", ""),
    ):
        screen.say(f"{label:<6} {what:<26} {says}".rstrip())
