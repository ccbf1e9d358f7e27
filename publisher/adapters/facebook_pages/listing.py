"""Reads what is on a Page, whole or not at all, from listings that may lie.

Cursors are followed, addresses are not: Graph's ``paging.next`` is an address with the token in
it, and one that a broken or hostile server could point anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from publisher.engine.evidence import Candidate
from publisher.engine.matching import Listing
from publisher.graph.call import Node
from publisher.graph.complaint import Complaint
from publisher.transport import Failed, Transport

LOOK_BACK = timedelta(minutes=5)
"""A listing is read from so long before the first byte."""
PAGE_SIZE = 100
"""Graph's maximum. https://developers.facebook.com/docs/graph-api/reference/page/feed"""
NO_SUCH_EDGE = "this listing is not there for us"

_DEPTH = 6
_TIME_FORMATS = ("%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z")

Item = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read before a look is given up: pages, posts, and seconds altogether."""

    pages: int = 10
    posts: int = 1000
    seconds: float = 60.0


@dataclass(slots=True)
class Reading:
    """One listing as it is read, page by page."""

    items: list[Item] = field(default_factory=list)
    trouble: str = ""
    cursors: set[str] = field(default_factory=set)


def read(
    transport: Transport,
    node: Node,
    edge: str,
    fields: str,
    *,
    since: datetime,
    bounds: Bounds,
) -> Reading:
    """Read the listing at ``edge`` from ``since`` on, newest first, within ``bounds``.

    ``trouble`` in the answer says why it was not read to its end; empty: it was. A listing that
    ignores ``since`` has its end far away: posts are ranked, so an old one is no sign of it.
    """
    ends_at = time.monotonic() + bounds.seconds
    params = {"fields": fields, "limit": str(PAGE_SIZE), "since": str(int(since.timestamp()))}
    reading = Reading()
    for _ in range(bounds.pages):
        after = _read_page(transport, node, edge, params, reading, ends_at)
        if after is None or reading.trouble:
            return reading
        if len(reading.items) >= bounds.posts:
            reading.trouble = f"more than {bounds.posts} posts are listed since then"
            return reading
        params["after"] = after
    reading.trouble = f"the listing goes on after {bounds.pages} pages"
    return reading


def _read_page(
    transport: Transport,
    node: Node,
    edge: str,
    params: Mapping[str, str],
    reading: Reading,
    ends_at: float,
) -> str | None:
    """Add one page to ``reading``; the cursor of the next one, or None at the end."""
    left = ends_at - time.monotonic()
    if left <= 0:
        reading.trouble = "the listing took too long"
        return None
    reply = transport.read(node.get(edge, params), timeout=left)
    if isinstance(reply, Failed):
        reading.trouble = f"the listing could not be read: {reply.detail}"
        return None
    body = reply.json()
    if reply.status != 200 or not isinstance(body, dict):  # noqa: PLR2004 - HTTP's OK
        complaint = Complaint.read(reply)
        words = f"HTTP {reply.status}" if complaint is None else node.hide(complaint.detail)
        reading.trouble = f"the listing could not be read: {words}"
        if complaint is not None and (complaint.code, complaint.subcode) == (100, 33):
            reading.trouble = NO_SUCH_EDGE
        return None
    data = body.get("data")
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        reading.trouble = "the listing holds something that is no post"
        return None
    reading.items += data
    return _next_cursor(body.get("paging"), reading, seen=bool(data))


def _next_cursor(paging: object, reading: Reading, *, seen: bool) -> str | None:
    """The cursor to go on from. ``next`` is there exactly when there is another page."""
    if not isinstance(paging, dict) or "next" not in paging:
        return None
    cursors = paging.get("cursors")
    after = cursors.get("after") if isinstance(cursors, dict) else None
    if not isinstance(after, str) or not after:
        reading.trouble = "the listing goes on, but does not say where"
        return None
    if after in reading.cursors or not seen:
        reading.trouble = "the listing goes round in a circle"
        return None
    reading.cursors.add(after)
    return after


def listing_of(reading: Reading, candidate: Callable[[Item], Candidate | None]) -> Listing:
    """Turn what was read into candidates; an item that cannot be read spoils the whole."""
    found = [candidate(item) for item in reading.items]
    readable = tuple(post for post in found if post is not None)
    trouble = reading.trouble
    if not trouble and len(readable) < len(found):
        trouble = f"{len(found) - len(readable)} posts in the listing cannot be read"
    return Listing(readable, complete=not trouble, trouble=trouble)


def created_at(item: Item) -> datetime | None:
    """When Graph says a post was made (``2026-12-07T02:00:31+0000``), or None."""
    value = item.get("created_time")
    if not isinstance(value, str):
        return None
    for layout in _TIME_FORMATS:
        try:
            return datetime.strptime(value, layout).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None


def attached(item: Item) -> list[Item]:
    """Every attachment of a post, those of an album too."""
    return list(_attachments(item.get("attachments"), _DEPTH))


def _attachments(edge: object, depth: int) -> Iterator[Item]:
    data = edge.get("data") if isinstance(edge, dict) else None
    if depth == 0 or not isinstance(data, list):
        return
    for attachment in data:
        if isinstance(attachment, dict):
            yield attachment
            yield from _attachments(attachment.get("subattachments"), depth - 1)


def target_id(attachment: Item) -> str | None:
    """The id of the photo or video an attachment shows."""
    target = attachment.get("target")
    value = target.get("id") if isinstance(target, dict) else None
    return value if isinstance(value, str) else None
