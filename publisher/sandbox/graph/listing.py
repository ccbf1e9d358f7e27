"""What is read of a page: listings, single nodes, and a token's state."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.graph import fields, refusals
from publisher.sandbox.pages import cursor, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from publisher.sandbox.graph.calls import Call
    from publisher.sandbox.pages import Page, Pages, Place, Post
    from publisher.sandbox.plan import Treatment

LIMIT = 100
"""Posts in one page of a listing, at most."""


def list_posts(call: Call, pages: Pages, page: Page, base: str, done: Treatment) -> dict[str, Any]:
    """Return one page of a listing, newest first. Raises ``Refusal``.

    ``since`` and ``until`` are unix seconds and both included; ``limit`` is 1 to 100.
    """
    if call.route.node not in (page.id, "me"):
        raise refusals.unknown_object(call.route.node, "get")
    limit = _number(call, "limit")
    limit = 25 if limit is None else limit
    if not 1 <= limit <= LIMIT:
        reason = "Param limit must be between 1 and 100."
        raise refusals.invalid_parameter(reason)
    wanted = fields.post_fields(call.form.text("fields"))
    after = call.form.text("after")
    posts = pages.wall(
        page.id,
        since=_number(call, "since"),
        until=_number(call, "until"),
        before=_place(after) if after else None,
    )
    shown = list(islice(_spoil(posts, limit, done, first=not after), limit + 1))
    data = [fields.show_post(post, pages, base, wanted) for post in shown[:limit]]
    if not data:
        return {"data": []}
    return {"data": data, "paging": _paging(call, base, shown, limit)}


def read_node(call: Call, pages: Pages, page: Page, base: str, done: Treatment) -> dict[str, Any]:
    """Return a post, a photo, a video or the page itself. Raises ``Refusal``."""
    node, wanted = call.route.node, call.form.text("fields")
    if done.behaviour is Behaviour.UNREADABLE or call.route.edge is not None:
        raise refusals.unknown_object(node, call.method)
    if node in (page.id, "me"):
        return fields.show_page(page, base, wanted)
    post = pages.posts.get(node)
    if post is not None and post.page == page.id and post.readable:
        return fields.show_post(post, pages, base, fields.post_fields(wanted))
    media = pages.media.get(node)
    if media is not None and media.page == page.id:
        return fields.show_media(media, base, wanted)
    raise refusals.unknown_object(node, call.method)


def debug_token(call: Call, pages: Pages) -> dict[str, Any]:
    """Return what is known of ``input_token``. Raises ``Refusal`` when none is given."""
    token = call.form.text("input_token")
    if not token:
        reason = "The parameter input_token is required"
        raise refusals.invalid_parameter(reason)
    page = pages.holder(token, "graph")
    if page is None or page.revoked_subcode is not None:
        error: dict[str, Any] = {"code": 190, "message": "Invalid OAuth access token."}
        if page is not None:
            error["subcode"] = page.revoked_subcode
        return {"data": {"error": error, "is_valid": False, "scopes": []}}
    scopes = ["pages_manage_posts", "pages_read_engagement", "pages_show_list", "public_profile"]
    return {
        "data": {
            "app_id": page.application, "application": page.application_name, "type": "PAGE",
            "is_valid": True, "expires_at": page.details.get("token_ends", 0),
            "data_access_expires_at": 0,
            "profile_id": page.id, "user_id": page.id, "scopes": scopes,
        }
    }  # fmt: skip


def _spoil(posts: Iterator[Post], limit: int, done: Treatment, *, first: bool) -> Iterator[Post]:
    if done.behaviour is Behaviour.LISTING_DELAYED:
        newest = time.time() - done.seconds
        return (post for post in posts if post.created_at <= newest)
    if done.behaviour is Behaviour.LISTING_GAP and first:
        return islice(posts, limit, None)
    return posts


def _paging(call: Call, base: str, shown: list[Post], limit: int) -> dict[str, Any]:
    last = shown[:limit][-1]
    after = cursor(last.place)
    paging: dict[str, Any] = {"cursors": {"before": cursor(shown[0].place), "after": after}}
    if len(shown) > limit:
        kept = {name: call.form.text(name) for name in ("fields", "limit", "since", "until")}
        query = {name: text for name, text in kept.items() if text}
        query |= {"access_token": call.token, "after": after}
        paging["next"] = f"{base}{call.path}?{urlencode(query)}"
    return paging


def _place(word: str) -> Place:
    try:
        return place(word)
    except ValueError:
        reason = "Invalid cursor."
        raise refusals.invalid_parameter(reason) from None


def _number(call: Call, name: str) -> int | None:
    text = call.form.text(name)
    if not text:
        return None
    if not text.isdigit():
        reason = f"Param {name} must be a whole number."
        raise refusals.invalid_parameter(reason)
    return int(text)
