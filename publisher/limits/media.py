"""What is wrong with photos and videos: kind, count, type, size, measures, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from publisher.engine.adapter import Capabilities, Problem
from publisher.engine.content import Media, Post
from publisher.limits.link import is_address
from publisher.limits.text import characters, who
from publisher.words import _

_KINDS: Final = ("image", "video")


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known of a file besides its size: pixels, and seconds of a video."""

    width: int | None = None
    height: int | None = None
    seconds: float | None = None


UNKNOWN: Final = Measures()


def anywhere(post: Post) -> Iterator[Problem]:
    """What no platform takes in the alt texts."""
    for number, item in enumerate(post.media, start=1):
        name = _("The alt text of {item}").format(item=_named(item, number, inside=True))
        yield from characters(f"media.{number}.alt", item.alt, name)


def problems(post: Post, can: Capabilities, measured: Mapping[str, Measures]) -> Iterator[Problem]:
    """What the platform would refuse in the media.

    ``measured``: by ``sha256`` or ``url``, as far as it is known.
    """
    if not post.media:
        return
    kinds = {item.kind for item in post.media}
    if not kinds <= set(can.media_kinds):
        yield Problem("media", "media-kind", _taken(can))
    elif len(kinds) > 1 and not can.mixes_media:
        what = _("{name} takes photos or a video in one post, not both.").format(name=who(can))
        yield Problem("media", "media-mixed", what, _("Make two posts of it."))
    else:
        yield from _count(post, can)
        for number, item in enumerate(post.media, start=1):
            known = measured.get(item.sha256 or item.url or "", UNKNOWN)
            yield from _item(item, number, can, known)


def _taken(can: Capabilities) -> str:
    if not can.media_kinds:
        return _("{name} takes no photos or videos here.").format(name=who(can))
    if "video" not in can.media_kinds:
        return _("{name} takes photos here, nothing else.").format(name=who(can))
    if "image" not in can.media_kinds:
        return _("{name} takes videos here, nothing else.").format(name=who(can))
    return _("{name} takes photos and videos here, nothing else.").format(name=who(can))


def _count(post: Post, can: Capabilities) -> Iterator[Problem]:
    over = len(post.media) - can.media_limit
    if over <= 0:
        return
    if can.mixes_media:
        what = _("{name} takes {limit} photos and videos in one post; this has {count}.")
    elif post.media[0].kind != "video":
        what = _("{name} takes {limit} photos in one post; this has {count}.")
    elif can.media_limit == 1:
        what = _("{name} takes {limit} video in one post; this has {count}.")
    else:
        what = _("{name} takes {limit} videos in one post; this has {count}.")
    what = what.format(name=who(can), limit=can.media_limit, count=len(post.media))
    yield Problem("media", "too-many-media", what, _("Take {over} out.").format(over=over))


def _item(item: Media, number: int, can: Capabilities, known: Measures) -> Iterator[Problem]:
    name, field = _named(item, number), f"media.{number}"
    if item.type not in can.media_types:
        what = _("{item} is {type}; {name} takes {known}.").format(
            item=name,
            type=item.type or _("of no known type"),
            name=who(can),
            known=", ".join(kind.partition("/")[2] for kind in can.media_types),
        )
        yield Problem(field, "media-type", what, _("Convert it."))
    yield from _file(item, field, name, can)
    yield from _size(item, field, name, can)
    yield from _measures(field, name, can, known)
    if can.alt_limit and (over := len(item.alt) - can.alt_limit) > 0:
        what = _("The alt text of {item} has {count} characters; {name} takes {limit}.").format(
            item=_named(item, number, inside=True),
            count=f"{len(item.alt):,}",
            name=who(can),
            limit=f"{can.alt_limit:,}",
        )
        fix = _("Shorten by {over}.").format(over=f"{over:,}")
        yield Problem(f"{field}.alt", "alt-too-long", what, fix)


def _file(item: Media, field: str, name: str, can: Capabilities) -> Iterator[Problem]:
    if item.sha256 is not None:
        return
    if not can.fetches_media:
        what = _("{item} has no file: {name} takes bytes, not an address.").format(
            item=name, name=who(can)
        )
        yield Problem(field, "media-missing", what, _("Add the file."))
    elif not (item.url and is_address(item.url)):
        what = _("{item} has neither a file nor a web address.").format(item=name)
        yield Problem(field, "media-missing", what, _("Add it again."))


def _size(item: Media, field: str, name: str, can: Capabilities) -> Iterator[Problem]:
    if item.size is None:
        if item.sha256 is not None:
            what = _("{item} has no known size.").format(item=name)
            yield Problem(field, "media-size", what, _("Add it again."))
    elif not 0 < item.size <= can.media_bytes:
        what = _("{item} is {size}; {name} takes up to {limit} MB.").format(
            item=name,
            size=_("{mb} MB").format(mb=_megabytes(item.size)) if item.size else _("empty"),
            name=who(can),
            limit=f"{can.media_bytes / 1e6:,.0f}",
        )
        yield Problem(field, "media-size", what, _("Replace it."))


def _measures(field: str, name: str, can: Capabilities, known: Measures) -> Iterator[Problem]:
    if known.width and known.height:
        yield from _pixels(field, name, can, (known.width, known.height))
    if can.media_seconds is not None and (known.seconds or 0) > can.media_seconds:
        what = _("{item} lasts {seconds} s; {name} takes up to {limit} s.").format(
            item=name,
            seconds=f"{known.seconds:,.0f}",
            name=who(can),
            limit=f"{can.media_seconds:,.0f}",
        )
        yield Problem(field, "media-duration", what, _("Cut it."))


def _pixels(field: str, name: str, can: Capabilities, size: tuple[int, int]) -> Iterator[Problem]:
    width, height = size
    has = {"item": name, "width": f"{width:,}", "height": f"{height:,}", "name": who(can)}
    if can.media_pixels is not None and width * height > can.media_pixels:
        what = _("{item} has {width} × {height} pixels; {name} takes {limit} in all.").format(
            limit=f"{can.media_pixels:,}", **has
        )
        yield Problem(field, "media-dimensions", what, _("Make it smaller."))
    elif can.media_sides is not None and width + height > can.media_sides:
        what = _(
            "{item} has {width} × {height} pixels; {name} takes {limit} of width and height "
            "together."
        ).format(limit=f"{can.media_sides:,}", **has)
        yield Problem(field, "media-dimensions", what, _("Make it smaller."))
    if can.media_ratio is not None and max(size) > can.media_ratio * min(size):
        what = _(
            "{item} has {width} × {height} pixels; {name} takes one side at most {limit} times the "
            "other."
        ).format(limit=f"{can.media_ratio:g}", **has)
        yield Problem(field, "media-dimensions", what, _("Crop it."))


def _megabytes(size: int) -> str:
    """Rounded so that it never reads as less than it is: 10,000,001 bytes are no 10.0 MB."""
    tenths = -(-size // 100_000)
    return f"{tenths / 10:,.1f}"


def _named(item: Media, number: int, *, inside: bool = False) -> str:
    if item.kind == "video":
        name = _("video {number}") if inside else _("Video {number}")
    else:
        name = _("photo {number}") if inside else _("Photo {number}")
    return name.format(number=number)
