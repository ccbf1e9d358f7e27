"""Is this post in the repository? Asks for the one record under its key, and compares.

The question goes to the server that keeps the account's records, which answers from the store it
writes to; never to the AppView, which lags behind it. No session is needed.

A record that moderators have taken down is told as not found, like one that was never there; a
repeat of it is equal and changes nothing (pds/src/api/com/atproto/repo/getRecord.ts, putRecord.ts).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from publisher.adapters.bluesky.record import permalink_of, uri_of
from publisher.adapters.bluesky.xrpc import POST, Complaint, Server, words_of
from publisher.engine.adapter import LookQuery
from publisher.engine.content import Post
from publisher.engine.evidence import Absent, Candidate, Evidence, Found, Inconclusive
from publisher.transport import Failed, Reply, Transport

GET_RECORD = "com.atproto.repo.getRecord"


def look(
    transport: Transport,
    server: Server,
    query: LookQuery,
    *,
    repo: str,
    rkey: str,
    record: Mapping[str, object] | None,
) -> Evidence:
    """Read the record and weigh it. ``record``: ours, where a step has built it.

    Raises ``ContentError`` for unreadable content.
    """
    params = {"repo": repo, "collection": POST, "rkey": rkey}
    reply = transport.read(server.get(GET_RECORD, params))
    if isinstance(reply, Failed):
        return Inconclusive(reply.detail)
    if reply.status == 200:  # noqa: PLR2004 - HTTP's OK
        return _weigh(reply, server, query, repo, rkey, record)
    complaint = Complaint.read(reply)
    if complaint is None or (complaint.status, complaint.error) != (400, "RecordNotFound"):
        return Inconclusive(f"The record could not be read: {words_of(server, reply)}")
    if not query.sender_is_gone:
        return Inconclusive(
            "There is no record under this post's key yet, but it may still arrive.", clean=True
        )
    return Absent(searched=0)


def _weigh(
    reply: Reply,
    server: Server,
    query: LookQuery,
    repo: str,
    rkey: str,
    record: Mapping[str, object] | None,
) -> Evidence:
    body, uri = reply.json(), uri_of(repo, rkey)
    value = body.get("value") if isinstance(body, dict) else None
    if not isinstance(body, dict) or body.get("uri") != uri or not isinstance(value, dict):
        return Inconclusive("The server answered with something that is not this record.")
    text, at = value.get("text"), instant(value.get("createdAt"))
    candidate = Candidate(
        remote_id=uri,
        text=server.hide(text) if isinstance(text, str) else "",
        created_at=at or query.began_at,
        permalink=permalink_of(repo, rkey),
        ours=True,
    )
    if uri in query.bound:
        reason = "The record under this post's key belongs to another job."
        return Inconclusive(reason, (candidate,), searched=1)
    if is_ours(Post.from_json(query.task.content), record, value):
        return Found(uri, candidate.permalink, at)
    reason = "There is a record under this post's key, but it is not this post."
    return Inconclusive(reason, (candidate,), searched=1)


def is_ours(post: Post, record: Mapping[str, object] | None, value: Mapping[str, object]) -> bool:
    """Whether the record ``value`` is this post: the same, or the same as far as it was approved.

    An earlier attempt whose progress was lost may have found another DID for a mention; its text,
    its link and what its pictures say were the same.
    """
    if record is not None and record == value:
        return True
    return value.get("text") == post.text and _shown(value.get("embed")) == (
        ("", tuple(item.alt for item in post.media)) if post.media else (post.link or "", ())
    )


def _shown(embed: object) -> tuple[str, tuple[object, ...]]:
    """The link and the alternative texts of an embed."""
    if not isinstance(embed, Mapping):
        return "", ()
    external, images = embed.get("external"), embed.get("images")
    if isinstance(external, Mapping):
        return str(external.get("uri")), ()
    if isinstance(images, list):
        return "", tuple(i.get("alt") if isinstance(i, Mapping) else None for i in images)
    return str(embed.get("$type")), ()


def instant(value: object) -> datetime | None:
    """A record's time, or None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
