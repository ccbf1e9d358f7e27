"""What editors are told before anything is promised: what to fix, and what to know.

``problems`` is asked at save, approval, import and by the API; adapters ask the same rules
(``publisher.limits``) just before they send. ``alike`` compares with what is near it on a channel,
and never stands in the way.
"""

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
from publisher.engine.adapter import Problem, Severity
from publisher.limits import Measures

__all__ = [
    "Measures",
    "Place",
    "Problem",
    "Severity",
    "Variant",
    "Wants",
    "anywhere",
    "of_channel",
    "of_link",
    "problems",
    "stands_in_the_way",
]
