"""A reconciler in this process, its platform, and the doubts that are put before it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any
from uuid import UUID

from publisher.engine import ledger
from publisher.engine.adapter import Capabilities, Promise
from publisher.engine.evidence import Candidate
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Doubt
from publisher.engine.registry import Registry
from publisher.engine.rescue import Rescue
from reconciler.judge import Patience
from reconciler.loop import Reconciler
from tests.engine.ground import POLICY, Driver, Ground, Lane, Placed, Row, await_that
from tests.engine.platform import Fake

HORIZON = timedelta(seconds=60)
PATIENCE = Patience(first=30.0, longest=900.0, limit=4, horizon=HORIZON)

LISTED = Capabilities(
    format="text", noun="post", promise=Promise.AT_MOST_ONCE_WITH_EVIDENCE,
    can_look=True, listing_is_exhaustive=False, text_limit=1000,
)  # fmt: skip
WHOLE = replace(LISTED, listing_is_exhaustive=True)
KEYED = replace(WHOLE, promise=Promise.SAFE_WHILE_THE_KEY_LIVES, repeat_for=3600.0)
ATOMIC = replace(LISTED, promise=Promise.EXACTLY_ONCE, repeat_for=inf, repeat_is_atomic=True)
HOOK = replace(ATOMIC, can_look=False)
BLIND = replace(LISTED, promise=Promise.AT_MOST_ONCE_WITHOUT_EVIDENCE, can_look=False)


@dataclass
class Platform(Fake):
    """The engine tests' platform, with capabilities that a test may choose."""

    can: Capabilities = LISTED

    def capabilities(self, content: str, progress: object = None) -> Capabilities:  # noqa: ARG002 - the port's
        return self.can


@dataclass
class Desk:
    """What one test needs. ``told``: whom a person was asked about, and why."""

    lane: Lane
    conn: Driver
    pool: ThreadPoolExecutor
    folder: Path
    platform: Platform = field(default_factory=Platform)
    told: list[tuple[JobId, str]] = field(default_factory=list)
    patience: Patience = PATIENCE

    @classmethod
    @contextmanager
    def open(cls, lane: Lane, folder: Path) -> Iterator[Desk]:
        with ThreadPoolExecutor(4) as pool, lane.ground.engine.connect_driver() as conn:
            yield cls(lane, conn, pool, folder)

    @property
    def ground(self) -> Ground:
        return self.lane.ground

    def reconciler(self, **how: Any) -> Reconciler:  # noqa: ANN401 - of Reconciler
        values: dict[str, Any] = {
            "connect": self.ground.engine.connect_driver,
            "registry": Registry([self.platform]),
            "patience": self.patience,
            "told": lambda _conn, doubt, why: self.told.append((doubt.job_id, why)),
            "rescue": Rescue(self.folder, POLICY, grace=15.0, who="reconciler"),
            "poll": 0.01,
        }
        return Reconciler(**(values | how))

    def round(self) -> bool:
        """Claim, look, judge, record, once."""
        return self.reconciler().once(self.conn, self.pool)

    def state(self, job: Placed) -> State:
        return self.ground.state(job.id)


def sender_is_gone(lane: Lane, job: Placed, *, since: timedelta = timedelta(minutes=5)) -> None:
    """Backdate the send: it began long ago, and its hand has been back for so long."""
    lane.ground.sql("ALTER TABLE attempts DISABLE TRIGGER attempts_frozen")
    lane.ground.sql(
        "UPDATE attempts SET begun_at = begun_at - %s, settled_at = settled_at - %s"
        " WHERE job_id = %s",
        since + timedelta(seconds=1),
        since,
        job.id,
    )
    lane.ground.sql("ALTER TABLE attempts ENABLE TRIGGER attempts_frozen")


def due(ground: Ground, job_id: int) -> None:
    """Have the doubt looked at now."""
    ground.sql("UPDATE doubts SET next_look_at = clock_timestamp() WHERE job_id = %s", job_id)


def doubt_of(ground: Ground, job: Placed) -> Doubt:
    (doubt,) = ledger.doubts(ground.conn, [job.id])
    return doubt


def row(ground: Ground, job: Placed) -> Row:
    """The doubt's row."""
    (found,) = ground.sql("SELECT * FROM doubts WHERE job_id = %s", job.id)
    return found


def is_doubted(ground: Ground, job_id: int) -> bool:
    return bool(ground.sql("SELECT job_id FROM doubts WHERE job_id = %s", job_id))


def verdicts(ground: Ground, job: Placed) -> list[Row]:
    return ground.sql("SELECT * FROM verdicts WHERE job_id = %s ORDER BY id", job.id)


def looks(ground: Ground, job: Placed) -> list[Row]:
    return ground.sql("SELECT * FROM looks WHERE job_id = %s ORDER BY id", job.id)


def bound(ground: Ground, job: Placed) -> list[str]:
    rows = ground.sql("SELECT remote_id FROM remote_posts WHERE job_id = %s", job.id)
    return [one["remote_id"] for one in rows]


def claim_one(conn: Driver, job: Placed) -> tuple[Doubt, UUID]:
    """Hold this doubt, as a round does."""
    held = ledger.claim_doubts(conn, limit=100, lease=300.0)
    return next((doubt, token) for doubt, token in held if doubt.job_id == job.id)


def candidate(remote_id: str, text: str = "alike", **more: Any) -> Candidate:  # noqa: ANN401 - of Candidate
    return Candidate(remote_id, text, datetime.now(UTC), **more)


def cut(ground: Ground, conn: Driver) -> None:
    """Have the server end this connection, as a failover or a firewall does."""
    pid = conn.info.backend_pid
    ground.sql("SELECT pg_terminate_backend(%s)", pid)
    await_that(lambda: not ground.sql("SELECT pid FROM pg_stat_activity WHERE pid = %s", pid))
