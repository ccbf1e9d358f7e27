"""Whether an error says that the database was not there, and not that something was wrong."""

from __future__ import annotations

import psycopg
import sqlalchemy.exc

from publisher.db.errors import DatabaseError

_AWAY = (
    DatabaseError,
    psycopg.OperationalError,
    sqlalchemy.exc.OperationalError,
    sqlalchemy.exc.InterfaceError,
    sqlalchemy.exc.TimeoutError,
)


def is_away(error: BaseException) -> bool:
    """Nobody answered, the connection broke, the pool is used up, or a lock was not had in time.

    What was asked may have been done all the same: a commit's answer can be lost.
    """
    return isinstance(error, _AWAY)
