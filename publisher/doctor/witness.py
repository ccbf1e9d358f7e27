"""The witness outside the database: there, fresh, of this database, and what it had held back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from publisher import witness
from publisher.doctor import spools
from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.editorial.witnessed import Beside, Says
from publisher.engine import queries
from publisher.engine.errors import PublisherError
from publisher.engine.queries import WorkerRow
from publisher.engine.witness import Store
from publisher.witness.address import FileAt, parse
from publisher.words import _, many

_LEAST_AGE: Final = 120.0
"""A worker tells it every half step; a small step must not make a slow disk look like a fault."""


def agreement(ward: Ward) -> Iterator[Finding]:
    """Whether it can be read, is told in time, and speaks of this database as it is."""
    settings = ward.settings
    try:
        store = witness.store(settings)
    except PublisherError as problem:
        remedy = _("Correct PUBLISHER_WITNESS; until then no worker starts.")
        yield error("witness_unusable", str(problem), remedy)
        return
    with ward.reading() as conn:
        if conn.exec_driver_sql("SELECT pg_is_in_recovery()").scalar_one():
            return  # told of already; a standby cannot say how far it is
        works = _works(ward, queries.worker_rows(conn), queries.clock(conn))
        beside = _beside(ward, conn, store)
        if beside.says is Says.DISAGREES:  # a worker may have written in between
            beside = _beside(ward, conn, store)
        now = queries.clock(conn)
    yield from _says(beside, store.name, works=bool(works))
    if works and beside.record is not None and beside.says is Says.AGREES:
        told = datetime.fromisoformat(beside.record.at)
        age = (now - told).total_seconds()
        if age > max(2 * settings.witness_step, _LEAST_AGE):
            yield warning(
                "witness_stale",
                _("Workers run, and the witness {name} was last told {n:.0f} s ago.").format(
                    name=store.name, n=age
                ),
                _("Look for witness.not_told in their logs; soon they will claim nothing."),
            )


def _beside(ward: Ward, conn: Connection, store: Store) -> Beside:
    return Beside.read(conn, store, step=ward.settings.witness_step)


def _says(beside: Beside, name: str, *, works: bool) -> Iterator[Finding]:
    match beside.says:
        case Says.UNREACHABLE:
            yield error(
                "witness_unreachable",
                _("The witness {name} cannot be read just now: nothing is claimed.").format(
                    name=name
                ),
                _("Bring it back, or correct PUBLISHER_WITNESS."),
            )
        case Says.UNREADABLE:
            yield error(
                "witness_unreadable",
                _("The witness {name} is damaged, so anything may be missing here.").format(
                    name=name
                ),
                _("Nothing: the next worker looks for what was due. See publisher quarantine."),
            )
        case Says.ANOTHER:
            whose = "" if beside.record is None else beside.record.deployment
            yield error(
                "witness_of_another",
                _("The witness {name} speaks of deployment {id}.").format(name=name, id=whose),
                _("Give each deployment a witness of its own (PUBLISHER_WITNESS)."),
            )
        case Says.DISAGREES:
            yield error(
                "witness_disagrees",
                _("The database is not as its witness {name} saw it ({cause}).").format(
                    name=name, cause=beside.cause
                ),
                _("If it was restored by mistake, stop here; else see publisher quarantine."),
            )
        case Says.NOTHING if beside.stands.used:
            make = warning if works else note
            yield make(
                "witness_missing",
                _("There is no witness {name} yet, though posts were sent.").format(name=name),
                _("If it was lost, nothing is to be done: the next worker looks before it sends."),
            )
        case _:
            pass


def _works(ward: Ward, rows: list[WorkerRow], now: datetime) -> list[WorkerRow]:
    silence = ward.settings.rescue_after_seconds
    return [row for row in rows if (now - row.seen_at).total_seconds() < silence]


def reach(ward: Ward) -> Iterator[Finding]:
    """Whether workers on several machines share it: a file on one machine's disk is not shared."""
    path = _file(ward)
    if path is None or spools.is_network(path):
        return
    with ward.reading() as conn:
        rows = queries.worker_rows(conn)
        now = queries.clock(conn)
    hosts = sorted({row.host for row in _works(ward, rows, now)})
    if len(hosts) > 1:
        yield warning(
            "witness_not_shared",
            _("Workers run on {hosts}, and the witness {name} lies on one disk.").format(
                hosts=", ".join(hosts), name=path
            ),
            _("Set PUBLISHER_WITNESS to a shared path, an S3 object or a ConfigMap for all."),
        )


def _file(ward: Ward) -> Path | None:
    if ward.settings.witness is None:
        return ward.settings.home / "witness"
    try:
        at = parse(ward.settings.witness)
    except PublisherError:
        return None
    return at.path if isinstance(at, FileAt) else None


def quarantine(ward: Ward) -> Iterator[Finding]:
    """Posts that are looked for on their page before they may be sent."""
    with ward.reading() as conn:
        waits = queries.quarantine_backlog(conn, overdue=timedelta(seconds=ward.limits.overdue))
    if waits.asked:
        what = many(
            "{n} post is in quarantine and needs a person.",
            "{n} posts are in quarantine and need a person.",
            waits.asked,
        )
        yield warning("quarantine_asks", what, _("Run: publisher quarantine status"))
    if waits.unlooked:
        what = many(
            "{n} post is in quarantine, and its look is overdue.",
            "{n} posts are in quarantine, and their looks are overdue.",
            waits.unlooked,
        )
        yield warning("quarantine_unlooked", what, _("Start the reconciler: reconciler"))
    if waits.open > waits.asked + waits.unlooked:
        what = many(
            "{n} post is in quarantine until it was looked for.",
            "{n} posts are in quarantine until they were looked for.",
            waits.open - waits.asked - waits.unlooked,
        )
        yield note("quarantine_waits", what, _("Run: publisher quarantine status"))
