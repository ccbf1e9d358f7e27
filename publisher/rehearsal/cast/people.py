"""People in forked processes: one who schedules posts, one who edits and cancels them."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId, NewJob

EDITED = " (edited)"
_OPEN = (
    "SELECT id, state FROM jobs WHERE kind = 'post'"
    " AND state IN ('claimed', 'sending', 'scheduled') ORDER BY id"
)
_FAILED = (
    "SELECT id, state FROM jobs WHERE kind = 'post'"
    " AND state IN ('failed', 'missed', 'cancelled') ORDER BY id"
)


def schedule(name: str, order: dict[str, Any], _events: int) -> int:
    """Add every job of ``order``, in one transaction; those that are there already stay."""
    settings = Settings(**order["settings"])
    application = f"crash:{name}:{os.getpid()}"
    now = datetime.now(UTC)
    registry = bootstrap.describing_registry(settings)

    def due(job: dict[str, Any]) -> datetime:
        """When it is, or was."""
        return now + (
            timedelta(days=1) if job["in_reserve"] else -timedelta(seconds=job["overdue"])
        )

    jobs = [
        NewJob(
            key=job["key"],
            kind="post",
            queue="publish",
            channel_id=job["channel_id"],
            post_id=job["post_id"],
            content=job["content"],
            run_at=due(job),
            useful_until=due(job) + timedelta(seconds=job["useful_for"])
            if job["useful_for"] is not None
            else None,
            platform_key=registry.adapter(job["platform"]).platform_key(job["key"], now),
        )
        for job in order["jobs"]
    ]
    with (
        Database.open(
            settings, Role.APP, application_name=application, pool_size=1, workspace=EVERY
        ) as database,
        database.engine.begin() as conn,
    ):
        ledger.enqueue(conn, jobs, existing="keep")
    return 0


def edit(name: str, order: dict[str, Any], events: int) -> int:
    """Do ``times`` things to jobs at moments of one's own choosing."""
    settings = Settings(**order["settings"])
    rng = random.Random(order["chance"])
    for _ in range(order["times"]):
        time.sleep(rng.uniform(0.02, 0.4))  # people come when they like
        done = act(settings, rng, of=order.get("of", ()), variant=order.get("variant"))
        os.write(events, json.dumps({"person": name, **done}).encode() + b"\n")
    return 0


def act(
    settings: Settings, rng: random.Random, *, of: Sequence[str] = (), variant: str | None = None
) -> dict[str, str]:
    """Do one thing a person may do; what the engine refuses is an answer like another."""
    ignores = variant == "cancel ignores sending"
    what = "cancel" if ignores else rng.choice(tuple(of) or tuple(_ACTS))
    try:
        with (
            Database.open(
                settings, Role.APP, application_name="people", pool_size=1, workspace=EVERY
            ) as database,
            database.engine.begin() as conn,
        ):
            wanted = _FAILED if what in {"requeue", "restore"} else _OPEN
            jobs = conn.execute(text(wanted)).all()
            if not jobs:
                return {"edited": what, "refused": "nothing there"}
            # What is under way is what matters.
            under_way = [job for job in jobs if job.state in {"claimed", "sending"}]
            job = rng.choice(under_way or jobs)
            do = _cancel_whatever if ignores else _ACTS[what]
            do(conn, JobId(job.id))
    except PublisherError as error:
        return {"edited": what, "refused": error.code}
    except Exception as error:  # noqa: BLE001 - the database may be away just now
        return {"edited": what, "refused": type(error).__name__}
    return {"edited": what, "job": str(job.id), "was": job.state}


def _cancel(conn: Connection, job_id: JobId) -> None:
    ledger.cancel(conn, job_id, who="editor")


def _hold(conn: Connection, job_id: JobId) -> None:
    ledger.hold(conn, job_id, who="editor")


def _move(conn: Connection, job_id: JobId) -> None:
    ledger.reschedule(conn, job_id, at=datetime.now(UTC), who="editor")


def _change(conn: Connection, job_id: JobId) -> None:
    content = conn.execute(
        text("SELECT content FROM job_contents WHERE job_id = :id"), {"id": job_id}
    ).scalar_one()
    post = Post.from_json(content)
    mark, _, rest = post.text.partition(" ")
    changed = Post(f"{mark}{EDITED} {rest}", post.link, post.media)
    ledger.replace(conn, job_id, content=changed.to_json(), who="editor")


def _requeue(conn: Connection, job_id: JobId) -> None:
    ledger.requeue(conn, job_id, who="editor", useful_until=datetime.now(UTC) + timedelta(hours=1))


def _restore(conn: Connection, job_id: JobId) -> None:
    ledger.restore(conn, job_id, who="editor")


def _pause(conn: Connection, job_id: JobId) -> None:
    channel = conn.execute(
        text("SELECT channel_id FROM jobs WHERE id = :id"), {"id": job_id}
    ).scalar_one()
    ledger.pause(conn, channel, who="editor")


def _linger(conn: Connection, job_id: JobId) -> None:
    """Hold a row's lock for longer than a coordinator waits for anything."""
    conn.execute(text("SELECT FROM jobs WHERE id = :id FOR UPDATE"), {"id": job_id})
    time.sleep(1.2)


def _cancel_whatever(conn: Connection, job_id: JobId) -> None:
    """The broken variant: no look at the state."""
    conn.execute(
        text(
            "UPDATE jobs SET state = 'cancelled', token = NULL, incarnation = NULL,"
            " claimed_at = NULL, hand_at = NULL, lease_until = NULL, hold_reason = NULL,"
            " settled_at = clock_timestamp() WHERE id = :id"
        ),
        {"id": job_id},
    )


_ACTS: dict[str, Callable[[Connection, JobId], None]] = {
    "cancel": _cancel,
    "hold": _hold,
    "move": _move,
    "change": _change,
    "requeue": _requeue,
    "restore": _restore,
    "pause": _pause,
    "linger": _linger,
}
