"""From what a person pasted to the record it names: an ``at://`` address, a link, or a record key.

Every post of ours has a key of its own, so a record under another key is not it, whatever it says:
then somebody wrote it by hand.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from publisher.adapters.bluesky.account import is_did, is_name
from publisher.adapters.bluesky.evidence import GET_RECORD, instant
from publisher.adapters.bluesky.record import permalink_of, uri_of
from publisher.adapters.bluesky.refusals import Call
from publisher.adapters.bluesky.xrpc import POST, Complaint, Server, words_of
from publisher.engine.adapter import LookQuery
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.matching import Sought
from publisher.engine.recognition import (
    another,
    no_link,
    not_found,
    recognise,
    refuse,
    unreadable,
)
from publisher.transport import Failed, Transport
from publisher.words import _

_KEY = re.compile(r"[A-Za-z0-9._:~-]{1,512}")
"""https://atproto.com/specs/record-key"""
_EXAMPLE = "https://bsky.app/profile/NAME/post/KEY"
_AT = re.compile(rf"at://([^/]+)/{re.escape(POST)}/([^/]+)")


def identify(
    transport: Transport, server: Server, query: LookQuery, given: str, *, repo: str, rkey: str
) -> Candidate | NotThisPost:
    """Read the record that ``given`` names. ``repo`` and ``rkey``: where ours would be.

    Raises ``ContentError`` for unreadable content.
    """
    named = _named(given.strip())
    if named is None:
        return no_link(given.strip(), "Bluesky", _EXAMPLE)
    who, key = named
    whose = who if who is None or is_did(who) else _did_of(transport, server, who)
    if isinstance(whose, NotThisPost):
        return whose
    if whose not in (None, repo):
        return another(_("another account ({name})").format(name=who))
    found = _read(transport, server, query, repo, key)
    if isinstance(found, NotThisPost):
        return found
    sought = Sought(Post.from_json(query.task.content).text, query.began_at, query.now)
    if key == rkey:
        # Its createdAt is the instant it was first scheduled for, not when it was put there.
        sought = Sought(sought.text, found.created_at, query.now)
    recognised = recognise(sought, found)
    if isinstance(recognised, NotThisPost) or key == rkey:
        return recognised
    why = _("somebody else made it; a post of ours would stand under the key {key}")
    return refuse(Mismatch.NOT_OURS, why.format(key=rkey))


def _named(given: str) -> tuple[str | None, str] | None:
    """Whose record and under which key; None for whose where only a key is given."""
    if at := _AT.fullmatch(given):
        who, key = at[1], at[2]
        return (who, key) if is_name(who) and _KEY.fullmatch(key) else None
    if _KEY.fullmatch(given) and "." not in given and ":" not in given:
        return None, given
    try:
        url = urlsplit(given)
    except ValueError:
        return None
    parts = [unquote(part) for part in url.path.split("/") if part]
    # Clients of other names use the same path.
    match parts:
        case ["profile", who, "post", key] if is_name(who) and _KEY.fullmatch(key):
            return (who, key) if url.scheme in ("http", "https") else None
    return None


def _did_of(transport: Transport, server: Server, handle: str) -> str | NotThisPost:
    reply = transport.read(server.get(Call.RESOLVE, {"handle": handle}))
    if isinstance(reply, Failed):
        return unreadable(reply.detail)
    body = reply.json()
    did = body.get("did") if reply.status == 200 and isinstance(body, dict) else None  # noqa: PLR2004
    if is_did(did):
        return str(did)
    if Complaint.read(reply) is not None and reply.status == 400:  # noqa: PLR2004 - HTTP's Bad Request
        return another(_("another account ({name})").format(name=handle))
    return unreadable(words_of(server, reply))


def _read(
    transport: Transport, server: Server, query: LookQuery, repo: str, key: str
) -> Candidate | NotThisPost:
    params = {"repo": repo, "collection": POST, "rkey": key}
    reply = transport.read(server.get(GET_RECORD, params))
    if isinstance(reply, Failed):
        return unreadable(reply.detail)
    complaint = Complaint.read(reply)
    if complaint is not None and (complaint.status, complaint.error) == (400, "RecordNotFound"):
        return not_found(_("this account"))
    body = reply.json() if reply.status == 200 else None  # noqa: PLR2004 - HTTP's OK
    value = body.get("value") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(value, dict):
        return unreadable(words_of(server, reply))
    if body.get("uri") != uri_of(repo, key):
        return unreadable(_("the server's answer is not the record that was asked for"))
    text = value.get("text")
    return Candidate(
        remote_id=uri_of(repo, key),
        text=server.hide(text) if isinstance(text, str) else "",
        created_at=instant(value.get("createdAt")) or query.began_at,
        permalink=permalink_of(repo, key),
    )
