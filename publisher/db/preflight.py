"""What a worker asks of a server before it claims anything: that a commit it is told of will last.

The promise stands on rows that are still there after a crash. A server that was told not to care
gets no worker.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from publisher.db import migrate
from publisher.db.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from publisher.db.migrate import SchemaStatus

OLDEST: Final = 150_000
"""PostgreSQL 15, as ``server_version_num``."""


class ProblemCode(StrEnum):
    """What is wrong, for alerts and tests."""

    VERSION_TOO_OLD = "version_too_old"
    STANDBY = "standby"
    FSYNC_OFF = "fsync_off"
    FULL_PAGE_WRITES_OFF = "full_page_writes_off"
    SYNCHRONOUS_COMMIT_OFF = "synchronous_commit_off"
    READ_ONLY = "read_only"
    SCHEMA_MISSING = "schema_missing"
    SCHEMA_OLDER = "schema_older"
    SCHEMA_NEWER = "schema_newer"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself, in its own words: ``on``, ``off`` and others."""

    version_num: int
    version: str
    standby: bool
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    read_only: str
    login: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason not to start; the sentence says what to do."""

    code: ProblemCode
    sentence: str


class PreflightError(DatabaseError):
    """The server would break the promise; carries every problem found."""

    def __init__(self, problems: list[Problem]) -> None:
        """Speak of all ``problems``, one line each."""
        super().__init__("\n".join(problem.sentence for problem in problems))
        self.problems = tuple(problems)


_SENTENCES: Final = {
    ProblemCode.VERSION_TOO_OLD: (
        "The server is PostgreSQL {version}; 15 or newer is needed. Upgrade it."
    ),
    ProblemCode.STANDBY: (
        "The server is a standby, which only repeats what its primary did. Point"
        " PUBLISHER_DATABASE_URL at the primary (with several hosts:"
        " target_session_attrs=read-write)."
    ),
    ProblemCode.FSYNC_OFF: (
        "fsync is off: after a crash, sends that began may be forgotten and made again."
        " Run ALTER SYSTEM SET fsync = on and reload the server."
    ),
    ProblemCode.FULL_PAGE_WRITES_OFF: (
        "full_page_writes is off: a crash may tear the pages that record what was sent."
        " Run ALTER SYSTEM SET full_page_writes = on and reload the server."
    ),
    ProblemCode.SYNCHRONOUS_COMMIT_OFF: (
        "synchronous_commit is off for this session: a commit is reported before it would survive"
        " a crash. Set it to on for the server, this database and user {login}"
        " (ALTER ROLE … RESET synchronous_commit)."
    ),
    ProblemCode.READ_ONLY: (
        "Transactions are read-only here (default_transaction_read_only is on). Reset it for the"
        " server, this database and user {login}."
    ),
    ProblemCode.SCHEMA_MISSING: "The database holds no schema yet. Run: publisher db upgrade",
    ProblemCode.SCHEMA_OLDER: (
        "The schema is at revision {current}; this release needs {head}. Run: publisher db upgrade"
    ),
    ProblemCode.SCHEMA_NEWER: (
        "The schema is at revision {current}, which this release (newest: {head}) does not know."
        " Run the newer release."
    ),
}


def check(conn: Connection) -> list[Problem]:
    """Return what is wrong with the server as this session sees it; empty when a worker may run.

    ``conn`` comes from the pool the worker will use, so that settings of its user count.
    Raises ``MigrationError`` when the release's own migrations cannot be found.
    """
    facts = ServerFacts(**conn.exec_driver_sql(_QUESTION).mappings().one())
    schema = migrate.status(conn)
    conn.rollback()
    return judge(facts, schema)


def judge(facts: ServerFacts, schema: SchemaStatus) -> list[Problem]:
    """Return the problems in what a server said of itself and its schema."""
    found = {
        ProblemCode.VERSION_TOO_OLD: facts.version_num < OLDEST,
        ProblemCode.STANDBY: facts.standby,
        ProblemCode.FSYNC_OFF: facts.fsync == "off",
        ProblemCode.FULL_PAGE_WRITES_OFF: facts.full_page_writes == "off",
        ProblemCode.SYNCHRONOUS_COMMIT_OFF: facts.synchronous_commit == "off",
        ProblemCode.READ_ONLY: facts.read_only == "on" and not facts.standby,
        ProblemCode.SCHEMA_MISSING: schema.current is None,
        ProblemCode.SCHEMA_OLDER: schema.current is not None and bool(schema.pending),
        ProblemCode.SCHEMA_NEWER: schema.is_newer,
    }
    words = {**asdict(facts), "current": schema.current, "head": schema.head}
    return [
        Problem(code, _SENTENCES[code].format(**words)) for code, is_so in found.items() if is_so
    ]


def refuse_unless_safe(conn: Connection) -> None:
    """Raise ``PreflightError`` with every problem that ``check`` finds."""
    problems = check(conn)
    if problems:
        raise PreflightError(problems)


_QUESTION: Final = """
    SELECT current_setting('server_version_num')::int AS version_num,
           current_setting('server_version') AS version,
           pg_is_in_recovery() AS standby,
           current_setting('fsync') AS fsync,
           current_setting('full_page_writes') AS full_page_writes,
           current_setting('synchronous_commit') AS synchronous_commit,
           current_setting('default_transaction_read_only') AS read_only,
           session_user::text AS login
"""
