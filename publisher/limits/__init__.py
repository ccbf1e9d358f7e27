"""What a post may be on a platform: judged from its capabilities alone, in one place.

Adapters ask here just before they send, and ``publisher.editorial.checks`` asks here whenever a
post is saved, imported or approved, so that the two cannot differ. Pure, and it names no platform.
"""

from publisher.limits.content import anywhere, of_content, problems, shape
from publisher.limits.counting import length
from publisher.limits.link import anywhere as of_link
from publisher.limits.link import is_address
from publisher.limits.media import Measures
from publisher.limits.text import Extent, extent, sent

__all__ = [
    "Extent",
    "Measures",
    "anywhere",
    "extent",
    "is_address",
    "length",
    "of_content",
    "of_link",
    "problems",
    "sent",
    "shape",
]
