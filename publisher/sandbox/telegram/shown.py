"""Bots, chats and messages, as the Bot API shows them. Source: https://core.telegram.org/bots/api."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from publisher.sandbox.pages import Media, Page, Pages, Post


def bot(page: Page) -> dict[str, Any]:
    """Return the bot of a channel."""
    number = page.details["bot"]
    return {
        "id": int(number), "is_bot": True, "first_name": f"Sandbox bot {number}",
        "username": f"sandbox{number}_bot",
    }  # fmt: skip


def me(page: Page) -> dict[str, Any]:
    """Return the bot to itself."""
    abilities = {
        "can_join_groups": True, "can_read_all_group_messages": False,
        "supports_inline_queries": False, "can_connect_to_business": False,
        "has_main_web_app": False,
    }  # fmt: skip
    return bot(page) | abilities


def chat(page: Page) -> dict[str, Any]:
    """Return a channel, as messages have it."""
    return {
        "id": int(page.id), "title": page.name, "username": page.details["username"],
        "type": "channel",
    }  # fmt: skip


def full_chat(page: Page) -> dict[str, Any]:
    """Return a channel, as ``getChat`` has it."""
    more = {
        "description": "", "accent_color_id": 0, "max_reaction_count": 11,
        "has_visible_history": True,
    }  # fmt: skip
    return chat(page) | more


def member(page: Page) -> dict[str, Any]:
    """Return what the channel's bot may do there."""
    status = page.details["status"]
    if status != "administrator":
        gone = {"until_date": 0} if status == "kicked" else {}
        return {"user": bot(page), "status": status, **gone}
    return {
        "user": bot(page), "status": status, "can_be_edited": False, "is_anonymous": False,
        "can_manage_chat": True, "can_change_info": False, "can_invite_users": False,
        "can_post_messages": page.details["can_post_messages"], "can_edit_messages": False,
        "can_delete_messages": page.details["can_delete_messages"], "can_promote_members": False,
        "can_restrict_members": False, "can_manage_video_chats": False, "can_post_stories": False,
        "can_edit_stories": False, "can_delete_stories": False,
    }  # fmt: skip


def messages(post: Post, state: Pages) -> list[dict[str, Any]]:
    """Return the messages of a post: one, or as many as an album has."""
    page = state.pages[post.page]
    parts = post.data["messages"]
    is_group = len(post.media) > 1
    group = {"media_group_id": str(13_000_000_000_000_000 + parts[0]["message_id"])}
    return [
        {
            "message_id": part["message_id"], "sender_chat": chat(page), "chat": chat(page),
            "date": int(post.created_at), **(group if is_group else {}), **_content(part, state),
        }
        for part in parts
    ]  # fmt: skip


def file_id(number: str) -> str:
    """Return the file id of an upload."""
    return f"AgACAgQAAx{hashlib.sha256(number.encode()).hexdigest()[:40]}"


def _content(part: dict[str, Any], state: Pages) -> dict[str, Any]:
    shown = {name: part[name] for name in ("text", "caption") if part.get(name)}
    shown |= {name: part[name] for name in ("entities", "caption_entities") if part.get(name)}
    if "media" in part:
        shown["photo"] = [_size(state.media[part["media"]])]
    return shown


def _size(media: Media) -> dict[str, Any]:
    unique = hashlib.sha256(media.id.encode()).hexdigest()[:16]
    return {
        "file_id": media.name, "file_unique_id": unique, "file_size": media.bytes, "width": 1280,
        "height": 720,
    }  # fmt: skip
