"""What a row lacks although the definition of its table asks for it."""

from __future__ import annotations

from typing import Final

from publisher.engine import schema
from publisher.engine.audit.invariant import Invariant
from publisher.words import _

_TABLES: Final = {
    "jobs": "{jobs}",
    "job_contents": "{contents}",
    "job_keys": "{keys}",
    "attempts": "{attempts}",
    "remote_posts": "{remote_posts}",
    "looks": "{looks}",
    "verdicts": "{verdicts}",
    "job_events": "{events}",
    "doubts": "doubts",
    "unique_locks": "unique_locks",
    "gates": "gates",
    "incarnations": "incarnations",
    "channels": "channels",
    "orphans": "orphans",
}


def _missing(table: str) -> str:
    """Rows of a table that lack what its definition asks for."""
    columns = schema.metadata.tables[f"{schema.SCHEMA}.{table}"].columns
    lacking = " OR ".join(f"t.{column.name} IS NULL" for column in columns if not column.nullable)
    job = "t.id" if table == "jobs" else "t.job_id" if "job_id" in columns else "NULL::bigint"
    return f"""
SELECT {job} AS job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'in a row of {table}' AS detail
  FROM {_TABLES[table]} t WHERE {lacking}
"""  # noqa: S608 - our own words


MISSING: Final = (
    Invariant(
        "T18",
        _("no value that must be there is missing"),
        _(
            "A rule of the database was dropped, and a row was changed. See: publisher doctor; then"
            " restore the value from a backup."
        ),
        " UNION ALL ".join(map(_missing, _TABLES)),
    ),
)
