"""Whether the server keeps what it was told: settings as this role has them, and as others do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, text

from publisher.db import migrate, preflight
from publisher.db.preflight import ProblemCode
from publisher.db.roles import Role
from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.words import _

_ON: Final = frozenset({"on", "true", "yes", "1", "t", "y"})
_OFF: Final = frozenset({"off", "false", "no", "0", "f", "n"})
_DANGEROUS: Final = {
    "synchronous_commit": _OFF,
    "session_replication_role": frozenset({"replica"}),
    "default_transaction_read_only": _ON,
    "zero_damaged_pages": _ON,
    "ignore_checksum_failure": _ON,
}
"""Kept as somebody wrote it, in any of PostgreSQL's spellings."""


def fit(ward: Ward) -> Iterator[Finding]:
    """Everything a worker refuses to start on, asked on a connection of its own role."""
    with ward.reading() as conn:
        # Not as in a read-only transaction: what is asked is the role's own default.
        status = migrate.status(conn)
        login = str(conn.exec_driver_sql("SELECT session_user").scalar_one())
        version = str(conn.exec_driver_sql("SHOW server_version").scalar_one())
        for problem in preflight.check(conn):
            what, remedy = _words(problem.code)
            facts = {
                "version": version,
                "login": login,
                "current": status.current,
                "head": status.head,
            }
            yield error(problem.code, what.format(**facts), remedy.format(**facts))


def _words(code: ProblemCode) -> tuple[str, str]:
    """What is wrong and what to do; a test sees to it that no code is left out."""
    return {
        ProblemCode.VERSION_TOO_OLD: (
            _("The server is PostgreSQL {version}; 15 or newer is needed."),
            _("Upgrade the server."),
        ),
        ProblemCode.STANDBY: (
            _("The server is a standby, which only repeats what its primary did."),
            _("Point PUBLISHER_DATABASE_URL at the primary (target_session_attrs=read-write)."),
        ),
        ProblemCode.FSYNC_OFF: (
            _("fsync is off: after a crash, sends that began may be forgotten and made again."),
            _("Run ALTER SYSTEM SET fsync = on and reload the server."),
        ),
        ProblemCode.FULL_PAGE_WRITES_OFF: (
            _("full_page_writes is off: a crash may tear the pages that record what was sent."),
            _("Run ALTER SYSTEM SET full_page_writes = on and reload the server."),
        ),
        ProblemCode.SYNCHRONOUS_COMMIT_OFF: (
            _(
                "synchronous_commit is off for {login}: a commit is reported before it would"
                " survive a crash."
            ),
            _("Reset it for the server, this database and the role (ALTER ROLE … RESET …)."),
        ),
        ProblemCode.READ_ONLY: (
            _("Transactions of {login} are read-only here."),
            _("Reset default_transaction_read_only for the server, this database and the role."),
        ),
        ProblemCode.SCHEMA_MISSING: (
            _("The database holds no schema yet."),
            _("Run: publisher db upgrade"),
        ),
        ProblemCode.SCHEMA_OLDER: (
            _("The schema is at revision {current}; this release needs {head}."),
            _("Run: publisher db upgrade"),
        ),
        ProblemCode.SCHEMA_NEWER: (
            _("The schema is at revision {current}, which this release (newest: {head}) lacks."),
            _("Run the newer release."),
        ),
    }[code]


_OVERRIDES = text("""
SELECT coalesce(r.rolname, 'every user') AS who, d.setdatabase <> 0 AS here, c.setting
  FROM pg_db_role_setting d
  LEFT JOIN pg_roles r ON r.oid = d.setrole
 CROSS JOIN LATERAL unnest(d.setconfig) AS c(setting)
 WHERE d.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
   AND (d.setrole = 0 OR r.rolname = ANY(:roles)
        OR EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
                    WHERE m.member = d.setrole AND g.rolname = ANY(:roles)))
 ORDER BY 1, 3
""")


def overrides(ward: Ward) -> Iterator[Finding]:
    """Settings that are kept for a role or the database, so that some other process meets them."""
    with ward.reading() as conn:
        for who, here, setting in conn.execute(_OVERRIDES, {"roles": [*Role]}):
            name, _equals, value = setting.partition("=")
            if value.lower() not in _DANGEROUS.get(name, ()):
                continue
            where = _("this database") if here else _("every database")
            yield error(
                "setting_overridden",
                _("{setting} is kept for {who} in {where}.").format(
                    setting=f"{name}={value}", who=who, where=where
                ),
                _("Run ALTER ROLE or ALTER DATABASE … RESET {name}.").format(name=name),
            )


def replication_role(ward: Ward) -> Iterator[Finding]:
    """Whether triggers fire at all on a connection as workers have it."""
    with ward.reading() as conn:
        if _show(conn, "session_replication_role") == "replica":
            yield error(
                "triggers_do_not_fire",
                _("session_replication_role is replica: no trigger of ours fires."),
                _("Reset it for the server, this database and the login user."),
            )


def corruption(ward: Ward) -> Iterator[Finding]:
    """Settings that hide a damaged disk."""
    with ward.reading() as conn:
        for name in ("zero_damaged_pages", "ignore_checksum_failure", "data_sync_retry"):
            if _show(conn, name) == "on":
                yield error(
                    "damage_hidden",
                    _("{name} is on: damage to what records sends goes unnoticed.").format(
                        name=name
                    ),
                    _("Set {name} to off in the server's configuration.").format(name=name),
                )


def checksums(ward: Ward) -> Iterator[Finding]:
    """Whether a page that the disk returns wrong is noticed."""
    with ward.reading() as conn:
        if _show(conn, "data_checksums") == "off":
            yield note(
                "no_checksums",
                _("The server keeps no data checksums; a disk that lies is not noticed."),
                _("With the server stopped, run pg_checksums --enable."),
            )


def standby_commits(ward: Ward) -> Iterator[Finding]:
    """Whether a failover can lose commits although standbys are waited for elsewhere."""
    with ward.reading() as conn:
        standbys = _show(conn, "synchronous_standby_names")
        level = _show(conn, "synchronous_commit")
        if standbys and level == "local":
            yield warning(
                "standby_not_awaited",
                _("Commits here do not wait for the standby: a failover may forget sends."),
                _("Set synchronous_commit to on for the login user."),
            )


_TIMEOUTS: Final = ("statement_timeout", "idle_session_timeout", "transaction_timeout")
_SHORT_MS: Final = 30_000


def timeouts(ward: Ward) -> Iterator[Finding]:
    """Server-side time limits that cut off a worker's ordinary work."""
    with ward.database.connect_driver() as conn:
        for name in _TIMEOUTS:
            row = conn.execute(
                "SELECT setting::bigint FROM pg_settings WHERE name = %s", [name], prepare=False
            ).fetchone()
            if row is not None and 0 < row[0] < _SHORT_MS:
                yield warning(
                    "timeout_short",
                    _("{name} is {ms} ms: the server cuts a worker's connection off.").format(
                        name=name, ms=row[0]
                    ),
                    _("Reset {name} for the login user, or give it a minute.").format(name=name),
                )


_FREE = text("""
SELECT current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int
       - coalesce(current_setting('reserved_connections', true)::int, 0)
       - (SELECT sum(numbackends) FROM pg_stat_database)::int AS free,
       (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user) AS of_login,
       (SELECT nullif(datconnlimit, -1) FROM pg_database
         WHERE datname = current_database()) AS of_database,
       (SELECT numbackends FROM pg_stat_database WHERE datname = current_database()) AS here,
       (SELECT count(*) FROM pg_stat_activity WHERE usename = session_user) AS mine
""")


def headroom(ward: Ward) -> Iterator[Finding]:
    """Whether another worker, and the people's commands, still get a connection."""
    with ward.reading() as conn:
        row = conn.execute(_FREE).one()
    left = {
        _("the server (max_connections)"): row.free,
        _("the login user (CONNECTION LIMIT)"): None
        if row.of_login is None
        else row.of_login - row.mine,
        _("this database (CONNECTION LIMIT)"): None
        if row.of_database is None
        else row.of_database - row.here,
    }
    for whose, free in left.items():
        if free is not None and free < ward.limits.free_connections:
            yield warning(
                "few_connections",
                _("Only {n} connections are left of {whose}.").format(n=max(0, free), whose=whose),
                _("Raise that limit, or end what holds the others (pg_stat_activity)."),
            )


def _show(conn: Connection, name: str) -> str:
    value = conn.execute(text("SELECT current_setting(:name, true)"), {"name": name}).scalar()
    return "" if value is None else str(value)
