"""What stands between us and the server, found out by what it does to a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import psycopg

from publisher.db.connect import Database
from publisher.db.errors import DatabaseError
from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.words import _

Conn = psycopg.Connection[Any]

_PID: Final = "SELECT pg_backend_pid()"
_DEPLOYMENT: Final = "SELECT id::text FROM publisher.deployment"
_EXPECTED: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "TimeZone": "UTC",
    "default_transaction_isolation": "read committed",
}


def session(ward: Ward) -> Iterator[Finding]:
    """Whether a session keeps its server process, its settings and its prepared statements."""
    settings = ward.settings
    with ExitStack() as stack:
        first, second = (stack.enter_context(ward.database.connect_driver()) for _n in range(2))
        yield from _settings(first)
        if not _is_pooled(first):
            if settings.prepare == "off":
                yield note(
                    "prepare_off",
                    _("PUBLISHER_PREPARE is off and no pooler stands in between."),
                    _("Unset it: prepared statements spare the server most of its planning."),
                )
            return
        if not _is_shared(first, second):
            return
        if settings.direct_url is None:
            yield warning(
                "direct_url_missing",
                _("A pooler lends each transaction another server process; LISTEN is lost in it."),
                _("Set PUBLISHER_DIRECT_URL to the address past the pooler."),
            )
        if settings.prepare == "on" and _loses_prepared(first, second):
            yield error(
                "prepared_lost",
                _("The pooler loses prepared statements, which workers use."),
                _("Set PUBLISHER_PREPARE=off, or the pooler's max_prepared_statements."),
            )


def direct(ward: Ward) -> Iterator[Finding]:
    """Whether the address past the pooler leads past it, and to the same database."""
    if ward.settings.direct_url is None:
        return
    remedy = _("Correct PUBLISHER_DIRECT_URL.")
    with ward.database.connect_driver() as usual:
        try:
            past = ward.database.connect_driver(direct=True)
        except (psycopg.Error, DatabaseError):
            what = _("Nobody lets us in at PUBLISHER_DIRECT_URL.")
            yield error("direct_url_closed", what, remedy)
            return
        with past:
            if _is_pooled(past):
                what = _("PUBLISHER_DIRECT_URL leads to a pooler, too.")
                yield warning("direct_url_pooled", what, remedy)
            try:
                same = _one(usual, _DEPLOYMENT) == _one(past, _DEPLOYMENT)
            except psycopg.Error:
                same = False
            if not same:
                what = _("PUBLISHER_DIRECT_URL leads to another database.")
                yield error("direct_url_elsewhere", what, remedy)


def _settings(conn: Conn) -> Iterator[Finding]:
    """A pooler that drops start-up options leaves a role's own settings, which may lack some."""
    for name, wanted in _EXPECTED.items():
        found = _one(conn, f"SELECT current_setting('{name}')")
        if found != wanted:
            yield warning(
                "session_settings_lost",
                _("A worker's session has {name} = {found} instead of {wanted}.").format(
                    name=name, found=found, wanted=wanted
                ),
                _("Let the pooler pass start-up options, or set it for the login user."),
            )


def loses_prepared(database: Database) -> bool:
    """Whether a pooler stands in between that loses prepared statements."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(database.connect_driver()) for _n in range(2))
        is_shared = _is_pooled(first) and _is_shared(first, second)
        return is_shared and _loses_prepared(first, second)


def _is_pooled(conn: Conn) -> bool:
    """A pooler gives its clients cancel keys of its own: they name no process of the server."""
    return bool(_one(conn, _PID) != conn.info.backend_pid)


def _is_shared(first: Conn, second: Conn) -> bool:
    """While ``second`` holds what ``first`` last had, ``first`` is given another process."""
    before = _one(first, _PID)
    with second.transaction():
        _one(second, _PID)
        return bool(_one(first, _PID) != before)


def _loses_prepared(first: Conn, second: Conn) -> bool:
    """Whether the process that ``first`` is given does not know what the one before did.

    Or knows it already, from another client that named its own statement like this.
    """
    question = "SELECT 'publisher doctor'"
    try:
        first.execute(question, prepare=True)
        with second.transaction():
            _one(second, _PID)
            first.execute(question, prepare=True)
    except (
        psycopg.errors.InvalidSqlStatementName,
        psycopg.errors.DuplicatePreparedStatement,
    ):
        return True
    return False


def _one(conn: Conn, question: str) -> object:
    row = conn.execute(question.encode(), prepare=False).fetchone()
    return None if row is None else row[0]
