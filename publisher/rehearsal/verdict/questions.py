"""The product's own audit, asked of a schedule's journal when all is quiet."""

from __future__ import annotations

from collections.abc import Container

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.engine.audit.run import audit


def ask(settings: Settings, *, alerted: bool, but: Container[str] = ()) -> list[str]:
    """Every invariant, of the whole history: those that do not hold, or could not be asked.

    ``alerted``: somebody was there to be told. ``but``: ids that this schedule breaks on purpose.
    """
    with (
        Database.open(settings, Role.ENGINE, application_name="audit", pool_size=1) as database,
        database.connect_driver(direct=True) as conn,
    ):
        report = audit(conn, full=True, alerted=alerted)
    broken = [
        f"{one.invariant.id} {one.total}: {one.rows[0]}"
        for one in report.broken
        if one.invariant.id not in but
    ]
    return broken + [f"not asked: {what} {why}" for what, why in report.unasked]
