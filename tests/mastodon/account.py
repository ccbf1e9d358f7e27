"""One account on ``mastodon_mock``, and the adapter that posts to it through a proxy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from publisher.adapters.mastodon import Mastodon
from publisher.engine.adapter import LookQuery, Ready, Task, Wait
from publisher.engine.content import Post
from publisher.engine.evidence import Evidence
from publisher.engine.job import Channel
from publisher.engine.outcome import Outcome
from publisher.transport import Transport
from tests.adapters.stand import JPEG, Store, make_permit, make_task
from tests.bluesky.proxy import CuttingProxy
from tests.mastodon.mock import Mock


class MockAccount:
    """An account of its own; what came out of the adapter is kept in ``seen``."""

    def __init__(self, mock: Mock, transport: Transport, proxy: CuttingProxy, token: str) -> None:
        self.mock = mock
        self.proxy = proxy
        self.token = token
        self.id: str = mock.get("/api/v1/accounts/verify_credentials", token)["id"]
        self.seen: list[object] = []
        store = Store(dict.fromkeys("abc", JPEG))
        self.adapter = Mastodon(transport, lambda _: self.token, store)
        self.channel = Channel(
            id=int(self.id) % 1_000_000,
            platform="mastodon",
            name="An account",
            remote_id=self.id,
            base_url=proxy.url,
            sealed=b"sealed",
            generation=1,
        )

    def prepare(self, post: Post) -> tuple[Task, Ready]:
        """Do the steps before a post."""
        task = make_task(self.channel, post)
        for _ in range(200):
            step = self.adapter.step(task)
            self.seen.append(step)
            assert not hasattr(step, "detail"), step
            task = replace(task, progress=step.progress)
            if isinstance(step, Ready):
                return task, step
            assert not isinstance(step, Wait) or step.seconds > 0
        message = "the steps do not end"
        raise AssertionError(message)

    def publish(self, task: Task, ready: Ready, attempts: int = 0) -> Outcome:
        """Send once, under a permit of its own."""
        begun = replace(task, attempts=attempts)
        outcome = self.adapter.publish(begun, ready, make_permit(begun))
        self.seen.append(outcome)
        return outcome

    def look(self, task: Task, began_at: datetime, bound: frozenset[str] = frozenset()) -> Evidence:
        """Look for it, when nothing can arrive any more."""
        now = datetime.now(UTC) + timedelta(seconds=1)
        query = LookQuery(task, began_at, now, bound, sender_is_gone=True)
        evidence = self.adapter.look(query)
        self.seen.append(evidence)
        return evidence

    def texts(self) -> list[str]:
        """What is on the account, by the server's own record."""
        return self.mock.texts(self.id, self.token)
