"""The Facebook adapter before a server that lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from publisher.adapters.facebook_pages.listing import Bounds
from publisher.engine.adapter import ChannelHealth, Ready
from publisher.engine.content import Post
from publisher.engine.evidence import Evidence
from publisher.engine.outcome import Outcome
from publisher.sandbox.pages import APPLICATION
from publisher.transport import Transport
from tests.adapters.facebook_stand import FacebookStand
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.stand import Attempt, make_permit, make_task, text_post

TEXT = "The mill is open"
Script = Callable[[Asked], Said]


class Stage:
    """The Facebook adapter before a liar."""

    def __init__(self, stand: FacebookStand, transport: Transport) -> None:
        self.stand = stand
        self.page = stand.page
        self.transport = transport
        self.asked: list[Asked] = []

    def publish(self, script: Script, *, attempts: int = 0, post: Post | None = None) -> Outcome:
        """Publish once."""
        task = make_task(self.stand.channel, post or text_post(TEXT), attempts=attempts)
        with Liar(script) as liar:
            adapter = self.stand.adapter_at(self.transport, liar.url)
            outcome = adapter.publish(task, Ready({}), make_permit(task))
            self.asked = liar.asked
        self.stand.seen.append(outcome)
        return outcome

    def look(
        self,
        script: Script,
        *,
        post: Post | None = None,
        bounds: Bounds | None = None,
        handle: str | None = None,
    ) -> Evidence:
        """Look once, for a post begun a moment ago, whose lost answer left ``handle``."""
        task = make_task(self.stand.channel, post or text_post(TEXT))
        with Liar(script) as liar:
            adapter = self.stand.adapter_at(
                self.transport,
                liar.url,
                application=APPLICATION,
                bounds=bounds or Bounds(seconds=5),
            )
            evidence = adapter.look(
                replace(Attempt(task, make_permit(task)).query(), remote_handle=handle)
            )
            self.asked = liar.asked
        self.stand.seen.append(evidence)
        return evidence

    def check(self, script: Script) -> ChannelHealth:
        """Ask whether the channel may be used."""
        with Liar(script) as liar:
            health = self.stand.adapter_at(self.transport, liar.url).check(self.stand.channel)
        self.stand.seen.append(health)
        return health

    def item(self, number: int = 1, **more: object) -> dict[str, Any]:
        """A post as Graph lists it."""
        return {
            "id": f"{self.page}_{number}",
            "message": TEXT,
            "created_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+0000"),
            "permalink_url": f"https://www.facebook.com/{self.page}/posts/{number}",
            "is_published": True,
            "application": {"id": APPLICATION},
        } | more


def said(body: object, status: int = 200, *, missing: int = 0, **headers: str) -> Script:
    return lambda _: Said(body, status, headers, missing)


def listing(*items: object, **more: object) -> Script:
    return said({"data": list(items), **more})
