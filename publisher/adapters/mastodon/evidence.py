"""Is this post on the account? Reads its listing and says which posts carry a mark of ours.

Marks, from strong to weak: the media we uploaded for it; our application's name, where a server
shows one. Other media, another application, a reply, and whatever is older than the newest post
before we sent are *not ours*, which keeps a post from being found: absence does not look at it.
On a server that shows applications a post is found by ours alone, however equal its text: whoever
else has the account may have written the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.answer import permalink
from publisher.adapters.mastodon.markup import text_of
from publisher.adapters.mastodon.statuses import (
    LOOK_BACK,
    Bounds,
    Reading,
    Status,
    attached_ids,
    created_at,
    id_of,
    read,
    source_of,
)
from publisher.engine.adapter import LookQuery
from publisher.engine.evidence import Candidate, Evidence
from publisher.engine.matching import Listing, Sought, match, resembles
from publisher.transport import Transport


@dataclass(frozen=True, slots=True)
class Marks:
    """What makes a post ours. ``newest``: the account's newest post before we sent, if known."""

    text: str
    media: frozenset[str]
    application: str | None
    newest: str | None


def look(
    transport: Transport,
    account: Account,
    query: LookQuery,
    marks: Marks,
    *,
    exhaustive: bool,
    bounds: Bounds,
) -> Evidence:
    """Read the account and weigh what is there."""
    reading = read(transport, account, since=query.began_at - LOOK_BACK, bounds=bounds)
    older = _older_than(marks.newest, reading.statuses)
    candidates: list[Candidate] = []
    sources = bounds.sources
    for status in reading.statuses:
        candidate = candidate_of(account, status, marks, is_older=id_of(status) in older)
        if candidate is None:
            reading.trouble = reading.trouble or "a post in the listing cannot be read"
            continue
        if marks.text.strip() and resembles(marks.text, candidate.text):
            candidate = _with_source(transport, account, candidate, reading, sources)
            sources -= 1
        candidates.append(candidate)
    sought = Sought(
        text=marks.text,
        began_at=query.began_at,
        now=query.now,
        bound=query.bound,
        remote_handle=query.remote_handle,
        sender_is_gone=query.sender_is_gone,
        needs_mark=any(_shown_application(status) is not None for status in reading.statuses),
    )
    trouble = reading.trouble
    listing = Listing(tuple(candidates), complete=not trouble, trouble=trouble)
    return match(sought, listing, exhaustive=exhaustive)


def _with_source(
    transport: Transport, account: Account, candidate: Candidate, reading: Reading, sources: int
) -> Candidate:
    """The candidate with the text it was made of in place of what its HTML shows.

    HTML differs from server to server in every URL, newline and quote; the source does not. Where
    there is none the HTML has to do, and where too many would have to be asked the look is given
    up, since the ones that were not could be ours.
    """
    if sources <= 0 or reading.left <= 0:
        reading.trouble = reading.trouble or "too many posts resemble this one"
        return candidate
    timeout = min(reading.left, 10.0)
    source = source_of(transport, account, candidate.remote_id, timeout=timeout)
    if source is None:
        return candidate
    return Candidate(
        candidate.remote_id,
        account.hide(source),
        candidate.created_at,
        candidate.permalink,
        candidate.ours,
    )


def candidate_of(
    account: Account, status: Status, marks: Marks, *, is_older: bool
) -> Candidate | None:
    """A status as a candidate; None when it cannot be read."""
    status_id, at, content = id_of(status), created_at(status), status.get("content")
    if status_id is None or at is None or not isinstance(content, str):
        return None
    return Candidate(
        remote_id=account.hide(status_id),
        text=account.hide(text_of(content)),
        created_at=at,
        permalink=permalink(account, status),
        ours=False if is_older else _ours(account, status, marks),
    )


def _ours(account: Account, status: Status, marks: Marks) -> bool | None:
    owner = status.get("account")
    if isinstance(owner, dict) and owner.get("id") not in (None, account.id):
        return False
    if status.get("in_reply_to_id") or status.get("reblog"):
        return False
    application = _application(status, marks.application)
    if application is False or attached_ids(status) != marks.media:
        return False
    return True if marks.media else application


def _application(status: Status, ours: str | None) -> bool | None:
    """Whether our application made it; None when that is not shown, or ours not known."""
    name = _shown_application(status)
    return None if ours is None or name is None else name == ours


def _shown_application(status: Status) -> str | None:
    application = status.get("application")
    name = application.get("name") if isinstance(application, dict) else None
    return name if isinstance(name, str) else None


def _older_than(newest: str | None, statuses: list[Status]) -> set[str | None]:
    """Ids at and below ``newest`` in a listing that is newest first: made before we sent."""
    ids = [id_of(status) for status in statuses]
    return set(ids[ids.index(newest) :]) if newest in ids and newest is not None else set()
