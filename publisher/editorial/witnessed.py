"""The deployment beside its witness, as people see the two and bring them to agree."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from sqlalchemy import Connection

from publisher.engine import ledger
from publisher.engine.errors import PublisherError
from publisher.engine.witness import (
    Cause,
    Record,
    Stands,
    Store,
    WitnessConflict,
    WitnessUnreachable,
    WitnessUnreadable,
    doubt_of,
    next_record,
)

_TRIES = 8


class WitnessTaken(PublisherError):
    """The witness speaks of a deployment that may still go on. Nothing was changed."""

    code = "witness-taken"

    def __init__(self, name: str, deployment_id: str | None) -> None:
        whose = "is damaged" if deployment_id is None else f"speaks of deployment {deployment_id}"
        super().__init__(
            f"The witness {name} {whose}. Nothing was changed. If nothing else goes on with it,"
            " add --take-witness; else set PUBLISHER_WITNESS to a place of this deployment's own."
        )


class Says(StrEnum):
    """What the witness says of this database."""

    NOTHING = "nothing"
    AGREES = "agrees"
    DISAGREES = "disagrees"
    ANOTHER = "another_deployment"
    UNREADABLE = "unreadable"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Beside:
    """How the database stands, what its witness holds, and why the two disagree if they do."""

    stands: Stands
    record: Record | None
    says: Says
    cause: Cause | None = None

    @classmethod
    def read(cls, conn: Connection, store: Store, *, step: int) -> Self:
        """Look at both. Raises ``psycopg.Error``."""
        try:
            held = store.read()
        except WitnessUnreadable:
            return cls(ledger.stands(conn), None, Says.UNREADABLE)
        except WitnessUnreachable:
            return cls(ledger.stands(conn), None, Says.UNREACHABLE)
        # The database second: as both go on, it is never behind what was read before.
        stands = ledger.stands(conn)
        if held is None:
            return cls(stands, None, Says.NOTHING)
        if held.record.deployment != stands.deployment:
            return cls(stands, held.record, Says.ANOTHER)
        doubt = doubt_of(stands, held.record, step=step)
        if doubt is None:
            return cls(stands, held.record, Says.AGREES)
        return cls(stands, held.record, Says.DISAGREES, doubt.cause)


def witness_to_take(store: Store, *, take: bool) -> bool:
    """Whether there is a witness that another deployment left, which ``take`` allows to be taken.

    Raises ``WitnessTaken`` where it does not, ``WitnessUnreachable``.
    """
    try:
        held = store.read()
    except WitnessUnreadable:
        whose = None
    else:
        if held is None:
            return False
        whose = held.record.deployment
    if not take:
        raise WitnessTaken(store.name, whose)
    return True


def give_to_witness(conn: Connection, store: Store, *, step: int) -> None:
    """Write over whatever the witness holds: it speaks of this database from here on.

    A transaction of its own, on a new connection. Raises ``WitnessUnreachable``.
    """
    store.replace(_next_record(conn, given=None, step=step))


def tell_witness(conn: Connection, store: Store, *, step: int) -> bool:
    """Tell a witness that speaks of this deployment how the database stands now.

    Returns False where there is none that does. Raises ``WitnessUnreadable``,
    ``WitnessUnreachable``.
    """
    for _ in range(_TRIES):
        held = store.read()
        if held is None or held.record.deployment != ledger.stands(conn).deployment:
            return False
        try:
            store.write(_next_record(conn, given=held.record.mark, step=step), over=held.stamp)
        except WitnessConflict:
            continue
        return True
    message = f"The witness {store.name} changes faster than it is read. Try again."
    raise WitnessUnreachable(message)


def _next_record(conn: Connection, *, given: str | None, step: int) -> Record:
    """The record that the witness is given next, its mark noted and committed first."""
    mark = secrets.token_hex(8)
    tick = ledger.note_mark(conn, mark, given=given)
    conn.commit()
    return next_record(ledger.stands(conn), mark, tick=tick, step=step)
