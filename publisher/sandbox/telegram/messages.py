"""Messages in a channel: text, one photo, an album of several; and taking them down.

An album is several messages to Telegram. Here it is one post that knows the ids of its messages,
so that the log counts an album once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import formats
from publisher.sandbox.pages import Media, Post, to_fact
from publisher.sandbox.telegram import refusals, shown, texts

if TYPE_CHECKING:
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.telegram.calls import Call

ALBUM = 10
"""Items in an album, at most. One alone is a message without a group, as TDLib does it."""
PHOTO_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Item:
    """A photo that came with a call: its noun, new or there already, and its bytes if new."""

    media: Media
    content: bytes | None = None


def send_message(call: Call, page: Page, done: Treatment, platform: Platform) -> Any:  # noqa: ANN401  JSON
    """Post a text. Raises ``BotRefusal``."""
    stored = texts.message(call, call.form.text("text"))
    marked = texts.entities(call, stored, "entities")
    with platform.lock:
        part: dict[str, Any] = {"text": stored, "entities": marked}
        post = _post(call, page, [part], (), platform.state)
        platform.publish(post, done)
        return shown.messages(post, platform.state)[0]


def send_photo(call: Call, page: Page, done: Treatment, platform: Platform) -> Any:  # noqa: ANN401
    """Post one photo with a caption. Raises ``BotRefusal``."""
    form = call.form
    stored = texts.caption(form.text("caption"), form.text("parse_mode"))
    marked = texts.entities(call, stored, "caption_entities")
    source = "attach://photo" if "photo" in form.files else form.text("photo")
    if not source:
        reason = "there is no photo in the request"
        raise refusals.bad_request(reason)
    item = _item(call, page, source, platform)
    parts = [{"caption": stored, "caption_entities": marked}]
    return _publish(call, page, parts, [item], done, platform)[0]


def send_album(call: Call, page: Page, done: Treatment, platform: Platform) -> Any:  # noqa: ANN401
    """Post several photos as a group. Raises ``BotRefusal``."""
    given = call.media()
    if not given:
        reason = "there are no messages to send"
        raise refusals.bad_request(reason)
    if len(given) > ALBUM:
        reason = "too many messages to send as an album"
        raise refusals.bad_request(reason)
    items, parts = [], []
    for one in given:
        if one.get("type") != "photo":
            reason = f'can\'t parse InputMedia: type "{one.get("type")}" is unsupported'
            raise refusals.bad_request(reason)
        text = texts.caption(str(one.get("caption") or ""), str(one.get("parse_mode") or ""))
        items.append(_item(call, page, str(one.get("media") or ""), platform))
        parts.append({"caption": text, "caption_entities": one.get("caption_entities") or []})
    return _publish(call, page, parts, items, done, platform)


def delete(call: Call, page: Page, platform: Platform) -> bool:
    """Take one message down, of an album only that one. Raises ``BotRefusal``."""
    text = call.form.text("message_id")
    number = int(text) if text.isdecimal() else 0
    with platform.lock:
        post = find(page, number, platform.state)
        if post is None:
            raise refusals.no_such_message()
        if post.foreign and not page.details["can_delete_messages"]:
            reason = "message can't be deleted"
            raise refusals.bad_request(reason)
        left = [it for it in post.data["messages"] if it["message_id"] != number]
        if left:
            edited = replace(post, data={**post.data, "messages": left})
            fact: dict[str, Any] = {"fact": "edited", "post": to_fact(edited)}
        else:
            fact = {"fact": "deleted", "post": post.id, "by": "request"}
        platform.record({**fact, "request": call.request})
    return True


def find(page: Page, message_id: int, state: Pages) -> Post | None:
    """Return the post that a message is, or is part of."""
    return next(
        (
            post
            for post in state.wall(page.id)
            if any(it["message_id"] == message_id for it in post.data["messages"])
        ),
        None,
    )


def identify(post: Post, state: Pages) -> Post:
    """Give a post the next message ids of its channel, one for each of its messages."""
    first = state.serials[post.page] + 1
    parts = post.data.get("messages") or [{"text": post.message.strip(), "entities": []}]
    messages = [{**part, "message_id": first + place} for place, part in enumerate(parts)]
    return replace(
        post, id=f"{post.page}_{first}", endpoint="post", serial=first + len(parts) - 1,
        data={**post.data, "messages": messages},
    )  # fmt: skip


def _publish(
    call: Call, page: Page, parts: list[dict[str, Any]], items: list[_Item], done: Treatment,
    platform: Platform,
) -> list[dict[str, Any]]:  # fmt: skip
    for item in items:
        if item.content is not None:
            platform.keep(item.media.id, item.content)
    new = [
        {"fact": "media", "request": call.request, "media": to_fact(item.media)}
        for item in items
        if item.content is not None or item.media.url is not None
    ]
    ids = tuple(item.media.id for item in items)
    with platform.lock:
        parts = [{**part, "media": id_} for part, id_ in zip(parts, ids, strict=True)]
        post = _post(call, page, parts, ids, platform.state)
        if new:
            platform.record(*new)
        platform.publish(post, done)
        return shown.messages(post, platform.state)


def _post(
    call: Call, page: Page, parts: list[dict[str, Any]], media: tuple[str, ...], state: Pages
) -> Post:
    return identify(Post(
        id="", page=page.id, endpoint="post", message=call.asked.message, link=None, media=media,
        created_at=time.time(), application=page.application,
        application_name=page.application_name, request=call.request, data={"messages": parts},
    ), state)  # fmt: skip


def _item(call: Call, page: Page, source: str, platform: Platform) -> _Item:
    """Return the photo that ``source`` names: a part of the request, an address, a file id."""
    with platform.lock:
        number = str(platform.state.next_number())
        # A file id is good in every channel of the bot.
        own = platform.state.holders(call.token, "telegram")
        known = next(
            (it for other in own if (it := platform.state.named.get((other.id, source)))), None
        )
    if known is not None:
        return _Item(known)
    name = shown.file_id(number)
    if source.startswith(("http://", "https://")):
        photo = Media(number, page.id, "photo", None, source, 0, time.time(), name=name)
        return _Item(photo)
    content = call.form.files.get(source.removeprefix("attach://"))
    if not source.startswith("attach://") or content is None:
        is_part = source.startswith("attach://")
        wrong = "Wrong file identifier/HTTP URL specified"
        reason = "can't parse InputMedia: media not found" if is_part else wrong
        raise refusals.bad_request(reason)
    kind = formats.photo(content)
    if kind is None or len(content) > PHOTO_BYTES:
        reason = "IMAGE_PROCESS_FAILED" if kind is None else "file is too big"
        raise refusals.bad_request(reason)
    return _Item(
        Media(number, page.id, "photo", kind, None, len(content), time.time(), name=name), content
    )
