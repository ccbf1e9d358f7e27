"""One job with everything that is known about it: the evidence page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Integer,
    Text,
    column,
    select,
    table,
)
from sqlalchemy.dialects.postgresql import JSONB

from publisher.engine.job import JobId
from publisher.engine.queries.listing import JobRow, job_row, row_query
from publisher.engine.queries.names import UnknownJob
from publisher.engine.schema import (
    SCHEMA,
    attempts,
    channels,
    incarnations,
    job_contents,
    jobs,
    looks,
)

_approvals = table(
    "approvals",
    column("version_id", BigInteger),
    column("approved_at", DateTime(timezone=True)),
    column("approved_by", Text),
    schema=SCHEMA,
)
_post_channels = table(
    "post_channels",
    column("post_id", BigInteger),
    column("channel_id", Integer),
    column("zone", Text),
    schema=SCHEMA,
)
_timeline = table(
    "timeline",
    column("job_id", BigInteger),
    column("at", DateTime(timezone=True)),
    column("event", Text),
    column("who", Text),
    column("attempt", Integer),
    column("detail", JSONB),
    schema=SCHEMA,
)


@dataclass(frozen=True, slots=True)
class AttemptDetail:
    """One begun send, as its row has it. ``answer`` is ``outcome.Answer`` as JSON."""

    number: int
    incarnation: int
    version: int | None
    content_sha256: bytes
    claimed_at: datetime
    begun_at: datetime
    settled_at: datetime | None
    outcome: str | None
    reason: str | None
    detail: str | None
    remote_id: str | None
    answer: Mapping[str, Any] | None
    proof: str | None
    proof_detail: str | None
    proved_by: str | None
    proved_at: datetime | None


@dataclass(frozen=True, slots=True)
class LookDetail:
    """One look at the platform, and what it found (``evidence`` as JSON)."""

    attempt: int
    by: str
    begun_at: datetime
    ended_at: datetime
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline."""

    at: datetime
    event: str
    who: str
    attempt: int | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sender:
    """The worker run that began an attempt, and whether it is proved unable to write any more."""

    id: int
    host: str
    pid: int
    seen_at: datetime
    ended_at: datetime | None
    end_reason: str | None
    declared_gone_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobDetail:
    """``zone``: the post's own, where it was given one. ``timeline`` is oldest first."""

    row: JobRow
    content: str
    content_sha256: bytes
    version: int | None
    approved_at: datetime | None
    approved_by: str | None
    zone: str | None
    channel_remote_id: str
    replaces: JobId | None
    repeats: JobId | None
    attempts: tuple[AttemptDetail, ...]
    looks: tuple[LookDetail, ...]
    senders: Mapping[int, Sender]
    timeline: tuple[Moment, ...]


def job_detail(conn: Connection, job_id: JobId) -> JobDetail:
    """Everything about one job. Raises ``UnknownJob``."""
    row = conn.execute(row_query().where(jobs.c.id == job_id)).mappings().one_or_none()
    if row is None:
        raise UnknownJob(str(job_id))
    begun = _attempts(conn, job_id)
    return JobDetail(
        row=job_row(row),
        **_post(conn, job_id),
        attempts=begun,
        looks=_looks(conn, job_id),
        senders=_senders(conn, {attempt.incarnation for attempt in begun}),
        timeline=_moments(conn, job_id),
    )


def _post(conn: Connection, job_id: JobId) -> dict[str, Any]:
    query = (
        select(
            job_contents.c.content,
            job_contents.c.content_sha256,
            job_contents.c.version,
            _approvals.c.approved_at,
            _approvals.c.approved_by,
            _post_channels.c.zone,
            channels.c.remote_id.label("channel_remote_id"),
            jobs.c.replaces,
            jobs.c.repeats,
        )
        .select_from(jobs)
        .join(job_contents, job_contents.c.job_id == jobs.c.id)
        .join(channels, channels.c.id == jobs.c.channel_id)
        .outerjoin(_approvals, _approvals.c.version_id == job_contents.c.version_id)
        .outerjoin(
            _post_channels,
            (_post_channels.c.post_id == jobs.c.post_id)
            & (_post_channels.c.channel_id == jobs.c.channel_id),
        )
        .where(jobs.c.id == job_id)
    )
    return dict(conn.execute(query).mappings().one())


def _attempts(conn: Connection, job_id: JobId) -> tuple[AttemptDetail, ...]:
    query = (
        select(*(attempts.c[name] for name in AttemptDetail.__slots__))
        .where(attempts.c.job_id == job_id)
        .order_by(attempts.c.number)
    )
    return tuple(AttemptDetail(**row) for row in conn.execute(query).mappings())


def _looks(conn: Connection, job_id: JobId) -> tuple[LookDetail, ...]:
    query = (
        select(*(looks.c[name] for name in LookDetail.__slots__))
        .where(looks.c.job_id == job_id)
        .order_by(looks.c.id)
    )
    return tuple(LookDetail(**row) for row in conn.execute(query).mappings())


def _senders(conn: Connection, ids: set[int]) -> dict[int, Sender]:
    if not ids:
        return {}
    query = select(*(incarnations.c[name] for name in Sender.__slots__)).where(
        incarnations.c.id.in_(ids)
    )
    return {row["id"]: Sender(**row) for row in conn.execute(query).mappings()}


def _moments(conn: Connection, job_id: JobId) -> tuple[Moment, ...]:
    query = (
        select(*(_timeline.c[name] for name in Moment.__slots__))
        .where(_timeline.c.job_id == job_id)
        .order_by(_timeline.c.at)
    )
    return tuple(Moment(**row) for row in conn.execute(query).mappings())
