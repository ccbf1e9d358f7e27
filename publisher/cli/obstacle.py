"""What keeps a scheduled job from being sent, so that no command says that it goes out when not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from publisher.engine import queries
from publisher.engine.job import Hold, JobId, State, public_id
from publisher.engine.queries import JobRow
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Obstacle:
    """``said``: a whole sentence about the job; ``then``: the command that clears it away."""

    said: str
    then: str
    is_hold: bool = False


def of_jobs(conn: Connection, job_ids: Collection[JobId]) -> dict[JobId, Obstacle]:
    """Those of these jobs that are scheduled and will not be sent at their time as things stand."""
    if not job_ids:
        return {}
    digits = queries.id_digits(conn)
    found = {row.id: of_row(row, digits) for row in queries.job_rows(conn, only=job_ids)}
    return {job_id: one for job_id, one in found.items() if one is not None}


def of_row(row: JobRow, digits: int) -> Obstacle | None:
    """What keeps this one; None where nothing does, or it is past that."""
    name = public_id(row.id)[:digits]
    if row.state is not State.SCHEDULED:
        return None
    if row.hold_reason is not None:
        said = _("{id} is on hold and not sent: {why}.").format(id=name, why=row.hold_reason)
        return Obstacle(said, _clears(row.hold_reason, row, name), is_hold=True)
    if row.channel_blocked is not None:
        said = _("{id} is not sent before {channel} has a new token.")
        then = f"publisher channels reconnect {row.channel_id}"
    elif row.channel_paused:
        said = _("{id} is not sent before {channel} is resumed.")
        then = f"publisher channels resume {row.channel_id}"
    else:
        return None
    return Obstacle(said.format(id=name, channel=row.channel), then)


def _clears(hold: str, row: JobRow, name: str) -> str:
    post = row.ref or row.post_id
    match hold:
        case Hold.APPROVAL | Hold.EDITED if post is not None:
            return f"publisher posts approve {post}"
        case Hold.QUARANTINE:
            return "publisher quarantine status"
        case _:
            return f"publisher jobs release {name}"
