"""What makes a record a post that the server takes.

After the lexicons ``app/bsky/feed/post.json`` and ``app/bsky/embed/*.json``. Stricter than the
reference server in one thing: a facet must lie inside the text and not cut a character, which the
real one leaves to whoever shows the post.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from publisher.sandbox import graphemes
from publisher.sandbox.bluesky import calls, refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages

GRAPHEMES, BYTES = 300, 3000
IMAGES, GALLERY, IMAGE_BYTES, LANGS = 4, 20, 2_000_000, 3
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
_FEATURES = {
    "app.bsky.richtext.facet#link": "uri",
    "app.bsky.richtext.facet#mention": "did",
    "app.bsky.richtext.facet#tag": "tag",
}


def check(record: dict[str, Any], page: Page, state: Pages) -> None:
    """Check a post. Raises ``XrpcRefusal``."""
    if record.get("$type") != calls.POSTS:
        reason = f"Invalid $type: expected {calls.POSTS}, got {record.get('$type')}"
        raise refusals.invalid_request(reason)
    text = record.get("text")
    if not isinstance(text, str):
        _refuse("text", "must be a string")
    if len(text.encode()) > BYTES:
        _refuse("text", f"must not be longer than {BYTES} characters")
    if graphemes.count(text) > GRAPHEMES:
        _refuse("text", f"must not be longer than {GRAPHEMES} graphemes")
    created_at = record.get("createdAt")
    if not isinstance(created_at, str) or not _is_time(created_at):
        _refuse("createdAt", "must be an valid atproto datetime (both RFC-3339 and ISO-8601)")
    langs = record.get("langs", [])
    if not isinstance(langs, list) or len(langs) > LANGS:
        _refuse("langs", f"must not have more than {LANGS} elements")
    facets = record.get("facets", [])
    if not isinstance(facets, list):
        _refuse("facets", "must be an array")
    for facet in facets:
        _check_facet(facet, text.encode())
    _check_embed(record.get("embed"))
    for blob in calls.blobs(record):
        _check_blob(blob, page, state)


def _check_facet(facet: Any, text: bytes) -> None:  # noqa: ANN401  JSON
    match facet:
        case {
            "index": {"byteStart": int() as start, "byteEnd": int() as end},
            "features": list() as features,
        }:
            pass
        case _:
            _refuse("facets", 'must have the properties "index" and "features"')
    if not 0 <= start < end <= len(text):
        _refuse("facets", f"do not lie inside the text ({start} to {end} of {len(text)})")
    for place in (start, end):
        if place < len(text) and text[place] & 0xC0 == 0x80:  # noqa: PLR2004  UTF-8's own mark
            _refuse("facets", f"cut a character at byte {place}")
    for feature in features:
        about = feature if isinstance(feature, dict) else {}
        name = _FEATURES.get(str(about.get("$type")), "$type")
        if not isinstance(about.get(name), str):
            _refuse("facets", f'must have the property "{name}"')


def _check_embed(embed: Any) -> None:  # noqa: ANN401  JSON
    match embed:
        case None:
            return
        case {"$type": "app.bsky.embed.images", "images": list() as images}:
            if not 1 <= len(images) <= IMAGES:
                _refuse("embed/images", f"must not have more than {IMAGES} elements")
            _check_images(images)
        case {"$type": "app.bsky.embed.gallery", "images": list() as images}:
            if not 1 <= len(images) <= GALLERY:
                _refuse("embed/images", f"must not have more than {GALLERY} elements")
            _check_images(images)
        case {"$type": "app.bsky.embed.external", "external": dict() as card}:
            for name in ("uri", "title", "description"):
                if not isinstance(card.get(name), str):
                    _refuse("embed/external", f'must have the property "{name}"')
        case {"$type": str()}:
            return
        case _:
            _refuse("embed", 'must have the property "$type"')


def _check_images(images: list[Any]) -> None:
    for image in images:
        match image:
            case {"alt": str(), "image": {"$type": "blob", "mimeType": str() as kind}}:
                if not kind.startswith("image/"):
                    _refuse("embed/images/image", f"is of a type not accepted: {kind}")
            case _:
                _refuse("embed/images", 'must have the properties "alt" and "image"')


def _check_blob(blob: dict[str, Any], page: Page, state: Pages) -> None:
    cid = blob["ref"]["$link"]
    media = state.named.get((page.id, cid))
    if media is None:
        raise refusals.blob_not_found(cid)
    if blob.get("mimeType") != media.content_type or blob.get("size") != media.bytes:
        raise refusals.blob_differs(media.content_type, media.bytes)
    if media.kind == "photo" and media.bytes > IMAGE_BYTES:
        raise refusals.blob_too_large(media.bytes, IMAGE_BYTES)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _TIME.match(text) is not None


def _refuse(where: str, what: str) -> NoReturn:
    reason = f"Invalid {calls.POSTS} record: Record/{where} {what}"
    raise refusals.invalid_request(reason)
