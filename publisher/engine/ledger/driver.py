"""The driver's connection below a caller's, whichever of the two libraries it came through."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import Connection as SqlalchemyConnection

Conn = psycopg.Connection[Any]
AnyConnection = SqlalchemyConnection | Conn
DatabaseTrouble = psycopg.Error
"""What goes wrong at the database; for callers that may not know the driver."""


def driver_of(conn: AnyConnection) -> Conn:
    """The psycopg connection below; a SQLAlchemy caller's transaction is begun first."""
    if isinstance(conn, psycopg.Connection):
        return conn
    if not conn.in_transaction():
        conn.begin()
    # SQLAlchemy begins lazily at the driver, too: its first statement would otherwise come after
    # ours, and ours would commit by itself.
    conn.exec_driver_sql("SELECT 1")
    driver = conn.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - for the type checker
    return driver
