"""Jobs as lists show them: one frozen row each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Select,
    and_,
    exists,
    false,
    func,
    literal_column,
    select,
)

from publisher.engine.job import REHEARSAL, JobId, State
from publisher.engine.queries.names import posts
from publisher.engine.schema import (
    attempts,
    channels,
    doubts,
    gates,
    job_contents,
    job_events,
    jobs,
    looks,
    remote_posts,
)

_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class JobRow:
    """What any list or page says about a job.

    ``reason`` is the journal's word (``outcome.Reason``). ``now`` is the database's clock when
    the row was read. ``possibly_live``: an attempt of it may be on the page; a repeat was only safe
    (proof ``repeat_safe``), not proved to be the first. ``looked``: it was looked for.
    ``channel_blocked``: why the channel takes nothing just now, in the gate's words.
    Of a job that may be live: when it is looked for next (None: no more), and since when and why
    a person must decide (None while looks alone may).
    """

    id: JobId
    key: str
    ref: str | None
    kind: str
    queue: str
    channel_id: int
    channel: str
    platform: str
    post_id: int | None
    state: State
    attempts: int
    failures: int
    due_at: datetime
    run_at: datetime
    useful_until: datetime | None
    settled_at: datetime | None
    hold_reason: str | None
    remote_id: str | None
    permalink: str | None
    attested_at: datetime | None
    reason: str | None
    possibly_live: bool
    looked: bool
    channel_blocked: str | None
    channel_paused: bool
    channel_not_before: datetime | None
    now: datetime
    next_look_at: datetime | None = None
    asked_at: datetime | None = None
    asked_reason: str | None = None
    taken_by: str | None = None
    withdrawn: bool = False
    """It was live, and a rehearsal has taken it down again."""
    removes: JobId | None = None
    """Of kind ``delete``: the published job whose post goes."""
    deleted_at: datetime | None = None
    """It was live, and a job of its own has taken it down, or found it gone, by then."""


def job_rows(
    conn: Connection,
    *,
    states: Collection[State] = (),
    channel_id: int | None = None,
    queue: str | None = None,
    limit: int | None = None,
    only: Collection[JobId] | None = None,
) -> Iterator[JobRow]:
    """Jobs in the order they were added, each as one ``JobRow``; read in batches.

    ``states`` empty: any. ``limit``: the newest so many (still oldest first). ``only``: among
    these.
    """
    newest_first = limit is not None
    query = _query(states, channel_id, queue, only)
    query = query.order_by(jobs.c.id.desc() if newest_first else jobs.c.id)
    if limit is not None:
        rows = conn.execute(query.limit(limit)).mappings().all()
        yield from map(job_row, reversed(rows))
        return
    # For this statement alone: set on the connection, it would make a cursor of every later write.
    with conn.execute(query, execution_options={"yield_per": _BATCH}) as result:
        yield from map(job_row, result.mappings())


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a page of a list is about; what is None or empty leaves nothing out.

    ``due_from`` counts itself in, ``due_until`` does not. ``ref``: its post's.
    """

    states: Collection[State] = ()
    channel_id: int | None = None
    queue: str | None = None
    post_id: int | None = None
    key: str | None = None
    ref: str | None = None
    due_from: datetime | None = None
    due_until: datetime | None = None


def job_page(
    conn: Connection, wanted: JobFilter, *, limit: int, before: JobId | None = None
) -> list[JobRow]:
    """The newest ``limit`` jobs, the newest first; ``before``: only those added before that one."""
    query = row_query().where(*_conditions(wanted.states, wanted.channel_id, wanted.queue))
    for column, value in (
        (jobs.c.post_id, wanted.post_id),
        (job_contents.c.key, wanted.key),
        (posts.c.ref, wanted.ref),
    ):
        if value is not None:
            query = query.where(column == value)
    if wanted.due_from is not None:
        query = query.where(jobs.c.due_at >= wanted.due_from)
    if wanted.due_until is not None:
        query = query.where(jobs.c.due_at < wanted.due_until)
    if before is not None:
        query = query.where(jobs.c.id < before)
    rows = conn.execute(query.order_by(jobs.c.id.desc()).limit(limit)).mappings()
    return list(map(job_row, rows))


def job_count(
    conn: Connection,
    *,
    states: Collection[State] = (),
    channel_id: int | None = None,
    queue: str | None = None,
) -> int:
    """How many ``job_rows`` would give without a limit."""
    query = select(func.count()).select_from(jobs).where(*_conditions(states, channel_id, queue))
    return int(conn.scalar(query) or 0)


def row_query() -> Select[Any]:
    """The columns of ``JobRow``, joined and unfiltered."""
    repeated = exists().where(
        attempts.c.job_id == jobs.c.id, attempts.c.proof == literal_column("'repeat_safe'")
    )
    return select(
        jobs.c.id,
        job_contents.c.key,
        posts.c.ref,
        jobs.c.kind,
        jobs.c.queue,
        jobs.c.channel_id,
        channels.c.name.label("channel"),
        channels.c.platform,
        jobs.c.post_id,
        jobs.c.state,
        jobs.c.attempts,
        jobs.c.failures,
        jobs.c.due_at,
        jobs.c.run_at,
        jobs.c.useful_until,
        jobs.c.settled_at,
        jobs.c.hold_reason,
        jobs.c.remote_id,
        remote_posts.c.permalink,
        jobs.c.attested_at,
        jobs.c.reason,
        and_(jobs.c.attempts > 0, repeated).label("possibly_live"),
        and_(jobs.c.attempts > 0, exists().where(looks.c.job_id == jobs.c.id)).label("looked"),
        gates.c.blocked_reason.label("channel_blocked"),
        func.coalesce(gates.c.paused_at.is_not(None), false()).label("channel_paused"),
        gates.c.not_before.label("channel_not_before"),
        func.clock_timestamp(type_=DateTime(timezone=True)).label("now"),
        doubts.c.next_look_at,
        doubts.c.asked_at,
        doubts.c.asked_reason,
        doubts.c.taken_by,
        and_(
            jobs.c.state == State.PUBLISHED,
            # Asked of rehearsals alone: anything else is taken down by a job.
            jobs.c.queue == REHEARSAL,
            exists().where(job_events.c.job_id == jobs.c.id, job_events.c.event == "withdraw"),
        ).label("withdrawn"),
        jobs.c.removes,
        deleted_at().label("deleted_at"),
    ).select_from(_joined())


def deleted_at() -> ColumnElement[datetime | None]:
    """When the post of the row's job was deleted from its page; null while it was not."""
    removals = jobs.alias("removals")
    return (
        select(func.max(removals.c.settled_at))
        .where(removals.c.removes == jobs.c.id, removals.c.state == State.PUBLISHED)
        .correlate(jobs)
        .scalar_subquery()
    )


def job_row(row: Mapping[Any, Any]) -> JobRow:
    """Make a ``JobRow`` of one row of ``row_query``."""
    return JobRow(**{**row, "id": JobId(row["id"]), "state": State(row["state"])})


def _joined() -> FromClause:
    bound = and_(
        remote_posts.c.channel_id == jobs.c.channel_id,
        remote_posts.c.remote_id == jobs.c.remote_id,
    )
    return (
        jobs.join(job_contents, job_contents.c.job_id == jobs.c.id)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .outerjoin(gates, gates.c.channel_id == jobs.c.channel_id)
        .outerjoin(doubts, doubts.c.job_id == jobs.c.id)
        .outerjoin(posts, posts.c.id == jobs.c.post_id)
        .outerjoin(remote_posts, bound)
    )


def _query(
    states: Collection[State],
    channel_id: int | None,
    queue: str | None,
    only: Collection[JobId] | None,
) -> Select[Any]:
    query = row_query().where(*_conditions(states, channel_id, queue))
    return query if only is None else query.where(jobs.c.id.in_(only))


def _conditions(
    states: Collection[State], channel_id: int | None, queue: str | None
) -> Iterator[Any]:
    if states:
        yield jobs.c.state.in_([str(state) for state in states])
    if channel_id is not None:
        yield jobs.c.channel_id == channel_id
    if queue is not None:
        yield jobs.c.queue == queue
