"""Statuses: written, read, taken down.

After ``app/services/post_status_service.rb`` and the method pages of mastodon/documentation.
``scheduled_at`` is ignored and the status posted at once, as two of three compatible servers do.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.mastodon import calls, markup, refusals, shown
from publisher.sandbox.mastodon.settings import Quirk
from publisher.sandbox.pages import Post

if TYPE_CHECKING:
    from publisher.sandbox.mastodon.calls import Call
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Page, Pages
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.platform import Platform

_VISIBILITIES = ("public", "unlisted", "private", "direct")
_SEEN_BY_ALL = ("public", "unlisted")


def make(call: Call, page: Page, settings: Settings, state: Pages) -> Post:
    """Make the status a call asks for. Raises ``MastodonRefusal``; nothing is stored here."""
    form, quirks = call.form, settings.quirks
    media = tuple(call.media_ids())
    if Quirk.UNKNOWN_MEDIA_DROPPED in quirks:
        media = tuple(it for it in media if it in state.media and it not in state.attached)
    # The server trims the text before it stores it; ``message`` stays as it was sent.
    text, warning = call.asked.message.strip(), form.text("spoiler_text").strip()
    is_empty = Quirk.FORM_EMPTIES in quirks and not call.is_json
    if not text and not media:
        reason = "Text can't be blank"
        raise refusals.invalid(reason)
    limit = settings.max_characters
    if markup.length(text + warning, settings.characters_reserved_per_url) > limit:
        reason = f"Text character limit of {limit} exceeded"
        raise refusals.invalid(reason)
    visibility = form.text("visibility") or "public"
    if visibility not in _VISIBILITIES and Quirk.VISIBILITY_FALLS_BACK in quirks:
        visibility = "public"
    if visibility not in _VISIBILITIES:
        reason = "Visibility is not included in the list"
        raise refusals.invalid(reason)
    _check_media(media, page, settings, state)
    reply_to = form.text("in_reply_to_id") or None
    if reply_to is not None and reply_to not in state.posts:
        raise refusals.not_found()
    post = Post(
        id="", page=page.id, endpoint="post", message=call.asked.message, link=None, media=media,
        created_at=time.time(), application=page.application,
        application_name=page.application_name, request=call.request,
        client_mutation_id=call.asked.client_mutation_id,
        data={
            "text": "" if is_empty else text, "spoiler_text": warning, "visibility": visibility,
            "sensitive": form.flag("sensitive", default=bool(warning)),
            "language": _language(call, settings), "in_reply_to_id": reply_to,
        },
    )  # fmt: skip
    return identify(post, state)


def identify(post: Post, state: Pages) -> Post:
    """Give a status its id, which grows with time: milliseconds, then a counter."""
    number = state.next_number()
    plain = {
        "text": post.message.strip(), "spoiler_text": "", "visibility": "public",
        "sensitive": False, "language": "en",
    }  # fmt: skip
    id_ = str((int(post.created_at * 1000) << 16) | (number & 0xFFFF))
    return replace(post, id=id_, endpoint="post", serial=number, data=plain | post.data)


def show(post: Post, settings: Settings, platform: Platform, *, own: bool) -> dict[str, Any]:
    """Return a status as this kind of server shows it."""
    shows_application = Quirk.APPLICATION_HIDDEN not in settings.quirks
    shown_post = post if shows_application else replace(post, application_name=None)
    return shown.status(shown_post, platform.state, platform.base, own=own)


def read(call: Call, settings: Settings, done: Treatment, platform: Platform) -> dict[str, Any]:
    """Return a status, or its source to its owner. Raises ``MastodonRefusal``."""
    state = platform.state
    viewer = calls.caller(call, state) if call.token else None
    post = _visible(call.id, viewer, state)
    if done.behaviour is Behaviour.UNREADABLE or not post.readable:
        raise refusals.not_found()
    if call.what.endswith("source"):
        if viewer is None:
            raise refusals.no_token()
        return shown.source(post)
    return show(post, settings, platform, own=_is_own(post, viewer))


def delete(call: Call, page: Page, settings: Settings, platform: Platform) -> dict[str, Any]:
    """Take a status down and return it with its source text. Raises ``MastodonRefusal``."""
    state = platform.state
    post = _visible(call.id, page, state)
    if post.page != page.id:
        raise refusals.not_yours()
    answer = show(post, settings, platform, own=True) | {"text": post.data["text"]}
    platform.record({"fact": "deleted", "post": post.id, "request": call.request, "by": "request"})
    return answer


def _check_media(media: tuple[str, ...], page: Page, settings: Settings, state: Pages) -> None:
    if len(media) > settings.max_media_attachments:
        reason = f"Cannot attach more than {settings.max_media_attachments} files"
        raise refusals.invalid(reason)
    found = [state.media.get(it) for it in media]
    known = [it for it in found if it is not None and it.page == page.id]
    missing = [it for it in media if it not in {other.id for other in known}]
    if Quirk.MEDIA_MOVES not in settings.quirks:
        missing += [it for it in media if it in state.attached]
    if missing:
        reason = f"Media {', '.join(missing)} not found or already attached to another post"
        raise refusals.unprocessable(reason)
    if any(shown.is_processing(it) for it in known):
        reason = "Cannot attach files that have not finished processing. Try again in a moment!"
        raise refusals.unprocessable(reason)
    if len(known) > 1 and any(it.kind == "video" for it in known):
        reason = "Cannot attach a video to a post that already contains images"
        raise refusals.unprocessable(reason)


def _visible(id_: str, viewer: Page | None, state: Pages) -> Post:
    post = state.posts.get(id_)
    if post is None or state.pages[post.page].platform != "mastodon" or not is_seen(post, viewer):
        raise refusals.not_found()
    return post


def is_seen(post: Post, viewer: Page | None) -> bool:
    """Say whether a status is shown to whoever asks; None: nobody is signed in."""
    return _is_own(post, viewer) or post.data["visibility"] in _SEEN_BY_ALL


def _is_own(post: Post, viewer: Page | None) -> bool:
    return viewer is not None and viewer.id == post.page


def _language(call: Call, settings: Settings) -> str | None:
    is_dropped = Quirk.LANGUAGE_DROPPED in settings.quirks
    return None if is_dropped else call.form.text("language") or "en"
