"""Graph as one of the sandbox's dialects."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour, Endpoint
from publisher.sandbox.dialect import Asked, Complaint
from publisher.sandbox.graph import calls, listing, publishing, refusals
from publisher.sandbox.pages import APPLICATION, APPLICATION_NAME, Page, token_hash
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from publisher.sandbox.graph.calls import Call
    from publisher.sandbox.graph.publishing import Acceptance
    from publisher.sandbox.pages import Pages, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Head

_COMPLAINTS = {
    Complaint.BROKEN: refusals.unknown_error,
    Complaint.LIMITED: refusals.limit_reached,
    Complaint.INVALID: lambda: refusals.invalid_parameter("Invalid parameter"),
    Complaint.TOKEN: lambda: refusals.bad_token(463),
    Complaint.DUPLICATE: refusals.duplicate,
}


class Graph:
    """Graph for Facebook Pages; the sandbox's first platform."""

    name = "graph"
    noun = "Pages"
    refuses_duplicates = True

    def route(self, head: Head, _state: Pages) -> Asked | None:
        """See ``Dialect``: ``/v26.0/{node}/{edge}``."""
        where = calls.route(head.method, head.path)
        if where is None:
            return None
        return Asked(head.method, head.path, where.page, where.endpoint)

    def read(self, request: str, asked: Asked, head: Head, body: bytes, _state: Pages) -> Call:
        """See ``Dialect``."""
        where = calls.route(asked.method, asked.path)
        assert where is not None  # noqa: S101  it was routed
        return calls.read(request, where, head, body)

    def perform(self, call: Call, done: Treatment, platform: Platform) -> Answer:
        """See ``Dialect``."""
        with platform.lock:
            page = calls.caller(call, platform.state)
            if call.method == "GET":
                return Answer.of_json(_read(call, page, done, platform))
            acceptance = _accept(call, page, platform)
            if acceptance.upload is None or acceptance.upload.content is None:
                _store(acceptance, done, platform)
                return Answer.of_json(acceptance.answer)
        platform.keep(acceptance.upload.media.id, acceptance.upload.content)
        _store(acceptance, done, platform)
        return Answer.of_json(acceptance.answer)

    def complain(self, complaint: Complaint, call: Call, done: Treatment) -> Answer:
        """See ``Dialect``; Graph says HTTP 400 to nearly everything."""
        too_many = (Behaviour.REFUSE_429, Behaviour.REFUSE_429_RETRY_AFTER)
        error = ({"status": 429} if done.behaviour in too_many else {}) | dict(done.error)
        headers = {}
        if done.behaviour in (Behaviour.ACCEPT_AND_LIMIT, Behaviour.REFUSE_LIMITED):
            headers = refusals.usage_headers(call.route.page, 100, done.seconds)
        elif done.behaviour is Behaviour.REFUSE_429_RETRY_AFTER:
            headers = {"Retry-After": str(round(done.seconds))}
        return _COMPLAINTS[complaint]().answer(call.request, error, **headers)

    def unreadable(self, request: str, reason: str) -> Answer:
        """See ``Dialect``."""
        return refusals.invalid_parameter(reason).answer(request)

    def without_id(self) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json({"success": True})

    def older(self, _call: Call, post: Post, _platform: Platform) -> Answer:
        """See ``Dialect``."""
        return Answer.of_json({"id": post.id})

    def finish(self, answer: Answer, call: Call, platform: Platform) -> None:
        """See ``Dialect``."""
        answer.headers["facebook-api-version"] = call.route.version
        answer.headers["x-fb-trace-id"] = call.request
        if platform.usage_percent is not None:
            usage = refusals.usage_headers(call.route.page, platform.usage_percent)
            answer.headers.update({**usage, **answer.headers})

    def default_account(self, number: int) -> tuple[Page, str]:
        """See ``Dialect``: 101 is Page A, 102 Page B."""
        page = str(100 + number)
        token = f"sandbox-token-{page}"
        letter = ascii_uppercase[number - 1] if number <= len(ascii_uppercase) else page
        return Page(page, f"Page {letter}", token_hash(token)), token

    def account(self, given: Mapping[str, Any], number: int) -> tuple[Page, str]:
        """See ``Dialect``: ``id``, ``name``, ``token``, ``application``, ``application_name``.

        ``token_ends``: what ``debug_token`` says, in unix seconds.
        """
        page = str(given.get("id") or 100 + number)
        if not page.isdigit():
            reason = "The id of a page is digits."
            raise ValueError(reason)
        token = str(given.get("token") or f"sandbox-token-{page}")
        application = str(given.get("application") or APPLICATION)
        name = str(given.get("application_name") or APPLICATION_NAME)
        made = Page(page, str(given.get("name") or page), token_hash(token), application, name)
        ends = given.get("token_ends")
        return (made if ends is None else replace(made, details={"token_ends": int(ends)})), token

    def configure(self, _page: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Dialect``."""
        if given:
            reason = "Graph has no settings."
            raise ValueError(reason)
        return {}

    def identify(self, post: Post, state: Pages) -> Post:
        """See ``Dialect``."""
        return replace(post, id=f"{post.page}_{state.next_number()}")

    def land(self, post: Post, _state: Pages) -> Post | None:
        """See ``Dialect``: nothing tells two posts apart, so a late one always is one more."""
        return post

    def locate(self, _path: str, _state: Pages) -> Page | Post | None:
        """See ``Dialect``: its permalinks are the wall's own."""
        return None

    def address(self, post: Post, _state: Pages) -> str:
        """See ``Dialect``."""
        return f"/a/{post.id}"


def _read(call: Call, page: Page, done: Treatment, platform: Platform) -> dict[str, Any]:
    if call.route.node == "debug_token":
        return listing.debug_token(call, platform.state)
    if call.route.endpoint is Endpoint.LIST:
        return listing.list_posts(call, platform.state, page, platform.base, done)
    return listing.read_node(call, platform.state, page, platform.base, done)


def _accept(call: Call, page: Page, platform: Platform) -> Acceptance:
    if call.route.endpoint is Endpoint.DELETE:
        return publishing.delete(call, platform.state, page)
    if call.route.endpoint is Endpoint.READ:
        return publishing.flip(call, platform.state, page)
    return publishing.create(call, platform.state, page, platform.base)


def _store(acceptance: Acceptance, done: Treatment, platform: Platform) -> None:
    if acceptance.post is not None:
        platform.publish(acceptance.post, done, *acceptance.facts)
    elif acceptance.facts:
        platform.record(*acceptance.facts)
