"""Write down anew what the migrations make: ``python -m tests.doctor.record``.

Read the difference before it is committed: it is what ``doctor`` will ask of every database.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import SecretStr

from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.doctor import objects
from tests.postgres import Postgres, running


def made(pg: Postgres, name: str) -> dict[str, Any]:
    """What a migrated database is made of."""
    settings = Settings(database_url=SecretStr(pg.url(name)))
    with (
        Database.open(settings, Role.ENGINE, application_name="record") as database,
        database.engine.connect() as conn,
    ):
        return {"revision": migrate.status(conn).current, "objects": objects.read(conn)}


def main() -> None:
    with running("embedded") as pg, pg.migrated_database() as name:
        text = json.dumps(made(pg, name), indent=1, sort_keys=True, ensure_ascii=False)
    objects.FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
