"""Bluesky as one of the sandbox's dialects."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from publisher.sandbox import formats
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.bluesky import calls, cids, refusals, repository
from publisher.sandbox.bluesky.sessions import Sessions
from publisher.sandbox.dialect import Asked, Complaint
from publisher.sandbox.pages import Media, Page, to_fact, token_hash
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from publisher.sandbox.bluesky.calls import Call
    from publisher.sandbox.pages import Pages, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Head

BLOB_BYTES = 100 * 1024 * 1024
_DID = re.compile(r"^did:(plc:[a-z2-7]{24}|web:[a-z0-9.%-]+)$")
_HANDLE = re.compile(r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]+$")
_COMPLAINTS = {
    Complaint.BROKEN: refusals.internal,
    Complaint.LIMITED: refusals.limited,
    Complaint.INVALID: lambda: refusals.invalid_request("Input is invalid"),
    Complaint.TOKEN: refusals.expired_token,
    Complaint.DUPLICATE: refusals.internal,
}


class Bluesky:
    """A personal data server with a repository for each account."""

    name = "bluesky"
    noun = "Bluesky accounts"
    refuses_duplicates = False

    def __init__(self) -> None:
        self.sessions = Sessions()

    def route(self, head: Head, state: Pages) -> Asked | None:
        """See ``Dialect``: ``/xrpc/{method}``."""
        return calls.route(head, state)

    def read(self, request: str, asked: Asked, head: Head, body: bytes, state: Pages) -> Call:
        """See ``Dialect``."""
        return calls.read(request, asked, head, body, state)

    def perform(self, call: Call, done: Treatment, platform: Platform) -> Answer:
        """See ``Dialect``."""
        if call.nsid == "com.atproto.repo.uploadBlob":
            return Answer.of_json(self._upload(call, platform))
        with platform.lock:
            return Answer.of_json(self._do(call, done, platform))

    def complain(self, complaint: Complaint, _call: Call, done: Treatment) -> Answer:
        """See ``Dialect``."""
        answer = _COMPLAINTS[complaint]().answer("", done.error)
        if complaint is Complaint.LIMITED and done.behaviour is not Behaviour.REFUSE_429:
            answer.headers.update(refusals.limit_headers(0, done.seconds))
        if done.behaviour is Behaviour.REFUSE_429_RETRY_AFTER:
            answer.headers["Retry-After"] = str(round(done.seconds))
        return answer

    def unreadable(self, request: str, reason: str) -> Answer:
        """See ``Dialect``."""
        return refusals.invalid_request(reason).answer(request)

    def without_id(self) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json({})

    def older(self, _call: Call, post: Post, _platform: Platform) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json(repository.reference(post))

    def finish(self, answer: Answer, _call: Call, platform: Platform) -> None:
        """See ``Dialect``."""
        if platform.usage_percent is not None:
            remaining = refusals.RATE_LIMIT * (100 - platform.usage_percent) // 100
            usage = refusals.limit_headers(remaining, refusals.RATE_WINDOW)
            answer.headers.update({**usage, **answer.headers})

    def default_account(self, number: int) -> tuple[Page, str]:
        """See ``Dialect``: sandbox1.test, with the app password sandbox-password-1."""
        return self.account({}, number)

    def account(self, given: Mapping[str, Any], number: int) -> tuple[Page, str]:
        """See ``Dialect``: ``id`` (a did), ``handle``, ``token`` (the app password), ``name``."""
        handle = str(given.get("handle") or f"sandbox{number}.test").lower()
        made = base64.b32encode(hashlib.sha256(handle.encode()).digest()).decode().lower()[:24]
        did = str(given.get("id") or f"did:plc:{made}")
        if not _DID.match(did) or not _HANDLE.match(handle):
            reason = "A Bluesky account has a did:plc or did:web as its id, and a domain as handle."
            raise ValueError(reason)
        password = str(given.get("token") or f"sandbox-password-{number}")
        name = str(given.get("name") or handle)
        details = {"handle": handle}
        page = Page(did, name, token_hash(password), platform=self.name, details=details)
        return page, password

    def configure(self, page: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Dialect``: ``access_for``, ``refresh_for``, ``refresh_grace_for``, ``expire``."""
        seconds = dict(given)
        if seconds.pop("expire", False) and page is not None:
            self.sessions.expire(page)
        lives = {name: float(value) for name, value in seconds.items()}
        return asdict(self.sessions.set_lives(page, **lives))

    def identify(self, post: Post, state: Pages) -> Post:
        """See ``Dialect``."""
        return repository.foreign(post, state)

    def land(self, post: Post, state: Pages) -> Post | None:
        """See ``Dialect``: a record whose key is taken is not written again."""
        return None if post.id in state.posts else post

    def locate(self, path: str, state: Pages) -> Page | Post | None:
        """See ``Dialect``: ``/profile/{did or handle}``, ``/profile/{…}/post/{rkey}``."""
        match path.strip("/").split("/"):
            case ["profile", name]:
                return calls.find(name, state)
            case ["profile", name, "post", rkey] if page := calls.find(name, state):
                return state.posts.get(f"at://{page.id}/{calls.POSTS}/{rkey}")
            case _:
                return None

    def address(self, post: Post, state: Pages) -> str:
        """See ``Dialect``."""
        handle = state.pages[post.page].details["handle"]
        return f"/profile/{handle}/post/{post.data['rkey']}"

    def _do(self, call: Call, done: Treatment, platform: Platform) -> dict[str, Any]:
        state = platform.state
        match call.method_of():
            case "POST com.atproto.server.createSession":
                return self._sign_in(call, state)
            case "POST com.atproto.server.refreshSession":
                return self.sessions.renew(call.token, state)
            case "GET com.atproto.server.getSession":
                return _without_tokens(self.sessions.make(self.sessions.holder(call.token, state)))
            case method if read := _READS.get(method):
                return read(call, done, state)
            case method if write := _WRITES.get(method):
                return write(call, self.sessions.holder(call.token, state), done, platform)
            case _:
                raise refusals.no_such_method()

    def _sign_in(self, call: Call, state: Pages) -> dict[str, Any]:
        page = calls.find(call.name("identifier"), state)
        password = token_hash(call.name("password"))
        if page is None or page.token_sha256 != password or page.revoked_subcode is not None:
            raise refusals.wrong_password()
        return self.sessions.make(page)

    def _upload(self, call: Call, platform: Platform) -> dict[str, Any]:
        page = self.sessions.holder(call.token, platform.state)
        if not call.body:
            reason = "Request encoding (Content-Type) required but not provided"
            raise refusals.invalid_request(reason)
        if len(call.body) > BLOB_BYTES:
            raise refusals.too_large()
        picture = formats.photo(call.body)
        # The real server looks into the bytes as well, and takes its own word over the header's.
        kind = picture or formats.video(call.body) or call.content_type or "*/*"
        with platform.lock:
            number = str(platform.state.next_number())
        media = Media(
            number, page.id, "photo" if picture else "video", kind, None, len(call.body),
            time.time(), name=cids.of_bytes(call.body),
        )  # fmt: skip
        platform.keep(media.id, call.body)
        platform.record({"fact": "media", "request": call.request, "media": to_fact(media)})
        link = {"$link": media.name}
        blob = {"$type": "blob", "ref": link, "mimeType": kind, "size": media.bytes}
        return {"blob": blob}


def _describe(_call: Call, _done: Treatment, _state: Pages) -> dict[str, Any]:
    server = {"did": "did:web:sandbox.invalid", "availableUserDomains": [".test"]}
    return server | {"inviteCodeRequired": False}


def _resolve(call: Call, _done: Treatment, state: Pages) -> dict[str, Any]:
    page = calls.find(call.name("handle"), state)
    if page is None:
        reason = "Unable to resolve handle"
        raise refusals.invalid_request(reason)
    return {"did": page.id}


def _without_tokens(session: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in session.items() if not name.endswith("Jwt")}


_READS: dict[str, Callable[[Call, Treatment, Pages], dict[str, Any]]] = {
    "GET com.atproto.server.describeServer": _describe,
    "GET com.atproto.identity.resolveHandle": _resolve,
    "GET com.atproto.repo.getRecord": repository.get,
    "GET com.atproto.repo.listRecords": repository.listing,
}
_WRITES: dict[str, Callable[[Call, Page, Treatment, Platform], dict[str, Any]]] = {
    "POST com.atproto.repo.createRecord": repository.create,
    "POST com.atproto.repo.putRecord": repository.put,
    "POST com.atproto.repo.deleteRecord": repository.delete,
}
