"""``publisher posts schedule|again|fix|delete``: when and where a post goes out, or goes again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from publisher import bootstrap
from publisher.cli import obstacle, screen, session
from publisher.cli.post_writing import Json, Name, changed_for, exit_where_left, show_done
from publisher.editorial import (
    channels,
    drafts,
    removals,
    reviews,
    schedules,
    times,
    versions,
)
from publisher.editorial.post_lock import find_post
from publisher.editorial.posts import Destination
from publisher.engine import queries
from publisher.engine.errors import Conflict
from publisher.engine.job import public_id
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.editorial.schedules import Scheduled

At = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help=_("Local time with --zone, one with an offset, or now."),
        show_default=False,
    ),
]
Zone = Annotated[
    str, typer.Option(help=_("Zone of the time, such as Asia/Ho_Chi_Minh."), show_default=False)
]
UsefulFor = Annotated[
    float | None,
    typer.Option(min=1, help=_("Seconds after its time it is still sent."), show_default=False),
]
OnChannel = Annotated[str, typer.Option(help=_("Name or id."), show_default=False)]


def schedule(
    post: Name,
    *,
    at: At,
    zone: Zone = "",
    channel: Annotated[
        list[str] | None,
        typer.Option(
            help=_("Only there; may be repeated. Without it: wherever it is meant to go.")
        ),
    ] = None,
    useful_for: UsefulFor = None,
    version: Annotated[
        int | None, typer.Option(help=_("An approved version; without it: the newest."))
    ] = None,
    json: Json = False,
) -> None:
    """Exit 4 where it is not approved, is live or under way there, or may be."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        ids = [channels.find(conn, name).id for name in channel or ()]
        places = [
            _place(conn, channel_id, at, zone, useful_for)
            for channel_id in ids or drafts.targets_of(conn, post_id)
        ]
        done = schedules.schedule(
            conn, post_id, places, who=session.who(), useful_for=_span(useful_for),
            registry=bootstrap.describing_registry(session.settings()), number=version,
        )  # fmt: skip
        _show(conn, post_id, done, json=json)


def again(
    post: Name,
    *,
    channel: OnChannel,
    at: At,
    zone: Zone = "",
    useful_for: UsefulFor = None,
    json: Json = False,
) -> None:
    """Exit 4 where it is not live there, or nobody knows."""
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        place = _place(conn, channels.find(conn, channel).id, at, zone, useful_for)
        done = schedules.again(
            conn, post_id, place, who=session.who(), useful_for=_span(useful_for),
            registry=bootstrap.describing_registry(session.settings()),
        )  # fmt: skip
        _show(conn, post_id, done, json=json)


def fix(
    post: Name,
    *,
    channel: OnChannel,
    text: Annotated[str, typer.Option(help=_("What it says there from now on."))],
    at: At,
    zone: Zone = "",
    useful_for: UsefulFor = None,
    json: Json = False,
) -> None:
    """Save a form of its own for that channel, approve it, and schedule it there, all or nothing.

    Exit 4 where it may be live there, or where another person has to approve.
    """
    who, registry = session.who(), bootstrap.describing_registry(session.settings())
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        at_channel = channels.find(conn, channel).id
        schedules.require_fixable(conn, post_id, at_channel)
        before = drafts.read(conn, post_id)
        document = changed_for(before.document, at_channel, text=text)
        saved = versions.save(
            conn, post_id, document, revision=before.revision, who=who, registry=registry
        )
        if not saved.is_new:
            message = _("That is what was refused. Nothing was changed. Change the text.")
            raise Conflict(message, code="nothing-changed")
        approved = reviews.approve(conn, post_id, who=who, registry=registry)
        place = _place(conn, at_channel, at, zone, useful_for)
        done = schedules.schedule(
            conn, post_id, [place], who=who, registry=registry, useful_for=_span(useful_for)
        )
        _show(conn, post_id, done, json=json)
    exit_where_left(approved.refusals)


def _of_refusals(conn: Connection, done: Scheduled) -> list[str]:
    """What stands between a refused send and the job that replaces it."""
    looked = _("{channel}: what was refused is looked for on the page first; if it is there after"
               " all, this one is not sent, and you are told.")  # fmt: skip
    unseen = _("{channel}: this platform cannot be looked at. That nothing was posted rests on its"
               " refusal; if you see the earlier text there, cancel this one.")  # fmt: skip
    return [
        words.format(channel=channels.find(conn, str(at)).name)
        for words, where in ((looked, done.looks_first), (unseen, done.cannot_look))
        for at in where
    ]


def delete(
    post: Name,
    *,
    channel: OnChannel,
    reason: Annotated[str, typer.Option(help=_("Why; kept in the journal."))] = "",
    job: Annotated[
        str, typer.Option(help=_("The job whose post goes; without it: the newest live there."))
    ] = "",
    json: Json = False,
) -> None:
    """Ask for it; a worker does it. Exit 4 where it is not live there, or nobody knows."""
    settings = session.settings()
    with session.transaction() as conn:
        post_id = find_post(conn, post)
        asked = removals.delete(
            conn, post_id, channels.find(conn, channel).id, who=session.who(), reason=reason,
            registry=bootstrap.describing_registry(settings),
            horizon=timedelta(seconds=settings.horizon),
            job_id=queries.find_job(conn, job) if job else None,
        )  # fmt: skip
        name = public_id(asked.job.job_id)[: queries.id_digits(conn)]
        said = _("It will be deleted from {channel}: job {id}.")
        show_done(conn, post_id, said.format(channel=asked.removes.channel, id=name), json=json)
        if not json:
            screen.say_next(f"publisher jobs wait {name}")


def _place(
    conn: Connection, channel_id: int, at: str, zone: str, useful_for: float | None
) -> Destination:
    moment = times.read(at, zone, now=queries.clock(conn), useful_for=_span(useful_for))
    return Destination(channel_id, moment.at, moment.zone)


def _span(useful_for: float | None) -> timedelta:
    seconds = session.settings().useful_for_seconds if useful_for is None else useful_for
    return timedelta(seconds=seconds)


def _show(conn: Connection, post_id: int, done: Scheduled, *, json: bool) -> None:
    digits = queries.id_digits(conn)
    ids = ", ".join(public_id(job.job_id)[:digits] for job in done.jobs)
    said = _("Version {n} is scheduled: {ids}.").format(n=done.version.number, ids=ids)
    show_done(conn, post_id, said, json=json, found=done.problems)
    if not json:
        screen.say(*_of_refusals(conn, done))
        kept = [*obstacle.of_jobs(conn, [job.job_id for job in done.jobs]).values()]
        screen.say(*(screen.visible(one.said) for one in kept))
        usual = f"publisher jobs show {public_id(done.jobs[0].job_id)[:digits]}"
        screen.say_next(kept[0].then if kept else usual)
