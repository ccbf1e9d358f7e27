"""Real processes: the sandbox as the platforms, workers and reconcilers as a user starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from publisher import bootstrap
from publisher.config import Settings
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.job import JobId, NewJob, State
from publisher.engine.registry import Registry
from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess
from publisher.vault import Vault
from tests.engine.ground import Ground, Row, await_that

TIMEOUT = 1.0
HORIZON = 1.2
QUICK = {
    "POLL_SECONDS": "0.05",
    "LEASE_SECONDS": "10", "LEASE_DISTRUST_SECONDS": "8", "RESCUE_AFTER_SECONDS": "12",
    "PUBLISH_TIMEOUT_SECONDS": str(TIMEOUT),
    "PUBLISH_LEASE_SECONDS": "15",
    "TCP_USER_TIMEOUT_SECONDS": "1.0", "SETTLING_SECONDS": "0.2",
    "DRAIN_SECONDS": "3",
    "LOOK_FIRST_SECONDS": "0.2", "LOOK_MAX_SECONDS": "0.4", "LOOK_LIMIT": "12",
    "RETRY_FIRST_SECONDS": "0.1", "RETRY_MAX_SECONDS": "0.2",
    "CONCURRENCY": "8",
    "GRAPH_APPLICATION": APPLICATION,
    "LOG_LEVEL": "info", "LOG_FORMAT": "json",
}  # fmt: skip


@dataclass
class Process:
    """One that was started here, and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self, words: str) -> None:
        """Wait until it has said so."""
        await_that(
            lambda: words in self.log.read_text() or self.process.poll() is not None, within=60
        )
        assert words in self.log.read_text(), self.log.read_text()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def is_left_alone(self) -> None:
        """Close the pipe by which it knows that we are there; what is written to it is no end."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"still here")
        self.process.stdin.flush()
        self.process.stdin.close()

    def ends(self, *, within: float = 20.0) -> int:
        return self.process.wait(within)


@dataclass
class Channel:
    """A page of the sandbox's that is connected. ``page``: its id there."""

    stage: Stage
    id: int
    page: str
    platform: str

    def post(self, text: str, *, queue: str = "publish", **changes: Any) -> JobId:  # noqa: ANN401 - of NewJob
        """Schedule a post that is due now."""
        key = f"{self.page}/{text}/{len(self.stage.posted)}"
        at = datetime.now(UTC) - timedelta(seconds=1)
        adapter = self.stage.registry.adapter(self.platform)
        values: dict[str, Any] = {
            "key": key,
            "kind": "post",
            "queue": queue,
            "channel_id": self.id,
            "content": Post(text).to_json(),
            "run_at": at,
            "platform_key": adapter.platform_key(key, at),
        }
        job = NewJob(**(values | changes))
        (added,) = ledger.enqueue(self.stage.ground.conn, [job])
        self.stage.posted.append(added.job_id)
        return added.job_id

    def behave(self, behaviour: str, **how: Any) -> None:  # noqa: ANN401 - of SandboxControl.behave
        self.stage.control.behave(behaviour, page=self.page, **({"endpoint": "publish"} | how))

    def ids(self) -> list[str]:
        """What is on the page, newest first, by the sandbox's own record."""
        return [post["id"] for post in self.stage.control.posts(self.page)]

    def texts(self) -> list[str]:
        return [post["message"] for post in self.stage.control.posts(self.page)]


@dataclass
class Stage:
    """A database, a sandbox, and whatever processes a test starts."""

    ground: Ground
    sandbox: SandboxProcess
    folder: Path
    stack: ExitStack
    vault: Vault
    registry: Registry
    posted: list[JobId] = field(default_factory=list)
    _processes: int = 0

    @classmethod
    @contextmanager
    def open(cls, ground: Ground, sandbox: SandboxProcess, folder: Path) -> Iterator[Stage]:
        settings = Settings(home=ground.home)
        vault = Vault.from_settings(settings, ledger.deployment_id(ground.conn))
        with ExitStack() as stack:
            registry = bootstrap.describing_registry(settings)
            yield cls(ground, sandbox, folder, stack, vault, registry)

    @property
    def control(self) -> Any:  # noqa: ANN401 - SandboxControl
        return self.sandbox.control

    def start(
        self, *words: str, settings: Mapping[str, str] | None = None, pipe: bool = False
    ) -> Process:
        """Start a process; it is killed when the stage closes."""
        self._processes += 1
        log = self.folder / f"{words[0]}-{self._processes}.log"
        kept = {n: v for n, v in os.environ.items() if not n.startswith("PUBLISHER_")}
        ours: Mapping[str, str] = {
            "HOME": str(self.ground.home),
            "DATABASE_URL": self.ground.server.url(self.ground.name),
            "GRAPH_URL": self.sandbox.url,
        }
        own = {
            f"PUBLISHER_{name}": value
            for name, value in {**QUICK, **ours, **(settings or {})}.items()
        }
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                env=kept | own,
                stdin=subprocess.PIPE if pipe else subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.stack.callback(_end, process)
        return Process(process, log)

    def worker(self, **settings: str) -> Process:
        return self.start("publisher", "worker", settings=settings)

    def reconciler(self, **settings: str) -> Process:
        """One that also ends with us, as the product's own commands start it."""
        return self.start("reconciler", "--parent-pipe", settings=settings, pipe=True)

    def channel(self, platform: str = "facebook_pages", *, url: str | None = None) -> Channel:
        """Connect a new page of the sandbox's, or one that is served at ``url``."""
        number = self.ground.one("SELECT count(*) FROM channels") + 1
        match platform:
            case "facebook_pages":
                page = str(70_000 + number)
                token = f"token-{number}"
                self.control.add_pages([{"id": page, "name": f"Page {number}", "token": token}])
            case "bluesky":
                account = self.control.add_account("bluesky", handle=f"writer{number}.test")
                page, token, url = account["id"], account["token"], self.sandbox.url
            case "telegram":
                account = self.control.add_account("telegram")
                page, token, url = account["id"], account["token"], self.sandbox.url
            case _:
                account = self.control.add_account("mastodon", username=f"user{number}")
                page, token, url = account["id"], account["token"], self.sandbox.url
                self.control.mastodon(page, server="mastodon")
        (row,) = self.ground.sql(
            "INSERT INTO channels (platform, name, remote_id, base_url, trusted)"
            " VALUES (%s, %s, %s, %s, %s) RETURNING id",
            platform,
            f"channel {number}",
            page,
            url,
            url is not None,
        )
        sealed = self.vault.seal(token, channel_id=row["id"])
        self.ground.sql("UPDATE channels SET sealed = %s WHERE id = %s", sealed, row["id"])
        self.ground.sql("INSERT INTO gates (channel_id, max_in_flight) VALUES (%s, 8)", row["id"])
        return Channel(self, row["id"], page, platform)

    def row(self, job: JobId) -> Row:
        return self.ground.row(job)

    def await_state(self, job: JobId, state: State, *, within: float = 20.0) -> Row:
        try:
            await_that(lambda: self.ground.state(job) is state, within=within)
        except AssertionError as error:
            stands = (
                self.ground.row(job),
                self.ground.sql("SELECT * FROM attempts WHERE job_id = %s", job),
                self.ground.sql("SELECT * FROM doubts WHERE job_id = %s", job),
                self.ground.sql("SELECT blocked_detail FROM gates WHERE blocked_at IS NOT NULL"),
            )
            message = f"waited in vain for {state}: {stands}"
            raise AssertionError(message) from error
        return self.ground.row(job)

    def was_ever(self, job: JobId) -> list[str]:
        """Outcomes of its attempts, as they stand."""
        rows = self.ground.sql(
            "SELECT outcome FROM attempts WHERE job_id = %s ORDER BY number", job
        )
        return [row["outcome"] for row in rows]

    def verdicts(self, job: JobId) -> list[Row]:
        return self.ground.sql("SELECT * FROM verdicts WHERE job_id = %s ORDER BY id", job)

    def looks(self, job: JobId) -> list[Row]:
        return self.ground.sql("SELECT * FROM looks WHERE job_id = %s ORDER BY id", job)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait(20)
    if process.stdin is not None:
        process.stdin.close()
