"""The Mastodon adapter before a server that lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from publisher.adapters.mastodon.servers import Server, ServerKind
from publisher.adapters.mastodon.statuses import Bounds
from publisher.engine.adapter import ChannelHealth, Ready, Step
from publisher.engine.content import Post
from publisher.engine.evidence import Evidence
from publisher.engine.outcome import Outcome
from publisher.transport import Transport
from tests.adapters.liar import Asked, Liar, Said
from tests.adapters.mastodon_stand import MastodonStand
from tests.adapters.stand import Attempt, make_permit, make_task, text_post

TEXT = "The mill is open"
Script = Callable[[Asked], Said]


class Stage:
    """The adapter before a liar, everything prepared for one text."""

    def __init__(self, stand: MastodonStand, transport: Transport) -> None:
        self.stand = stand
        self.page = stand.page
        self.transport = transport
        self.asked: list[Asked] = []

    def progress(
        self, kind: ServerKind = ServerKind.MASTODON, **more: object
    ) -> Mapping[str, object]:
        """What a job holds when every step is done."""
        return Server(kind, "4.5.0").keep({"newest": "", "application": "", **more})

    def publish(
        self,
        script: Script,
        *,
        attempts: int = 0,
        post: Post | None = None,
        progress: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Publish once."""
        with Liar(script) as liar:
            channel = self.stand.channel_at(liar.url)
            task = make_task(channel, post or text_post(TEXT), attempts=attempts)
            adapter = self.stand.adapter_with(self.transport)
            ready = Ready(progress or self.progress())
            outcome = adapter.publish(task, ready, make_permit(task))
            self.asked = liar.asked
        self.stand.seen.append(outcome)
        return outcome

    def look(
        self,
        script: Script,
        *,
        post: Post | None = None,
        bounds: Bounds | None = None,
        progress: Mapping[str, object] | None = None,
    ) -> Evidence:
        """Look once, for a post begun a moment ago; ``asked`` is what was asked of its account."""
        with Liar(script) as liar:
            channel = self.stand.channel_at(liar.url)
            task = make_task(channel, post or text_post(TEXT), progress=progress or self.progress())
            adapter = self.stand.adapter_with(self.transport, bounds=bounds or Bounds(seconds=5))
            evidence = adapter.look(Attempt(task, make_permit(task)).query())
            self.asked = [one for one in liar.asked if "/apps/" not in one.path]
        self.stand.seen.append(evidence)
        return evidence

    def step(
        self,
        script: Script,
        *,
        post: Post | None = None,
        progress: Mapping[str, object] | None = None,
    ) -> Step:
        """Do one step."""
        with Liar(script) as liar:
            channel = self.stand.channel_at(liar.url)
            task = make_task(channel, post or text_post(TEXT), progress=progress or {})
            step = self.stand.adapter_with(self.transport).step(task)
            self.asked = liar.asked
        self.stand.seen.append(step)
        return step

    def check(self, script: Script) -> ChannelHealth:
        """Ask whether the channel may be used."""
        with Liar(script) as liar:
            channel = replace(self.stand.channel, base_url=liar.url)
            health = self.stand.adapter_with(self.transport).check(channel)
        self.stand.seen.append(health)
        return health

    def status(self, number: int = 1, **more: object) -> dict[str, Any]:
        """A status of the account as a server shows it, made ``number`` seconds ago."""
        at = datetime.now(UTC) - timedelta(seconds=number)
        return {
            "id": str(1000 - number),
            "created_at": at.isoformat(timespec="milliseconds"),
            "content": f"<p>{TEXT}</p>",
            "visibility": "public",
            "url": f"https://social.example/@user/{number}",
            "account": {"id": self.page},
            "media_attachments": [],
            "in_reply_to_id": None,
            "reblog": None,
        } | more


def said(
    body: object,
    status: int = 200,
    *,
    missing: int = 0,
    headers: Mapping[str, str] | None = None,
) -> Script:
    """Answer everything so."""
    return lambda _: Said(body, status, headers or {}, missing)


def listing(*statuses: Mapping[str, object], sources: Mapping[str, str] | None = None) -> Script:
    """A listing of one page, and the sources of some posts; others have none."""

    def answer(asked: Asked) -> Said:
        if asked.path.endswith("/source"):
            status_id = asked.path.split("/")[-2]
            if sources is None or status_id not in sources:
                return Said({"error": "Record not found"}, 404)
            return Said({"id": status_id, "text": sources[status_id], "spoiler_text": ""})
        return Said([] if "max_id" in asked.query else list(statuses))

    return answer
