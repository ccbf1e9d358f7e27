"""Dumping a deployment and putting it back, so that what was sent in between is looked for.

A dump raises the generation of the live database and tells the witness: whatever puts the dump
back later, by this command or any other, is seen to be older than its witness.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection, func, inspect, select

from publisher.db import archive, migrate
from publisher.db.archive import Archive
from publisher.db.connect import Database
from publisher.db.errors import BackupError, DatabaseError, RestoreUnclearError
from publisher.editorial.witnessed import WitnessTaken, give_to_witness, tell_witness
from publisher.engine import ledger, queries
from publisher.engine.errors import Conflict, PublisherError
from publisher.engine.ledger import deployment as row
from publisher.engine.schema import SCHEMA, jobs
from publisher.engine.witness import (
    Cause,
    Held,
    Record,
    Store,
    WitnessConflict,
    WitnessUnreachable,
    WitnessUnreadable,
)

_SILENT_FOR: Final = timedelta(minutes=1)
_log = structlog.get_logger(__name__)


class NotReplaced(PublisherError):
    """The database holds something, and nobody said that it may go. Nothing was changed."""

    code = "not-replaced"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Database {name} is not empty. Nothing was changed. Restore into an empty one, or, to"
            f" put the dump in the place of everything in it, give: --replace --confirm {name}"
        )


@dataclass(frozen=True, slots=True)
class Dumped:
    """A dump that is there: its size in bytes, and the generation that goes on."""

    size: int
    generation: int
    witness_told: bool


def dump(database: Database, file: Path, store: Store, *, step: int) -> Dumped:
    """Dump into ``file``, raise the live database's generation and tell its witness.

    ``database`` is opened as owner. A witness that is out of reach is told by the next worker.
    Raises ``BackupError``; then there is no file.
    """
    generations = []

    def go_on() -> None:
        with database.engine.begin() as conn:
            generations.append(row.raise_generation(conn))

    size = archive.write(database, file, before_it_is_there=go_on)
    try:
        with database.engine.connect() as conn:
            told = tell_witness(conn, store, step=step)
    except (WitnessUnreachable, WitnessUnreadable) as error:
        _log.warning("witness.not_told", witness=store.name, error=str(error))
        told = False
    _log.info("database.dumped", file=str(file), size=size, generation=generations[0])
    return Dumped(size, generations[0], told)


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back, and how many posts are looked for before they may be sent."""

    deployment: str
    generation: int
    size: int
    quarantined: int
    beat_at: datetime


def restore(  # noqa: PLR0913 - each is named at the one call
    database: Database,
    file: Path,
    store: Store,
    *,
    replaces: bool,
    confirm: str,
    take_witness: bool,
    who: str,
    step: int,
    absent_after: float,
) -> Restored:
    """Put a dump into ``database``, opened as owner, and hold back what may have been sent since.

    The witness is told first that whatever is as old as the dump is too old, so that nothing is
    claimed unseen should this end half-way. ``absent_after`` as ``ledger.open_quarantine`` has it.

    Raises ``NotReplaced``, ``Conflict`` while workers run, ``WitnessTaken``,
    ``WitnessUnreachable``, ``BackupError``: then nothing was changed.
    """
    old = Archive.read(file)
    if not migrate.knows(old.revision):
        message = (
            f"The dump is at revision {old.revision}, which this release does not know. Nothing"
            " was changed. Run the newer release."
        )
        raise BackupError(message)
    old.require_fit(database)
    with database.engine.begin() as conn:
        _require_room(conn, replaces=replaces, confirm=confirm)
    with _witness_warned(store, old, take=take_witness):
        old.put_into(database)
    migrate.upgrade(database)
    with database.engine.begin() as conn:
        conn.exec_driver_sql("ANALYZE")
    return _hold_back(database, old, store, who=who, step=step, absent_after=absent_after)


def database_name(database: Database) -> str:
    """What the server calls it."""
    with database.engine.connect() as conn:
        name: str = conn.execute(select(func.current_database())).scalar_one()
    return name


def is_empty(database: Database) -> bool:
    """Whether the schema holds no table yet."""
    with database.engine.connect() as conn:
        return not inspect(conn).get_table_names(schema=SCHEMA)


def _require_room(conn: Connection, *, replaces: bool, confirm: str) -> None:
    tables = set(inspect(conn).get_table_names(schema=SCHEMA))
    if not tables:
        return
    name: str = conn.execute(select(func.current_database())).scalar_one()
    if not replaces or confirm.strip() != name:
        raise NotReplaced(name)
    if not {"jobs", "incarnations"} <= tables:
        return
    working = [at for at in queries.worker_rows(conn) if at.now - at.seen_at < _SILENT_FOR]
    leased = conn.execute(
        select(func.count()).select_from(jobs).where(jobs.c.lease_until > func.clock_timestamp())
    ).scalar_one()
    if working or leased:
        runs = ", ".join(f"{at.id} on {at.host}" for at in working) or "unseen"
        message = (
            f"Workers are at work on database {name}, or were a minute ago (run {runs}; they hold"
            f" {leased}). Nothing was changed. Stop them, wait a minute, and try again."
        )
        raise Conflict(message, code="workers-at-work")


@contextmanager
def _witness_warned(store: Store, old: Archive, *, take: bool) -> Iterator[None]:
    """Have the witness say that a database as old as the dump lacks sends; undone on failure."""
    held = _held(store, old, take=take)
    warning = _warning(held, old)
    if warning is None:
        yield
        return
    stamp = store.replace(warning) if held is None else store.write(warning, over=held.stamp)
    try:
        yield
    except DatabaseError as error:
        # Where the dump may be there after all, the warning stays.
        if held is not None and not isinstance(error, RestoreUnclearError):
            try:
                store.write(held.record, over=stamp)
            except (WitnessConflict, WitnessUnreachable) as trouble:
                _log.warning("witness.not_told", witness=store.name, error=str(trouble))
        raise


def _held(store: Store, old: Archive, *, take: bool) -> Held | None:
    """What the witness says of the dump's deployment; None where it says nothing of it."""
    try:
        held = store.read()
    except WitnessUnreadable:
        if not take:
            raise WitnessTaken(store.name, None) from None
        return None
    if held is None or held.record.deployment == old.deployment:
        return held
    if not take:
        raise WitnessTaken(store.name, held.record.deployment)
    return None


def _warning(held: Held | None, old: Archive) -> Record | None:
    if held is not None:
        if held.record.generation > old.generation:
            return None
        return replace(held.record, generation=old.generation + 1)
    return Record(
        deployment=old.deployment,
        system="",
        timeline=0,
        generation=old.generation + 1,
        tick=0,
        mark=secrets.token_hex(8),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _hold_back(
    database: Database, old: Archive, store: Store, *, who: str, step: int, absent_after: float
) -> Restored:
    held = store.read()
    with database.engine.begin() as conn:
        opened = ledger.open_quarantine(
            conn,
            Cause.RESTORED,
            strict=True,
            absent_after=absent_after,
            who=who,
            since=old.beat_at,
            witnessed=None if held is None else held.record,
            detail={"file": old.file.name, "generation": old.generation},
        )
        generation = row.raise_generation(conn)
    with database.engine.connect() as conn:
        give_to_witness(conn, store, step=step)
    _log.warning("database.restored", file=str(old.file), generation=generation, who=who)
    quarantined = opened.jobs if opened else 0
    return Restored(old.deployment, generation, old.size, quarantined, old.beat_at)
