"""The adapter: one call makes the post, and nobody can look for it afterwards.

There is nothing to prepare: a photo cannot be uploaded without being posted somewhere. So each
post is one request, files and all, and whatever is not its plain success or a refusal on the list
is for a person to settle, who sees the channel.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from publisher.adapters.telegram import formats, identify, withdrawal
from publisher.adapters.telegram.answer import handle_in, published
from publisher.adapters.telegram.bot import (
    DEFAULT_URL,
    Bot,
    Method,
    chat_is_sendable,
    token_is_sendable,
)
from publisher.adapters.telegram.formats import Format, format_of
from publisher.adapters.telegram.refusals import Complaint, classify, hidden
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
from publisher.engine.content import ContentError, Media, Post
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
from publisher.transport import Failed, FilePart, Reply, Request, Transport


@dataclass(frozen=True, slots=True)
class _Closed:
    """Why a channel's access cannot be used: ``lasting`` until a person reconnects it."""

    detail: str
    lasting: bool

    def outcome(self) -> Unauthorized | Deferred:
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


class Telegram:
    """Implements ``engine.adapter.Adapter`` for Telegram channels.

    A channel's ``remote_id`` is ``@name`` or its number. ``vault_open`` gives the bot's token in
    clear; what it raises becomes an outcome. ``base_url``: where the Bot API is, for channels
    that name no address of their own.
    """

    platform = "telegram"

    def __init__(
        self,
        transport: Transport,
        vault_open: Callable[[Channel], str],
        media: MediaStore,
        *,
        base_url: str = DEFAULT_URL,
    ) -> None:
        self._transport = transport
        self._vault_open = vault_open
        self._media = media
        self._base_url = base_url

    def capabilities(
        self,
        content: str,
        progress: Progress | None = None,  # noqa: ARG002 - the port's
    ) -> Capabilities:
        """See ``Adapter.capabilities``."""
        return formats.capabilities(content)

    def problems(self, content: str) -> tuple[Problem, ...]:
        """See ``Adapter.problems``."""
        return formats.problems(content)

    def platform_key(self, key: str, at: datetime) -> str | None:  # noqa: ARG002 - the port's
        """None: the Bot API keeps ``random_id`` from bots (tdlib/telegram-bot-api#482)."""
        return None

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` at once, or None where a step has to say what is wrong."""
        if formats.problems(task.content) or isinstance(self._bot(task.channel), _Closed):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Say what is wrong; there is nothing else to do before a post."""
        problems = formats.problems(task.content)
        if problems:
            detail = " ".join(problem.message for problem in problems)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        bot = self._bot(task.channel)
        return bot.outcome() if isinstance(bot, _Closed) else Ready(task.progress)

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:  # noqa: ARG002
        """Make the post with exactly one request, its text byte for byte as it was approved."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        bot = self._bot(task.channel)
        if isinstance(bot, _Closed):
            # Not Unauthorized: a refusal of the platform's would be the proof then, and nobody
            # was asked. The next ``prepared`` finds the same, and ``step`` says so.
            return Deferred(Reason.NEEDS_RECONNECTING, bot.detail)
        try:
            post = Post.from_json(task.content)
        except ContentError as error:
            return Deferred(Reason.NOT_STARTED, f"This post cannot be read: {error}.")
        for number, item in enumerate(post.media, start=1):
            if item.sha256 is not None and not self._has(item.sha256):
                detail = f"Photo {number} is not in the media store."
                return Deferred(Reason.NOT_STARTED, detail)
        return self._send(bot, post, permit)

    def look(self, query: LookQuery) -> Evidence:  # noqa: ARG002 - the port's
        """Nothing to read: the Bot API lists no messages."""
        return Inconclusive("this platform cannot be looked up")

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Check that a link leads to this channel; what stands there nobody may read."""
        bot = self._bot(query.task.channel)
        if isinstance(bot, _Closed):
            return unreadable(bot.detail)
        return identify.identify(self._transport, bot, query, given)

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """Delete the post's messages, each with a request of its own."""
        bot = self._bot(channel)
        if isinstance(bot, _Closed):
            return cannot_withdraw(bot.outcome())
        return withdrawal.withdraw(self._transport, bot, post)

    def check(self, channel: Channel) -> ChannelHealth:
        """Read the channel's name with the bot's token."""
        bot = self._bot(channel)
        if isinstance(bot, _Closed):
            return ChannelHealth(usable=False, detail=bot.detail)
        reply = self._transport.read(bot.get(Method.CHAT, {"chat_id": bot.chat}))
        if isinstance(reply, Failed):
            return ChannelHealth(usable=False, detail=bot.hide(reply.detail))
        body = reply.json()
        result = body.get("result") if isinstance(body, dict) and body.get("ok") is True else None
        if not isinstance(result, dict):
            complaint = Complaint.read(reply)
            words = f"HTTP {reply.status}" if complaint is None else complaint.description
            detail = f"The channel could not be read: {hidden(words, bot.secrets)}"
            return ChannelHealth(usable=False, detail=detail)
        title = result.get("title")
        name = bot.hide(title) if isinstance(title, str) else None
        return ChannelHealth(usable=True, detail="The channel can be read.", name=name)

    def _bot(self, channel: Channel) -> Bot | _Closed:
        """The channel's bot with its token, or why there is none."""
        try:
            token = self._vault_open(channel)
        except OSError:
            return _Closed("The stored access could not be read just now.", lasting=False)
        except PublisherError as error:
            return _Closed(str(error), lasting=True)
        except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
            return _Closed("The stored access of this channel cannot be opened.", lasting=True)
        if not token_is_sendable(token):
            return _Closed("The stored access of this channel is not a bot's token.", lasting=True)
        if not chat_is_sendable(channel.remote_id):
            return _Closed("The id of this channel is neither @name nor a number.", lasting=True)
        own = channel.base_url
        trusted = own is None or channel.trusted
        return Bot(channel.remote_id, token, own or self._base_url, trusted=trusted)

    def _send(self, bot: Bot, post: Post, permit: SendPermit) -> Outcome:
        """The one irreversible call, and what its answer proves."""
        method, request, text = self._request(bot, post)
        reply = self._transport.publish(request, permit)
        if isinstance(reply, Unknown):
            return replace(reply, remote_handle=handle_in(bot.chat, reply))
        if isinstance(reply, Deferred):
            return reply
        if 200 <= reply.status < 300:  # noqa: PLR2004 - HTTP's successes
            return published(bot, text, max(1, len(post.media)), reply)
        refused = classify(method, reply, secrets=bot.secrets)
        return _unproved(bot, reply) if refused is None else refused

    def _request(self, bot: Bot, post: Post) -> tuple[Method, Request, str]:
        """The call that makes a post, and its text. No ``parse_mode``: text is only text."""
        kind = format_of(post)
        match kind:
            case Format.TEXT:
                return Method.MESSAGE, bot.post(Method.MESSAGE, {"text": post.text}), post.text
            case Format.LINK:
                # The preview needs no address in the text; a message needs some text.
                text = post.text if post.text.strip() else post.link or ""
                preview = {"url": post.link}
                body = {"text": text, "link_preview_options": preview}
                return Method.MESSAGE, bot.post(Method.MESSAGE, body), text
            case Format.PHOTO:
                return Method.PHOTO, self._photo(bot, post), post.text
            case Format.ALBUM:
                return Method.ALBUM, self._album(bot, post), post.text
            case _:
                assert_never(kind)

    def _photo(self, bot: Bot, post: Post) -> Request:
        (item,) = post.media
        form = [("caption", post.text)] if post.text else []
        if item.sha256 is None:
            return bot.upload(Method.PHOTO, [*form, ("photo", item.url or "")], ())
        return bot.upload(Method.PHOTO, form, (self._part("photo", item, 0),))

    def _album(self, bot: Bot, post: Post) -> Request:
        """One call for all photos; the text stands under the first, which shows it for all."""
        media: list[dict[str, str]] = []
        files: list[FilePart] = []
        for index, item in enumerate(post.media):
            entry = {"type": "photo", "media": item.url or ""}
            if item.sha256 is not None:
                entry["media"] = f"attach://photo{index}"
                files.append(self._part(f"photo{index}", item, index))
            if index == 0 and post.text:
                entry["caption"] = post.text
            media.append(entry)
        listed = json.dumps(media, ensure_ascii=False, separators=(",", ":"))
        return bot.upload(Method.ALBUM, [("media", listed)], files)

    def _part(self, field: str, item: Media, index: int) -> FilePart:
        sha256 = item.sha256 or ""
        return FilePart(
            field=field,
            filename=item.name or f"photo-{index + 1}",
            type=item.type,
            size=item.size or 0,
            open=lambda: self._media.read(sha256),
        )

    def _has(self, sha256: str) -> bool:
        """Whether the store has the bytes. A missing file is not the network's failure."""
        try:
            next(iter(self._media.read(sha256)), b"")
        except (LookupError, OSError):
            return False
        return True


def _is_for(permit: SendPermit, task: Task) -> bool:
    return (permit.job_id, permit.token, permit.channel_id, permit.content_sha256) == (
        task.job_id,
        task.token,
        task.channel.id,
        task.content_sha256,
    )


def _unproved(bot: Bot, reply: Reply) -> Unknown:
    """A 4xx answer that is not on the list."""
    complaint = Complaint.read(reply)
    if complaint is None:
        detail = f"Telegram answered HTTP {reply.status} without an error that can be read."
        return Unknown(Reason.UNLISTED_REFUSAL, detail, answer=reply.answer)
    words = hidden(complaint.description, bot.secrets)
    return Unknown(Reason.UNLISTED_REFUSAL, words, answer=reply.answer)
