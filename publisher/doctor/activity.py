"""What other sessions do to us: hold back vacuum, hold locks, use up transaction numbers."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import text

from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.words import _

# As the login user: sessions of the same login are shown whole only to it. Of others' sessions we
# see at least how many transactions their snapshot is behind.
_AS_LOGIN = "SET LOCAL ROLE NONE"

_OLD = text("""
SELECT pid, coalesce(application_name, '') AS name, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start) AS age,
       extract(epoch FROM clock_timestamp() - state_change) AS idle,
       coalesce(age(backend_xmin), 0) AS behind
  FROM pg_stat_activity
 WHERE pid <> pg_backend_pid() AND datname = current_database()
   AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)
   AND (backend_type IS NULL OR backend_type = 'client backend')
 ORDER BY xact_start
""")


def transactions(ward: Ward) -> Iterator[Finding]:
    """Transactions that keep dead rows from being cleaned away: claims get slower by the hour."""
    limits = ward.limits
    with ward.reading() as conn:
        conn.exec_driver_sql(_AS_LOGIN)
        rows = conn.execute(_OLD).all()
    for row in rows:
        who = {"pid": row.pid, "name": row.name or "?"}
        remedy = _("End it: SELECT pg_terminate_backend({pid})").format(pid=row.pid)
        if row.state.startswith("idle in transaction") and row.idle > limits.idle_in_transaction:
            what = _("Session {pid} ({name}) has been idle in a transaction for {n:.0f} s.")
            yield warning("idle_in_transaction", what.format(n=row.idle, **who), remedy)
        elif row.age is not None and row.age > limits.old_transaction:
            what = _("Session {pid} ({name}) has had a transaction open for {n:.0f} s.")
            yield warning("old_transaction", what.format(n=row.age, **who), remedy)
        elif row.behind > limits.snapshot_behind:
            what = _("Session {pid} ({name}) holds a snapshot {n:,} transactions old.")
            yield warning("old_transaction", what.format(n=row.behind, **who), remedy)


_HELD_BACK = text("""
SELECT 'prepared transaction ' || gid AS what, extract(epoch FROM clock_timestamp() - prepared) AS n
  FROM pg_prepared_xacts WHERE database = current_database()
""")
_SLOTS = text("""
SELECT slot_name, greatest(age(xmin), age(catalog_xmin)) AS behind, wal_status
  FROM pg_replication_slots WHERE NOT active
""")


def left_behind(ward: Ward) -> Iterator[Finding]:
    """Prepared transactions and unused replication slots, which outlive every session."""
    with ward.reading() as conn:
        prepared = conn.execute(_HELD_BACK).all()
        slots = conn.execute(_SLOTS).all()
    for what, seconds in prepared:
        if seconds > ward.limits.old_transaction:
            yield warning(
                "prepared_transaction",
                _("A {what} has been left for {n:.0f} s.").format(what=what, n=seconds),
                _("End it with COMMIT PREPARED or ROLLBACK PREPARED."),
            )
    for slot, _behind, status in slots:
        yield warning(
            "unused_slot",
            _("Nobody reads replication slot {slot} ({status}); WAL is kept for it.").format(
                slot=slot, status=status or "?"
            ),
            _("Start its reader, or run SELECT pg_drop_replication_slot('{slot}').").format(
                slot=slot
            ),
        )


_WAITING = text("""
SELECT pid, extract(epoch FROM clock_timestamp() - min(waitstart)) AS waits,
       pg_blocking_pids(pid) AS by
  FROM pg_locks
 WHERE NOT granted AND waitstart IS NOT NULL
   AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())
 GROUP BY pid ORDER BY pid
""")


def locks(ward: Ward) -> Iterator[Finding]:
    """Sessions that wait for somebody's lock."""
    with ward.reading() as conn:
        rows = conn.execute(_WAITING).all()
    for pid, waits, by in rows:
        if waits > ward.limits.lock_wait:
            holders = ", ".join(map(str, by)) or "?"
            yield warning(
                "lock_waited_for",
                _("Session {pid} has waited {n:.0f} s for a lock of session {by}.").format(
                    pid=pid, n=waits, by=holders
                ),
                _("End what holds it: SELECT pg_terminate_backend({by})").format(by=holders),
            )


_AGES = text("""
SELECT greatest(age(datfrozenxid), mxid_age(datminmxid))
  FROM pg_database WHERE datname = current_database()
""")


def wraparound(ward: Ward) -> Iterator[Finding]:
    """How near the server is to refusing writes because vacuum does not get through."""
    limits = ward.limits
    with ward.reading() as conn:
        age = int(conn.execute(_AGES).scalar_one())
    for least, make in (
        (limits.frozen_error, error),
        (limits.frozen_warning, warning),
        (limits.frozen_note, note),
    ):
        if age > least:
            yield make(
                "vacuum_behind",
                _("The oldest transaction not yet frozen is {n:,} back of 2,147,483,647.").format(
                    n=age
                ),
                _("Run VACUUM FREEZE in this database, and see what holds autovacuum back."),
            )
            return
