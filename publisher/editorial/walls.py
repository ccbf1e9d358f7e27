"""The workspace a transaction is in: whose a new channel or post is, and whether there is one."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text

from publisher.editorial.spelling import did_you_mean
from publisher.engine.errors import NotFound, PublisherError


class WorkspaceUnnamed(PublisherError):
    """There are several workspaces, and nobody said whose the new thing is."""

    code = "workspace-unnamed"


def own(conn: Connection) -> int:
    """The number of the workspace that what is added now belongs to.

    The transaction's own, or the only one there is. Raises ``WorkspaceUnnamed``.
    """
    number = conn.scalar(select(func.publisher.own_workspace()))
    if number is None:
        names = ", ".join(_slugs(conn))
        message = f"Nobody said which workspace. Set PUBLISHER_WORKSPACE to one of: {names}."
        raise WorkspaceUnnamed(message)
    return int(number)


def serves_others(conn: Connection) -> bool:
    """Whether what the whole deployment shares serves other workspaces than the transaction's own.

    Never for whoever runs the deployment.
    """
    return bool(conn.scalar(text(_OTHERS)))


# Out of every workspace for a moment, ``own_workspace`` names the only one there is, or none.
_OTHERS = """
WITH here AS MATERIALIZED (
    SELECT coalesce(current_setting('publisher.workspace', true), '') AS named),
out AS MATERIALIZED (
    SELECT set_config('publisher.workspace', '', true) FROM here),
alone AS MATERIALIZED (
    SELECT publisher.own_workspace() IS NOT NULL AS is_so FROM out),
back AS MATERIALIZED (
    SELECT set_config('publisher.workspace', (SELECT named FROM here), true) FROM alone)
SELECT h.named <> '*' AND NOT a.is_so FROM here h, alone a, back
"""


def require(conn: Connection, slug: str) -> None:
    """Raise ``NotFound`` where the transaction's workspace is none."""
    if conn.scalar(select(func.publisher.workspace())) is not None:
        return
    conn.execute(text("SELECT set_config('publisher.workspace', '*', true)"))
    known = _slugs(conn)
    fix = did_you_mean(slug, known) or f"There are: {', '.join(known)}."
    message = f'There is no workspace "{slug}" (PUBLISHER_WORKSPACE). {fix}'
    raise NotFound(message)


def _slugs(conn: Connection) -> list[str]:
    return list(conn.scalars(text("SELECT slug FROM publisher.workspaces ORDER BY slug")))
