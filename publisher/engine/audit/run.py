"""Asks every invariant of one snapshot: read-only, on the primary, each within its time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

import psycopg
from psycopg.rows import dict_row

from publisher.engine.audit.catalogue import CATALOGUE
from publisher.engine.audit.invariant import IN_SCOPE, Invariant
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId
from publisher.engine.ledger import Conn

SHOWN: Final = 20
"""Rows given of one broken invariant; all are counted."""
PATIENCE: Final = 30.0
"""Seconds for one query, unless told otherwise."""

# A coordinator's connection is planned for single rows; here whole tables are read.
_SETTINGS: Final = (
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL enable_bitmapscan = on",
    "SET LOCAL enable_hashjoin = on",
    "SET LOCAL enable_mergejoin = on",
    "SET LOCAL plan_cache_mode = force_custom_plan",
    "SET LOCAL jit = off",
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL search_path = publisher",
)
_GIVEN: Final = """
SELECT found.job_id, found.attempt, coalesce(found.channel_id, j.channel_id) AS channel_id,
       ch.name AS channel, found.detail, count(*) OVER () AS total
  FROM ({sql}) AS found
  LEFT JOIN jobs j ON j.id = found.job_id
  LEFT JOIN channels ch ON ch.id = coalesce(found.channel_id, j.channel_id)
 ORDER BY found.job_id, found.attempt LIMIT {shown}
"""


class AuditImpossible(PublisherError):
    """The audit could not be run; the message says why."""

    code = "audit-impossible"


@dataclass(frozen=True, slots=True)
class Row:
    """What is in breach, as far as it names a job, one of its attempts or a channel."""

    job_id: JobId | None
    attempt: int | None
    channel_id: int | None
    channel: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold: the first rows, and how many there are."""

    invariant: Invariant
    rows: tuple[Row, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found. ``took``: seconds, ``each`` by id; ``jobs``: how many were looked at.

    ``unasked``: invariants whose query was not answered in time, or failed, with why.
    """

    at: datetime
    asked: int
    broken: tuple[Broken, ...]
    unasked: tuple[tuple[Invariant, str], ...]
    took: float
    each: dict[str, float]
    jobs: int | None


def audit(
    conn: Conn,
    *,
    full: bool = False,
    only: Collection[str] = (),
    alerted: bool = False,
    patience: float = PATIENCE,
    catalogue: Sequence[Invariant] = CATALOGUE,
) -> Report:
    """Ask the invariants of one snapshot; ``only`` those ids.

    By default of the jobs that are not over and those that ended within a week, with all that is
    kept about them; ``full``: of the whole history. ``alerted``: people are told by mail or
    webhook, so what needs one must have been told. ``patience``: seconds for one query.

    ``conn`` is in autocommit and in no transaction. Raises ``AuditImpossible`` on a standby, whose
    rows are of another time, and ``psycopg.Error`` for a connection that is lost.
    """
    started = monotonic()
    wanted = [one for one in catalogue if not only or one.id in only]
    broken: list[Broken] = []
    unasked: list[tuple[Invariant, str]] = []
    each: dict[str, float] = {}
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for setting in _SETTINGS:
            conn.execute(setting)
        conn.execute(
            "SELECT set_config('statement_timeout', %s, true)", [f"{int(patience * 1000)}ms"]
        )
        at = _on_the_primary(conn)
        ids = None if full else _in_scope(conn)
        for one in wanted:
            begun = monotonic()
            try:
                found = ask(conn, one, ids, alerted=alerted)
            except psycopg.Error as error:
                if conn.closed or conn.broken:
                    raise
                unasked.append((one, str(error).partition("\n")[0]))
            else:
                broken += [found] if found is not None else []
            each[one.id] = monotonic() - begun
    return Report(
        at=at,
        asked=len(wanted),
        broken=tuple(broken),
        unasked=tuple(unasked),
        took=monotonic() - started,
        each=each,
        jobs=None if ids is None else len(ids),
    )


def _on_the_primary(conn: Conn) -> datetime:
    row = conn.execute("SELECT pg_is_in_recovery(), now()").fetchone()
    if row is None or row[0]:
        message = "This is a standby: its rows are of another time. Audit the primary."
        raise AuditImpossible(message)
    at: datetime = row[1]
    return at


def _in_scope(conn: Conn) -> list[int]:
    """The jobs that are looked at by default."""
    try:
        return [row[0] for row in conn.execute(IN_SCOPE, binary=True).fetchall()]
    except psycopg.errors.QueryCanceled as error:
        message = f"The jobs of late could not be read in time: {error}"
        raise AuditImpossible(message) from error


def ask(conn: Conn, one: Invariant, ids: Sequence[int] | None, *, alerted: bool) -> Broken | None:
    """Ask one invariant within a transaction, of these jobs or, with None, of all.

    In a savepoint of its own: one that fails spoils no other. None where it holds.
    """
    statement = _GIVEN.replace("{shown}", str(SHOWN)).replace(
        "{sql}", one.statement(full=ids is None)
    )
    parameters = {"ids": ids, "alerted": alerted}
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement, parameters).fetchall()
    if not rows:
        return None
    shown = tuple(
        Row(
            job_id=row["job_id"],
            attempt=row["attempt"],
            channel_id=row["channel_id"],
            channel=row["channel"],
            detail=row["detail"] or "",
        )
        for row in rows
    )
    return Broken(one, shown, rows[0]["total"])
