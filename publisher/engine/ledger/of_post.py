"""The rows of one post's jobs, locked in one order, for whoever changes the post."""

from __future__ import annotations

from sqlalchemy import Connection, select

from publisher.engine.job import JobId
from publisher.engine.schema import jobs


def lock_jobs_of(conn: Connection, post_id: int) -> tuple[JobId, ...]:
    """Lock every job of the post until the transaction ends; their ids, the oldest first.

    After it none of them is claimed, begun or brought back: a worker passes locked rows over and
    comes again, a person waits. What was begun just before is waited for, and then seen.
    """
    query = select(jobs.c.id).where(jobs.c.post_id == post_id).order_by(jobs.c.id)
    return tuple(JobId(job_id) for job_id in conn.scalars(query.with_for_update()))
