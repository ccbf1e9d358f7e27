"""``publisher posts``: import posts from a file and list them; each other act has its module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from publisher import bootstrap
from publisher.cli import (
    moments,
    post_reviewing,
    post_scheduling,
    post_writing,
    screen,
    session,
)
from publisher.cli.screen import Column
from publisher.editorial import listing
from publisher.editorial.imports.fault import Fault
from publisher.editorial.imports.importer import import_posts
from publisher.editorial.imports.report import Report, RowReport
from publisher.editorial.listing import Listed, Placed
from publisher.engine import queries
from publisher.engine.job import public_id
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)
app.command(help=_("Write a post; its first version."))(post_writing.new)
app.command(help=_("Write the next version of a post."))(post_writing.edit)
app.command(help=_("Show one post: where it stands, where it goes, who did what."))(
    post_writing.show
)
app.command(help=_("Ask for the newest version to be approved."))(post_reviewing.submit)
app.command(help=_("Approve the newest version of posts; those of a file are scheduled."))(
    post_reviewing.approve
)
app.command(name="request-changes", help=_("Give a version back to its author, and say why."))(
    post_reviewing.request_changes
)
app.command(help=_("Take an approval back; what waits by it is held."))(post_reviewing.withdraw)
app.command(help=_("Say something about a post; kept in its journal."))(post_reviewing.comment)
app.command(help=_("Schedule an approved post, one job for each channel."))(
    post_scheduling.schedule
)
app.command(help=_("Change what one channel refused, and schedule it there again."))(
    post_scheduling.fix
)
app.command(help=_("Publish once more, on purpose, where it is live."))(post_scheduling.again)
app.command(help=_("Delete a post from a page where it is live."))(post_scheduling.delete)
app.command(help=_("Put posts into the trash that have nothing under way."), name="trash")(
    post_writing.put_away
)
app.command(help=_("Take posts out of the trash."))(post_writing.restore)

Json = Annotated[bool, typer.Option("--json", help=_("One JSON object per line."))]


@app.command(name="import", help=_("Import a CSV or JSON Lines file of posts, all or nothing."))
def import_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help=_("Such as posts.csv."), show_default=False)
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help=_("Say what would happen; store nothing."))
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help=_("Store the good rows although some are bad."))
    ] = False,
    draft: Annotated[
        bool, typer.Option("--draft", help=_("Not approved: nothing is sent before that."))
    ] = False,
    json: Json = False,
) -> None:
    """Exit 0 when no row is bad, 1 when some are and the others are stored, 2 when nothing is."""
    settings = session.settings()
    with (
        session.database() as database,
        bootstrap.open_app(settings, database) as parts,
        screen.progress() as bar,
    ):
        task = bar.add_task(_("rows"), total=None)
        report = import_posts(
            database.engine,
            parts.registry,
            settings,
            file,
            who=session.who(),
            dry_run=dry_run,
            skip_bad=skip_bad,
            draft=draft,
            on_row=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        screen.emit(map(_row_as_json, report.rows))
    else:
        _tell(report, file, draft=draft)
    raise typer.Exit(report.exit_code)


@app.command(name="list", help=_("List posts, the newest first."))
def list_posts(
    *,
    limit: Annotated[int, typer.Option(min=0, help=_("So many; 0: all."))] = 50,
    json: Json = False,
) -> None:
    """Exit 0 whatever is listed; ``--json`` has no limit."""
    with session.transaction() as conn:
        listed = listing.newest(conn, limit=None if json or not limit else limit)
        digits = queries.id_digits(conn)
    if json:
        screen.emit(map(_post_as_json, listed))
        return
    if not listed:
        screen.say(_("There are no posts."))
        screen.say_next("publisher posts import FILE")
        return
    screen.show_table(
        [
            Column(_("REF")),
            Column(_("TEXT")),
            Column(_("VERSION"), right=True),
            Column(_("APPROVED")),
            Column(_("CHANNELS")),
            Column(_("JOB"), whole=True),
        ],
        (_cells(post, digits) for post in listed),
    )
    draft = next((post for post in listed if post.approved_at is None and post.ref), None)
    if draft is not None:
        screen.say_next(f"publisher posts approve {draft.ref}")
    else:
        screen.say_next("publisher jobs list")


def _tell(report: Report, file: Path, *, draft: bool) -> None:
    """Every bad row with its column and fix, what to know of good ones, and what came of all."""
    for row in report.rows:
        for fault in row.faults:
            where = _("line {n}").format(n=row.line)
            ref = f", {row.ref}" if row.ref else ""
            column = f", {fault.column}" if fault.column else ""
            said = f"{fault.message} {fault.fix}".rstrip()
            screen.say(screen.visible(f"{where}{ref}{column}: {said} ({fault.code})"))
        if not row.faults:
            screen.say(*(_note(row, note) for note in row.notes))
    screen.say(_summary(report, draft=draft))
    if report.bad and not report.skips_bad:
        screen.say(_("Nothing was stored."))
        screen.say_next(
            _("mend {file}, then publisher posts import {file}").format(file=file),
            f"publisher posts import --skip-bad {file}",
        )
    elif report.is_dry_run:
        screen.say_next(f"publisher posts import {file}")
    elif draft:
        screen.say_next("publisher posts list", "publisher posts approve REF…")
    else:
        screen.say_next("publisher worker", "publisher jobs wait")


def _note(row: RowReport, note: Fault) -> str:
    """What is worth knowing of a good row, in one line."""
    place = _("line {n}, {ref}").format(n=row.line, ref=row.ref)
    column = f", {note.column}" if note.column else ""
    said = f"{note.message} {note.fix}".rstrip()
    return screen.visible(_("Note") + f" · {place}{column}: {said} ({note.code})")


def _summary(report: Report, *, draft: bool) -> str:
    added = many("{n} added", "{n} added", report.added)
    if draft:
        added = many("{n} draft added", "{n} drafts added", report.added)
    parts = [
        many("{n} row", "{n} rows", len(report.rows)),
        many("{n} would be added", "{n} would be added", report.would_add)
        if report.is_dry_run
        else added,
        many("{n} there already", "{n} there already", report.unchanged),
        many("{n} bad", "{n} bad", report.bad),
    ]
    if report.skipped:
        parts.append(many("{n} good but not stored", "{n} good but not stored", report.skipped))
    return " · ".join(parts)


def _row_as_json(row: RowReport) -> dict[str, object]:
    return {
        "line": row.line,
        "ref": row.ref,
        "status": row.status,
        "job": None if row.job_id is None else public_id(row.job_id),
        "note": row.note,
        "faults": [*map(_fault_as_json, row.faults)],
        "notes": [*map(_fault_as_json, row.notes)],
    }


def _fault_as_json(fault: Fault) -> dict[str, object]:
    return {
        "column": fault.column,
        "code": fault.code,
        "message": fault.message,
        "fix": fault.fix,
    }


def _cells(post: Listed, digits: int) -> list[str]:
    job_id = post.job_id
    return [
        post.ref or str(post.id),
        screen.excerpt(post.post.text, 40),
        str(post.version),
        post.approved_by if post.approved_by is not None else _("draft"),
        ", ".join(place.channel for place in post.placed),
        "" if job_id is None else public_id(job_id)[:digits],
    ]


def _post_as_json(post: Listed) -> dict[str, object]:
    return {
        "ref": post.ref,
        "version": post.version,
        "text": post.post.text,
        "approved_at": moments.iso(post.approved_at),
        "approved_by": post.approved_by,
        "placed": [_place_as_json(place) for place in post.placed],
    }


def _place_as_json(place: Placed) -> dict[str, object]:
    return {
        "channel": place.channel,
        "publish_at": moments.iso(place.publish_at),
        "zone": place.zone,
        "job": None if place.job_id is None else public_id(place.job_id),
        "state": None if place.state is None else str(place.state),
    }
