"""A migrated database of a module's own, and jobs put where a test wants them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, tuple_row
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.engine import ledger, retry
from publisher.engine.adapter import SendPermit
from publisher.engine.content import Post
from publisher.engine.job import JobId, NewJob, State, Token
from publisher.engine.ledger import Claimed, Key, Settled
from publisher.engine.outcome import Deferred, Outcome, Published, Reason, Rejected, Unknown
from publisher.engine.retry import Policy, Settlement, Standing
from tests.postgres import Postgres

Row = dict[str, Any]
Driver = psycopg.Connection[Any]

POLICY = Policy(first=0.01, longest=0.02, settling=0.0)
LEASE = 60.0
REFUSED_ROW = "fake:400"


def await_that(holds: Callable[[], Any], *, within: float = 20.0) -> None:
    """Ask again and again until it holds."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)


def superuser(server: Postgres, name: str) -> Driver:
    conn = server.superuser(name)
    conn.execute("SET search_path = publisher")
    return conn


@dataclass
class Ground:
    """One database: ``engine`` and ``app`` as the product opens it, ``root`` for a back door.

    ``home``: of its processes, with its key, its witness and their files.
    """

    engine: Database
    app: Database
    root: Driver
    conn: Driver
    server: Postgres
    name: str
    home: Path
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @classmethod
    @contextmanager
    def open(cls, pg: Postgres) -> Iterator[Ground]:
        with ExitStack() as stack:
            home = Path(stack.enter_context(TemporaryDirectory(prefix="publisher-home-")))
            name = stack.enter_context(pg.migrated_database())
            settings = Settings(home=home, database_url=SecretStr(pg.url(name)))
            engine = stack.enter_context(
                Database.open(settings, Role.ENGINE, application_name="test engine")
            )
            app = stack.enter_context(
                Database.open(settings, Role.APP, application_name="test app", workspace=EVERY)
            )
            conn = stack.enter_context(engine.connect_driver())
            with superuser(pg, name) as root:
                yield cls(engine, app, root, conn, pg, name, home)

    def owner(self) -> Driver:
        """A connection as the owner of every table; the caller closes it."""
        conn = superuser(self.server, self.name)
        conn.execute("SET ROLE publisher_owner")
        return conn

    def sql(self, query: str, *values: object) -> list[Row]:
        """Run ``query`` as superuser; returns its rows, if it has any."""
        with self.root.cursor(row_factory=dict_row) as cursor:
            cursor.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *values: object) -> Any:  # noqa: ANN401 - whatever is asked for
        """The one value that ``query`` gives."""
        with self.root.cursor(row_factory=tuple_row) as cursor:
            row = cursor.execute(query.encode(), values).fetchone()
        assert row is not None
        return row[0]

    def await_waiting(self, conn: Driver) -> None:
        """Wait until the statement of ``conn`` waits for somebody's lock."""
        blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        await_that(lambda: self.one(blocked, conn.info.backend_pid))

    def row(self, job_id: int) -> Row:
        return self.sql("SELECT * FROM jobs WHERE id = %s", job_id)[0]

    def state(self, job_id: int) -> State:
        return State(self.row(job_id)["state"])

    def attempt(self, job_id: int, number: int = 1) -> Row:
        return self.sql("SELECT * FROM attempts WHERE job_id = %s AND number = %s", job_id, number)[
            0
        ]

    def events(self, job_id: int) -> list[Row]:
        return self.sql("SELECT * FROM job_events WHERE job_id = %s ORDER BY id", job_id)

    def everything(self, job_id: int) -> tuple[list[Row], ...]:
        """Every row about a job, to show that nothing changed."""
        return (
            self.sql("SELECT * FROM jobs WHERE id = %s", job_id),
            self.sql("SELECT * FROM job_contents WHERE job_id = %s", job_id),
            self.sql("SELECT * FROM attempts WHERE job_id = %s ORDER BY number", job_id),
            self.events(job_id),
            self.sql("SELECT * FROM remote_posts WHERE job_id = %s", job_id),
        )

    def lane(self, *, in_flight: int = 1000, platform: str = "fake") -> Lane:
        """A channel and a queue that nothing else uses."""
        number = next(self._numbers)
        channel_id = self.one(
            "INSERT INTO channels (platform, name, remote_id) VALUES (%s, %s, %s) RETURNING id",
            platform,
            f"page {number}",
            f"r{number}",
        )
        self.sql(
            "INSERT INTO gates (channel_id, max_in_flight) VALUES (%s, %s)", channel_id, in_flight
        )
        return Lane(self, channel_id, f"queue {number}")

    def incarnation(self, file: str = "none.spool") -> int:
        return ledger.register(self.conn, host="here", boot_id="boot", pid=1, file=file)[0]


@dataclass(frozen=True)
class Placed:
    """A job in some state. ``token``: of its claim, or of its latest attempt."""

    id: JobId
    token: Token
    permit: SendPermit | None = None

    @property
    def key(self) -> Key:
        return (self.id, self.token)


def key(job: Claimed | Placed) -> Key:
    """What the ledger is asked by."""
    return (job.id, job.token)


NOBODY = Token(UUID(int=0))


@dataclass
class Lane:
    """One channel and one queue of a test's own."""

    ground: Ground
    channel_id: int
    queue: str
    incarnation: int = 7
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new(self, **changes: Any) -> NewJob:  # noqa: ANN401 - the fields of NewJob
        """A job that was due a minute ago, not added yet."""
        number = next(self._count)
        values: dict[str, Any] = {
            "key": f"{self.queue}/{number}",
            "kind": "post",
            "queue": self.queue,
            "channel_id": self.channel_id,
            "content": Post(f"{self.queue}: number {number}").to_json(),
            "run_at": datetime.now(UTC) - timedelta(minutes=1),
        }
        return NewJob(**{**values, **changes})

    def add(self, **changes: Any) -> JobId:  # noqa: ANN401 - the fields of NewJob
        return ledger.enqueue(self.ground.conn, [self.new(**changes)])[0].job_id

    def claim(self, limit: int = 1, *, conn: Driver | None = None, **how: Any) -> list[Claimed]:  # noqa: ANN401 - of ``ledger.claim``
        """Claim this lane's due jobs."""
        usual: dict[str, Any] = {
            "queues": [self.queue], "lease": LEASE, "incarnation": self.incarnation,
        }  # fmt: skip
        how = usual | how
        return list(ledger.claim(conn or self.ground.conn, limit=limit, **how).jobs)

    def claimed(self, job_id: JobId | None = None, **changes: Any) -> Claimed:  # noqa: ANN401
        """Claim one certain job, or a new one."""
        own = f"{self.queue}.{next(self._count)}"
        if job_id is None:
            job_id = self.add(queue=own, **changes)
        else:
            self.ground.sql(
                "UPDATE jobs SET queue = %s, run_at = least(run_at, clock_timestamp())"
                " WHERE id = %s",
                own,
                job_id,
            )
        suspect = self.ground.row(job_id)["deaths"] > 0
        (job,) = self.claim(queues=[own], suspect=suspect)
        assert job.id == job_id
        return job

    def begin(self, job: Claimed) -> SendPermit:
        permits = ledger.begin_send(
            self.ground.conn, [key(job)], lease=360.0, window=50.0, budget=300.0
        )
        return permits[job.id]

    def sending(self, job_id: JobId | None = None, **changes: Any) -> Placed:  # noqa: ANN401
        """Begin the send of a certain job, or of a new one."""
        job = self.claimed(job_id, **changes)
        return Placed(job.id, job.token, self.begin(job))

    def end(self, job: Claimed | Placed, end: Settlement) -> Settled:
        return ledger.settle(self.ground.conn, {key(job): end})

    def put(self, state: State, *, begun: bool = False, **changes: Any) -> Placed:  # noqa: ANN401
        """A new job in ``state``, by the ledger's own verbs.

        ``begun``: with one refused attempt behind it, where the state leaves that open.
        """
        if begun and state in {State.SCHEDULED, State.CLAIMED, State.MISSED, State.SENDING}:
            first = self.sending(**changes)
            assert self.end(first, refused_for_now()).done
            if state is State.SCHEDULED:
                return first
            job = self.claimed(first.id)
        elif state is State.SCHEDULED:
            return Placed(self.add(**changes), NOBODY)
        else:
            job = self.claimed(**changes)
        return self._go_on(job, state, begun=begun)

    def _go_on(self, job: Claimed, state: State, *, begun: bool) -> Placed:
        at = Placed(job.id, job.token)
        match state:
            case State.CLAIMED:
                return at
            case State.MISSED:
                assert self.end(job, retry.expire()).done
                return at
            case State.CANCELLED:
                with self.ground.app.engine.begin() as conn:
                    ledger.cancel(conn, job.id, who="test")
                return at
            case State.FAILED if not begun:
                assert self.end(job, refused(begun=False)).done
                return at
        at = Placed(job.id, job.token, self.begin(job))
        match state:
            case State.SENDING:
                return at
            case State.FAILED:
                end = refused()
            case State.PUBLISHED:
                end = published(f"id of {job.id}")
            case _:
                end = lost()
        assert self.end(at, end).done
        if state is State.DROPPED:
            self.ground.sql("UPDATE jobs SET state = 'dropped' WHERE id = %s", job.id)
        return at


def standing(
    *, begun: bool = True, sent: bool = True, failures: int = 0, can_look: bool = True
) -> Standing:
    ends_at = datetime.now(UTC) + timedelta(days=1)
    return Standing(failures, ends_at, begun=begun, sent=sent, can_look=can_look)


def decided(outcome: Outcome, *, begun: bool = True, sent: bool = True) -> Settlement:
    return retry.settle(outcome, standing(begun=begun, sent=sent), POLICY, datetime.now(UTC))


def published(remote_id: str, permalink: str | None = None) -> Settlement:
    return decided(Published(remote_id, permalink))


def refused(*, begun: bool = True) -> Settlement:
    outcome = Rejected(Reason.CONTENT_REFUSED, "no", row=REFUSED_ROW)
    return decided(outcome, begun=begun, sent=begun)


def refused_for_now() -> Settlement:
    return decided(Deferred(Reason.BUSY, "come again", row=REFUSED_ROW))


def not_sent() -> Settlement:
    return decided(Deferred(Reason.CONNECT_FAILED, "nobody there"), sent=False)


def lost(detail: str = "no answer") -> Settlement:
    return decided(Unknown(Reason.NO_ANSWER, detail))
