"""The four things a team asks before it adopts a queue, counted from page and journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from publisher.rehearsal.plan.catalogue import HITS, Hit
from publisher.rehearsal.plan.places import Fault
from publisher.sandbox.log import LoggedPost, LoggedRequest

JOBS: Final = "jobs"
ATTEMPTS: Final = "attempts"
SILENT: Final = "accepted, and never answered"
SILENT_KEPT: Final = "of those, never read as not posted"
CUT_AFTER_SENDING: Final = "cut after sending"

_SENT: Final = ("all of it", "status read", "half the answer", "whole answer")


def is_death(hit: Hit) -> bool:
    """Whether a worker is killed there."""
    return hit.fault == Fault.KILL and hit.layer in {"worker", "wire"}


_MIDWAY: Final = frozenset(hit.point for hit in HITS if is_death(hit))


def silence(
    requests: Sequence[LoggedRequest], posts: Sequence[LoggedPost], state: str
) -> Counter[str]:
    """Count requests that put a post on the page and whose answer never came whole.

    Each must have left its job where the post may be live, with no second post beside it.
    """
    silent = sum(bool(request.posts) and request.answer != "sent" for request in requests)
    is_kept = state in {"published", "unknown", "dropped"} and len({p.id for p in posts}) <= 1
    return Counter({SILENT: silent, SILENT_KEPT: silent if is_kept else 0})


def cut_after_sending(fired: Iterable[Hit]) -> int:
    """How often a connection or its process was cut when the request had left as a whole."""
    return sum(
        hit.layer == "wire" and hit.place.startswith("publish: ") and hit.place.endswith(_SENT)
        for hit in fired
    )


def died_at(hits: Iterable[Hit]) -> set[tuple[str, str, str]]:
    """The places where a worker was killed."""
    return {hit.point for hit in hits if is_death(hit)}


def midway(hits: Iterable[Hit]) -> tuple[int, int]:
    """At how many places, of how many, a worker was killed."""
    return len(died_at(hits)), len(_MIDWAY)
