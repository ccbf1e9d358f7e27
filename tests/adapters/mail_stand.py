"""The mail adapter with a mailbox of its own."""

from __future__ import annotations

import itertools
import ssl
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime

from publisher.adapters.mail import Mail
from publisher.config import Settings
from publisher.engine.adapter import Ready, SendPermit, Task
from publisher.engine.content import Letter, digest
from publisher.engine.job import Channel, JobId, Token
from publisher.engine.outcome import Outcome
from publisher.mailer import Mailer
from tests.adapters.mail_relay import PASSWORD
from tests.adapters.stand import make_permit

_numbers = itertools.count(1)
SENDER = "alerts@publisher.example"
AT = datetime(2026, 12, 7, 2, 3, tzinfo=UTC)


class Locked(RuntimeError):
    """What a vault may raise."""


def letter(**changes: object) -> Letter:
    values = {
        "to": "ops@example.org",
        "subject": "1 post may be live",
        "text": "Nothing will be sent by itself.\n",
        "at": AT,
    }
    return Letter(**{**values, **changes})  # type: ignore[arg-type]


class MailStand:
    """One mailbox whose relay is at ``credential``. ``seen``: everything that came out."""

    secret = PASSWORD

    def __init__(
        self, credential: str, tls: ssl.SSLContext | None = None, *, trusted: bool = True
    ) -> None:
        self.credential = credential
        self.seen: list[object] = []
        settings = Settings.model_validate({"tcp_user_timeout_seconds": 5})
        self.adapter = Mail(Mailer(settings, tls=tls), self._open)
        self.channel = Channel(
            id=next(_numbers),
            platform="mail",
            name="Alerts",
            remote_id=SENDER,
            base_url=None,
            sealed=b"sealed",
            generation=1,
            trusted=trusted,
        )
        self.broken = replace(self.channel, sealed=None)

    def task(self, content: str | None = None, *, attempts: int = 0) -> Task:
        content = letter().to_json() if content is None else content
        number = time.monotonic_ns()
        return Task(
            job_id=JobId(number),
            key=f"alert:doubt/channel:7/job:8f3a/to:{number}",
            kind="mail",
            token=Token(uuid.uuid4()),
            channel=self.channel,
            content=content,
            content_sha256=digest(content),
            progress={},
            platform_key=None,
            attempts=attempts,
        )

    def send(
        self, task: Task | None = None, *, budget: float = 10.0, window: float = 30.0
    ) -> tuple[Task, SendPermit, Outcome]:
        """Send once, as a worker would."""
        task = task or self.task()
        permit = make_permit(task, budget=budget, window=window)
        outcome = self.adapter.publish(task, Ready({}), permit)
        self.seen.append(outcome)
        return task, permit, outcome

    def _open(self, channel: Channel) -> str:
        if channel.sealed is None:
            message = f"no key for {self.secret}"
            raise Locked(message)
        return self.credential
