"""From what a person pasted to the post it names: a link's numbers, then one read.

Links come in many forms, and most of what a browser shows is *opaque*: ``pfbid…`` stands for a
post and differs from reader to reader, ``/share/…`` leads to one. Graph takes neither. A pfbid
that Graph itself gave, as a listing shows it, is found there; any other names nothing to us.

A number is asked for as a post of our Page whatever page the link names: Pages of the new kind
have two ids, and links show the one that is not ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, parse_qs, urlsplit

from publisher.adapters.facebook_pages.evidence import POST_FIELDS, VIDEO_FIELDS, Marks, sought_by
from publisher.adapters.facebook_pages.formats import Format
from publisher.adapters.facebook_pages.listing import LOOK_BACK, Bounds, Item, listing_of, read
from publisher.engine.adapter import LookQuery
from publisher.engine.evidence import Candidate, Mismatch, NotThisPost
from publisher.engine.recognition import (
    another,
    no_link,
    not_found,
    recognise,
    refuse,
    unreadable,
)
from publisher.graph.call import Node
from publisher.graph.complaint import Complaint
from publisher.transport import Failed, Transport
from publisher.words import _

_ID = re.compile(r"(?:([0-9]{1,30})_)?([0-9]{1,30})")
_PFBID = re.compile(r"pfbid[0-9A-Za-z]{10,200}")
_HOSTS = ("facebook.com", "fb.com")
_WITH_ID = ("story_fbid", "v", "multi_permalinks")
_EXAMPLE = "https://www.facebook.com/PAGE/posts/NUMBER"
_NO_SUCH_OBJECT = (100, 33)


@dataclass(frozen=True, slots=True)
class _Named:
    """What a link says. ``exact``: the page stands in the post's own id, so it is no guess."""

    number: str = ""
    page: str | None = None
    exact: bool = False
    pfbid: str | None = None


def identify(
    transport: Transport, node: Node, query: LookQuery, given: str, *, marks: Marks, bounds: Bounds
) -> Candidate | NotThisPost:
    """Read the post that ``given`` names. Raises ``ContentError`` for unreadable content."""
    named = _named(given.strip(), node)
    if named is None:
        return no_link(given.strip(), "Facebook", _EXAMPLE)
    if named.exact and named.page != node.id:
        return another(_("another Page ({id})").format(id=named.page))
    if named.pfbid is not None:
        found = _listed(transport, node, query, named.pfbid, marks, bounds)
    else:
        found = _post(transport, node, named, marks)
    if isinstance(found, NotThisPost):
        return found
    return recognise(sought_by(query), found)


def _named(given: str, node: Node) -> _Named | None:
    """What a link or an id says, or None where it says nothing."""
    if bare := _ID.fullmatch(given):
        return _Named(bare[2], bare[1], exact=bare[1] is not None)
    try:
        url = urlsplit(given)
        own = urlsplit(node.base_url)
    except ValueError:
        return None
    host = (url.hostname or "").casefold()
    known = any(host == name or host.endswith(f".{name}") for name in _HOSTS)
    if url.scheme not in ("http", "https") or not (known or url.netloc == own.netloc):
        return None
    if opaque := _PFBID.search(given):
        return _Named(pfbid=opaque[0])
    return _in_query(url) or _in_path(url)


def _in_query(url: SplitResult) -> _Named | None:
    """``permalink.php?story_fbid=…&id=…``, ``/watch/?v=…``."""
    values = parse_qs(url.query)
    page = values.get("id", [""])[0]
    for name in _WITH_ID:
        if found := _ID.fullmatch(values.get(name, [""])[0]):
            return _Named(found[2], found[1] or (page if _ID.fullmatch(page) else None))
    return None


def _in_path(url: SplitResult) -> _Named | None:
    """``/PAGE/posts/[words/]NUMBER``, ``/PAGE/videos/NUMBER``, ``/reel/NUMBER``, ``/PAGE_NUMBER``.

    A photo's address names the photo, and which post shows it does not follow from that.
    """
    parts = [part for part in url.path.split("/") if part]
    if not parts or parts[0] in ("photo", "photo.php", "share") or "photos" in parts:
        return None
    found = _ID.fullmatch(parts[-1])
    if found is None or (len(parts) == 1 and found[1] is None):
        return None
    page = parts[0] if len(parts) > 1 and parts[0].isascii() and parts[0].isdigit() else None
    return _Named(found[2], found[1] or page, exact=found[1] is not None)


def _post(transport: Transport, node: Node, named: _Named, marks: Marks) -> Candidate | NotThisPost:
    """Read one post of our Page by its number; a video by its own as well."""
    if marks.format is Format.VIDEO and not named.exact:
        item = _read(transport, replace(node, id=named.number), f"{VIDEO_FIELDS},from")
        if isinstance(item, NotThisPost):
            if item.code is not Mismatch.NOT_FOUND:
                return item
        else:
            owner = item.get("from")
            whose = owner.get("id") if isinstance(owner, dict) else node.id
            if whose != node.id:
                return another(_("another Page ({id})").format(id=node.hide(str(whose))))
            return marks.on_video(node, item) or _not_readable()
    item = _read(transport, replace(node, id=f"{node.id}_{named.number}"), POST_FIELDS)
    if isinstance(item, NotThisPost):
        if item.code is Mismatch.NOT_FOUND and named.page not in (None, node.id):
            return another(_("another Page ({id})").format(id=named.page))
        return item
    return marks.on_post(node, item) or _not_readable()


def _read(transport: Transport, node: Node, fields: str) -> Item | NotThisPost:
    reply = transport.read(node.get(params={"fields": fields}))
    if isinstance(reply, Failed):
        return unreadable(reply.detail)
    body = reply.json()
    if reply.status == 200 and isinstance(body, dict):  # noqa: PLR2004 - HTTP's OK
        return body if body.get("id") == node.id else _not_readable()
    complaint = Complaint.read(reply)
    if complaint is not None and (complaint.code, complaint.subcode) == _NO_SUCH_OBJECT:
        return not_found(_("this Page"))
    words = f"HTTP {reply.status}" if complaint is None else node.hide(complaint.detail)
    return unreadable(_("Facebook answered: {words}").format(words=words))


def _listed(
    transport: Transport, node: Node, query: LookQuery, pfbid: str, marks: Marks, bounds: Bounds
) -> Candidate | NotThisPost:
    """The post whose address in the Page's listing holds the same pfbid."""
    since = query.began_at - LOOK_BACK
    reading = read(transport, node, "published_posts", POST_FIELDS, since=since, bounds=bounds)
    for post in listing_of(reading, lambda item: marks.on_post(node, item)).candidates:
        if pfbid in (post.permalink or ""):
            return post
    if reading.trouble:
        return unreadable(reading.trouble)
    why = _(
        "a link with “pfbid” does not tell us which post it is; give the post's number, or choose"
        " one that a look has found"
    )
    return refuse(Mismatch.NO_LINK, why)


def _not_readable() -> NotThisPost:
    return unreadable(_("Facebook's answer is not the post that was asked for"))
