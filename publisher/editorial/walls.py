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
