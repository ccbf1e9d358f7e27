"""Sends that were made and that the database has no record of, as files of workers told of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, DateTime, func, select

from publisher.engine.schema import orphans


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """One such send. ``job_id`` is the number it had, which may be another job's by now.

    ``outcome``: what the platform answered, in the journal's word; None without an answer.
    ``remote_id``: the post that it named.
    """

    id: int
    at: datetime
    worker_run: str
    job_id: int
    outcome: str | None
    remote_id: str | None
    now: datetime


def orphan_rows(conn: Connection, *, limit: int = 200) -> list[OrphanRow]:
    """Those that no job was found for, the newest first."""
    query = (
        select(
            orphans.c.id,
            orphans.c.at,
            orphans.c.incarnation,
            orphans.c.job_id,
            orphans.c.line,
            func.clock_timestamp(type_=DateTime(timezone=True)).label("now"),
        )
        .where(orphans.c.adopted.is_(False))
        .order_by(orphans.c.id.desc())
        .limit(limit)
    )
    return [
        OrphanRow(row.id, row.at, row.incarnation, row.job_id, *_answer(row.line), row.now)
        for row in conn.execute(query)
    ]


def _answer(line: dict[str, object]) -> tuple[str | None, str | None]:
    """Outcome and remote id of a line: of a file, or of the worker that kept the answer."""
    told = line.get("outcome")
    if isinstance(told, dict):
        kind, remote_id = told.get("kind"), told.get("remote_id")
    else:
        kind, remote_id = told, line.get("remote_id")
    return (
        None if kind is None else str(kind).lower(),
        None if remote_id is None else str(remote_id),
    )
