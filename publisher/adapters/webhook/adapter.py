"""The adapter: one signed POST per attempt, under the same event id on each.

The protocol, and why a repeat is safe, stand in ``protocol``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from publisher.adapters.webhook import protocol
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    Problem,
    Progress,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import ContentError
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Candidate, Evidence, Inconclusive, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.outcome import (
    CannotWithdraw,
    Deferred,
    NotWithdrawn,
    Outcome,
    Reason,
    Rejected,
    Unauthorized,
    Withdrawal,
)
from publisher.engine.recognition import no_link
from publisher.transport import FilePart, Reply, Request, Transport
from publisher.words import _


@dataclass(frozen=True, slots=True)
class _Closed:
    """Why a channel cannot be used: ``lasting`` until a person repairs it."""

    detail: str
    lasting: bool = True

    def outcome(self) -> Unauthorized | Deferred:
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


@dataclass(frozen=True, slots=True)
class _Receiver:
    url: str
    secret: str
    trusted: bool


class Webhook:
    """Implements ``engine.adapter.Adapter`` for webhooks.

    A channel's ``base_url`` is the address that receives, and its credential the secret that
    events are signed with: at least sixteen characters.
    """

    platform = "webhook"

    def __init__(self, transport: Transport, vault_open: Callable[[Channel], str]) -> None:
        self._transport = transport
        self._vault_open = vault_open

    def capabilities(
        self,
        content: str,  # noqa: ARG002 - the port's; every event is alike
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Capabilities:
        """See ``Adapter.capabilities``."""
        return protocol.CAPABILITIES

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter.problems``."""
        return protocol.problems(content)

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's
        """The event's id."""
        return protocol.event_id(key)

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` at once, or None where a step has to say what is wrong."""
        if protocol.problems(task.content) or isinstance(self._receiver(task.channel), _Closed):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Say what is wrong; there is nothing else to do before an event."""
        found = protocol.problems(task.content)
        if found:
            detail = " ".join(problem.message for problem in found)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        receiver = self._receiver(task.channel)
        return receiver.outcome() if isinstance(receiver, _Closed) else Ready(task.progress)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:  # noqa: ARG002
        """Send the event once, signed as of now."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        receiver = self._receiver(task.channel)
        if isinstance(receiver, _Closed):
            return Deferred(Reason.NEEDS_RECONNECTING, receiver.detail)
        event = task.platform_key or protocol.event_id(task.key)
        try:
            body = protocol.body(event, task.content)
        except ContentError as error:
            return Deferred(Reason.NOT_STARTED, f"This event cannot be read: {error}.")
        reply = self._transport.publish(_request(receiver, event, body), permit)
        if isinstance(reply, Reply):
            return protocol.classify(event, reply, datetime.now(UTC))
        return reply

    def look(self, query: LookQuery) -> Evidence:  # noqa: ARG002 - the port's
        """Nothing to read: a receiver is not asked what it has."""
        return Inconclusive("this platform cannot be looked up")

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Take the id of this very event, such as its receiver has it; it is no other's."""
        own = query.task.platform_key or protocol.event_id(query.task.key)
        if given.strip() != own:
            return no_link(given.strip(), _("webhooks"), own)
        return Candidate(remote_id=own, text="", created_at=query.began_at)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:  # noqa: ARG002 - the port's
        """Nothing can be done: what a receiver has taken is its own."""
        return CannotWithdraw(NotWithdrawn.UNSUPPORTED, "An event that was taken stays taken.")

    def check(self, channel: Channel) -> ChannelHealth:
        """See whether there is an address and a secret. Nothing is asked: receivers only take."""
        receiver = self._receiver(channel)
        if isinstance(receiver, _Closed):
            return ChannelHealth(usable=False, detail=receiver.detail)
        return ChannelHealth(usable=True, detail="It has an address and a secret.")

    def _receiver(self, channel: Channel) -> _Receiver | _Closed:
        """Where the channel's events go and what they are signed with, or why nowhere."""
        try:
            secret = self._vault_open(channel)
        except OSError:
            return _Closed("The stored secret could not be read just now.", lasting=False)
        except PublisherError as error:
            return _Closed(str(error))
        except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
            return _Closed("The stored secret of this webhook cannot be opened.")
        if len(secret) < protocol.SECRET_LENGTH:
            return _Closed("The secret of this webhook is shorter than sixteen characters.")
        if channel.base_url is None:
            return _Closed("This webhook has no address.")
        return _Receiver(channel.base_url, secret, channel.trusted)


def _request(receiver: _Receiver, event: str, body: bytes) -> Request:
    return Request(
        method="POST",
        url=receiver.url,
        headers={
            "Publisher-Event-Id": event,
            "Publisher-Signature": protocol.signature(receiver.secret, body, int(time.time())),
        },
        # As a file: what is signed must be what is sent, byte for byte.
        content=FilePart("", event, "application/json", len(body), lambda: iter((body,))),
        secrets=(receiver.secret,),
        trusted=receiver.trusted,
    )


def _is_for(permit: SendPermit, task: Task) -> bool:
    return (permit.job_id, permit.token, permit.channel_id, permit.content_sha256) == (
        task.job_id,
        task.token,
        task.channel.id,
        task.content_sha256,
    )
