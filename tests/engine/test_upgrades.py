"""What an upgrade makes of the rows that were there before it."""

from __future__ import annotations

from datetime import UTC, datetime

from alembic import command
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.embedded import LOGIN
from publisher.db.roles import Role, ensure_roles
from tests.engine.ground import superuser
from tests.postgres import Postgres

SETTLED = datetime(2026, 12, 7, 2, 0, tzinfo=UTC)


def test_what_was_unknown_before_there_were_doubts_is_doubted_since_then(pg: Postgres) -> None:
    with pg.migrated_database() as other, pg.empty_database() as name:
        del other  # whose making makes the role that connects
        with pg.superuser(name) as conn:
            ensure_roles(conn, login=LOGIN)
        settings = Settings(database_url=SecretStr(pg.url(name)))
        with Database.open(settings, Role.OWNER, application_name="upgrade") as database:
            config = migrate._config()
            with database.engine.connect() as owner:
                config.attributes["connection"] = owner.execution_options(no_parameters=True)
                command.upgrade(config, "0001")
                owner.commit()
            with superuser(pg, name) as root:
                root.execute("SET session_replication_role = replica")
                for number, (state, at) in enumerate(
                    [("unknown", SETTLED), ("unknown", None), ("failed", SETTLED)], start=1
                ):
                    root.execute(
                        "INSERT INTO jobs (id, channel_id, kind, queue, due_at, run_at, state,"
                        " settled_at) VALUES (%s, 1, 'post', 'q', now(), now(), %s, %s)",
                        [number, state, at],
                    )
                assert migrate.upgrade(database).is_current
                found = root.execute("SELECT job_id, since FROM doubts ORDER BY job_id").fetchall()
    assert [job_id for job_id, _ in found] == [1, 2]
    assert found[0][1] == SETTLED
