"""Pages a person can look at: all pages, one page's wall, one post, and uploaded pictures."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from publisher.sandbox.pages import Page, Post, cursor, place
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from publisher.sandbox.pages import Pages
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Head

POSTS_SHOWN = 50
_STYLE = Path(__file__).with_name("wall.css").read_text()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src 'self';"
        " media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SHOWN_IN_BROWSERS = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp", "video/mp4"})


def answer(head: Head, platform: Platform) -> Answer:
    """Answer a request that is neither a platform's API nor a control call.

    ``/`` all pages, ``/p/{page}`` one, ``/a/{post}`` a post, ``/media/{id}`` an upload; and the
    addresses people know from each platform.
    """
    if head.method not in ("GET", "HEAD"):
        return _page("Not here", "<h1>Only reading here</h1>", 405)
    if head.path.startswith("/media/"):
        return _media(platform, head.path.removeprefix("/media/"))
    with platform.lock:
        return _read(head, platform)


def _read(head: Head, platform: Platform) -> Answer:
    state, path = platform.state, head.path
    if path == "/":
        return _all_pages(platform)
    if path.startswith("/a/"):
        return _one_post(platform, path.removeprefix("/a/"))
    if page := state.pages.get(path.removeprefix("/p/")):
        return _wall(platform, page, head.query)
    found = (dialect.locate(path, state) for dialect in platform.dialects.values())
    match next((noun for noun in found if noun is not None), None):
        case Page() as page:
            return _wall(platform, page, head.query)
        case Post() as post:
            return _one_post(platform, post.id)
    return _nothing("There is no such address here.")


def _all_pages(platform: Platform) -> Answer:
    sections = []
    for dialect in platform.dialects.values():
        rows = "".join(
            f'<li><a href="/p/{quote(page.id)}"><bdi>{escape(page.name)}</bdi></a>'
            f"<span>{escape(page.id)} · {_count(len(platform.state.walls[page.id]))}</span></li>"
            for page in sorted(
                platform.state.of(dialect.name), key=lambda page: (len(page.id), page.id)
            )
        )
        if rows:
            sections.append(f'<h2>{dialect.noun}</h2><ul class="pages">{rows}</ul>')
    soft = '<p class="soft">Accounts of the sandbox platforms.</p>'
    return _page("Sandbox pages", f"<h1>Pages</h1>{soft}{''.join(sections)}")


def _wall(platform: Platform, page: Page, query: str) -> Answer:
    before = parse_qs(query).get("before", [""])[0]
    try:
        start = place(before) if before else None
    except ValueError:
        return _nothing("The address of these older posts is not whole.")
    posts = list(islice(platform.state.wall(page.id, before=start), POSTS_SHOWN + 1))
    shown = "".join(_article(platform, post) for post in posts[:POSTS_SHOWN])
    if len(posts) > POSTS_SHOWN:
        older = cursor(posts[POSTS_SHOWN - 1].place)
        shown += f'<p><a href="/p/{quote(page.id)}?before={older}">Older posts</a></p>'
    count = len(platform.state.walls[page.id])
    noun = platform.dialects[page.platform].noun.removesuffix("s")
    return _page(
        page.name,
        f'<h1 dir="auto">{escape(page.name)}</h1>'
        f'<p class="soft">{noun} {escape(page.id)} · {_count(count)} · '
        '<a href="/">all pages</a></p>' + (shown or "<p>Nothing is on this page.</p>"),
    )


def _one_post(platform: Platform, post_id: str) -> Answer:
    state = platform.state
    post = state.posts.get(post_id)
    if post is None and post_id in state.deleted:
        at = _time(state.deleted[post_id])
        return _nothing(f"Post {post_id} was on its page. It was taken down on {at}.")
    if post is None:
        return _nothing(f"Post {post_id} was never on a page here.")
    page = state.pages[post.page]
    note = "" if post.is_published else '<p class="soft">A draft: not on the page.</p>'
    name = f"<bdi>{escape(page.name)}</bdi>"
    back = f'<p><a href="/p/{quote(page.id)}">All posts of {name}</a></p>'
    main = f"<h1>Post on {name}</h1>{note}{_article(platform, post)}{back}"
    return _page(f"Post {post.id}", main)


def _article(platform: Platform, post: Post) -> str:
    state = platform.state
    page = state.pages[post.page]
    address = quote(platform.dialects[page.platform].address(post, state))
    by = f"by {escape(post.application_name)}" if post.application_name else "by hand"
    about = (
        f'<p class="about"><strong><bdi>{escape(page.name)}</bdi></strong><span>{by}</span>'
        f'<a href="{address}"><time datetime="{_iso(post.created_at)}">'
        f"{_time(post.created_at)}</time></a></p>"
    )
    text = f'<p class="text" dir="auto">{escape(post.message)}</p>' if post.message else ""
    link = _link(post.link) if post.link else ""
    media = "".join(_shown(state, media) for media in post.media)
    media = f'<div class="shown">{media}</div>' if media else ""
    id_ = f'<p class="id" dir="ltr">{escape(post.id)}</p>'
    return f"<article>{about}{text}{link}{media}{id_}</article>"


def _link(link: str) -> str:
    shown = f'<bdi dir="ltr">{escape(link)}</bdi>'
    if not link.startswith(("http://", "https://")):
        return f'<span class="away">{shown}</span>'
    return f'<a class="link" rel="noopener noreferrer nofollow" href="{escape(link)}">{shown}</a>'


def _shown(state: Pages, media_id: str) -> str:
    media = state.media[media_id]
    if media.content_type not in _SHOWN_IN_BROWSERS:
        # An address is shown, not fetched: a browser that did would leave this machine.
        what = escape(media.url or media.content_type or "")
        return f'<span class="away">{media.kind.title()} {media_id}: <bdi>{what}</bdi></span>'
    if media.kind == "video":
        return f'<video controls preload="metadata" src="/media/{media_id}"></video>'
    alt = escape(media.caption) or f"Photo {media_id}"
    return f'<img src="/media/{media_id}" alt="{alt}">'


def _media(platform: Platform, media_id: str) -> Answer:
    with platform.lock:
        media = platform.state.media.get(media_id)
    content = platform.content(media_id)
    if media is None or media.content_type is None or content is None:
        return _nothing(f"There is no photo or video {media_id} here.")
    return Answer(200, content, media.content_type, dict(_HEADERS))


def _nothing(why: str) -> Answer:
    main = f'<h1>Nothing here</h1><p>{escape(why)}</p><p><a href="/">All pages</a></p>'
    return _page("Nothing here", main, 404)


def _page(title: str, main: str, status: int = 200) -> Answer:
    body = (
        '<!doctype html><html lang="en" dir="ltr"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Sandbox</title><style>{_STYLE}</style></head><body>"
        '<div class="banner">Sandbox: nothing leaves this machine</div>'
        f"<main>{main}</main></body></html>"
    )
    return Answer(status, body.encode(), "text/html; charset=utf-8", dict(_HEADERS))


def _count(posts: int) -> str:
    return "1 post" if posts == 1 else f"{posts:,} posts"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%A %-d %B %Y, %H:%M:%S UTC")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
