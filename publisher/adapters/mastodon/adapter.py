"""The adapter: files are uploaded in steps, then one call makes the post, with a key of the job's.

A key is worth what the server makes of it. Where it is kept, a repeat within fifty minutes is
safe once the first request cannot be under way any more; where it is ignored, what is left is to
look. Which it is, the server says in a step, and the answer stands in the job's progress.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from publisher.adapters.mastodon import evidence, formats, identify, preparation, withdrawal
from publisher.adapters.mastodon.account import Account, token_is_sendable
from publisher.adapters.mastodon.answer import VISIBILITY, handle_in, published
from publisher.adapters.mastodon.evidence import Marks
from publisher.adapters.mastodon.formats import status_text
from publisher.adapters.mastodon.refusals import Complaint, classify, hidden, row_for
from publisher.adapters.mastodon.servers import Server
from publisher.adapters.mastodon.statuses import Bounds
from publisher.adapters.mastodon.uploads import media_ids
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    MediaStore,
    Problem,
    Progress,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import ContentError, Post
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Candidate, Evidence, Inconclusive, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawal,
    cannot_withdraw,
)
from publisher.engine.recognition import unreadable
from publisher.transport import Failed, Reply, Transport

_OK = 200


@dataclass(frozen=True, slots=True)
class _Closed:
    """Why a channel's access cannot be used: ``lasting`` until a person reconnects it."""

    detail: str
    lasting: bool

    def outcome(self) -> Unauthorized | Deferred:
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


class Mastodon:
    """Implements ``engine.adapter.Adapter`` for Mastodon and servers that speak its API.

    A channel's ``base_url`` is its server, its ``remote_id`` the account's id there.
    ``vault_open`` gives a channel's token in clear; what it raises becomes an outcome.
    ``bounds``: how far a look reads.
    """

    platform = "mastodon"

    def __init__(
        self,
        transport: Transport,
        vault_open: Callable[[Channel], str],
        media: MediaStore,
        *,
        bounds: Bounds | None = None,
    ) -> None:
        self._transport = transport
        self._vault_open = vault_open
        self._media = media
        self._bounds = bounds or Bounds()

    def capabilities(self, content: str, progress: Progress | None = None) -> Capabilities:
        """See ``Adapter.capabilities``.

        What a repeat is worth depends on the server, which ``progress`` names once a step has
        read it. Without it the answer is the least that any server can do: evidence alone.
        """
        return formats.capabilities(content, Server.kept(progress or {}))

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter.problems``."""
        return formats.problems(content)

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's
        """A UUID made of the job's key: the same on every attempt, for ever."""
        return _uuid("publisher mastodon job", key)

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` when the server is known, every file taken and the newest post noted.

        None too where a step has to say what is wrong: a step's refusal needs no attempt.
        """
        if formats.problems(task.content) or isinstance(self._account(task.channel), _Closed):
            return None
        if not preparation.is_complete(Post.from_json(task.content), task.progress):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Read the server, upload or poll one file, or note the account's newest post."""
        problems = formats.problems(task.content)
        if problems:
            detail = " ".join(problem.message for problem in problems)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        account = self._account(task.channel)
        if isinstance(account, _Closed):
            return account.outcome()
        post = Post.from_json(task.content)
        return preparation.step(self._transport, account, self._media, post, task.progress)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        """Make the post with exactly one request, its text byte for byte as it was approved."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        account = self._account(task.channel)
        if isinstance(account, _Closed):
            # Not Unauthorized: a refusal of the platform's would be the proof then, and nobody
            # was asked. The next ``prepared`` finds the same, and ``step`` says so.
            return Deferred(Reason.NEEDS_RECONNECTING, account.detail)
        try:
            post = Post.from_json(task.content)
        except ContentError as error:
            return Deferred(Reason.NOT_STARTED, f"This post cannot be read: {error}.")
        if not preparation.is_complete(post, ready.progress):
            return Deferred(Reason.NOT_STARTED, "A step before this post is not done yet.")
        return self._send(account, task, _body(post, ready.progress), permit)

    def look(self, query: LookQuery) -> Evidence:
        """Read the account for evidence; what goes wrong on the way is inconclusive."""
        task = query.task
        account = self._account(task.channel)
        if isinstance(account, _Closed):
            return Inconclusive(account.detail)
        try:
            marks = _marks(task)
        except ContentError as error:
            return Inconclusive(f"This post cannot be read: {error}.")
        if marks.application is None:
            ours = preparation.application_of(self._transport, account)
            marks = replace(marks, application=ours)
        return evidence.look(
            self._transport,
            account,
            query,
            marks,
            exhaustive=self.capabilities(task.content, task.progress).listing_is_exhaustive,
            bounds=self._bounds,
        )

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Read the status that a person names, by link or id."""
        account = self._account(query.task.channel)
        if isinstance(account, _Closed):
            return unreadable(account.detail)
        try:
            marks = _marks(query.task)
        except ContentError as error:
            return unreadable(f"this post cannot be read: {error}")
        return identify.identify(self._transport, account, query, given, marks=marks)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """Delete the status."""
        account = self._account(channel)
        if isinstance(account, _Closed):
            return cannot_withdraw(account.outcome())
        return withdrawal.withdraw(self._transport, account, post.remote_id)

    def check(self, channel: Channel) -> ChannelHealth:
        """Read the account that the token opens, and which server it is on."""
        account = self._account(channel)
        if isinstance(account, _Closed):
            return ChannelHealth(usable=False, detail=account.detail)
        reply = self._transport.read(account.get("/api/v1/accounts/verify_credentials"))
        if isinstance(reply, Failed):
            return ChannelHealth(usable=False, detail=account.hide(reply.detail))
        body = reply.json() if reply.status == _OK else None
        if not isinstance(body, dict):
            complaint = Complaint.read(reply)
            words = f"HTTP {reply.status}" if complaint is None else complaint.message
            detail = f"The account could not be read: {hidden(words, (account.token,))}"
            return ChannelHealth(usable=False, detail=detail)
        name = body.get("acct")
        shown = account.hide(name) if isinstance(name, str) else None
        if body.get("id") != account.id:
            return ChannelHealth(
                usable=False, detail="The token opens another account.", name=shown
            )
        return ChannelHealth(usable=True, detail=self._about_server(account), name=shown)

    def _about_server(self, account: Account) -> str:
        instance = preparation.read_instance(self._transport, account)
        if not isinstance(instance, Mapping):
            return "The account can be read, its server says nothing of itself."
        server = Server.read(instance)
        repeat = "safe for 50 minutes" if server.conduct.repeat_for else "never safe"
        return (
            f"The account can be read. The server is {server.kind}; after a lost answer a repeat "
            f"is {repeat}."
        )

    def _account(self, channel: Channel) -> Account | _Closed:
        """The channel's account with its token, or why there is none."""
        try:
            token = self._vault_open(channel)
        except OSError:
            return _Closed("The stored access could not be read just now.", lasting=False)
        except PublisherError as error:
            return _Closed(str(error), lasting=True)
        except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
            return _Closed("The stored access of this account cannot be opened.", lasting=True)
        if not token_is_sendable(token):
            return _Closed("The stored access of this account is not a token.", lasting=True)
        if not channel.base_url or not channel.remote_id:
            return _Closed("This account has no id, or names no server.", lasting=True)
        return Account(channel.remote_id, token, channel.base_url, trusted=channel.trusted)

    def _send(
        self, account: Account, task: Task, body: Mapping[str, object], permit: SendPermit
    ) -> Outcome:
        """The one irreversible call, and what its answer proves."""
        request = account.post("/api/v1/statuses", body, _idempotency_key(task))
        reply = self._transport.publish(request, permit)
        if isinstance(reply, Unknown):
            return replace(reply, remote_handle=handle_in(reply))
        if isinstance(reply, Deferred):
            return reply
        if 200 <= reply.status < 300:  # noqa: PLR2004 - HTTP's successes
            return published(account, body, reply)
        refused = classify(reply, task.attempts, secrets=(account.token,))
        return _unproved(account, reply) if refused is None else refused


def _marks(task: Task) -> Marks:
    """What would make a status ours. Raises ``ContentError`` for unreadable content."""
    post = Post.from_json(task.content)
    return Marks(
        text=status_text(post),
        media=frozenset(media_ids(post, task.progress)),
        application=preparation.application(task.progress),
        newest=preparation.newest_before(task.progress),
    )


def _is_for(permit: SendPermit, task: Task) -> bool:
    return (permit.job_id, permit.token, permit.channel_id, permit.content_sha256) == (
        task.job_id,
        task.token,
        task.channel.id,
        task.content_sha256,
    )


def _body(post: Post, progress: Progress) -> Mapping[str, object]:
    """What is sent, in a fixed order.

    No ``scheduled_at``, on which two servers of three published at once, and no ``language``,
    which the account has a setting for.
    """
    body: dict[str, object] = {"status": status_text(post), "visibility": VISIBILITY}
    if post.media:
        body["media_ids"] = media_ids(post, progress)
    return body


def _idempotency_key(task: Task) -> str:
    """The job's key on this account.

    Pleroma looks keys up whole, for every account and every call together, and two deployments
    may have jobs of the same name; so the account is in it.
    """
    frozen = task.platform_key or _uuid("publisher mastodon job", task.key)
    return _uuid("publisher mastodon request", f"{frozen}\n{task.channel.remote_id}")


def _uuid(purpose: str, name: str) -> str:
    """A UUID of the version for one's own making, 8: RFC 9562, section 5.8."""
    made = hashlib.sha256(f"{purpose}\n{name}".encode()).digest()[:16]
    number = int.from_bytes(made, "big") & ~(0xF << 76) & ~(0x3 << 62)
    return str(uuid.UUID(int=number | 0x8 << 76 | 0x2 << 62))


def _unproved(account: Account, reply: Reply) -> Unknown:
    """A 4xx answer that is not on the list, or that only a first attempt may believe."""
    complaint = Complaint.read(reply)
    if complaint is None:
        detail = f"The server answered HTTP {reply.status} without an error that can be read."
        return Unknown(Reason.UNLISTED_REFUSAL, detail, answer=reply.answer)
    words, row = hidden(complaint.message, (account.token,)), row_for(complaint)
    if row is None:
        return Unknown(Reason.UNLISTED_REFUSAL, words, answer=reply.answer)
    detail = f"{words}; after an earlier attempt this may be its echo"
    return Unknown(row.reason, detail, answer=reply.answer)
