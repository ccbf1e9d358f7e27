"""The adapter: photos are uploaded unpublished in steps, then one call makes the post.

Even a single photo goes through ``/feed``: its unpublished id, known before the post is, shows up
in the post's attachments, which is the best evidence there is. A video is one call by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from publisher.adapters.facebook_pages import evidence, formats, identify, withdrawal
from publisher.adapters.facebook_pages.formats import Format, format_of
from publisher.adapters.facebook_pages.listing import Bounds
from publisher.adapters.facebook_pages.photos import attached_media, missing, photo_ids, with_photo
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
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
    Withdrawal,
    cannot_withdraw,
)
from publisher.engine.recognition import unreadable
from publisher.graph.call import DEFAULT_URL, Node, token_is_sendable
from publisher.graph.complaint import Complaint
from publisher.graph.refusals import Endpoint, classify, row_for, step_failure
from publisher.graph.usage import seconds_to_rest
from publisher.transport import Failed, FilePart, Reply, Request, Transport

_NUMBER = re.compile(r"[0-9]{1,30}")
_ID_IN_PIECES = re.compile(r'"id"\s*:\s*"([0-9]{1,30}(?:_[0-9]{1,30})?)"')


@dataclass(frozen=True, slots=True)
class _Closed:
    """Why a channel's access cannot be used: ``lasting`` until a person reconnects it."""

    detail: str
    lasting: bool

    def outcome(self) -> Unauthorized | Deferred:
        if self.lasting:
            return Unauthorized(Reason.NEEDS_RECONNECTING, self.detail)
        return Deferred(Reason.BUSY, self.detail)


class FacebookPages:
    """Implements ``engine.adapter.Adapter`` for Facebook Pages.

    ``vault_open`` gives a channel's Page token in clear; what it raises becomes an outcome.
    ``base_url``: where Graph is, for channels that name no address of their own.
    ``application``: the id of our Meta app, which tells our posts from others' where it is known.
    ``bounds``: how far a look reads.
    """

    platform = "facebook_pages"

    def __init__(
        self,
        transport: Transport,
        vault_open: Callable[[Channel], str],
        media: MediaStore,
        *,
        base_url: str = DEFAULT_URL,
        application: str | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._transport = transport
        self._vault_open = vault_open
        self._media = media
        self._base_url = base_url
        self._application = application
        self._bounds = bounds or Bounds()

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
        """None: Graph takes no key of ours."""
        return None

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` for texts, links and videos at once, for photos when all are uploaded.

        None too where a step has to say what is wrong: a step's refusal needs no attempt.
        """
        if formats.problems(task.content) or isinstance(self._node(task.channel), _Closed):
            return None
        if missing(Post.from_json(task.content), task.progress):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Upload one photo, unpublished. Repeated, it leaves one more that nobody sees."""
        problems = formats.problems(task.content)
        if problems:
            detail = " ".join(problem.message for problem in problems)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        node = self._node(task.channel)
        if isinstance(node, _Closed):
            return node.outcome()
        post = Post.from_json(task.content)
        indexes = missing(post, task.progress)
        if not indexes:
            return Ready(task.progress)
        return self._upload(node, task.progress, post, indexes[0])

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        """Make the post with exactly one request, its text byte for byte as it was approved."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        node = self._node(task.channel)
        if isinstance(node, _Closed):
            # Not Unauthorized: a refusal of the platform's would be the proof then, and nobody
            # was asked. The next ``prepared`` finds the same, and ``step`` says so.
            return Deferred(Reason.NEEDS_RECONNECTING, node.detail)
        try:
            post = Post.from_json(task.content)
        except ContentError as error:
            return Deferred(Reason.NOT_STARTED, f"This post cannot be read: {error}.")
        if format_of(post) is Format.VIDEO:
            return self._publish_video(node, task, post, permit)
        if missing(post, ready.progress):
            return Deferred(Reason.NOT_STARTED, "A photo of this post is not uploaded yet.")
        request = node.post("feed", _feed_form(post, ready.progress))
        return self._send(node, Endpoint.FEED, task, request, permit)

    def look(self, query: LookQuery) -> Evidence:
        """Read the Page for evidence; what goes wrong on the way is inconclusive."""
        node = self._node(query.task.channel)
        if isinstance(node, _Closed):
            return Inconclusive(node.detail)
        try:
            post = Post.from_json(query.task.content)
        except ContentError as error:
            return Inconclusive(f"This post cannot be read: {error}.")
        return evidence.look(
            self._transport,
            node,
            query,
            photos=frozenset(photo_ids(post, query.task.progress).values()),
            application=self._application,
            bounds=self._bounds,
        )

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Read the post that a person names, by link, post id or video id."""
        node = self._node(query.task.channel)
        if isinstance(node, _Closed):
            return unreadable(node.detail)
        try:
            post = Post.from_json(query.task.content)
            photos = frozenset(photo_ids(post, query.task.progress).values())
            marks = evidence.marks_of(node, query, photos, self._application)
            return identify.identify(
                self._transport, node, query, given, marks=marks, bounds=self._bounds
            )
        except ContentError as error:
            return unreadable(f"this post cannot be read: {error}")

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """Delete the post, with one request and where need be two reads."""
        node = self._node(channel)
        if isinstance(node, _Closed):
            return cannot_withdraw(node.outcome())
        return withdrawal.withdraw(self._transport, node, post.remote_id)

    def check(self, channel: Channel) -> ChannelHealth:
        """Read the Page's id and name with the channel's token, and when that ends."""
        node = self._node(channel)
        if isinstance(node, _Closed):
            return ChannelHealth(usable=False, detail=node.detail)
        reply = self._transport.read(node.get(params={"fields": "id,name"}))
        if isinstance(reply, Failed):
            return ChannelHealth(usable=False, detail=reply.detail)
        body = reply.json()
        if reply.status == 200 and isinstance(body, dict):  # noqa: PLR2004 - HTTP's OK
            health = _health(channel, body)
            if not health.usable:
                return health
            return replace(health, expires_at=evidence.access_ends_at(self._transport, node))
        complaint = Complaint.read(reply)
        words = f"HTTP {reply.status}" if complaint is None else node.hide(complaint.detail)
        return ChannelHealth(usable=False, detail=f"The Page could not be read: {words}")

    def _node(self, channel: Channel) -> Node | _Closed:  # noqa: PLR0911 - one way in, many closed
        """The channel's Page with its token, or why there is none."""
        try:
            token = self._vault_open(channel)
        except OSError:
            return _Closed("The stored access could not be read just now.", lasting=False)
        except PublisherError as error:
            return _Closed(str(error), lasting=True)
        except Exception:  # noqa: BLE001 - whatever else a vault raises may hold secrets
            return _Closed("The stored access of this Page cannot be opened.", lasting=True)
        if not token_is_sendable(token):
            return _Closed("The stored access of this Page is not a token.", lasting=True)
        if not _NUMBER.fullmatch(channel.remote_id):
            return _Closed("The id of this Page is not a number.", lasting=True)
        if channel.base_url is None:
            return Node(channel.remote_id, token, self._base_url)
        return Node(channel.remote_id, token, channel.base_url, trusted=channel.trusted)

    def _upload(self, node: Node, progress: Mapping[str, object], post: Post, index: int) -> Step:
        item = post.media[index]
        form = [("published", "false")]
        if item.alt:
            form.append(("alt_text_custom", item.alt))
        if item.sha256 is None:
            form.append(("url", item.url or ""))
            files: tuple[FilePart, ...] = ()
        elif self._has(item.sha256):
            files = (self._part(item, index),)
        else:
            return Deferred(Reason.STEP_FAILED, f"Photo {index + 1} is not in the media store.")
        reply = self._transport.step(node.post("photos", form, files))
        if isinstance(reply, Failed):
            return Deferred(Reason.STEP_FAILED, reply.detail, answer=reply.answer)
        photo = _id_in(reply)
        if photo is None or not _NUMBER.fullmatch(photo):
            return step_failure(Endpoint.PHOTOS, reply, secrets=(node.token,))
        return with_photo(post, progress, index, photo)

    def _publish_video(self, node: Node, task: Task, post: Post, permit: SendPermit) -> Outcome:
        item = post.media[0]
        form = [("description", post.text)] if post.text else []
        files: tuple[FilePart, ...] = ()
        if item.sha256 is None:
            form.append(("file_url", item.url or ""))
        elif self._has(item.sha256):
            files = (self._part(item, 0),)
        else:
            return Deferred(Reason.NOT_STARTED, "The video is not in the media store.")
        return self._send(node, Endpoint.VIDEOS, task, node.post("videos", form, files), permit)

    def _send(
        self, node: Node, endpoint: Endpoint, task: Task, request: Request, permit: SendPermit
    ) -> Outcome:
        """The one irreversible call, and what its answer proves."""
        reply = self._transport.publish(request, permit)
        if isinstance(reply, Unknown):
            return replace(reply, remote_handle=_handle_in(reply))
        if isinstance(reply, Deferred):
            return reply
        if 200 <= reply.status < 300:  # noqa: PLR2004 - HTTP's successes
            return _published(node, endpoint, reply)
        refused = classify(endpoint, reply, task.attempts, secrets=(node.token,))
        if refused is not None:
            return refused
        return _unproved(node, endpoint, reply)

    def _part(self, item: Media, index: int) -> FilePart:
        sha256 = item.sha256 or ""
        return FilePart(
            field="source",
            filename=item.name or f"{item.kind}-{index + 1}",
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


def _feed_form(post: Post, progress: Mapping[str, object]) -> list[tuple[str, str]]:
    form = [("message", post.text)] if post.text else []
    if post.link is not None and not post.media:
        form.append(("link", post.link))
    if post.media:
        form.append(("attached_media", attached_media(post, progress)))
    return form


def _published(node: Node, endpoint: Endpoint, reply: Reply) -> Published | Unknown:
    """A success counts only with the id it must have: the Page's own post, or a video."""
    remote_id = _id_in(reply)
    wanted = rf"{node.id}_[0-9]{{1,30}}" if endpoint is Endpoint.FEED else r"[0-9]{1,30}"
    if remote_id is None:
        return Unknown(Reason.NO_ID, "Facebook answered without an id.", answer=reply.answer)
    if not re.fullmatch(wanted, remote_id):
        return Unknown(
            Reason.NO_ID,
            "Facebook answered with an id that is not a post of this Page.",
            answer=reply.answer,
        )
    return Published(remote_id, answer=reply.answer, not_before=seconds_to_rest(reply.headers))


def _unproved(node: Node, endpoint: Endpoint, reply: Reply) -> Unknown:
    """A 4xx answer that is not on the list, or that only a first attempt may believe."""
    complaint = Complaint.read(reply)
    if complaint is None:
        detail = f"Facebook answered HTTP {reply.status} without an error that can be read."
        return Unknown(Reason.UNLISTED_REFUSAL, detail, answer=reply.answer)
    row, words = row_for(endpoint, complaint), node.hide(complaint.detail)
    if row is None:
        return Unknown(Reason.UNLISTED_REFUSAL, words, answer=reply.answer)
    detail = f"{words}; after an earlier attempt this may be its echo"
    return Unknown(row.reason, detail, answer=reply.answer)


def _id_in(reply: Reply) -> str | None:
    body = reply.json()
    if not 200 <= reply.status < 300 or not isinstance(body, dict):  # noqa: PLR2004 - successes
        return None
    value = body.get("id")
    return value if isinstance(value, str) else None


def _handle_in(lost: Unknown) -> str | None:
    """The id in what came of an answer that was cut; a clue, and no more than that."""
    if lost.answer is None or (lost.answer.status or 0) // 100 != 2:  # noqa: PLR2004 - successes
        return None
    found = _ID_IN_PIECES.search(lost.answer.body)
    return None if found is None else found[1]


def _health(channel: Channel, body: Mapping[str, object]) -> ChannelHealth:
    name = body.get("name")
    shown = name if isinstance(name, str) else None
    if body.get("id") != channel.remote_id:
        return ChannelHealth(usable=False, detail="The token opens another Page.", name=shown)
    return ChannelHealth(usable=True, detail="The Page can be read.", name=shown)
