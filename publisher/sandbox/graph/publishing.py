"""What puts something on a page, and takes it off again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from publisher.sandbox import formats
from publisher.sandbox.behaviours import Endpoint
from publisher.sandbox.graph import fields, refusals
from publisher.sandbox.pages import Media, Page, Post, to_fact

if TYPE_CHECKING:
    from publisher.sandbox.graph.calls import Call
    from publisher.sandbox.journal import Fact
    from publisher.sandbox.pages import Pages


@dataclass(frozen=True, slots=True)
class Upload:
    """A photo or video that came with a call: its noun and its bytes, None for an address."""

    media: Media
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What accepting a call means: facts, bytes and a post to store, and the answer's JSON."""

    facts: list[Fact]
    answer: dict[str, Any]
    post: Post | None = None
    upload: Upload | None = None


def create(call: Call, pages: Pages, page: Page, base: str) -> Acceptance:
    """Accept a call to feed, photos or videos. Raises ``Refusal``; nothing is recorded here."""
    if call.route.node not in (page.id, "me"):
        known = any(call.route.node == other.id for other in pages.of("graph"))
        raise (refusals.no_permission() if known else _unknown(call))
    if len(call.message) > refusals.TEXT_LIMIT:
        reason = f"Param message must be at most {refusals.TEXT_LIMIT} characters long."
        raise refusals.invalid_parameter(reason)
    if call.form.text("scheduled_publish_time"):
        reason = "The sandbox does not schedule; it posts at once."
        raise refusals.invalid_parameter(reason)
    if call.route.endpoint is Endpoint.FEED:
        return _create_feed(call, pages, page, base)
    return _create_media(call, pages, page)


def delete(call: Call, pages: Pages, page: Page) -> Acceptance:
    """Take a post down that the same application made. Raises ``Refusal``."""
    post = pages.posts.get(call.route.node)
    if post is None or post.page != page.id:
        raise _unknown(call)
    if post.application != page.application:
        raise refusals.no_permission()
    fact = {"fact": "deleted", "post": post.id, "request": call.request, "by": "request"}
    return Acceptance([fact], {"success": True})


def flip(call: Call, pages: Pages, page: Page) -> Acceptance:
    """Publish a draft (``is_published=true``); once it is published, that changes nothing."""
    post = pages.posts.get(call.route.node)
    if post is None or post.page != page.id or call.route.edge is not None:
        raise _unknown(call)
    if not call.form.flag("is_published", default=False):
        reason = "The sandbox changes only is_published of a post."
        raise refusals.invalid_parameter(reason)
    facts = [{"fact": "flipped", "post": post.id, "request": call.request}]
    return Acceptance([] if post.is_published else facts, {"success": True})


def _create_feed(call: Call, pages: Pages, page: Page, base: str) -> Acceptance:
    wanted = fields.post_fields(call.form.text("fields") or "id")
    link = call.form.text("link") or None
    media = call.media_ids()
    if not call.message.strip() and link is None and not media:
        reason = "One of message, link or attached_media is needed."
        raise refusals.invalid_parameter(reason)
    if link is not None and not link.startswith(("http://", "https://")):
        raise refusals.bad_address()
    for media_id in media:
        photo = pages.media.get(media_id)
        if photo is None or photo.page != page.id:
            reason = f"Param attached_media: no photo {media_id}."
            raise refusals.invalid_parameter(reason)
    post = new_post(call, pages, page, link=link, media=tuple(media))
    answer = fields.show_post(post, pages, base, wanted)
    return Acceptance([], answer, post)


def _create_media(call: Call, pages: Pages, page: Page) -> Acceptance:
    kind = "photo" if call.route.endpoint is Endpoint.PHOTOS else "video"
    content = call.form.files.get("source")
    url = call.form.text("url" if kind == "photo" else "file_url") or None
    content_type = _content_type(kind, content, url)
    media_id = str(pages.next_number())
    post = None
    if call.publishes:
        post = new_post(call, pages, page, media=(media_id,))
    media = Media(
        media_id, page.id, kind, content_type, None if content else url, len(content or b""),
        time.time(), call.message, post.id if post else None,
    )  # fmt: skip
    facts: list[Fact] = [{"fact": "media", "request": call.request, "media": to_fact(media)}]
    answer = {"id": media_id}
    if post is not None:
        answer |= {"post_id": post.id} if kind == "photo" else {}
    return Acceptance(facts, answer, post, Upload(media, content))


def new_post(
    call: Call, pages: Pages, page: Page, *, link: str | None = None, media: tuple[str, ...] = (),
) -> Post:  # fmt: skip
    """Make the post a call asks for, with an id of its own."""
    return Post(
        id=f"{page.id}_{pages.next_number()}",
        page=page.id,
        endpoint=call.route.endpoint,
        message=call.message,
        link=link,
        media=media,
        created_at=time.time(),
        application=page.application,
        application_name=page.application_name,
        request=call.request,
        is_published=call.publishes,
        client_mutation_id=call.client_mutation_id,
    )


def _content_type(kind: str, content: bytes | None, url: str | None) -> str | None:
    """Return the type of an upload, None for an address. Raises ``Refusal``."""
    if content is not None:
        found = formats.video(content) if kind == "video" else formats.photo(content)
        if found is None or (kind == "photo" and len(content) > refusals.PHOTO_LIMIT):
            raise refusals.video_unusable() if kind == "video" else refusals.photo_unusable()
        return found
    if url is None:
        raise refusals.nothing_uploaded()
    if not url.startswith(("http://", "https://")):
        raise refusals.bad_address()
    return None


def _unknown(call: Call) -> refusals.GraphRefusal:
    return refusals.unknown_object(call.route.node, call.method)
