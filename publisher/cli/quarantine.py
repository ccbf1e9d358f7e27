"""``publisher quarantine`` and ``restore-guard``: a database that may lack sends that were made."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Final

import typer

from publisher import bootstrap
from publisher.cli import moments, obstacle, screen, session
from publisher.cli.screen import Column
from publisher.db.roles import Role
from publisher.editorial import quarantine
from publisher.editorial.unknowns import Signed
from publisher.engine.job import public_id
from publisher.engine.queries import QuarantineRow, SuspectRow
from publisher.engine.witness import Cause
from publisher.words import _, many

app = typer.Typer(no_args_is_help=True)

_WHY: Final = {
    Cause.NO_WITNESS: _("there is no witness yet, and the database was used before"),
    Cause.UNREADABLE: _("the witness cannot be read, so nothing speaks for the database"),
    Cause.GENERATION: _("a backup was put back: the database is of an older generation"),
    Cause.SYSTEM: _("the database is in another cluster than the witness knows"),
    Cause.TIMELINE: _("another server took over, and commits may have been lost"),
    Cause.TICK: _("the database is behind its witness: it was restored, or lost commits"),
    Cause.MARK: _("the database is not the one that spoke to the witness last: it was restored"),
    Cause.WENT_BACK: _("the database went back while a worker was connected"),
    Cause.SPOOL: _("a worker's file names a send that the database lacks"),
    Cause.DECLARED: _("a restore was announced"),
    Cause.RESTORED: _("a backup was put back with publisher db restore"),
    Cause.MOVED: _("the deployment was moved"),
}

By = Annotated[
    str, typer.Option(metavar="NAME", help=_("Who decides; you, unset."), show_default=False)
]
Reason = Annotated[str, typer.Option(help=_("Why; kept in the journal."), show_default=False)]
Confirm = Annotated[
    str,
    typer.Option(
        metavar="CHANNEL_NAME",
        help=_("The channel's name; else it is asked for."),
        show_default=False,
    ),
]


@app.command(help=_("Say what is held back, why, and what needs you."))
def status(*, json: Annotated[bool, typer.Option("--json", help=_("As JSON."))] = False) -> None:
    """Exit 0 whatever is held."""
    with session.transaction() as conn:
        stands = quarantine.standing(conn)
    if json:
        screen.emit(_as_json(row) for row in stands.jobs)
        return
    if not stands.jobs:
        screen.say(_("Nothing is in quarantine."))
        screen.say_next("publisher jobs list")
        return
    asked = [row for row in stands.jobs if row.asked_at is not None]
    screen.say(
        " · ".join(
            [
                many("{n} post is held back", "{n} posts are held back", len(stands.jobs)),
                many("{n} needs you", "{n} need you", len(asked)),
            ]
        )
    )
    for one in stands.quarantines:
        screen.say(_why(one))
    screen.say(_("Each is looked for on its page before it is sent."))
    screen.show_table(
        [
            Column(_("CHANNEL")),
            Column(_("HELD"), right=True),
            Column(_("NEED YOU"), right=True),
            Column(_("FIRST DUE")),
            Column(_("LAST SEEN")),
        ],
        _by_channel(stands.jobs),
    )
    if asked:
        first = asked[0]
        screen.say(
            _("Look at {channel}. Is {id} there?").format(
                channel=screen.visible(first.channel), id=public_id(first.id)
            )
        )
        screen.say_next(
            f"publisher quarantine live {public_id(first.id)} LINK --reason …",
            f"publisher quarantine release {first.channel_id} --reason …",
        )
    else:
        screen.say_next("publisher quarantine status")


@app.command(help=_("They are not on the page: let a channel's posts go on. They are sent then."))
def release(
    channel: Annotated[
        str,
        typer.Argument(metavar="CHANNEL", help=_("Name or id of the channel."), show_default=False),
    ],
    *,
    reason: Reason,
    confirm: Confirm = "",
    by: By = "",
) -> None:
    """Exit 4 while what was sent may still arrive, 2 without the channel's name."""
    if not confirm and sys.stdin.isatty():
        confirm = typer.prompt(_("Type the channel's name"), default="", show_default=False)
    with session.transaction() as conn:
        signed = Signed(by or session.who(), reason)
        freed = quarantine.release(conn, channel, signed, confirm=confirm)
        kept = obstacle.of_jobs(conn, freed)
    if not freed:
        screen.say(_("Nothing of this channel is in quarantine. Nothing was changed."))
    else:
        screen.say(many("{n} post goes on.", "{n} posts go on.", len(freed) - len(kept)))
        screen.say(*(screen.visible(one.said) for one in kept.values()))
    screen.say_next("publisher quarantine status", "publisher jobs list")


@app.command(help=_("One is on the page: record it by its link or id, or that it was seen there."))
def live(
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help=_("Id, key, or the post's ref."), show_default=False),
    ],
    link: Annotated[
        str, typer.Argument(metavar="[LINK_OR_ID]", help=_("What it is there."), show_default=False)
    ] = "",
    *,
    attest: Annotated[
        bool, typer.Option("--attest", help=_("It was seen, without a link."))
    ] = False,
    reason: Reason,
    by: By = "",
) -> None:
    """Exit 4 for a post that is another, 3 where the page does not show it just now."""
    if bool(link) == attest:
        message = _("Give the post's link or id, or --attest where there is none.")
        raise typer.BadParameter(message)
    with session.database() as database, bootstrap.open_app(session.settings(), database) as app_:
        with database.engine.begin() as conn:
            job_id = quarantine.job_in(conn, key)
        signed = Signed(by or session.who(), reason)
        post = quarantine.bind(database.engine, app_.registry, job_id, link, signed)
    shown = _("seen there") if post is None else (post.permalink or post.remote_id)
    words = _("{id} is live: {where}. It is not sent again.")
    screen.say(words.format(id=public_id(job_id), where=screen.visible(shown)))
    screen.say_next("publisher quarantine status")


def restore_guard(
    *,
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help=_("When the backup was made, such as 2026-11-30T14:02; sends since are doubted."),
            show_default=False,
        ),
    ],
    zone: Annotated[
        str, typer.Option(help=_("Zone of the time; UTC, unset."), show_default=False)
    ] = "UTC",
) -> None:
    """Say that this database was, or is about to be, restored: what was due is looked for first."""
    instant = _instant(since, zone)
    with session.database(Role.ENGINE) as database:
        with database.connect_driver() as conn:
            settings = session.settings()
            registry = bootstrap.describing_registry(settings)
            guard = bootstrap.guard(settings, registry, session.who())
            guard.admit(conn, known=Cause.DECLARED, since=instant)
        with database.engine.begin() as reading:
            stands = quarantine.standing(reading)
    held = many("{n} post is held back", "{n} posts are held back", len(stands.jobs))
    screen.say(
        _("{held}, and looked for on its page before it is sent.").format(held=held)
        if stands.jobs
        else _("Nothing was due since. Workers may be started.")
    )
    screen.say_next("publisher quarantine status")


def _instant(written: str, zone: str) -> datetime:
    """The instant that ``--since`` names."""
    try:
        at = datetime.fromisoformat(written.strip())
    except ValueError:
        message = _("--since cannot be read: {given}. Write it as 2026-11-30T14:02.")
        raise typer.BadParameter(message.format(given=written)) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=moments.zone(zone))
    if at > datetime.now(UTC):
        raise typer.BadParameter(_("--since is in the future. Give when the backup was made."))
    return at


def _why(one: QuarantineRow) -> str:
    words = _("Since {when}: {why} ({who}).")
    why = _WHY.get(Cause(one.cause), one.cause)
    return words.format(when=moments.short(one.since, one.now), why=why, who=one.who)


def _by_channel(jobs: Iterable[SuspectRow]) -> Iterable[list[str]]:
    for _id, group in groupby(
        sorted(jobs, key=lambda row: row.channel_id), key=lambda row: row.channel_id
    ):
        rows = list(group)
        asked = [row for row in rows if row.asked_at is not None]
        latest = (asked or rows)[0]
        first = min(rows, key=lambda row: row.due_at)
        yield [
            rows[0].channel,
            str(len(rows)),
            str(len(asked)),
            moments.short(first.due_at, first.now),
            latest.last_look or _("not looked for yet"),
        ]


def _as_json(row: SuspectRow) -> dict[str, object]:
    return {
        "id": public_id(row.id),
        "key": row.key,
        "ref": row.ref,
        "quarantine": row.quarantine_id,
        "channel_id": row.channel_id,
        "channel": row.channel,
        "platform": row.platform,
        "due_at": moments.iso(row.due_at),
        "useful_until": moments.iso(row.useful_until),
        "strict": row.strict,
        "looks": row.looks,
        "last_look": row.last_look,
        "next_look_at": moments.iso(row.next_look_at),
        "needs_a_person": row.asked_at is not None,
        "absent_after": moments.iso(row.absent_after),
    }
