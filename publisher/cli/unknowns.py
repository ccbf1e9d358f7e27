"""``publisher unknowns``: posts that may be live, and what a person decides about them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from publisher import bootstrap
from publisher.cli import doubt_list, doubt_page, job_page, moments, obstacle, screen, session
from publisher.cli.exits import Exit
from publisher.cli.obstacle import Obstacle
from publisher.editorial import times, unknowns
from publisher.editorial.unknowns import Again, Decision, Seen, Signed
from publisher.engine import ledger, queries
from publisher.engine.job import DELETE, JobId, State, public_id
from publisher.standing import stand
from publisher.words import _, many

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from publisher.db.connect import Database

app = typer.Typer(no_args_is_help=True)

_POLL_SECONDS: Final = 0.2

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help=_("Id, a unique beginning of it, key, or the post's ref."),
        show_default=False,
    ),
]
By = Annotated[
    str, typer.Option(metavar="NAME", help=_("Who decides; you, unset."), show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help=_("As JSON."))]
Zone = Annotated[
    str, typer.Option(help=_("Zone of the times, such as Asia/Ho_Chi_Minh."), show_default=False)
]


@app.command(name="list", help=_("List posts that may be live, those that need a person first."))
def list_unknowns(*, json: Json = False) -> None:
    """Exit 0 whatever is listed."""
    with session.transaction() as conn:
        rows = unknowns.listing(conn)
        lost = unknowns.orphans(conn)
        digits = queries.id_digits(conn)
    registry = bootstrap.describing_registry(session.settings())
    if json:
        screen.emit(doubt_list.as_json(row, registry) for row in rows)
        screen.emit(map(doubt_list.orphan_as_json, lost))
        return
    doubt_list.show_orphans(lost)
    if not rows:
        screen.say(_("Nothing else is in doubt.") if lost else _("Nothing is in doubt."))
        screen.say_next("publisher jobs list")
        return
    doubt_list.show(rows, registry, digits=digits)
    screen.say_next(f"publisher unknowns show {public_id(rows[0].id)[:digits]}")


@app.command(help=_("Show one with its evidence, what could be it, and what may be decided."))
def show(key: Key, *, json: Json = False) -> None:
    """Exit 4 for a job that is not in doubt."""
    with session.transaction() as conn:
        seen = _see(conn, key)
        digits = queries.id_digits(conn)
    if json:
        screen.emit([doubt_page.as_json(seen)])
        return
    tries, horizon = session.settings().tries, session.horizon()
    screen.say(*doubt_page.lines(seen, digits=digits, tries=tries, horizon=horizon))


@app.command(help=_("Have the page looked at now, also after the looks by itself have ended."))
def look(
    key: Key,
    *,
    wait: Annotated[bool, typer.Option("--wait", help=_("Wait for what it finds."))] = False,
    timeout: Annotated[float, typer.Option(min=0, help=_("Seconds to wait at most."))] = 60.0,
    by: By = "",
) -> None:
    """Exit 3 when the look that was waited for proved nothing, 1 when none was made."""
    with session.database() as database:
        with database.engine.begin() as conn:
            seen = _see(conn, key)
            digits = queries.id_digits(conn)
            unknowns.look_now(conn, seen, who=by or session.who())
        name = public_id(seen.doubt.job_id)[:digits]
        if not wait:
            screen.say(_("{id} is looked at next.").format(id=name))
            screen.say_next(f"publisher unknowns show {name}")
            return
        code = _await_look(database, seen, name, timeout)
    raise typer.Exit(code)


@app.command(help=_("Record what you saw, or send again what is certainly not there."))
def resolve(  # noqa: PLR0913 - the choices of a decision are the command's options
    key: Key,
    *,
    reason: Annotated[
        str, typer.Option(help=_("Why you decide so; kept in the journal."), show_default=False)
    ],
    live: Annotated[
        str,
        typer.Option(
            metavar="LINK_OR_ID",
            help=_("It is live, as this post; it is read and checked."),
            show_default=False,
        ),
    ] = "",
    also: Annotated[
        str,
        typer.Option(
            metavar="LINK_OR_ID", help=_("With --live: a second copy."), show_default=False
        ),
    ] = "",
    attest: Annotated[
        bool, typer.Option("--attest", help=_("It is live: I saw it, there is no link."))
    ] = False,
    absent: Annotated[
        bool, typer.Option("--absent", help=_("It is not live; --send says what then."))
    ] = False,
    send: Annotated[
        str,
        typer.Option(
            metavar="now|TIME|no", help=_("With --absent: send it again?"), show_default=False
        ),
    ] = "",
    drop: Annotated[
        bool, typer.Option("--drop", help=_("Follow it no longer; it may be on the page."))
    ] = False,
    confirm: Annotated[
        str,
        typer.Option(
            metavar="CHANNEL",
            help=_("To send again: the channel's name; else it is asked for."),
            show_default=False,
        ),
    ] = "",
    useful_until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help=_("To send again: not later than this."), show_default=False
        ),
    ] = "",
    zone: Zone = "",
    attempt: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=_("The newest attempt when you looked; refused if there is another since."),
            show_default=False,
        ),
    ] = None,
    by: By = "",
) -> None:
    """Exit 4: decided already, locked, not this post; 3: cannot be read now; 2: bad usage."""
    _require_one(live=live, attest=attest, absent=absent, drop=drop)
    _require_fitting(live=live, also=also, absent=absent, send=send, useful_until=useful_until)
    signed = Signed(by or session.who(), reason)
    horizon = session.horizon()
    with session.database() as database:
        engine = database.engine
        with engine.begin() as conn:
            seen = _see(conn, key, latest=attempt)
            digits = queries.id_digits(conn)
            again = _again(conn, send, useful_until, zone) if absent else None
        name = public_id(seen.doubt.job_id)[:digits]
        if live:
            with bootstrap.open_app(session.settings(), database) as parts:
                decision = unknowns.decide_live(
                    engine, parts.registry, seen, live, signed, horizon=horizon, also=also
                )
        elif attest:
            decision = unknowns.decide_attested(engine, seen, signed)
        elif drop:
            decision = unknowns.drop(engine, seen, signed)
        else:
            if again is not None:
                again = _confirmed(seen, again, confirm, name)
            decision = unknowns.decide_absent(engine, seen, again, signed, horizon=horizon)
        with engine.begin() as conn:
            kept = obstacle.of_jobs(conn, [seen.doubt.job_id]).get(seen.doubt.job_id)
    told = _told(decision, seen, name, signed.who, kept)
    screen.say(*(screen.visible(line) for line in told))
    follows = "wait" if decision.state is State.SCHEDULED else "show"
    usual = f"publisher jobs {follows} {name}"
    screen.say_next(usual if kept is None else kept.then, "publisher unknowns list")


@app.command(help=_("Say that you look after one, so that nobody else need."))
def take(key: Key, *, by: By = "") -> None:
    """Exit 4 when somebody else has taken it."""
    who = by or session.who()
    name = _at_desk(key, lambda conn, seen: unknowns.take(conn, seen, who=who))
    screen.say(_("{id} is taken by {who}.").format(id=name, who=who))
    screen.say_next(f"publisher unknowns show {name}")


@app.command(name="hand-over", help=_("Let somebody else look after one, with a note."))
def hand_over(
    key: Key,
    *,
    to: Annotated[str, typer.Option(metavar="NAME", help=_("To whom."), show_default=False)],
    note: Annotated[str, typer.Option(help=_("What they should know."), show_default=False)] = "",
    by: By = "",
) -> None:
    """Exit 4 when it is no longer in doubt."""
    who = by or session.who()
    name = _at_desk(
        key, lambda conn, seen: unknowns.hand_over(conn, seen, to=to, note=note, who=who)
    )
    screen.say(_("{id} is handed over to {to}.").format(id=name, to=to))
    screen.say_next(f"publisher unknowns show {name}")


@app.command(help=_("Let one raise no alert until a time. Looks at the page go on."))
def snooze(
    key: Key,
    *,
    until: Annotated[str, typer.Option(metavar="TIME", help=_("Until when."), show_default=False)],
    zone: Zone = "",
    by: By = "",
) -> None:
    """Exit 2 for a time that is none or past."""
    who = by or session.who()

    def put_off(conn: Connection, seen: Seen) -> None:
        unknowns.snooze(conn, seen, until=_time(conn, until, zone), who=who)

    name = _at_desk(key, put_off)
    screen.say(_("{id} raises no alert until {until}.").format(id=name, until=until))
    screen.say_next(f"publisher unknowns show {name}")


def _see(conn: Connection, key: str, *, latest: int | None = None) -> Seen:
    registry = bootstrap.describing_registry(session.settings())
    job_id = queries.find_job(conn, key)
    return unknowns.see(conn, registry, job_id, horizon=session.horizon(), latest=latest)


def _at_desk(key: str, act: Callable[[Connection, Seen], None]) -> str:
    """Do something to one doubt in one transaction; the id to tell of it."""
    with session.transaction() as conn:
        seen = _see(conn, key)
        act(conn, seen)
        return public_id(seen.doubt.job_id)[: queries.id_digits(conn)]


def _require_one(**choices: object) -> None:
    if sum(bool(choice) for choice in choices.values()) != 1:
        raise typer.BadParameter(
            _("Say one of --live LINK_OR_ID, --attest, --absent --send …, and --drop.")
        )


def _require_fitting(*, live: str, also: str, absent: bool, send: str, useful_until: str) -> None:
    if absent != bool(send.strip()):
        raise typer.BadParameter(_("--absent needs --send now, --send TIME or --send no."))
    if also and not live:
        raise typer.BadParameter(_("--also goes with --live."))
    if useful_until and (not absent or send.strip().casefold() == "no"):
        raise typer.BadParameter(_("--useful-until goes with --send now or --send TIME."))


def _again(conn: Connection, send: str, useful_until: str, zone: str) -> Again | None:
    """What is to be sent again and when; None: nothing."""
    if send.strip().casefold() == "no":
        return None
    is_now = send.strip().casefold() == times.NOW
    at = None if is_now else _time(conn, send, zone)
    until = _time(conn, useful_until, zone) if useful_until.strip() else None
    return Again("", at, until)


def _time(conn: Connection, written: str, zone: str) -> datetime:
    return times.read(written, zone, now=queries.clock(conn), useful_for=timedelta(0)).at


def _confirmed(seen: Seen, again: Again, confirm: str, name: str) -> Again:
    """The same with the channel's name as it was given, or typed when there is somebody to ask."""
    if not confirm and seen.locked is None and sys.stdin.isatty():
        asked = _("{id} is sent again, to {channel}. If the first is live too, there are two.")
        if seen.detail.row.kind == DELETE:
            asked = _("{id} asks {channel} once more to delete the post.")
        screen.say(asked.format(id=name, channel=screen.visible(seen.channel.name)))
        confirm = typer.prompt(_("Type the channel's name"), default="", show_default=False)
    return Again(confirm, again.at, again.useful_until)


def _await_look(database: Database, seen: Seen, name: str, timeout: float) -> Exit:
    """Wait until a look has ended, and say what came of it."""
    job_id, before = seen.doubt.job_id, seen.doubt.looks
    ends_at = time.monotonic() + timeout
    while True:
        with database.engine.begin() as conn:
            now = next(iter(ledger.doubts(conn, [job_id])), None)
        if now is None or now.looks > before:
            return _tell_look(database, job_id, name)
        if time.monotonic() >= ends_at:
            screen.note(
                _("No look was made in {time}. Is a reconciler running? Start one: reconciler")
                .format(time=moments.duration(timeout))
            )  # fmt: skip
            return Exit.NOT_AS_WISHED
        time.sleep(_POLL_SECONDS)


def _tell_look(database: Database, job_id: JobId, name: str) -> Exit:
    with database.engine.begin() as conn:
        detail = queries.job_detail(conn, job_id)
    at = stand(detail.row, tries=session.settings().tries)
    if detail.row.state is not State.UNKNOWN:
        where = detail.row.permalink or detail.row.remote_id or ""
        screen.say(screen.visible(f"{name} · {at.mark} {at.label} · {where}".rstrip(" ·")))
        screen.say_next(f"publisher jobs show {name}")
        return Exit.DONE if detail.row.state is State.PUBLISHED else Exit.NOT_AS_WISHED
    found = job_page.found(detail.looks[-1].evidence) if detail.looks else at.why
    screen.say(screen.visible(f"{name} · {at.mark} {at.label} · {found}"))
    screen.say_next(f"publisher unknowns show {name}")
    return Exit.NEEDS_A_PERSON


def _told(
    decision: Decision, seen: Seen, name: str, who: str, kept: Obstacle | None
) -> Iterator[str]:
    """What was recorded, in a line or two."""
    if seen.detail.row.kind == DELETE:
        yield doubt_page.removal_told(decision, name, who)
        return
    match decision.state:
        case State.PUBLISHED if decision.post is None:
            yield _("{id} is live: {who} saw it on the page; there is no link.").format(
                id=name, who=who
            )
        case State.PUBLISHED:
            yield from _told_live(decision, seen, name)
        case State.SCHEDULED if kept is not None:
            yield _("{id} is not live, and is to be sent again.").format(id=name)
            yield kept.said
        case State.SCHEDULED if decision.send_at is not None:
            when = moments.long(decision.send_at, moments.zone(seen.detail.zone), seen.doubt.now)
            yield _("{id} is sent again on {when}.").format(id=name, when=when)
        case State.SCHEDULED:
            yield _("{id} is sent again now.").format(id=name)
        case State.FAILED:
            yield _("{id} is not live and is not sent again.").format(id=name)
        case _:
            yield _("{id} is dropped: it may be on the page, and is not followed any more.").format(
                id=name
            )
    if decision.forced:
        yield many(
            "Forced, against what the last look showed ({n} post could be it). If one is proved to"
            " be it before the send, nothing is sent.",
            "Forced, against what the last look showed ({n} posts could be it). If one is proved to"
            " be it before the send, nothing is sent.",
            len(seen.candidates),
        )


def _told_live(decision: Decision, seen: Seen, name: str) -> Iterator[str]:
    post, other = decision.post, decision.also
    if post is None:  # pragma: no cover - the caller has made sure
        return
    where = post.permalink or post.remote_id
    yield _("{id} is live: {where}").format(id=name, where=where)
    if not decision.was_read:
        yield _(
            "The link leads to {channel}; what stands there nobody may read, so that it is this"
            " post rests on your word."
        ).format(channel=seen.channel.name)
    if other is not None:
        yield _(
            "There is a second copy: {where}. Open it and delete it there; it is in the journal,"
            " and no other job can be taken for it."
        ).format(where=other.permalink or other.remote_id)
