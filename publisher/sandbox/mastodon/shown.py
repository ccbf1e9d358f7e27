"""Accounts, statuses, uploads and the server itself, as Mastodon shows them.

After the entities of https://docs.joinmastodon.org/entities/, those members that clients read.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from publisher.sandbox.mastodon import markup

if TYPE_CHECKING:
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Media, Page, Pages, Post

MIME_TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp", "video/mp4"]


def account(page: Page, base: str, posts: int) -> dict[str, Any]:
    """Return an account."""
    user = page.details["username"]
    return {
        "id": page.id, "username": user, "acct": user, "display_name": page.name,
        "locked": False, "bot": False, "discoverable": True, "indexable": False, "group": False,
        "created_at": "2026-01-01T00:00:00.000Z", "note": "", "url": f"{base}/@{user}",
        "uri": f"{base}/users/{user}", "avatar": "", "avatar_static": "", "header": "",
        "header_static": "", "followers_count": 0, "following_count": 0,
        "statuses_count": posts, "last_status_at": None, "emojis": [], "fields": [],
    }  # fmt: skip


def own_account(page: Page, base: str, posts: int) -> dict[str, Any]:
    """Return an account to its owner."""
    source = {
        "privacy": "public", "sensitive": False, "language": None, "note": "", "fields": [],
        "follow_requests_count": 0,
    }  # fmt: skip
    role = {"id": "-99", "name": "", "permissions": "65536", "color": "", "highlighted": False}
    return account(page, base, posts) | {"source": source, "role": role}


def application(page: Page) -> dict[str, Any]:
    """Return the application that a token was given to."""
    return {
        "id": page.application, "name": page.application_name, "website": None,
        "scopes": ["read", "write"], "redirect_uris": [], "vapid_key": "",
    }  # fmt: skip


def status(post: Post, state: Pages, base: str, *, own: bool) -> dict[str, Any]:
    """Return a status; its application only to its owner, as of an unconfirmed setting."""
    page = state.pages[post.page]
    user = page.details["username"]
    text = post.data["text"]
    whole: dict[str, Any] = {
        "id": post.id, "created_at": moment(post.created_at),
        "in_reply_to_id": post.data.get("in_reply_to_id"),
        "in_reply_to_account_id": post.page if post.data.get("in_reply_to_id") else None,
        "sensitive": post.data["sensitive"], "spoiler_text": post.data["spoiler_text"],
        "visibility": post.data["visibility"], "language": post.data["language"],
        "uri": f"{base}/users/{user}/statuses/{post.id}", "url": f"{base}/@{user}/{post.id}",
        "replies_count": 0, "reblogs_count": 0, "favourites_count": 0, "edited_at": None,
        "content": markup.html(text, base, state), "reblog": None,
        "account": account(page, base, len(state.walls[page.id])),
        "media_attachments": [
            medium(state.media[it], base)
            for it in post.media
            if state.attached.get(it, post.id) == post.id
        ],
        "mentions": [], "emojis": [], "card": None, "poll": None,
        "tags": [{"name": tag, "url": f"{base}/tags/{tag}"} for tag in markup.tags(text)],
    }  # fmt: skip
    if own and post.application_name:
        whole["application"] = {"name": post.application_name, "website": None}
        whole |= {"favourited": False, "reblogged": False, "muted": False, "bookmarked": False}
        whole |= {"pinned": False, "filtered": []}
    return whole


def source(post: Post) -> dict[str, Any]:
    """Return the text of a status as it was written, ends trimmed."""
    return {
        "id": post.id, "text": post.data["text"], "spoiler_text": post.data["spoiler_text"],
    }  # fmt: skip


def medium(media: Media, base: str) -> dict[str, Any]:
    """Return an upload; without an address while it is processed."""
    address = None if is_processing(media) else f"{base}/media/{media.id}"
    return {
        "id": media.id, "type": "image" if media.kind == "photo" else media.kind, "url": address,
        "preview_url": address, "remote_url": None, "meta": {},
        "description": media.caption or None, "blurhash": None,
    }  # fmt: skip


def is_processing(media: Media) -> bool:
    """Say whether an upload cannot be used yet."""
    return media.ready_at is not None and media.ready_at > time.time()


def instance(settings: Settings, base: str) -> dict[str, Any]:
    """Return the server, as version 2 of the method has it."""
    return {
        "domain": base.removeprefix("http://"), "title": "Sandbox", "version": settings.version,
        "source_url": settings.source_url, "description": "Nothing leaves this machine.",
        "usage": {"users": {"active_month": 1}}, "thumbnail": {"url": ""}, "languages": ["en"],
        "configuration": _configuration(settings),
        "registrations": {"enabled": False, "approval_required": False, "message": None},
        "api_versions": {"mastodon": 7}, "contact": {"email": "", "account": None}, "rules": [],
    }  # fmt: skip


def instance_of_old(settings: Settings, base: str) -> dict[str, Any]:
    """Return the server, as version 1 of the method has it."""
    return {
        "uri": base.removeprefix("http://"), "title": "Sandbox", "version": settings.version,
        "short_description": "", "description": "", "email": "", "languages": ["en"],
        "max_toot_chars": settings.max_characters, "configuration": _configuration(settings),
        "registrations": False, "stats": {"user_count": 1, "status_count": 0, "domain_count": 1},
    }  # fmt: skip


def moment(at: float) -> str:
    """Return unix seconds as Mastodon writes a time: ``2026-12-07T02:00:31.123Z``."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _configuration(settings: Settings) -> dict[str, Any]:
    return {
        "urls": {}, "accounts": {"max_featured_tags": 10},
        "statuses": {
            "max_characters": settings.max_characters,
            "max_media_attachments": settings.max_media_attachments,
            "characters_reserved_per_url": settings.characters_reserved_per_url,
        },
        "media_attachments": {
            "supported_mime_types": MIME_TYPES, "description_limit": 1500,
            "image_size_limit": 16_777_216, "image_matrix_limit": 33_177_600,
            "video_size_limit": 103_809_024, "video_frame_rate_limit": 120,
            "video_matrix_limit": 8_294_400,
        },
        "polls": {"max_options": 4, "max_characters_per_option": 50},
    }  # fmt: skip
