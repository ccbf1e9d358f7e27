"""How far the database has come: its tick, its marks, its generation; told to the witness."""

from __future__ import annotations

from psycopg.rows import class_row

from publisher.engine.ledger.driver import AnyConnection, Conn, driver_of
from publisher.engine.witness import Stands

MARKS = 512
"""So many of the latest marks the database remembers: more than processes that start at once.

Each notes one before it knows whether its record is the one that is written.
"""

# The checkpoint's timeline lags behind the server's own after a promotion; what is written now
# is the name of the file that commits go into, whose first eight digits are the timeline.
_STANDS = """
SELECT d.id::text AS deployment, d.generation, t.value AS tick, t.marks, t.raised_at,
       (SELECT system_identifier::text FROM pg_control_system()) AS system,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS timeline,
       current_setting('synchronous_standby_names') <> ''
           AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS quorum,
       EXISTS (SELECT FROM publisher.attempts) AS used
  FROM publisher.deployment d, publisher.tick t
"""


def stands(conn: AnyConnection) -> Stands:
    """Read what the witness is compared with. Raises ``psycopg.Error``."""
    with driver_of(conn).cursor(row_factory=class_row(Stands)) as cursor:
        row = cursor.execute(_STANDS).fetchone()
    assert row is not None  # noqa: S101 - both rows are made by the migrations
    return row


# Skipped while another coordinator is at it: one raise is enough for all.
_RAISE = """
WITH due AS MATERIALIZED (
    SELECT one FROM publisher.tick
     WHERE raised_at <= clock_timestamp() - make_interval(secs => %(apart)s)
       AND value < %(ceiling)s
       FOR UPDATE SKIP LOCKED),
raised AS (
    UPDATE publisher.tick t SET value = t.value + 1, raised_at = clock_timestamp()
      FROM due WHERE t.one = due.one AND t.value < %(ceiling)s
    RETURNING t.value)
SELECT coalesce((SELECT value FROM raised), (SELECT value FROM publisher.tick))
"""


def raise_tick(conn: Conn, *, ceiling: int, apart: float) -> int:
    """Count one further, if ``apart`` seconds have passed; returns where it stands.

    ``ceiling`` is what the witness is known to hold; it is not passed.
    """
    row = conn.execute(_RAISE, {"ceiling": ceiling, "apart": apart}).fetchone()
    assert row is not None  # noqa: S101 - the migration made the row
    return int(row[0])


# The witness's own mark stays among them whatever was noted since and never given to it.
_NOTE = """
UPDATE publisher.tick t
   SET marks = array_remove(ARRAY[%(given)s::text], NULL)
               || (array_remove(t.marks, %(given)s::text))[
                      greatest(cardinality(t.marks) - %(most)s, 1):]
               || %(mark)s::text
RETURNING t.value
"""


def note_mark(conn: AnyConnection, mark: str, *, given: str | None) -> int:
    """Note the mark that the witness is given next; returns the tick.

    ``given``: the mark that it holds now. It must be noted and committed first: a witness never
    holds a mark that its database does not know.
    """
    row = driver_of(conn).execute(_NOTE, {"mark": mark, "given": given, "most": MARKS}).fetchone()
    assert row is not None  # noqa: S101 - the migration made the row
    return int(row[0])


_CATCH_UP = """
UPDATE publisher.tick SET value = greatest(value, %(tick)s), raised_at = clock_timestamp()
"""
_GENERATION = """
UPDATE publisher.deployment SET generation = greatest(generation, %(least)s)
RETURNING generation
"""


def catch_up(conn: AnyConnection, *, tick: int, generation: int) -> int:
    """Bring a database that fell behind to where the witness saw it; returns its generation."""
    driver = driver_of(conn)
    driver.execute(_CATCH_UP, {"tick": tick})
    row = driver.execute(_GENERATION, {"least": generation}).fetchone()
    assert row is not None  # noqa: S101 - the migration made the row
    return int(row[0])
