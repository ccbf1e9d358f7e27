"""Is this post on the Page? Reads the listings and says which posts carry a mark of ours.

Feed posts are named by their post id (``page_number``), videos by their video id, since that is
all that the answer of ``/videos`` gives; both are what ``remote_posts`` holds.

Marks, from strong to weak: our own unpublished photo ids among a post's attachments; the video id
a lost answer left; our application. Another application, other photos, another Page's id or a
draft make a post *not ours*, which only keeps it from being found: absence does not look at it.
Without any mark a post is never found, however equal its text: anybody may have written the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, assert_never
from urllib.parse import urlsplit

from publisher.adapters.facebook_pages.formats import Format, format_of
from publisher.adapters.facebook_pages.listing import (
    LOOK_BACK,
    NO_SUCH_EDGE,
    Bounds,
    Item,
    attached,
    created_at,
    listing_of,
    read,
    target_id,
)
from publisher.engine.adapter import LookQuery
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate, Evidence, Found, Inconclusive
from publisher.engine.matching import Listing, Sought, match
from publisher.graph.call import Node
from publisher.transport import Failed, Transport

POST_FIELDS = (
    "id,message,created_time,permalink_url,is_published,application,"
    "attachments{type,url,unshimmed_url,target,subattachments}"
)
VIDEO_FIELDS = "id,description,created_time,permalink_url,published"
_LATEST: Final = 253_402_300_800
"""Seconds from 1970 to the year 10000, which no date is beyond."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What makes a post ours: the photos we uploaded for it, our application, its link."""

    page: str
    format: Format
    text: str
    link: str | None
    photos: frozenset[str]
    application: str | None
    handle: str | None

    def on_post(self, node: Node, item: Item) -> Candidate | None:
        """A post of ``published_posts`` as a candidate; None when it cannot be read."""
        post_id, at = item.get("id"), created_at(item)
        if not isinstance(post_id, str) or at is None:
            return None
        video = _video_in(item)
        named = video if self.format is Format.VIDEO and video else post_id
        return Candidate(
            remote_id=node.hide(named),
            text=node.hide(_text(item.get("message"))),
            created_at=at,
            permalink=_address(item.get("permalink_url"), node),
            ours=self._ours(item, post_id, video),
        )

    def on_video(self, node: Node, item: Item) -> Candidate | None:
        """A video of ``videos`` as a candidate; None when it cannot be read."""
        video, at = item.get("id"), created_at(item)
        if not isinstance(video, str) or at is None:
            return None
        return Candidate(
            remote_id=node.hide(video),
            text=node.hide(_text(item.get("description"))),
            created_at=at,
            permalink=_address(item.get("permalink_url"), node),
            ours=False if item.get("published") is False else self._is_handle(video),
        )

    def _ours(  # noqa: PLR0911 - one answer per format
        self, item: Item, post_id: str, video: str | None
    ) -> bool | None:
        if item.get("is_published") is False or not post_id.startswith(f"{self.page}_"):
            return False
        application = self._application(item)
        if application is False:
            return False
        says_something = bool(self.text.strip())
        match self.format:
            case Format.TEXT:
                return application
            case Format.LINK if says_something or application is None:
                return application
            case Format.LINK:
                return self._same_link(item)
            case Format.PHOTO | Format.PHOTOS:
                shown = {target_id(attachment) for attachment in attached(item)}
                return bool(self.photos) and self.photos <= shown
            case Format.VIDEO if video is None:
                return False
            case Format.VIDEO:
                return self._is_handle(video) or (application if says_something else None)
            case _:
                assert_never(self.format)

    def _application(self, item: Item) -> bool | None:
        """Whether our application made it; None when that is not shown, or ours not known."""
        application = item.get("application")
        if self.application is None or not isinstance(application, dict):
            return None
        return application.get("id") == self.application

    def _same_link(self, item: Item) -> bool | None:
        """Tell two links without text apart by where they lead.

        Facebook may rewrite a link, so another one is no proof against.
        """
        urls = [a.get(key) for a in attached(item) for key in ("url", "unshimmed_url")]
        return True if self.link in urls else None

    def _is_handle(self, video: str | None) -> bool | None:
        return True if self.handle is not None and video == self.handle else None


def look(
    transport: Transport,
    node: Node,
    query: LookQuery,
    *,
    photos: frozenset[str],
    application: str | None,
    bounds: Bounds,
) -> Evidence:
    """Read the Page and weigh what is there. Raises ``ContentError`` for unreadable content."""
    known = application or application_of(transport, node)
    marks = marks_of(node, query, photos, known)
    sought = replace(sought_by(query), needs_mark=True)
    since = query.began_at - LOOK_BACK
    reading = read(transport, node, "published_posts", POST_FIELDS, since=since, bounds=bounds)
    posts = listing_of(reading, lambda item: marks.on_post(node, item))
    if marks.format is not Format.VIDEO:
        return match(sought, posts, exhaustive=False)
    reading = read(transport, node, "videos", VIDEO_FIELDS, since=since, bounds=bounds)
    videos = listing_of(reading, lambda item: marks.on_video(node, item))
    return _match_video(sought, posts, videos)


def application_of(transport: Transport, node: Node) -> str | None:
    """The id of the Meta app our token was made for, asked of Graph; None where it will not say."""
    application = _about_token(transport, node).get("app_id")
    return application if isinstance(application, str) and application.isdigit() else None


def access_ends_at(transport: Transport, node: Node) -> datetime | None:
    """When our token ends, asked of Graph; None where it never does, or Graph will not say.

    https://developers.facebook.com/docs/graph-api/reference/debug_token: unix seconds, 0 for never.
    """
    ends = _about_token(transport, node).get("expires_at")
    if not isinstance(ends, int) or isinstance(ends, bool) or not 0 < ends < _LATEST:
        return None
    return datetime.fromtimestamp(ends, UTC)


def _about_token(transport: Transport, node: Node) -> Mapping[str, object]:
    """What Graph says of our token; nothing where it will not say.

    https://developers.facebook.com/docs/graph-api/reference/debug_token
    """
    about = replace(node, id="debug_token")
    reply = transport.read(about.get(params={"input_token": node.token}))
    if isinstance(reply, Failed):
        return {}
    body = reply.json()
    data = body.get("data") if isinstance(body, dict) else None
    return data if isinstance(data, dict) and data.get("is_valid") is True else {}


def marks_of(
    node: Node, query: LookQuery, photos: frozenset[str], application: str | None
) -> Marks:
    """What would make a post ours. Raises ``ContentError`` for unreadable content."""
    post = Post.from_json(query.task.content)
    return Marks(
        page=node.id,
        format=format_of(post),
        text=post.text,
        link=post.link,
        photos=photos,
        application=application,
        handle=query.remote_handle,
    )


def sought_by(query: LookQuery) -> Sought:
    """What is looked for. Raises ``ContentError`` for unreadable content."""
    return Sought(
        text=Post.from_json(query.task.content).text,
        began_at=query.began_at,
        now=query.now,
        bound=query.bound,
        remote_handle=query.remote_handle,
        sender_is_gone=query.sender_is_gone,
    )


def _match_video(sought: Sought, posts: Listing, videos: Listing) -> Evidence:
    """Weigh both listings: reels are on ``videos`` alone, applications on posts alone.

    https://developers.facebook.com/docs/graph-api/reference/pagepost
    """
    if videos.trouble == NO_SUCH_EDGE:
        evidence = match(sought, posts, exhaustive=False)
        if isinstance(evidence, Inconclusive) and evidence.clean:
            reason = "nothing like it is among the posts, but videos are not listed for us"
            return replace(evidence, reason=reason, clean=False)
        return evidence
    known = {candidate.remote_id for candidate in posts.candidates}
    more = tuple(video for video in videos.candidates if video.remote_id not in known)
    trouble = posts.trouble or videos.trouble
    both = Listing((*posts.candidates, *more), complete=not trouble, trouble=trouble)
    # A video shows no application, so one more with our text may be ours as well as the marked one.
    unmarked = match(replace(sought, needs_mark=False), both, exhaustive=False)
    evidence = match(sought, both, exhaustive=False)
    return evidence if isinstance(unmarked, Found) else unmarked


def _video_in(item: Item) -> str | None:
    for attachment in attached(item):
        if _text(attachment.get("type")).startswith("video"):
            return target_id(attachment)
    return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _address(value: object, node: Node) -> str | None:
    """A link a person may follow; Graph gives some of a video's without the host."""
    if not isinstance(value, str):
        return None
    address = f"https://www.facebook.com{value}" if value.startswith("/") else value
    try:
        scheme = urlsplit(address).scheme
    except ValueError:
        return None
    return node.hide(address) if scheme in ("http", "https") else None
