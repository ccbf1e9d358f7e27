"""Jobs of rehearsals on real pages, and the real jobs that a rehearsal there must not meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, exists, func, not_, or_, select, true

from publisher.engine.adapter import LivePost, LookQuery, Task
from publisher.engine.job import REHEARSAL, Channel, State, Token, rehearsed
from publisher.engine.queries.listing import JobRow, job_row, row_query
from publisher.engine.schema import attempts, job_contents, job_events, job_keys, jobs, verdicts

WITHDRAWN: Final = "withdraw"
"""The line in a job's journal that says that its post was taken down."""
_UNDER_WAY = (State.CLAIMED, State.SENDING, State.UNKNOWN)


@dataclass(frozen=True, slots=True)
class RehearsalJob:
    """One job of a rehearsal, with what a look at its page needs.

    ``answered``: its remote id came by the platform's own answer, and not by a look or a person;
    ``answer`` is that answer's body. ``died``: a worker died over a send of it. ``removed_at``:
    when its post was taken down again.
    """

    row: JobRow
    run: str
    number: int
    content: str
    content_sha256: bytes
    platform_key: str | None
    progress: Mapping[str, Any]
    token: UUID | None
    began_at: datetime | None
    answered: bool
    answer: str
    died: bool
    removed_at: datetime | None

    @property
    def live(self) -> LivePost | None:
        """What stands on the page, where its id is known."""
        if self.row.remote_id is None:
            return None
        return LivePost(self.row.remote_id, self.content, self.answer)

    def query(self, channel: Channel, bound: frozenset[str]) -> LookQuery:
        """What an adapter is asked about it; ``bound`` as ``ledger.bound_elsewhere`` gives it."""
        return LookQuery(
            task=Task(
                job_id=self.row.id,
                key=self.row.key,
                kind=self.row.kind,
                token=Token(self.token or UUID(int=0)),
                channel=channel,
                content=self.content,
                content_sha256=self.content_sha256,
                progress=self.progress,
                platform_key=self.platform_key,
                attempts=self.row.attempts,
            ),
            began_at=self.began_at or self.row.due_at,
            now=self.row.now,
            bound=bound,
        )


def rehearsal_jobs(
    conn: Connection, *, channel_id: int | None = None, run: str | None = None
) -> tuple[RehearsalJob, ...]:
    """Jobs of rehearsals in the order they were added: all, of one channel, of one run."""
    # By the keys' own table: its index finds the few among millions.
    prefix = f"{REHEARSAL}:" if run is None else f"{REHEARSAL}:{run}:"
    named = select(job_keys.c.job_id).where(job_keys.c.key.startswith(prefix, autoescape=True))
    of_job = attempts.c.job_id == jobs.c.id
    newest = select(attempts).where(of_job).order_by(attempts.c.number.desc()).limit(1).lateral()
    judged = exists().where(verdicts.c.job_id == jobs.c.id, verdicts.c.decision == "live")
    query = (
        row_query()
        .add_columns(
            job_contents.c.content,
            job_contents.c.content_sha256,
            job_contents.c.platform_key,
            job_contents.c.progress,
            newest.c.token,
            select(func.min(attempts.c.begun_at)).where(of_job).scalar_subquery().label("began_at"),
            and_(newest.c.outcome == "published", not_(judged)).label("answered"),
            newest.c.answer["body"].astext.label("answer"),
            exists()
            .where(
                job_events.c.job_id == jobs.c.id,
                job_events.c.event == "lease_expired",
                job_events.c.detail["from"].astext == "sending",
            )
            .label("died"),
            select(func.max(job_events.c.at))
            .where(job_events.c.job_id == jobs.c.id, job_events.c.event == WITHDRAWN)
            .scalar_subquery()
            .label("removed_at"),
        )
        .outerjoin(newest, true())
        .where(jobs.c.id.in_(named))
        .order_by(jobs.c.id)
    )
    if channel_id is not None:
        query = query.where(jobs.c.channel_id == channel_id)
    return tuple(_rehearsal_job(row) for row in conn.execute(query).mappings())


def jobs_in_the_way(conn: Connection, channel_id: int, *, within: timedelta) -> tuple[JobRow, ...]:
    """The channel's real jobs that are scheduled ``within`` so long, or whose end is not known.

    The ones due first come first.
    """
    soon = and_(jobs.c.state == State.SCHEDULED, jobs.c.run_at <= func.clock_timestamp() + within)
    query = (
        row_query()
        .where(
            jobs.c.channel_id == channel_id,
            or_(soon, jobs.c.state.in_([str(state) for state in _UNDER_WAY])),
            not_(_is_rehearsed()),
        )
        .order_by(jobs.c.run_at, jobs.c.id)
    )
    return tuple(job_row(row) for row in conn.execute(query).mappings())


def _is_rehearsed() -> ColumnElement[Any]:
    return job_contents.c.key.startswith(f"{REHEARSAL}:", autoescape=True)


_MORE: Final = (
    "content", "content_sha256", "platform_key", "progress", "token", "began_at", "answered",
    "answer", "died", "removed_at",
)  # fmt: skip


def _rehearsal_job(row: Mapping[Any, Any]) -> RehearsalJob:
    of_row = {name: value for name, value in row.items() if name not in _MORE}
    run, number = rehearsed(row["key"]) or ("", 0)
    return RehearsalJob(
        row=job_row(of_row),
        run=run,
        number=number,
        content=row["content"],
        content_sha256=bytes(row["content_sha256"]),
        platform_key=row["platform_key"],
        progress=row["progress"] or {},
        token=row["token"],
        began_at=row["began_at"],
        answered=bool(row["answered"]),
        answer=row["answer"] or "",
        died=row["died"],
        removed_at=row["removed_at"],
    )
