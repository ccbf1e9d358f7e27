"""One account on the reference server, and jobs for it as a worker would hold them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from publisher.adapters.bluesky import Bluesky
from publisher.engine.adapter import Ready, Task
from publisher.engine.content import Post
from publisher.engine.evidence import Evidence
from publisher.engine.job import Channel, post_key
from publisher.engine.outcome import Outcome
from publisher.transport import Transport
from tests.adapters.stand import Attempt, Store, make_permit, make_task
from tests.bluesky.proxy import CuttingProxy
from tests.bluesky.reference import Login, ReferencePds

NINE = datetime(2026, 7, 8, 9, tzinfo=UTC)
_posts = itertools.count(1)


class RealAccount:
    """The adapter with one channel, behind a proxy; ``seen``: everything that came out of it."""

    def __init__(
        self, pds: ReferencePds, transport: Transport, proxy: CuttingProxy, login: Login
    ) -> None:
        self.pds = pds
        self.proxy = proxy
        self.login = login
        self.did = login.did
        self.password = login.password
        self.store = Store({})
        self.seen: list[object] = []
        self._transport = transport
        self.adapter = self.another_process()
        self.channel = Channel(
            id=int.from_bytes(login.handle.encode()[:6], "big"),
            platform="bluesky",
            name=login.handle,
            remote_id=login.did,
            base_url=proxy.url,
            sealed=b"sealed",
            generation=1,
            trusted=True,
        )

    def another_process(self) -> Bluesky:
        """An adapter that knows nothing of the first one's sessions."""
        return Bluesky(self._transport, lambda _: self.password, self.store)

    def secrets(self) -> Iterator[str]:
        """What must be found nowhere: the password, and every token there was."""
        yield self.login.password
        for _, _, session in self.adapter._sessions._kept.values():
            yield from session.secrets

    def job(self, post: Post, at: datetime = NINE) -> Task:
        """A claimed job for ``post``, its key frozen with it."""
        key = post_key(next(_posts), self.channel.id, at)
        task = make_task(self.channel, post)
        return replace(task, key=key, platform_key=self.adapter.platform_key(key, at))

    def prepare(self, task: Task, adapter: Bluesky | None = None) -> tuple[Task, Ready]:
        """Do the steps; the task that comes back holds their progress."""
        adapter = adapter or self.adapter
        for _ in range(20):
            ready = adapter.prepared(task)
            if ready is not None:
                return task, ready
            step = adapter.step(task)
            self.seen.append(step)
            assert not hasattr(step, "detail"), step
            task = replace(task, progress=step.progress)
        message = "the steps do not end"
        raise AssertionError(message)

    def send(self, task: Task, adapter: Bluesky | None = None) -> tuple[Task, Outcome]:
        """Prepare and publish once; the task that comes back counts the attempt."""
        task, ready = self.prepare(task, adapter)
        outcome = self.publish(task, ready, adapter)
        return replace(task, attempts=task.attempts + 1), outcome

    def publish(self, task: Task, ready: Ready, adapter: Bluesky | None = None) -> Outcome:
        """The one call."""
        outcome = (adapter or self.adapter).publish(task, ready, make_permit(task))
        self.seen.append(outcome)
        return outcome

    def look(self, task: Task, *, gone: bool = True) -> Evidence:
        """Look for ``task``; ``gone``: nobody sends it any more."""
        query = Attempt(task, make_permit(task)).query()
        evidence = self.adapter.look(replace(query, sender_is_gone=gone))
        self.seen.append(evidence)
        return evidence

    def texts(self) -> list[str]:
        """What the account shows, by the server's own listing, the highest key first."""
        return [record["value"]["text"] for record in self.pds.records(self.did)]
