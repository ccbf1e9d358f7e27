"""From what a person pasted to the post it names: an id, or an address on the account's server.

The same post has another id on every server that knows it, so an address elsewhere names nothing
here, even where it shows the very post.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from publisher.adapters.mastodon.account import Account
from publisher.adapters.mastodon.evidence import Marks, candidate_of
from publisher.adapters.mastodon.refusals import Complaint
from publisher.adapters.mastodon.statuses import Status, source_of
from publisher.engine.adapter import LookQuery
from publisher.engine.evidence import Candidate, NotThisPost
from publisher.engine.matching import Sought
from publisher.engine.recognition import another, no_link, not_found, recognise, unreadable
from publisher.transport import Failed, Transport
from publisher.words import _

_ID = re.compile(r"[0-9]{1,30}|[0-9A-Za-z]{18,26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A number, a flake or ULID, a UUID: what servers name posts by."""
_BEFORE_ID = ("statuses", "notice", "posts")
NOT_FOUND = (404, 410)


def identify(
    transport: Transport, account: Account, query: LookQuery, given: str, *, marks: Marks
) -> Candidate | NotThisPost:
    """Read the status that ``given`` names."""
    status_id = _named(given.strip(), account)
    if isinstance(status_id, NotThisPost):
        return status_id
    status = _read(transport, account, status_id)
    if isinstance(status, NotThisPost):
        return status
    owner = status.get("account")
    whose = owner if isinstance(owner, dict) else {}
    if whose.get("id") != account.id:
        name = account.hide(str(whose.get("acct") or whose.get("id")))
        return another(_("another account (@{name})").format(name=name))
    candidate = candidate_of(account, status, marks, is_older=False)
    if candidate is None or candidate.remote_id != status_id:
        return unreadable(_("the server's answer is not the post that was asked for"))
    source = source_of(transport, account, status_id, timeout=10.0)
    sought = Sought(text=marks.text, began_at=query.began_at, now=query.now)
    if source is None:
        return recognise(sought, candidate)
    shown = Candidate(
        candidate.remote_id,
        account.hide(source),
        candidate.created_at,
        candidate.permalink,
        candidate.ours,
    )
    return recognise(sought, shown)


def _named(given: str, account: Account) -> str | NotThisPost:
    """The id in a link or of itself: ``/@user/ID``, ``/users/user/statuses/ID``, ``/notice/ID``."""
    if _ID.fullmatch(given):
        return given
    example = f"{account.base_url.rstrip('/')}/@NAME/NUMBER"
    try:
        url, own = urlsplit(given), urlsplit(account.base_url)
    except ValueError:
        return no_link(given, "Mastodon", example)
    parts = [unquote(part) for part in url.path.split("/") if part]
    if url.scheme not in ("http", "https") or not parts or not _ID.fullmatch(parts[-1]):
        return no_link(given, "Mastodon", example)
    if url.netloc.casefold() != own.netloc.casefold():
        where = _("another server ({host}), and not to this account's ({own})")
        return another(where.format(host=url.netloc, own=own.netloc))
    before = parts[-2] if len(parts) > 1 else ""
    if not before.startswith("@") and before not in _BEFORE_ID:
        return no_link(given, "Mastodon", example)
    return parts[-1]


def _read(transport: Transport, account: Account, status_id: str) -> Status | NotThisPost:
    reply = transport.read(account.get(f"/api/v1/statuses/{quote(status_id, safe='')}"))
    if isinstance(reply, Failed):
        return unreadable(account.hide(reply.detail))
    if reply.status in NOT_FOUND:
        return not_found(_("this account"))
    body = reply.json()
    if reply.status == 200 and isinstance(body, dict):  # noqa: PLR2004 - HTTP's OK
        return body
    complaint = Complaint.read(reply)
    words = f"HTTP {reply.status}" if complaint is None else account.hide(complaint.message)
    return unreadable(_("the server answered: {words}").format(words=words))
