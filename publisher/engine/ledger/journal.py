"""What people did beside a job's states, kept with the job: who, what, and in which words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from publisher.engine.job import JobId
from publisher.engine.ledger.driver import AnyConnection, driver_of

_TELL = """
INSERT INTO publisher.job_events (job_id, event, who, attempt, detail)
VALUES (%(job_id)s, %(event)s, %(who)s, %(attempt)s, %(detail)s::jsonb)
"""


def tell(
    conn: AnyConnection,
    job_id: JobId,
    event: str,
    *,
    who: str,
    attempt: int | None,
    detail: Mapping[str, object],
) -> None:
    """Add one line to a job's journal; empty parts of ``detail`` are left out."""
    kept = {name: value for name, value in detail.items() if value not in (None, "")}
    driver_of(conn).execute(
        _TELL,
        {
            "job_id": job_id,
            "event": event,
            "who": who,
            "attempt": attempt or None,
            "detail": json.dumps(kept, ensure_ascii=True, default=str),
        },
    )
