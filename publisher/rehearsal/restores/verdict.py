"""The page's own log against the journal, where the journal went back."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from publisher.engine.content import Post
from publisher.rehearsal.restores.plan import PostPlan
from publisher.sandbox.log import LoggedPost, SandboxLog

Row = dict[str, Any]
JOURNAL = {
    "jobs": "SELECT j.*, c.key, c.content FROM jobs j JOIN job_contents c ON c.job_id = j.id"
    " WHERE j.kind = 'post' ORDER BY j.id",
    "doubts": "SELECT * FROM doubts",
    "quarantined": "SELECT * FROM quarantined WHERE released_at IS NULL",
    "quarantines": "SELECT q.*, (SELECT count(*) FROM quarantined d WHERE d.quarantine_id = q.id)"
    " AS jobs FROM quarantines q ORDER BY q.id",
    "alerts": "SELECT key FROM job_keys WHERE key LIKE 'alert:quarantine/%'",
    "orphans": "SELECT * FROM orphans",
    "events": "SELECT event, count(*) FROM job_events GROUP BY event",
}
_VISIBLE_WHILE_LIVE = frozenset({"published", "unknown", "dropped"})


@dataclass(frozen=True, slots=True)
class Approved:
    """One approved post. ``may_be_gone``: enqueued after the dump, and gone with what came then."""

    plan: PostPlan
    mark: str
    page: str
    may_be_gone: bool


@dataclass(slots=True)
class Verdict:
    """What was found; each list must be empty."""

    duplicates: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unreported: list[str] = field(default_factory=list)
    false_success: list[str] = field(default_factory=list)
    audits: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    """Why the database was doubted, by quarantine."""

    @property
    def broken(self) -> list[str]:
        """Every rule that was broken, with where."""
        named = {
            "duplicate": self.duplicates, "lost": self.lost, "unreported": self.unreported,
            "false success": self.false_success, "audit": self.audits,
        }  # fmt: skip
        return [f"{name}: {what}" for name, found in named.items() for what in found]


def judge(
    approved: Sequence[Approved], journal: Mapping[str, list[Row]], log: SandboxLog
) -> Verdict:
    """Compare."""
    verdict = Verdict()
    jobs = {row["key"]: row for row in journal["jobs"]}
    doubted = {row["job_id"] for row in journal["doubts"]}
    held = {row["job_id"] for row in journal["quarantined"]}
    pages = {one.page for one in approved}
    posts: dict[str, list[LoggedPost]] = defaultdict(list)
    for post in log.ever_posted:
        if post.page in pages and not post.foreign:
            posts[post.message.partition(" ")[0]].append(post)
    for one in approved:
        job, there = jobs.pop(one.mark, None), posts.pop(one.mark, [])
        verdict.counts["approved"] += 1
        verdict.counts["on the page"] += bool(there)
        ids = {post.id for post in there}
        told = f"{one.mark} on {one.plan.platform} is {_stands(job)}; on the page: {sorted(ids)}"
        if len(ids) > 1:
            verdict.duplicates.append(told)
        if job is None:
            verdict.counts["gone with the journal"] += 1
            if not one.may_be_gone:
                verdict.lost.append(told)
            continue
        _judge_state(verdict, job, ids, told, doubted, held)
        text = Post.from_json(job["content"]).text
        verdict.audits += [f"not as approved: {p.message!r}" for p in there if p.message != text]
    verdict.audits += [f"a job nobody approved: {key}" for key in jobs]
    verdict.audits += [f"a post nobody approved: {mark}" for mark in posts]
    _judge_quarantines(verdict, journal)
    return verdict


def _judge_state(
    verdict: Verdict, job: Row, ids: set[str], told: str, doubted: set[int], held: set[int]
) -> None:
    state = job["state"]
    is_held = state == "scheduled" and job["id"] in held
    verdict.counts[state] += 1
    if ids and state not in _VISIBLE_WHILE_LIVE and not is_held:
        verdict.unreported.append(told)
    if state == "unknown" and job["id"] not in doubted:
        verdict.unreported.append(f"{told}; it is not among the doubts that people see")
    if state == "published":
        bound = _number(job["remote_id"])
        if not ids or (job["remote_id"] is not None and bound not in map(_number, ids)):
            verdict.false_success.append(f"{told}; the journal says {job['remote_id']}")
    if state in {"scheduled", "claimed", "sending"} and not is_held:
        verdict.lost.append(told)


def _judge_quarantines(verdict: Verdict, journal: Mapping[str, list[Row]]) -> None:
    """What speaks for a loss is told to people, unless it was they who said so."""
    verdict.causes.update(row["cause"] for row in journal["quarantines"])
    told = {row["key"] for row in journal["alerts"]}
    for row in journal["quarantines"]:
        by_people = row["cause"] in {"restored", "declared"}
        if row["strict"] and not by_people and not told:
            verdict.unreported.append(f"nobody was told of quarantine {row['id']}, {row['cause']}")


def _stands(job: Row | None) -> str:
    if job is None:
        return "not in the journal"
    return f"{job['state']} ({job['reason'] or job['hold_reason'] or 'no reason'})"


def _number(remote_id: str | None) -> str:
    """What platforms' ids end with, however they and their adapters spell the rest."""
    return re.split(r"[/_]", remote_id or "")[-1]
