"""Where pictures and videos are kept, when that is outside the database."""

from __future__ import annotations

from collections.abc import Iterator

from publisher.doctor.finding import Finding, error
from publisher.doctor.ward import Ward
from publisher.editorial import media
from publisher.editorial.media import MediaUnreachable
from publisher.engine.errors import PublisherError
from publisher.words import _


def storage(ward: Ward) -> Iterator[Finding]:
    """Whether the place that ``PUBLISHER_MEDIA`` names can be written; it writes and removes."""
    try:
        media.storage(ward.settings).probe()
    except MediaUnreachable as problem:
        remedy = _("Bring it back, or correct PUBLISHER_MEDIA: posts with media wait for it.")
        yield error("media_unreachable", str(problem), remedy)
    except PublisherError as problem:
        remedy = _("Correct PUBLISHER_MEDIA; until then no worker starts.")
        yield error("media_unusable", str(problem), remedy)
