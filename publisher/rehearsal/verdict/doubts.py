"""What became of every doubt whose post was on the page: who settled it, or why nobody did."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.log import LoggedPost, LoggedRequest

Row = dict[str, Any]

FOUND, REPEATED, LATE = "found by the reconciler", "repeated safely", "by a late answer"
BY_ITSELF = (FOUND, REPEATED, LATE)
PERSON = "a person was quicker"
NO_EVIDENCE, TWINS = "no evidence on that platform", "two equal texts"
ANOTHERS = "the platform gave its id to another"
BY_DESIGN = (NO_EVIDENCE, TWINS, ANOTHERS)
"""What no machine could settle, and no machine should."""
HIDDEN, REMOVED, SOON = "its listing hides it", "removed at once", "not asked long enough"
ASKED = "asked: "
SHARE = 0.95
"""Of the others, so many settle by themselves; all of them where a key makes a repeat safe."""
ALWAYS = ("bluesky",)

WITHOUT_EVIDENCE = frozenset({"telegram"})
_TWINS = frozenset({Behaviour.ACCEPT_WITH_TWIN, Behaviour.TWIN, Behaviour.REFUSE_DUPLICATE})
_MACHINE = "reconciler"

Counts = Counter[tuple[str, str]]
"""Platform and what became of it → how often."""

JOURNAL = {
    "doubts": "SELECT * FROM doubts",
    "verdicts": "SELECT job_id, who, decision FROM verdicts ORDER BY id",
    "resolved": "SELECT job_id FROM job_events WHERE event IN ('late_answer', 'spool_read')"
    " AND detail ->> 'from' = 'unknown'",
}


@dataclass(frozen=True, slots=True)
class Doubts:
    """The journal's word on doubts, by job. ``late``: jobs whose doubt a late answer ended."""

    open: Mapping[int, Row]
    verdicts: Mapping[int, list[Row]]
    late: frozenset[int]
    bound: Mapping[str, int]
    """Which job a remote post belongs to, as the journal has it."""

    @classmethod
    def read(cls, journal: Mapping[str, Iterable[Row]]) -> Doubts:
        """Sort what ``JOURNAL`` found."""
        verdicts: dict[int, list[Row]] = defaultdict(list)
        for row in journal["verdicts"]:
            verdicts[row["job_id"]].append(row)
        return cls(
            {row["job_id"]: row for row in journal["doubts"]},
            verdicts,
            frozenset(row["job_id"] for row in journal["resolved"]),
            {row["remote_id"]: row["job_id"] for row in journal["bound"]},
        )

    def became(
        self, job: Row, posts: list[LoggedPost], requests: list[LoggedRequest], *, is_blind: bool
    ) -> str | None:
        """What became of the doubt about a job; None where it never was in doubt."""
        if job["id"] in self.open:
            if any(self.bound.get(post.id, job["id"]) != job["id"] for post in posts):
                return ANOTHERS
            return _why_open(self.open[job["id"]], job["platform"], posts, requests, is_blind)
        given = self.verdicts.get(job["id"], [])
        if any(row["who"] != _MACHINE for row in given):
            return PERSON
        if given:
            return FOUND if given[-1]["decision"] == "live" else REPEATED
        return LATE if job["id"] in self.late else None


def _why_open(
    doubt: Row,
    platform: str,
    posts: list[LoggedPost],
    requests: list[LoggedRequest],
    is_blind: bool,  # noqa: FBT001 - one of five facts
) -> str:
    if platform in WITHOUT_EVIDENCE:
        return NO_EVIDENCE
    if all(post.deleted_at is not None for post in posts):
        return REMOVED
    if any(request.behaviour in _TWINS for request in requests):
        return TWINS
    if is_blind:
        return HIDDEN
    return SOON if doubt["next_look_at"] is not None else f"{ASKED}{doubt['asked_reason']}"


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a platform's doubts settled by themselves, of those a machine could settle."""

    platform: str
    settled: int
    of: int

    @property
    def is_enough(self) -> bool:
        """Whether as many settled as must."""
        wanted = 1.0 if self.platform in ALWAYS else SHARE
        return self.settled >= wanted * self.of


@dataclass(slots=True)
class Settled:
    """Adds up."""

    counts: Counts = field(default_factory=Counter)

    def shares(self) -> list[Share]:
        """One for each platform where a machine could settle any, and one for all together."""
        platforms = sorted({platform for platform, _ in self.counts})
        each = [self._share(name, [name]) for name in platforms]
        return [share for share in (self._share("all", platforms), *each) if share.of]

    def sum(self, *became: str) -> int:
        """How many became one of these."""
        return sum(n for (_, what), n in self.counts.items() if what in became)

    def rest(self) -> Counts:
        """What did not settle by itself, by platform and reason."""
        return Counter({k: n for k, n in self.counts.items() if k[1] not in BY_ITSELF})

    def _share(self, name: str, platforms: Iterable[str]) -> Share:
        mine = {k: n for k, n in self.counts.items() if k[0] in platforms}
        settled = sum(n for (_, what), n in mine.items() if what in BY_ITSELF)
        aside = sum(n for (_, what), n in mine.items() if what in (PERSON, *BY_DESIGN))
        return Share(name, settled, sum(mine.values()) - aside)
