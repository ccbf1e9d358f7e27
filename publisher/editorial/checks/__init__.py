"""What editors are told before anything is promised: what to fix, and what to know.

``problems`` is asked at save, approval, import and by the API; adapters ask the same rules
(``publisher.limits``) just before they send. ``near`` reads what stands on a channel around a time,
and ``resembling`` says what of it is like a post; that never stands in the way. ``extent`` is for
the counter beside a text.
"""

from publisher.editorial.checks.alike import Alike, Files, near, resembling
from publisher.editorial.checks.checking import (
    Place,
    Variant,
    Wants,
    anywhere,
    of_channel,
    of_link,
    problems,
    stands_in_the_way,
)
from publisher.editorial.checks.facts import measured, needing_reconnection
from publisher.engine.adapter import Problem, Severity
from publisher.limits import Extent, Measures, extent

__all__ = [
    "Alike",
    "Extent",
    "Files",
    "Measures",
    "Place",
    "Problem",
    "Severity",
    "Variant",
    "Wants",
    "anywhere",
    "extent",
    "measured",
    "near",
    "needing_reconnection",
    "of_channel",
    "of_link",
    "problems",
    "resembling",
    "stands_in_the_way",
]
