"""Graph's ``fields``: reading ``id,attachments{target{id}}`` and showing just that."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from publisher.sandbox.graph import refusals

if TYPE_CHECKING:
    from publisher.sandbox.pages import Media, Page, Pages, Post

Fields = dict[str, "Fields"]
"""Names asked for, each with the names asked for below it (none: everything)."""

_WORD = re.compile(r"\w+|[{},]|\.\w+\([^)]*\)")
_POST_FIELDS = frozenset({
    "id", "message", "created_time", "updated_time", "permalink_url", "is_published", "is_hidden",
    "is_expired", "application", "admin_creator", "from", "status_type", "attachments", "story",
    "full_picture", "scheduled_publish_time", "promotable_id", "target", "properties",
})  # fmt: skip
_DEFAULT_POST: Fields = {"created_time": {}, "message": {}, "id": {}}


def parse(text: str, default: Fields) -> Fields:
    """Read a ``fields`` parameter. Raises ``Refusal`` when the braces do not fit."""
    if not text:
        return default
    top: Fields = {}
    stack, last = [top], ""
    for word in _WORD.findall(text):
        if word == "{":
            if not last:
                reason = "Syntax error in fields."
                raise refusals.invalid_parameter(reason)
            stack.append(stack[-1][last])
        elif word == "}":
            stack.pop()
            if not stack:
                break
        elif word != "," and not word.startswith("."):
            stack[-1][word] = {}
        last = word if word not in ("{", "}", ",") else ""
    if len(stack) != 1:
        reason = "Syntax error in fields: the braces do not match."
        raise refusals.invalid_parameter(reason)
    return top


def post_fields(text: str) -> Fields:
    """Read the fields asked of a post. Raises ``Refusal`` for one that posts do not have."""
    wanted = parse(text, _DEFAULT_POST)
    for name in wanted:
        if name not in _POST_FIELDS:
            reason = f"Tried accessing nonexisting field ({name})"
            raise refusals.invalid_parameter(reason)
    return wanted


def show_post(post: Post, pages: Pages, base: str, wanted: Fields) -> dict[str, Any]:
    """Return a post as Graph shows it; ``base`` is our address, for links."""
    whole: dict[str, Any] = {
        "id": post.id,
        "created_time": graph_time(post.created_at),
        "updated_time": graph_time(post.created_at),
        "permalink_url": f"{base}/a/{post.id}",
        "is_published": post.is_published,
        "is_hidden": False,
        "is_expired": False,
        "from": {"id": post.page, "name": pages.pages[post.page].name},
        "status_type": _status_type(post),
    }
    if post.message:
        whole["message"] = post.message
    if post.application:
        whole["application"] = {"id": post.application, "name": post.application_name}
    if "attachments" in wanted and (attachments := _attachments(post, base)):
        whole["attachments"] = {"data": attachments}
    return _pick(whole, {**wanted, "id": {}})


def show_page(page: Page, base: str, text: str) -> dict[str, Any]:
    """Return a page as Graph shows it."""
    wanted = parse(text, {"id": {}, "name": {}})
    link = f"{base}/p/{page.id}"
    whole = {"id": page.id, "name": page.name, "link": link, "username": f"page{page.id}"}
    return _pick(whole, {**wanted, "id": {}})


def show_media(media: Media, base: str, text: str) -> dict[str, Any]:
    """Return a photo or a video as Graph shows it."""
    wanted = parse(text, {"created_time": {}, "id": {}})
    source = f"{base}/media/{media.id}" if media.content_type else media.url
    whole: dict[str, Any] = {
        "id": media.id,
        "created_time": graph_time(media.created_at),
        "link": f"{base}/a/{media.post}" if media.post else source,
        "permalink_url": f"{base}/a/{media.post}" if media.post else source,
        "images": [{"source": source}],
        "source": source,
        "status": {"video_status": "ready"},
        "published": media.post is not None,
        "from": {"id": media.page},
    }
    if media.caption:
        whole["name" if media.kind == "photo" else "description"] = media.caption
    if media.post:
        whole |= {"post_id": media.post, "page_story_id": media.post}
    return _pick(whole, {**wanted, "id": {}})


def graph_time(at: float) -> str:
    """Return unix seconds as Graph writes a time: ``2026-12-07T02:00:31+0000``."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")


def _status_type(post: Post) -> str:
    if post.endpoint == "videos":
        return "added_video"
    if post.media:
        return "added_photos"
    return "shared_story" if post.link else "mobile_status_update"


def _attachments(post: Post, base: str) -> list[dict[str, Any]]:
    """Return one photo or video by itself, several photos as an album that holds them."""
    kind = "video_inline" if post.endpoint == "videos" else "photo"
    shown = [
        {
            "type": kind,
            "media_type": kind.partition("_")[0],
            "target": {"id": media, "url": f"{base}/media/{media}"},
            "media": {"image": {"src": f"{base}/media/{media}"}},
            "url": f"{base}/media/{media}",
        }
        for media in post.media
    ]
    if len(shown) > 1:
        url = f"{base}/a/{post.id}"
        album = {
            "type": "album",
            "media_type": "album",
            "target": {"id": str(post.number), "url": url},
        }
        return [{**album, "url": url, "subattachments": {"data": shown}}]
    if not shown and post.link:
        link = {"type": "share", "media_type": "link", "title": post.link, "url": post.link}
        return [{**link, "unshimmed_url": post.link, "target": {"url": post.link}}]
    return shown


def _pick(whole: dict[str, Any], wanted: Fields) -> dict[str, Any]:
    return {name: _below(whole[name], below) for name, below in wanted.items() if name in whole}


def _below(value: Any, wanted: Fields) -> Any:  # noqa: ANN401  any JSON, and the same kind back
    if not wanted or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [_below(item, wanted) for item in value]
    if "data" in value and "data" not in wanted:
        return {"data": _below(value["data"], wanted)}
    return _pick(value, wanted)
