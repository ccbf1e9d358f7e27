"""What is wrong with a link, and what an address on the web is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from publisher.engine.adapter import Capabilities, Problem
from publisher.engine.content import Post
from publisher.limits.text import who
from publisher.words import _

LONGEST: Final = 2_048
"""Bytes of an address anywhere; some platforms say so, and the others say nothing."""
_NOT_IN_ONE: Final = frozenset({"Cc", "Cs", "Zl", "Zp", "Zs"})


def is_address(url: str) -> bool:
    """Whether this is an absolute http or https address, with nothing to be stripped from it.

    Joiners may stand in it, as in a Persian path.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        return False
    clean = not any(unicodedata.category(c) in _NOT_IN_ONE or c == "\ufeff" for c in url)
    return clean and parts.scheme in ("http", "https") and bool(host)


def anywhere(link: str | None) -> Iterator[Problem]:
    """What is no link on any platform."""
    if link is None:
        return
    if not is_address(link):
        fix = _("It starts with https://, names a site and holds no space.")
        yield Problem("link", "link-not-an-address", _("The link is not a web address."), fix)
    else:
        yield from _too_long(link, LONGEST, _("A link"))


def problems(post: Post, can: Capabilities) -> Iterator[Problem]:
    """What the platform would refuse in the link, given that ``anywhere`` found nothing."""
    if post.link is None:
        return
    if can.link_bytes < LONGEST:
        yield from _too_long(post.link, can.link_bytes, _("A link on {name}").format(name=who(can)))
    if post.media and not can.link_with_media:
        if "video" in can.media_kinds:
            what = _("{name} shows either a link preview or photos and videos, not both.")
            fix = _("Put the link into the text, or take the media out.")
        else:
            what = _("{name} shows either a link preview or photos, not both.")
            fix = _("Put the link into the text, or take the photos out.")
        yield Problem("link", "link-with-media", what.format(name=who(can)), fix)


def _too_long(link: str, limit: int, name: str) -> Iterator[Problem]:
    size = len(link.encode("utf-8", "surrogatepass"))
    if size > limit:
        what = _("{name} has at most {limit} bytes; this one has {size}.")
        what = what.format(name=name, limit=f"{limit:,}", size=f"{size:,}")
        yield Problem("link", "link-too-long", what, _("Give a shorter one."))
