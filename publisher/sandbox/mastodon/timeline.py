"""An account's timeline, page by page. After ``methods/accounts`` of mastodon/documentation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.mastodon import calls, refusals, statuses
from publisher.sandbox.mastodon.settings import Quirk

if TYPE_CHECKING:
    from publisher.sandbox.mastodon.calls import Call
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Page, Post
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform

LIMIT, MOST = 20, 40
"""Statuses in one page of a timeline."""
_PUBLIC = ("public", "unlisted")


def listing(
    call: Call, settings: Settings, done: Treatment, platform: Platform
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return one page of a timeline, newest first, and its ``Link`` header.

    ``limit`` 1 to 40. ``max_id``: older than that; ``since_id``: newer, and of these the newest;
    ``min_id``: newer, and of these the oldest. Raises ``MastodonRefusal``.
    """
    state = platform.state
    viewer = calls.caller(call, state) if call.token else None
    page = state.pages.get(call.id)
    if page is None or page.platform != "mastodon":
        raise refusals.not_found()
    posts = _wanted(call, page, viewer, settings, platform)
    if done.behaviour is Behaviour.LISTING_DELAYED:
        posts = [post for post in posts if post.created_at <= time.time() - done.seconds]
    limit = _limit(call)
    if done.behaviour is Behaviour.LISTING_GAP and not call.form.text("max_id"):
        posts = posts[limit:]
    cut = posts[-limit:] if call.form.text("min_id") else posts[:limit]
    own = viewer is not None and viewer.id == page.id
    data = [statuses.show(post, settings, platform, own=own) for post in cut]
    following = posts[limit : limit + 1] if Quirk.LINK_LOSES_ONE in settings.quirks else []
    return data, _links(call, cut, following or cut[-1:], limit, platform.base)


def _wanted(
    call: Call, page: Page, viewer: Page | None, settings: Settings, platform: Platform
) -> list[Post]:
    """Return the statuses between the bounds that are shown to who asks, newest first."""
    quirks = settings.quirks
    posts = [post for post in platform.state.wall(page.id) if statuses.is_seen(post, viewer)]
    if Quirk.OWN_PRIVATE_HIDDEN in quirks:
        posts = [post for post in posts if post.data["visibility"] in _PUBLIC]
    if call.form.flag("pinned", default=False):
        return []
    if call.form.flag("only_media", default=False):
        posts = [post for post in posts if post.media]
    if call.form.flag("exclude_replies", default=False):
        posts = [post for post in posts if not post.data.get("in_reply_to_id")]
    posts.sort(key=lambda post: int(post.id), reverse=True)
    older, newer = call.form.text("max_id"), call.form.text("min_id")
    since = "" if Quirk.SINCE_ID_IGNORED in quirks else call.form.text("since_id")
    if older.isdecimal():
        posts = [post for post in posts if int(post.id) < int(older)]
    for bound in (newer, since):
        if bound.isdecimal():
            posts = [post for post in posts if int(post.id) > int(bound)]
    return posts


def _limit(call: Call) -> int:
    text = call.form.text("limit")
    return min(max(int(text), 1), MOST) if text.isdecimal() else LIMIT


def _links(call: Call, cut: list[Post], last: list[Post], limit: int, base: str) -> dict[str, str]:
    if not cut:
        return {}
    kept = {
        name: text
        for name in ("limit", "exclude_reblogs", "exclude_replies", "only_media")
        if (text := call.form.text(name))
    }
    older, newer = {**kept, "max_id": last[0].id}, {**kept, "min_id": cut[0].id}
    address = f"{base}{call.asked.path}"
    links = [f'<{address}?{urlencode(older)}>; rel="next"'] if len(cut) == limit else []
    links.append(f'<{address}?{urlencode(newer)}>; rel="prev"')
    return {"Link": ", ".join(links)}
