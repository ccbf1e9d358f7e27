"""Which workspace a transaction of the pages' role is in: row-level security reads it.

It is set inside each transaction and ends with it, so that neither a pool nor a pooler hands it to
whoever comes next. Nothing set, nothing seen.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine, event

EVERY: Final = "*"
"""Every workspace: for commands of whoever runs the deployment, never for a request."""

Workspace = int | str | None
"""A workspace's number or slug, ``EVERY``, or None for none."""

WORKSPACE: Final = "publisher.workspace"
"""The setting that the policies read."""

_OPTION: Final = "workspace"


def enter(engine: Engine, workspace: Workspace) -> None:
    """Have every transaction of ``engine`` set it first: ``workspace``, or its own option."""

    @event.listens_for(engine, "begin")
    def _begin(conn: Connection) -> None:
        named = conn.get_execution_options().get(_OPTION, workspace)
        value = (setting(named),)
        conn.exec_driver_sql("SELECT set_config('publisher.workspace', %s, true)", value)


def setting(workspace: Workspace) -> str:
    """How PostgreSQL is told: ``#`` and the number, the slug, ``*``, or nothing."""
    return f"#{workspace}" if isinstance(workspace, int) else workspace or ""


def within(engine: Engine, workspace: Workspace) -> Engine:
    """The same pool, for transactions in this workspace."""
    return engine.execution_options(**{_OPTION: workspace})
