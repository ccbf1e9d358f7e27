"""The adapter: everything a record needs is gathered in steps, then one call puts it in place.

``putRecord`` with ``swapRecord: null`` creates and never changes: a record that is equal is no
change, another one under the same key is refused. So the same send may be repeated for ever, even
while the first is still under way, and there is one post.

One hole is left, and it is nobody's fault: an owner who deletes a post between two attempts of it
gets it back with the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice

from publisher.adapters.bluesky import evidence, formats, identify, tid, withdrawal
from publisher.adapters.bluesky.account import (
    ENTRYWAY,
    Account,
    Closed,
    account_of,
    is_did,
    is_own_address,
)
from publisher.adapters.bluesky.record import (
    Prepared,
    build,
    is_blob,
    mentions,
    missing_blobs,
    permalink_of,
    prepared_in,
    record_key,
    unresolved,
    with_blob,
)
from publisher.adapters.bluesky.refusals import (
    Call,
    classify,
    row_for,
    seconds_to_rest,
    step_failure,
)
from publisher.adapters.bluesky.sessions import Session, Sessions
from publisher.adapters.bluesky.shape import HEAD_BYTES, shape_of
from publisher.adapters.bluesky.xrpc import POST, Complaint, Server, words_of
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    MediaStore,
    More,
    Problem,
    Progress,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import ContentError, Media, Post
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
from publisher.transport import Failed, FilePart, Reply, Transport

_OK = 200


class Bluesky:
    """Implements ``engine.adapter.Adapter`` for Bluesky and other AT Protocol servers.

    ``vault_open`` gives a channel's credential in clear, ``{"identifier", "password"}`` as JSON or
    an app password alone; what it raises becomes an outcome. ``base_url``: where to log in, for
    channels that name no address of their own.

    It keeps nothing between calls but sessions, which anyone may make again; see ``sessions``.
    """

    platform = "bluesky"

    def __init__(
        self,
        transport: Transport,
        vault_open: Callable[[Channel], str],
        media: MediaStore,
        *,
        base_url: str = ENTRYWAY,
    ) -> None:
        self._transport = transport
        self._vault_open = vault_open
        self._media = media
        self._base_url = base_url
        self._sessions = Sessions(transport)

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

    def platform_key(self, key: str, at: datetime) -> str | None:
        """The post's record key."""
        return tid.mint(key, at)

    def prepared(self, task: Task) -> Ready | None:
        """``Ready`` when the record is built, its pictures are there and a session is at hand."""
        account = self._account(task.channel)
        if formats.problems(task.content) or isinstance(account, Closed):
            return None
        session = self._sessions.fresh(account)
        prepared = prepared_in(task, task.progress)
        if session is None or prepared is None or prepared.repo != session.did:
            return None
        if missing_blobs(task, Post.from_json(task.content)):
            return None
        return Ready(task.progress)

    def step(self, task: Task) -> Step:
        """Log in where need be; then upload one picture, or find out one handle.

        The last of them builds the record. Repeated, nothing of it is seen by anybody.
        """
        problems = formats.problems(task.content)
        if problems:
            detail = " ".join(problem.message for problem in problems)
            return Rejected(Reason.CONTENT_REFUSED, detail)
        account = self._account(task.channel)
        if isinstance(account, Closed):
            return account.outcome()
        session = self._sessions.ensure(account)
        if not isinstance(session, Session):
            return session
        kept = prepared_in(task, task.progress)
        if kept is not None and kept.repo != session.did:
            # Under another account the key would be free, and an earlier attempt's post a twin.
            detail = "This handle belongs to another account now. Reconnect it."
            return Unauthorized(Reason.NEEDS_RECONNECTING, detail)
        post = Post.from_json(task.content)
        if places := missing_blobs(task, post):
            done = self._upload(account, session, task, post.media[places[0]], places[0])
        elif unknown := unresolved(post, task.progress):
            done = self._resolve(account, session, task, unknown[0])
        else:
            done = task.progress
        if isinstance(done, Rejected | Deferred | Unauthorized):
            return done
        return _onwards(replace(task, progress=done), post, session)

    def publish(  # noqa: PLR0911 - one way out for each thing that must be there
        self, task: Task, ready: Ready, permit: SendPermit
    ) -> Outcome:
        """Put the record under its key with exactly one request."""
        if not _is_for(permit, task):
            return Deferred(Reason.NOT_STARTED, "The permit is for another attempt or content.")
        account = self._account(task.channel)
        if isinstance(account, Closed):
            # Not Unauthorized: a refusal of the platform's would be the proof then, and nobody
            # was asked. The next ``prepared`` finds the same, and ``step`` says so.
            return Deferred(Reason.NEEDS_RECONNECTING, account.detail)
        session, prepared = self._sessions.fresh(account), prepared_in(task, ready.progress)
        if session is None:
            return Deferred(Reason.NOT_STARTED, "The session ended before this post was sent.")
        if prepared is None or prepared.repo != session.did:
            return Deferred(Reason.NOT_STARTED, "The record of this post is not built yet.")
        given: dict[str, object] = {
            "repo": prepared.repo,
            "collection": POST,
            "rkey": prepared.rkey,
            "validate": True,
            "record": prepared.value,
            "swapRecord": None,
        }
        reply = self._transport.publish(session.server.post(Call.PUT, given), permit)
        if not isinstance(reply, Reply):
            return reply
        if reply.status == _OK:
            return _published(prepared, reply)
        self._believe(account, session, reply)
        return classify(session.server, reply) or _unproved(session.server, reply)

    def look(self, query: LookQuery) -> Evidence:
        """Ask for the record under this post's key; what goes wrong on the way is inconclusive.

        Anybody may ask, so a credential that no longer opens anything is no hindrance once a step
        has noted whose record it is and where.
        """
        task, prepared = query.task, prepared_in(query.task, query.task.progress)
        where = self._whereabouts(task)
        if isinstance(where, Inconclusive):
            return where
        repo, server = where
        try:
            return evidence.look(
                self._transport,
                server,
                query,
                repo=repo,
                rkey=record_key(task),
                record=None if prepared is None else prepared.value,
            )
        except ContentError as error:
            return Inconclusive(f"This post cannot be read: {error}.")

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        """Read the record that a person names, by address, link or key."""
        where = self._whereabouts(query.task)
        if isinstance(where, Inconclusive):
            return unreadable(where.reason)
        repo, server = where
        rkey = record_key(query.task)
        try:
            return identify.identify(self._transport, server, query, given, repo=repo, rkey=rkey)
        except ContentError as error:
            return unreadable(f"this post cannot be read: {error}")

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        """Delete the record; a session is made where need be."""
        account = self._account(channel)
        if isinstance(account, Closed):
            return cannot_withdraw(account.outcome())
        return withdrawal.withdraw(self._transport, self._sessions, account, post.remote_id)

    def check(self, channel: Channel) -> ChannelHealth:
        """Log in where need be, and read whose session it is."""
        account = self._account(channel)
        if isinstance(account, Closed):
            return ChannelHealth(usable=False, detail=account.detail)
        session = self._sessions.ensure(account)
        if not isinstance(session, Session):
            return ChannelHealth(usable=False, detail=session.detail)
        server = session.server
        reply = self._transport.read(server.get("com.atproto.server.getSession"))
        if isinstance(reply, Failed):
            return ChannelHealth(usable=False, detail=reply.detail)
        body = reply.json()
        if reply.status != _OK or not isinstance(body, dict):
            self._sessions.forget(account)
            words = words_of(server, reply)
            return ChannelHealth(usable=False, detail=f"The account could not be read: {words}")
        return _health(session, body)

    def _whereabouts(self, task: Task) -> tuple[str, Server] | Inconclusive:
        """Whose records these are and where: as a step has noted it, or by logging in."""
        prepared = prepared_in(task, task.progress)
        if prepared is not None:
            repo, url = prepared.repo, prepared.url
        else:
            account = self._account(task.channel)
            if isinstance(account, Closed):
                return Inconclusive(account.detail)
            session = self._sessions.ensure(account)
            if not isinstance(session, Session):
                return Inconclusive(session.detail)
            repo, url = session.did, session.url
        return repo, Server(url, is_own_address(url, task.channel, self._base_url))

    def _account(self, channel: Channel) -> Account | Closed:
        return account_of(channel, self._vault_open, self._base_url)

    def _upload(
        self, account: Account, session: Session, task: Task, item: Media, place: int
    ) -> Progress | Rejected | Deferred | Unauthorized:
        """Upload one picture. Unused, it is seen by nobody, and the server drops it in time."""
        try:
            head = self._head(item)
        except (LookupError, OSError):
            return Deferred(Reason.STEP_FAILED, f"Photo {place + 1} is not in the media store.")
        sha256 = item.sha256 or ""
        part = FilePart(
            field="",
            filename=f"photo {place + 1}",
            type=item.type,
            size=item.size or 0,
            open=lambda: self._media.read(sha256),
        )
        reply = self._transport.step(session.server.upload(Call.UPLOAD, part))
        if isinstance(reply, Failed):
            return Deferred(Reason.STEP_FAILED, reply.detail, answer=reply.answer)
        body = reply.json()
        blob = body.get("blob") if reply.status == _OK and isinstance(body, dict) else None
        if not isinstance(blob, dict) or not is_blob(blob):
            self._believe(account, session, reply)
            return step_failure(Call.UPLOAD, session.server, reply)
        return with_blob(task, place, blob, shape_of(head))

    def _head(self, item: Media) -> bytes:
        """The first bytes of a picture. Raises ``LookupError`` or ``OSError`` without it."""
        head = bytearray()
        for chunk in islice(self._media.read(item.sha256 or ""), HEAD_BYTES):
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
        return bytes(head)

    def _resolve(
        self, account: Account, session: Session, task: Task, handle: str
    ) -> Progress | Rejected | Deferred | Unauthorized:
        """Find out whose a handle is. One that is nobody's stays text, as it would by hand."""
        reply = self._transport.read(session.server.get(Call.RESOLVE, {"handle": handle}))
        if isinstance(reply, Failed):
            return Deferred(Reason.STEP_FAILED, reply.detail, answer=reply.answer)
        body, complaint = reply.json(), Complaint.read(reply)
        did = body.get("did") if reply.status == _OK and isinstance(body, dict) else None
        if not is_did(did):
            known = complaint is not None and row_for(Call.RESOLVE, complaint) is None
            if reply.status != 400 or not known:  # noqa: PLR2004 - HTTP's Bad Request
                self._believe(account, session, reply)
                return step_failure(Call.RESOLVE, session.server, reply)
        found = {**mentions(task.progress), handle: did if is_did(did) else None}
        return {**task.progress, "mentions": found}

    def _believe(self, account: Account, session: Session, reply: Reply) -> None:
        """Drop a session that the server no longer takes."""
        complaint = Complaint.read(reply)
        if complaint is None:
            return
        if complaint.error == "ExpiredToken":
            self._sessions.expire(account, session)
        elif complaint.error in ("InvalidToken", "AuthMissing", "AuthenticationRequired"):
            self._sessions.forget(account)


def _onwards(task: Task, post: Post, session: Session) -> More | Ready:
    """What comes after a step: another, or the record, which is built once and then kept."""
    if missing_blobs(task, post) or unresolved(post, task.progress):
        return More(task.progress)
    kept = prepared_in(task, task.progress)
    record = build(task, post, task.progress) if kept is None else kept.record
    return Ready({**task.progress, "repo": session.did, "url": session.url, "record": record})


def _health(session: Session, body: Mapping[str, object]) -> ChannelHealth:
    handle = body.get("handle")
    name = f"@{handle}" if isinstance(handle, str) else None
    if body.get("did") != session.did:
        return ChannelHealth(usable=False, detail="The session opens another account.", name=name)
    if body.get("active") is False:
        detail = f"This account is not active: {body.get('status') or 'no reason given'}."
        return ChannelHealth(usable=False, detail=detail, name=name)
    return ChannelHealth(usable=True, detail="The account can be read.", name=name)


def _is_for(permit: SendPermit, task: Task) -> bool:
    return (permit.job_id, permit.token, permit.channel_id, permit.content_sha256) == (
        task.job_id,
        task.token,
        task.channel.id,
        task.content_sha256,
    )


def _published(prepared: Prepared, reply: Reply) -> Published | Unknown:
    """A success counts only with the name that the record must have."""
    body = reply.json()
    uri = body.get("uri") if isinstance(body, dict) else None
    if not isinstance(uri, str):
        return Unknown(Reason.NO_ID, "Bluesky answered without an id.", answer=reply.answer)
    if uri != prepared.uri:
        detail = "Bluesky answered with an id that is not this post's."
        return Unknown(Reason.NO_ID, detail, answer=reply.answer)
    return Published(
        uri,
        permalink_of(prepared.repo, prepared.rkey),
        answer=reply.answer,
        not_before=seconds_to_rest(reply.headers),
    )


def _unproved(server: Server, reply: Reply) -> Unknown:
    """An answer that is not on the list, or is one of its doubts."""
    complaint = Complaint.read(reply)
    row = None if complaint is None else row_for(Call.PUT, complaint)
    words = words_of(server, reply)
    detail = f"Bluesky answered: {words}" if row is None else f"{row.says} It said: {words}"
    return Unknown(Reason.UNLISTED_REFUSAL, detail, answer=reply.answer)
