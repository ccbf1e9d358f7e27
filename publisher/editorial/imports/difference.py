"""What a row says that differs from what stands under its ref already."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from publisher.editorial.imports.candidate import Candidate
from publisher.editorial.imports.fault import Fault
from publisher.editorial.listing import Listed
from publisher.engine.content import Media, Post

_SHOWN: Final = 24
_FIX: Final = (
    "To post something else, give this row another ref; to leave it as it is, take it out."
)


def from_stored(row: Candidate, stored: Listed) -> tuple[Fault, ...]:
    """How ``row`` differs from the post that has its ref; nothing when it would add nothing.

    Where the row says ``now``, any time is the same: it was now when it was first imported.
    """
    faults = [*_content(row.post, stored.post, f"post {stored.id}")]
    at = {place.channel_id: place for place in stored.placed}
    if set(at) != {row.channel.id}:
        names = ", ".join(place.channel for place in stored.placed) or "no channel"
        faults.append(_fault("channel", f"Post {stored.id} has this ref and is for {names}."))
    elif not row.moment.is_now and at[row.channel.id].publish_at != row.moment.at:
        place = at[row.channel.id]
        when = _local(place.publish_at, place.zone)
        faults.append(_fault("publish_at", f"Post {stored.id} has this ref and the time {when}."))
    return tuple(faults)


def from_earlier(row: Candidate, earlier: Candidate) -> tuple[Fault, ...]:
    """How ``row`` differs from an earlier row of the same file with its ref."""
    where = f"line {earlier.line}"
    faults = [*_content(row.post, earlier.post, where)]
    if row.channel.id != earlier.channel.id:
        message = f"Line {earlier.line} has this ref and is for {earlier.channel.name}."
        faults.append(_fault("channel", message))
    elif (row.moment.is_now, row.moment.at) != (earlier.moment.is_now, earlier.moment.at):
        when = "now" if earlier.moment.is_now else _local(earlier.moment.at, earlier.moment.zone)
        faults.append(
            _fault("publish_at", f"Line {earlier.line} has this ref and the time {when}.")
        )
    return tuple(faults)


def _content(new: Post, old: Post, where: str) -> Iterator[Fault]:
    where = where[0].upper() + where[1:]
    if new.text != old.text:
        ours, theirs = _around(new.text, old.text)
        message = f"{where} has this ref and another text: {theirs} there, {ours} here."
        yield _fault("text", message)
    if new.link != old.link:
        yield _fault("link", f"{where} has this ref and {_link(old)}.")
    if [_bytes(item) for item in new.media] != [_bytes(item) for item in old.media]:
        yield _fault("media", f"{where} has this ref and {_media(new, old)}.")
    elif [item.alt for item in new.media] != [item.alt for item in old.media]:
        yield _fault("alt", f"{where} has this ref and other alt texts.")


def _fault(column: str, message: str) -> Fault:
    return Fault(column, message, _FIX, "ref-taken")


def _bytes(item: Media) -> tuple[str | None, str | None]:
    return item.sha256, item.url


def _link(post: Post) -> str:
    return f"the link {post.link}" if post.link else "no link"


def _media(new: Post, old: Post) -> str:
    if len(new.media) != len(old.media):
        return f"{len(old.media) or 'no'} media"
    different = [
        str(number)
        for number, (ours, theirs) in enumerate(zip(new.media, old.media, strict=True), start=1)
        if _bytes(ours) != _bytes(theirs)
    ]
    return f"other media ({', '.join(different)})"


def _around(ours: str, theirs: str) -> tuple[str, str]:
    """Both texts from shortly before where they part, cut and quoted."""
    pairs = enumerate(zip_longest(ours, theirs))
    parted = next((at for at, (one, other) in pairs if one != other), 0)
    start = max(0, parted - _SHOWN // 3)
    return _cut(ours, start), _cut(theirs, start)


def _cut(text: str, start: int) -> str:
    part = text[start : start + _SHOWN]
    before = "…" if start else ""
    after = "…" if len(text) > start + _SHOWN else ""
    return f'"{before}{part}{after}"'


def _local(at: datetime, zone: str) -> str:
    try:
        return f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"
    except (ZoneInfoNotFoundError, ValueError):
        return f"{at:%Y-%m-%d %H:%M} UTC"
