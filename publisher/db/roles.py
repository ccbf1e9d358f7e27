"""The three PostgreSQL roles everything runs in, and the schema that holds every table.

``publisher_owner`` owns the schema and runs migrations. ``publisher_engine`` (workers, reconciler)
and ``publisher_app`` (pages, API) own nothing. None can log in: a login user is granted the role
its process acts in and switches to it. On a shared server, give each process a login user of its
own with one role; a role guards against mistakes, for a session may always switch back.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import psycopg
from psycopg import sql

from publisher.db.errors import RolesMissingError

SCHEMA: Final = "publisher"
_SET_OPTION_SINCE: Final = 160_000
_TRIES: Final = 5


class Role(StrEnum):
    """What a process acts as; the value is the role's name in PostgreSQL."""

    OWNER = "publisher_owner"
    ENGINE = "publisher_engine"
    APP = "publisher_app"


def ensure_roles(conn: psycopg.Connection, *, login: str | None = None) -> None:
    """Create the roles and the schema that are missing and grant the roles to ``login``.

    ``conn`` is in autocommit, connected to the database that is to hold the schema, as a user who
    may do this; ``login`` is the user who is to act in the roles, by default that one. Does nothing
    when nothing is missing, so that an ordinary login may call it on a database a DBA prepared.

    Without ``login``, what the owner needs is enough: each role may have a login of its own.

    Raises ``RolesMissingError``, which carries the SQL for a DBA, when the user may not.
    """
    needed = (Role.OWNER,) if login is None else tuple(Role)
    for _ in range(_TRIES):
        if not missing_statements(conn, login=login, granted=needed):
            return
        missing = missing_statements(conn, login=login)
        # Roles belong to the whole server: another database on it may be set up right now, and
        # whoever is late is told that the role exists, or that a row changed under it.
        try:
            with conn.transaction():
                for statement in missing:
                    conn.execute(statement)
        except psycopg.errors.InsufficientPrivilege as error:
            raise _not_ours_to_make(conn, login, error) from None
        except (
            psycopg.errors.DuplicateObject,
            psycopg.errors.DuplicateSchema,
            psycopg.errors.UniqueViolation,
            psycopg.errors.InternalError_,
        ):
            continue
    raise _not_ours_to_make(conn, login, None)


def missing_statements(
    conn: psycopg.Connection, *, login: str | None = None, granted: tuple[Role, ...] = tuple(Role)
) -> list[sql.Composed]:
    """Return the SQL that is still to be run, in order, for ``login`` to act as ``granted``."""
    login = login or _current_user(conn)
    there = {
        name
        for (name,) in conn.execute(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", ([*Role],)
        )
    }
    statements = [
        sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role))
        for role in Role
        if role not in there
    ]
    statements += [
        _grant(conn, role, login)
        for role in granted
        if role not in there or not _may_act_in(conn, role, login)
    ]
    return statements + _schema_statements(conn, there)


def _schema_statements(conn: psycopg.Connection, there: set[str]) -> list[sql.Composed]:
    schema, owner = sql.Identifier(SCHEMA), sql.Identifier(Role.OWNER)
    row = conn.execute(
        "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s", (SCHEMA,)
    ).fetchone()
    statements = []
    if row is None:
        statements.append(sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(schema, owner))
    elif row[0] != Role.OWNER:
        statements.append(sql.SQL("ALTER SCHEMA {} OWNER TO {}").format(schema, owner))
    users = [
        role
        for role in (Role.ENGINE, Role.APP)
        if row is None or role not in there or not _may_use_schema(conn, role)
    ]
    if users:
        # As its owner: a member without inheritance has none of the owner's rights by itself.
        statements += [
            sql.SQL("SET ROLE {}").format(owner),
            sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(
                schema, sql.SQL(", ").join(sql.Identifier(role) for role in users)
            ),
            sql.SQL("RESET ROLE").format(),
        ]
    return statements


def _grant(conn: psycopg.Connection, role: Role, login: str) -> sql.Composed:
    """Grant what lets ``login`` switch to the role.

    From PostgreSQL 16 on, switching is an option of its own, which whoever created the role does
    not have by itself; before, every member may.
    """
    template = (
        sql.SQL("GRANT {} TO {} WITH SET TRUE, INHERIT FALSE")
        if conn.info.server_version >= _SET_OPTION_SINCE
        else sql.SQL("GRANT {} TO {}")
    )
    return template.format(sql.Identifier(role), sql.Identifier(login))


def _may_act_in(conn: psycopg.Connection, role: Role, login: str) -> bool:
    privilege = "SET" if conn.info.server_version >= _SET_OPTION_SINCE else "MEMBER"
    return _is_true(conn.execute("SELECT pg_has_role(%s, %s, %s)", (login, role, privilege)))


def _may_use_schema(conn: psycopg.Connection, role: Role) -> bool:
    return _is_true(conn.execute("SELECT has_schema_privilege(%s, %s, 'USAGE')", (role, SCHEMA)))


def _is_true(cursor: psycopg.Cursor[tuple[object, ...]]) -> bool:
    row = cursor.fetchone()
    return row is not None and row[0] is True


def _current_user(conn: psycopg.Connection) -> str:
    row = conn.execute("SELECT current_user::text").fetchone()
    if row is None:
        raise AssertionError
    return str(row[0])


def _not_ours_to_make(
    conn: psycopg.Connection, login: str | None, error: psycopg.Error | None
) -> RolesMissingError:
    login = login or _current_user(conn)
    script = "\n".join(f"{part.as_string(conn)};" for part in missing_statements(conn, login=login))
    reason = error.diag.message_primary if error is not None else "others keep changing the roles"
    return RolesMissingError(
        f'The database is not set up, and user "{login}" may not do it ({reason}). Have this run'
        f" in database {conn.info.dbname} by somebody who may:",
        script,
    )
