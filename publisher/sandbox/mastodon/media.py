"""Uploads: taken, processed for a while, described. After ``app/controllers/api/v2/media``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from publisher.sandbox import formats
from publisher.sandbox.mastodon import refusals, shown
from publisher.sandbox.pages import Media, to_fact

if TYPE_CHECKING:
    from publisher.sandbox.mastodon.calls import Call
    from publisher.sandbox.mastodon.settings import Settings
    from publisher.sandbox.pages import Page
    from publisher.sandbox.platform import Platform

PHOTO_BYTES, VIDEO_BYTES = 16 * 1024 * 1024, 99 * 1024 * 1024


def upload(
    call: Call, page: Page, settings: Settings, platform: Platform
) -> tuple[dict[str, Any], int]:
    """Keep an upload; return it and the status: 202 while it is processed. Raises a refusal."""
    content = call.form.files.get("file")
    if content is None:
        reason = "File can't be blank"
        raise refusals.invalid(reason)
    kind = formats.photo(content) or formats.video(content)
    if kind not in shown.MIME_TYPES:
        reason = "File content type is invalid, File is invalid"
        raise refusals.invalid(reason)
    is_photo = kind.startswith("image/")
    most = PHOTO_BYTES if is_photo else VIDEO_BYTES
    if len(content) > most:
        reason = f"File file size must be less than {most // 1024 // 1024} MB"
        raise refusals.invalid(reason)
    seconds = settings.processing_for
    if seconds is None:
        seconds = 0.0 if is_photo else 0.3
    with platform.lock:
        number = str(platform.state.next_number())
    now = time.time()
    media = Media(
        number, page.id, "photo" if is_photo else "video", kind, None, len(content), now,
        call.form.text("description"), ready_at=now + seconds if seconds else None,
    )  # fmt: skip
    platform.keep(media.id, content)
    platform.record({"fact": "media", "request": call.request, "media": to_fact(media)})
    return shown.medium(media, platform.base), 202 if shown.is_processing(media) else 200


def read_or_describe(call: Call, page: Page, platform: Platform) -> tuple[dict[str, Any], int]:
    """Return an upload that is on no status yet; 206 while it is processed. Raises a refusal."""
    state = platform.state
    media = state.media.get(call.id)
    if media is None or media.page != page.id or media.id in state.attached:
        raise refusals.not_found()
    if call.asked.method == "PUT":
        media = replace(media, caption=call.form.text("description"))
        platform.record({"fact": "media", "request": call.request, "media": to_fact(media)})
    return shown.medium(media, platform.base), 206 if shown.is_processing(media) else 200
