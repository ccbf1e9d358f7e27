"""A real SIGKILL of a real worker after each step of a publish; what the next ones make of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from pydantic import SecretStr

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial import channels
from publisher.engine import ledger, queries
from publisher.engine.content import Post
from publisher.engine.job import JobId, NewJob
from publisher.engine.points import Point
from publisher.rehearsal.plan.places import Fault, Place
from publisher.rehearsal.stage.forge import Forge
from publisher.sandbox import log as sandbox_log
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.process import SandboxProcess
from publisher.vault import Vault
from tests.engine.ground import await_that
from tests.postgres import Postgres

TEXT = "killed on the way"
RESTARTS = 10


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    with Forge.start() as started:
        yield started


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    with SandboxProcess.start(tmp_path / "sandbox") as running:
        yield running


@dataclass
class Stage:
    """One job, one page, one journal, and workers one after the other."""

    forge: Forge
    sandbox: SandboxProcess
    settings: Settings
    conn: psycopg.Connection[dict[str, Any]]
    job_id: JobId
    page: str
    _started: int = 0
    _pids: list[int] = field(default_factory=list)

    def start(self, *strikes: tuple[str, Fault]) -> int:
        """Fork a worker that is struck so, and wait until it is one."""
        self._started += 1
        name = f"w{self._started}"
        url = self.settings.database_url
        order = {
            "settings": {
                **self.settings.model_dump(mode="json"),
                "database_url": None if url is None else url.get_secret_value(),
            },
            "strikes": [(str(place), str(fault), 1) for place, fault in strikes],
            "log": str(self.settings.home / "log"),
        }
        pid = self.forge.fork("worker", name, order)
        self._pids.append(pid)
        return pid

    def killed_at(self, place: str) -> None:
        pid = self.start((place, Fault.KILL))
        assert self.forge.await_end(pid) == -signal.SIGKILL

    def next_worker(self, *, until: str | None = None) -> None:
        """Let one more worker run until the job is in that state (or nothing is left to do)."""
        pid = self.start()
        # It has had its turn at everything: rescue, the files of others, and a claim.
        self.forge.expect(lambda e: e.get("pid") == pid and e.get("seen") == Point.AFTER_CLAIM)
        await_that(lambda: self.job["state"] == until if until else self.is_quiet())
        os.kill(pid, signal.SIGTERM)
        assert self.forge.await_end(pid) == 0

    def is_quiet(self) -> bool:
        """Nothing is due or under way, and a worker has had the files of those before it."""
        due = (
            "SELECT count(*) AS open FROM jobs WHERE state IN ('claimed', 'sending')"
            " OR state = 'scheduled' AND run_at <= clock_timestamp()"
        )
        left = "SELECT count(*) AS open FROM incarnations WHERE ended_at IS NULL"
        return (self.sql(due)[0]["open"], self.sql(left)[0]["open"]) == (0, 1)

    def sql(self, query: str) -> list[dict[str, Any]]:
        return self.conn.execute(query.encode()).fetchall()

    @property
    def job(self) -> dict[str, Any]:
        return self.sql("SELECT * FROM jobs")[0]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        return self.sql("SELECT * FROM attempts ORDER BY number")

    @property
    def page_log(self) -> sandbox_log.SandboxLog:
        return sandbox_log.read(self.sandbox.log)

    @property
    def copies(self) -> int:
        """How often the text was ever put on the page, by the page's own log."""
        return self.page_log.copies(TEXT, self.page)

    @property
    def sends(self) -> int:
        """How often the page was asked to publish anything."""
        return sum(request.publishes for request in self.page_log.requests)

    def is_published_once(self) -> None:
        assert self.copies == self.sends == 1
        job = self.job
        assert job["state"] == "published"
        (post,) = self.page_log.posts
        assert job["remote_id"] == post.id

    def stays_unknown(self, restarts: int = 2) -> None:
        """So many more workers, and nobody sends again."""
        before = (self.copies, self.sends)
        assert self.job["state"] == "unknown"
        for _ in range(restarts):
            self.next_worker()
        assert (self.copies, self.sends) == before
        assert self.job["state"] == "unknown"
        (attempt,) = self.attempts
        assert (attempt["outcome"], attempt["proof"]) == ("unknown", None)


@pytest.fixture
def stage(
    pg: Postgres, database_url: str, tmp_path: Path, forge: Forge, sandbox: SandboxProcess
) -> Iterator[Stage]:
    page = sandbox.control.add_pages(1)[0]
    home = tmp_path / "home"
    home.mkdir()
    settings = Settings(
        home=home,
        database_url=SecretStr(database_url),
        graph_url=sandbox.url,
        poll_seconds=0.1,
        lease_seconds=3,
        lease_distrust_seconds=2,
        rescue_after_seconds=4,
        publish_timeout_seconds=10,
        retry_first_seconds=0.1,
        retry_max_seconds=0.2,
        settling_seconds=0,
        drain_seconds=5,
        concurrency=2,
    )
    with (
        Database.open(settings, Role.APP, application_name="test app", workspace=EVERY) as database,
        database.engine.begin() as conn,
    ):
        channel = channels.add(
            conn,
            Vault.from_settings(settings, queries.deployment_id(conn)),
            bootstrap.describing_registry(settings),
            platform="facebook_pages",
            name="Page",
            remote_id=page["id"],
            base_url=None,
            token=page["token"],
        )
        job = NewJob(
            key="killed",
            kind="post",
            queue="publish",
            channel_id=channel.id,
            content=Post(TEXT).to_json(),
            run_at=datetime.now(UTC) - timedelta(seconds=1),
        )
        (enqueued,) = ledger.enqueue(conn, [job])
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as root:
        root.execute("SET ROLE publisher_engine")
        root.execute("SET search_path = publisher")
        made = Stage(forge, sandbox, settings, root, enqueued.job_id, page["id"])
        yield made
        for pid in made._pids:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)


@pytest.mark.both_servers
def test_killed_between_claim_and_begin_it_is_published_once_later(stage: Stage) -> None:
    stage.killed_at(Point.AFTER_CLAIM)
    assert (stage.job["state"], stage.attempts) == ("claimed", [])

    stage.next_worker(until="published")
    stage.is_published_once()
    assert [a["number"] for a in stage.attempts] == [1]


@pytest.mark.parametrize(
    "place", [Point.AFTER_BEGIN, Place.SPOOL_UNSYNCED, Point.AFTER_SPOOL_OPEN, Point.BEFORE_START]
)
def test_killed_after_begin_before_its_start_line_the_spool_proves_it_was_not_sent(
    stage: Stage, place: str
) -> None:
    stage.killed_at(place)
    assert stage.job["state"] == "sending"

    stage.next_worker(until="published")
    stage.is_published_once()
    first, second = stage.attempts
    assert (first["outcome"], first["proof"], first["reason"]) == (
        "deferred",
        "not_sent",
        "not_started",
    )
    assert second["outcome"] == "published"


@pytest.mark.parametrize("place", [Point.AFTER_START, Place.UNCLASSIFIED, Point.AFTER_PUBLISH])
def test_killed_between_start_and_answer_line_it_may_be_live_and_is_never_sent_again(
    stage: Stage, place: str
) -> None:
    stage.killed_at(place)
    stage.next_worker(until="unknown")
    stage.stays_unknown()
    assert stage.job["reason"] == "worker_died"


def test_killed_with_its_bytes_out_it_may_be_live_and_is_never_sent_again(stage: Stage) -> None:
    stage.sandbox.control.behave(Behaviour.ACCEPT_AND_HANG, endpoint="feed")
    pid = stage.start()
    await_that(lambda: stage.copies == 1)
    os.kill(pid, signal.SIGKILL)
    assert stage.forge.await_end(pid) == -signal.SIGKILL

    stage.next_worker(until="unknown")
    stage.stays_unknown(RESTARTS)
    assert stage.copies == 1


@pytest.mark.parametrize("place", [Point.AFTER_ANSWER, Point.BEFORE_SETTLE, Point.AFTER_SETTLE])
def test_killed_after_the_answer_line_it_is_settled_as_published_once(
    stage: Stage, place: str
) -> None:
    stage.killed_at(place)
    assert stage.job["state"] == ("published" if place == Point.AFTER_SETTLE else "sending")

    stage.next_worker(until="published")
    stage.is_published_once()
    (attempt,) = stage.attempts
    assert attempt["outcome"] == "published"
    assert attempt["answer"]["status"] == 200


def test_an_answer_that_is_lost_leaves_a_doubt_with_its_evidence(stage: Stage) -> None:
    stage.sandbox.control.behave(Behaviour.LOSE_ANSWER, endpoint="feed")
    stage.next_worker(until="unknown")
    stage.stays_unknown(RESTARTS)
    assert stage.copies == 1
    (attempt,) = stage.attempts
    assert attempt["reason"] == "connection_lost"
    assert attempt["answer"]["sent"] > 0
