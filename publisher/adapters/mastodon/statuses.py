"""Reads an account's own statuses, newest first and whole, or says why it could not.

Pages are walked by the last id that was seen: a ``Link`` header leaves out one status per page on
one server, and ``since_id`` is ignored by another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.refusals import Complaint
from publisher.transport import Failed, Reply, Transport

LOOK_BACK = timedelta(minutes=5)
"""A listing is read from so long before the first byte."""
PAGE_SIZE = 40
"""The most a page gives: mastodon/documentation ``content/en/methods/accounts.md``."""

Status = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read before a look is given up: pages, sources, and seconds altogether."""

    pages: int = 25
    sources: int = 40
    seconds: float = 60.0


@dataclass(slots=True)
class Reading:
    """A listing as it is read. ``trouble``: why it is not whole; empty: it is."""

    ends_at: float
    statuses: list[Status] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    trouble: str = ""

    @property
    def left(self) -> float:
        """Seconds left for this look."""
        return self.ends_at - time.monotonic()


def read(transport: Transport, account: Account, *, since: datetime, bounds: Bounds) -> Reading:
    """Read everything the account posted since ``since``."""
    reading = Reading(time.monotonic() + bounds.seconds)
    params = {"limit": str(PAGE_SIZE), "exclude_reblogs": "true"}
    for _ in range(bounds.pages):
        page = _page(transport, account, params, reading)
        if not page or reading.trouble:
            return reading
        last = page[-1]
        at, last_id = created_at(last), id_of(last)
        if at is None or last_id is None:
            reading.trouble = "the listing holds a post without an id or a time"
            return reading
        if at < since:
            return reading
        params["max_id"] = last_id
    reading.trouble = f"the listing goes on after {bounds.pages} pages"
    return reading


def newest_id(transport: Transport, account: Account) -> str | Failed | Reply | None:
    """The id of the account's newest status, ``""`` when it has none; else what went wrong."""
    reply = transport.read(account.get(account.statuses, {"limit": "1", "exclude_reblogs": "true"}))
    if isinstance(reply, Failed):
        return reply
    page = _items(reply)
    if page is None:
        return reply
    return id_of(page[0]) if page else ""


def source_of(transport: Transport, account: Account, status: str, *, timeout: float) -> str | None:
    """The text a status was made of, as only its author may read it; None when it is not given."""
    path = f"/api/v1/statuses/{quote(status, safe='')}/source"
    reply = transport.read(account.get(path), timeout=timeout)
    body = None if isinstance(reply, Failed) or reply.status != 200 else reply.json()  # noqa: PLR2004
    text = body.get("text") if isinstance(body, dict) else None
    return text if isinstance(text, str) else None


def id_of(status: Status) -> str | None:
    """A status's id, which is opaque: digits, a ULID, a UUID."""
    value = status.get("id")
    return value if isinstance(value, str) and 0 < len(value) <= 100 else None  # noqa: PLR2004


def created_at(status: Status) -> datetime | None:
    """When a status was made; times come with ``Z`` or an offset, in ms or µs."""
    value = status.get("created_at")
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def attached_ids(status: Status) -> frozenset[str]:
    """Ids of the media attached to a status."""
    media = status.get("media_attachments")
    items = media if isinstance(media, list) else []
    ids = (item.get("id") for item in items if isinstance(item, dict))
    return frozenset(id_ for id_ in ids if isinstance(id_, str))


def _page(
    transport: Transport, account: Account, params: Mapping[str, str], reading: Reading
) -> list[Status]:
    """Add one page to ``reading`` and return it; empty at the end of the listing."""
    if reading.left <= 0:
        reading.trouble = "the listing took too long"
        return []
    reply = transport.read(account.get(account.statuses, params), timeout=reading.left)
    if isinstance(reply, Failed):
        reading.trouble = f"the listing could not be read: {account.hide(reply.detail)}"
        return []
    page = _items(reply)
    if page is None:
        complaint = Complaint.read(reply) if reply.status >= 400 else None  # noqa: PLR2004
        words = f"HTTP {reply.status}" if complaint is None else account.hide(complaint.message)
        reading.trouble = f"the listing could not be read: {words}"
        return []
    new = [status for status in page if id_of(status) not in reading.ids]
    if page and not new:
        reading.trouble = "the listing goes round in a circle"
        return []
    reading.statuses += new
    reading.ids |= {id_ for status in new if (id_ := id_of(status)) is not None}
    return page


def _items(reply: Reply) -> list[Status] | None:
    body = reply.json() if reply.status == 200 else None  # noqa: PLR2004 - HTTP's OK
    if not isinstance(body, list) or not all(isinstance(item, dict) for item in body):
        return None
    return body
