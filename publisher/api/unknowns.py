"""``/unknowns``: posts that may be live, and what a person decides about them.

The words, locks and order are those of ``publisher unknowns``. Nothing here sends.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from publisher.api import told_doubts
from publisher.api.calls import (
    Answer,
    Caller,
    Here,
    OptionalKey,
    Recorder,
    RequiredKey,
    answered,
    once,
)
from publisher.api.jobs import about, named, no_job, read_time, row_of
from publisher.api.operations import operation
from publisher.api.strict import Body, JobName, Name, Reason, Time, Zone
from publisher.api.told_doubts import Decided, DoubtPage, DoubtWhole
from publisher.editorial import unknowns
from publisher.editorial.people.roles import Permission
from publisher.editorial.unknowns import Again, Decision, Seen, Signed
from publisher.engine import queries
from publisher.engine.errors import NotFound
from publisher.engine.job import JobId, public_id
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["unknowns"])
Link = Annotated[str, Field(min_length=1, max_length=2_000)]


class DecisionBody(Body):
    """What you saw, and what is to be done."""

    decision: Literal["live", "attested", "absent", "dropped"] = Field(
        description="`live`: it is there, as `link`. `attested`: you saw it and there is no link."
        " `absent`: it is not there; `send` says what then. `dropped`: it is followed no longer."
    )
    reason: Reason
    link: Link | None = Field(default=None, description="With `live`: a link to it, or its id.")
    also: Link | None = Field(default=None, description="With `live`: a second copy of it.")
    send: Literal["now", "at", "no"] | None = Field(
        default=None, description="With `absent`: again?"
    )
    at: Time | None = Field(default=None, description="With `send: at`: when.")
    useful_until: Time | None = Field(
        default=None, description="To send again: not later than this."
    )
    zone: Zone = ""
    confirm: Annotated[str, Field(max_length=200)] = Field(
        default="",
        description="To send again: the channel's name. If the first is live too, there are two.",
    )
    latest_attempt: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="The newest attempt when you looked."
    )

    @model_validator(mode="after")
    def _fits(self) -> DecisionBody:
        absent, again = self.decision == "absent", self.send in ("now", "at")
        _require((self.link is not None) == (self.decision == "live"), "link goes with live")
        _require(self.also is None or self.decision == "live", "also goes with live")
        _require((self.send is not None) == absent, "send goes with absent")
        _require((self.at is not None) == (self.send == "at"), "at goes with send: at")
        _require(self.useful_until is None or again, "useful_until goes with sending again")
        return self


class HandOver(Body):
    """To whom, with what they should know."""

    to: Name
    note: Annotated[str, Field(max_length=2_000)] = ""


class Snooze(Body):
    """Until when it raises no alert."""

    until: Time
    zone: Zone = ""


@operation(router, "GET", "/unknowns", Permission.UNKNOWNS_READ, DoubtPage)
def list_unknowns(here: Here) -> Response:
    """List posts that may be live, those that need a person first."""
    with here.transaction() as conn:
        rows, orphans = unknowns.listing(conn), unknowns.orphans(conn)
    return answered(told_doubts.doubt_page(rows, orphans, here.desk.registry))


@operation(router, "GET", "/unknowns/{job}", Permission.UNKNOWNS_READ, DoubtWhole, more=(409,))
def show_unknown(job: JobName, here: Here) -> Response:
    """Show one with its evidence, what could be it, and whether it may be sent again."""
    with about(here, named(job)), here.transaction() as conn:
        return answered(_told(conn, here, named(job)))


@operation(router, "POST", "/unknowns/{job}/look", Permission.UNKNOWNS_RESOLVE, DoubtWhole)
def look_at_unknown(
    job: JobName, here: Here, request: Request, key: OptionalKey = None
) -> Response:
    """Have the page looked at now, also after the looks by itself have ended."""
    return _at_desk(
        here, request, job, key, lambda conn, seen: unknowns.look_now(conn, seen, who=here.who)
    )


@operation(router, "POST", "/unknowns/{job}/take", Permission.UNKNOWNS_RESOLVE, DoubtWhole)
def take_unknown(job: JobName, here: Here, request: Request, key: OptionalKey = None) -> Response:
    """Say that you look after one, so that nobody else need."""
    return _at_desk(
        here, request, job, key, lambda conn, seen: unknowns.take(conn, seen, who=here.who)
    )


@operation(
    router,
    "POST",
    "/unknowns/{job}/hand-over",
    Permission.UNKNOWNS_RESOLVE,
    DoubtWhole,
    example={"to": "night desk", "note": "two candidates, same text"},
)
def hand_over_unknown(
    job: JobName, here: Here, request: Request, body: HandOver, key: OptionalKey = None
) -> Response:
    """Let somebody else look after one, with a note."""

    def hand_over(conn: Connection, seen: Seen) -> None:
        unknowns.hand_over(conn, seen, to=body.to, note=body.note, who=here.who)

    return _at_desk(here, request, job, key, hand_over)


@operation(
    router,
    "POST",
    "/unknowns/{job}/snooze",
    Permission.UNKNOWNS_RESOLVE,
    DoubtWhole,
    example={"until": "2026-12-07 08:00", "zone": "Asia/Ho_Chi_Minh"},
)
def snooze_unknown(
    job: JobName, here: Here, request: Request, body: Snooze, key: OptionalKey = None
) -> Response:
    """Let one raise no alert until a time. Looks at the page go on."""

    def put_off(conn: Connection, seen: Seen) -> None:
        until = read_time(conn, body.until, body.zone, "until", useful_for=timedelta(0))
        unknowns.snooze(conn, seen, until=until, who=here.who)

    return _at_desk(here, request, job, key, put_off)


@operation(
    router,
    "POST",
    "/unknowns/{job}/resolve",
    Permission.UNKNOWNS_RESOLVE,
    Decided,
    example={"decision": "attested", "reason": "I saw it on the page; it has no link"},
)
def resolve_unknown(
    job: JobName, here: Here, request: Request, body: DecisionBody, key: RequiredKey
) -> Response:
    """Record what you saw, or send again what is certainly not there.

    Sending again needs `unknowns.force` as well where the last look showed something that could be
    it. The first decision wins; the second is told what it was.
    """
    job_id = named(job)
    recorder = Recorder(here, request, key)

    def keep(conn: Connection, decision: Decision) -> None:
        rows = [*queries.job_rows(conn, only=[decision.job_id])]
        held = rows[0].hold_reason if rows else None
        recorder.keep(conn, Answer(told_doubts.decided(decision, held)))

    signed = Signed(here.who, body.reason, keep)
    with about(here, job_id):
        return recorder.done(lambda: _decide(here, job_id, body, signed))


def _decide(here: Caller, job_id: JobId, body: DecisionBody, signed: Signed) -> None:
    horizon = here.desk.horizon
    with here.transaction() as conn:
        seen = _see(conn, here, job_id, latest=body.latest_attempt)
        again = _again(conn, body)
    if again is not None and seen.candidates:
        here.person.require(Permission.UNKNOWNS_FORCE)
    match body.decision:
        case "live":
            unknowns.decide_live(
                here.engine,
                here.desk.registry,
                seen,
                body.link or "",
                signed,
                horizon=horizon,
                also=body.also or "",
            )
        case "attested":
            unknowns.decide_attested(here.engine, seen, signed)
        case "dropped":
            unknowns.drop(here.engine, seen, signed)
        case "absent":
            unknowns.decide_absent(here.engine, seen, again, signed, horizon=horizon)


def _again(conn: Connection, body: DecisionBody) -> Again | None:
    """What is to be sent again and when; None: nothing."""
    if body.send not in ("now", "at"):
        return None
    at = None if body.at is None else read_time(conn, body.at, body.zone, "at")
    until = body.useful_until
    useful_until = None if until is None else read_time(conn, until, body.zone, "useful_until")
    return Again(body.confirm, at, useful_until)


def _at_desk(
    here: Caller,
    request: Request,
    job: str,
    key: str | None,
    act: Callable[[Connection, Seen], None],
) -> Response:
    """Do something to one doubt in one transaction, and tell how it is then."""
    job_id = named(job)

    def do(conn: Connection) -> Answer:
        act(conn, _see(conn, here, job_id))
        return Answer(_told(conn, here, job_id))

    with about(here, job_id):
        return once(here, request, key, do)


def _told(conn: Connection, here: Caller, job_id: JobId) -> DoubtWhole:
    return told_doubts.doubt_whole(_see(conn, here, job_id), here.desk.settings.tries)


def _see(conn: Connection, here: Caller, job_id: JobId, *, latest: int | None = None) -> Seen:
    row_of(conn, job_id)
    try:
        return unknowns.see(
            conn, here.desk.registry, job_id, horizon=here.desk.horizon, latest=latest
        )
    except NotFound:  # pragma: no cover - jobs are not deleted
        raise no_job(public_id(job_id)) from None


def _require(holds: bool, rule: str) -> None:  # noqa: FBT001 - as config reads
    if not holds:
        raise ValueError(_("{rule}, and only then").format(rule=rule))
