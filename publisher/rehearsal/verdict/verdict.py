"""The page's own log against the journal: what must hold after every schedule."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from publisher.engine.content import Post
from publisher.engine.job import public_id
from publisher.rehearsal.plan.catalogue import LISTINGS
from publisher.rehearsal.verdict import checklist
from publisher.rehearsal.verdict import doubts as doubting
from publisher.rehearsal.verdict.doubts import Doubts
from publisher.sandbox.behaviours import Behaviour, Kind
from publisher.sandbox.log import LoggedPost, LoggedRequest, SandboxLog

Row = dict[str, Any]

JOURNAL = {
    "jobs": "SELECT j.*, c.key, c.content, ch.platform FROM jobs j"
    " JOIN job_contents c ON c.job_id = j.id JOIN channels ch ON ch.id = j.channel_id"
    " WHERE j.kind = 'post' ORDER BY j.id",
    "alerts": "SELECT j.state, j.reason, c.key FROM jobs j JOIN job_contents c ON c.job_id = j.id"
    " WHERE j.kind = 'webhook' AND j.state NOT IN ('published', 'scheduled')",
    "attempts": "SELECT * FROM attempts ORDER BY job_id, number",
    "bound": "SELECT * FROM remote_posts",
    "gates": "SELECT * FROM gates",
    **doubting.JOURNAL,
}

AUDITS = {
    "a job is still held": "SELECT id FROM jobs WHERE state IN ('claimed', 'sending')",
    "two attempts without a proof": "SELECT job_id FROM attempts WHERE proof IS NULL"
    " GROUP BY job_id HAVING count(*) > 1",
    "an attempt that nobody settled": "SELECT a.job_id FROM attempts a"
    " JOIN jobs j ON j.id = a.job_id WHERE a.settled_at IS NULL AND j.state <> 'sending'",
    "a doubt that no state shows": "SELECT a.job_id FROM attempts a JOIN jobs j ON j.id = a.job_id"
    " WHERE a.proof IS NULL AND a.outcome IS DISTINCT FROM 'published'"
    " AND j.state NOT IN ('unknown', 'dropped', 'published')",
    "published, and bound to nothing": "SELECT j.id FROM jobs j WHERE j.state = 'published'"
    " AND j.remote_id IS NOT NULL AND NOT EXISTS (SELECT FROM remote_posts r WHERE r.job_id = j.id"
    " AND r.remote_id = j.remote_id AND r.channel_id = j.channel_id)",
    # One that a person cancelled after a false refusal, and a look then found, is told of by alert.
    "a live attempt of a job that is not": "SELECT a.job_id FROM attempts a JOIN jobs j"
    " ON j.id = a.job_id WHERE a.outcome = 'published' AND j.state <> 'published'"
    " AND NOT EXISTS (SELECT FROM job_events e WHERE e.job_id = j.id AND e.event = 'alert'"
    " AND e.detail ->> 'incident' = 'live')",
    "a token used twice": "SELECT token FROM attempts GROUP BY token HAVING count(*) > 1",
    "attempts miscounted": "SELECT j.id FROM jobs j WHERE j.attempts <>"
    " (SELECT count(*) FROM attempts a WHERE a.job_id = j.id) OR j.claims < j.attempts",
    "an attempt of a content that was not frozen": "SELECT a.job_id FROM attempts a"
    " JOIN job_contents c ON c.job_id = a.job_id WHERE a.content_sha256 <> c.content_sha256",
    "a worker run that began sends and has no end": "SELECT i.id FROM incarnations i"
    " WHERE i.ended_at IS NULL AND EXISTS (SELECT FROM attempts a WHERE a.incarnation = i.id)",
    "an orphan, though the database lost nothing": "SELECT id FROM orphans WHERE NOT adopted",
}
"""Each must return nothing."""

_BY_TRANSPORT = frozenset({
    "no_answer", "connection_lost", "answer_cut", "answer_unreadable", "server_error",
    "redirected", "unlisted_refusal", "no_id",
})  # fmt: skip
_VISIBLE_WHILE_LIVE = frozenset({"published", "unknown", "dropped"})


@dataclass(frozen=True, slots=True)
class Approved:
    """One approved post: its mark is the first word of its text."""

    key: str
    mark: str
    page: str


@dataclass(slots=True)
class Witnessed:
    """What harness and relay saw: start and answer lines written, marks that left a worker."""

    started: set[str] = field(default_factory=set)
    answered: dict[str, str | None] = field(default_factory=dict)
    """Token → remote id, of answers that say published."""
    sent: set[str] = field(default_factory=set)
    told: set[str] | None = None
    """Public ids of the jobs that alerts told of, as they were received; None: nobody looks."""
    false_keys: bool = False
    """The Mastodon server does not keep to its word about keys."""
    faceless: bool = False
    """A request was cut before its body could say whose it was."""
    is_compacted: bool = False
    """Files of the spool were compacted, and then a missing line proves nothing: the engine
    doubts such an attempt on purpose, for a restored database may have lost how it ended."""

    def take(self, event: dict[str, Any]) -> None:
        """Keep what an event of a worker's or of the relay's bears witness to."""
        if "started" in event:
            self.started.add(event["started"])
        elif "answered" in event and event["outcome"] == "Published":
            self.answered[event["answered"]] = event["remote_id"]
        elif "sent" in event:
            self.sent.update(event["sent"])
            self.faceless |= not event["sent"]


@dataclass(slots=True)
class Verdict:
    """What was found. Each list must be empty but ``lied``, which is the platform's doing."""

    duplicates: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unreported: list[str] = field(default_factory=list)
    false_success: list[str] = field(default_factory=list)
    groundless: list[str] = field(default_factory=list)
    """Unknown where nothing can have been accepted."""
    audits: list[str] = field(default_factory=list)
    lied: list[str] = field(default_factory=list)
    """A platform that stored and said no, or named another post: counted apart."""
    counts: Counter[str] = field(default_factory=Counter)
    doubts: doubting.Counts = field(default_factory=Counter)
    """Of posts that are on the page and were in doubt: what became of that."""

    asked: list[str] = field(default_factory=list)
    """Of those, what a person is asked about for a reason that has no name of its own."""

    @property
    def broken(self) -> list[str]:
        """Every rule that was broken, with where."""
        named = {
            "duplicate": self.duplicates, "lost": self.lost, "unreported": self.unreported,
            "false success": self.false_success, "groundless doubt": self.groundless,
            "audit": self.audits,
        }  # fmt: skip
        return [f"{name}: {what}" for name, found in named.items() for what in found]


def judge(
    approved: Sequence[Approved],
    journal: dict[str, list[Row]],
    audits: dict[str, list[Row]],
    log: SandboxLog,
    seen: Witnessed,
) -> Verdict:
    """Compare. ``audits``: what each audit query returned."""
    verdict = Verdict()
    verdict.audits += [f"{name} {[*rows[0].values()]}" for name, rows in audits.items() if rows]
    attempts: dict[int, list[Row]] = defaultdict(list)
    for attempt in journal["attempts"]:
        attempts[attempt["job_id"]].append(attempt)
    jobs = {row["key"]: row for row in journal["jobs"]}
    pages = {one.page for one in approved}
    posts, requests = _by_mark(log, pages)
    blind = {r.page for r in log.requests if r.behaviour in LISTINGS}
    doubts = Doubts.read(journal)
    gates = {gate["channel_id"]: gate for gate in journal["gates"]}
    for one in approved:
        job = jobs.pop(one.key, None)
        if job is None:
            verdict.lost.append(f"{one.key} is not in the journal")
            continue
        case = _Case(
            one, job, attempts[job["id"]], posts[one.mark], requests[one.mark],
            is_blind=one.page in blind or job["platform"] in doubting.WITHOUT_EVIDENCE,
            has_false_keys=seen.false_keys and job["platform"] == "mastodon",
        )  # fmt: skip
        _judge_page(case, verdict)
        _judge_state(case, verdict, gates[job["channel_id"]], seen)
        _judge_doubt(case, verdict, doubts, seen, is_hidden=one.page in blind)
        verdict.counts["approved"] += 1
        verdict.counts[checklist.JOBS] += 1
        verdict.counts[checklist.ATTEMPTS] += len(case.attempts)
        if not case.was_lied_about:
            verdict.counts += checklist.silence(case.requests, case.posts, job["state"])
    verdict.unreported += [f"an alert that did not arrive: {row}" for row in journal["alerts"]]
    verdict.audits += [f"a job nobody approved: {key}" for key in jobs]
    verdict.unreported += _unheard(journal, seen)
    return verdict


def _unheard(journal: dict[str, list[Row]], seen: Witnessed) -> list[str]:
    """Answers that say published, written down by their worker, and not in the journal."""
    known = {attempt["token"].hex: attempt for attempt in journal["attempts"]}
    jobs = {row["id"]: row for row in journal["jobs"]}
    unheard = []
    for token, remote_id in seen.answered.items():
        if token not in known:
            unheard.append(f"answer {remote_id} came under a token without an attempt")
            continue
        attempt, job = known[token], jobs.get(known[token]["job_id"])
        if job is None:
            continue  # an alert, whose event is known by its id however often it comes
        is_anothers = "id_of_another_job" in {attempt["reason"], job["reason"]}
        if attempt["outcome"] != "published" and not is_anothers:
            unheard.append(
                f"{job['key']}: answer {remote_id} was written down by its worker, the journal"
                f" says {attempt['outcome']} ({attempt['reason']})"
            )
    return unheard


@dataclass(frozen=True, slots=True)
class _Case:
    approved: Approved
    job: Row
    attempts: list[Row]
    posts: list[LoggedPost]
    requests: list[LoggedRequest]
    is_blind: bool
    """A look at its page did not see all that was there."""
    has_false_keys: bool
    """The platform says that a key makes a repeat safe, and it does not."""

    @property
    def was_lied_about(self) -> bool:
        """A request put it on the page and was answered as if it had not."""
        return any(
            r.posts and Behaviour.named(r.behaviour).kind is Kind.FALSE_REFUSAL
            for r in self.requests
        )

    @property
    def was_told_of_another(self) -> bool:
        return any(r.behaviour == Behaviour.OLDER_ID for r in self.requests)

    def __str__(self) -> str:
        attempts = ", ".join(
            f"{a['number']} {a['outcome']} {a['reason'] or ''} proof {a['proof']}"
            for a in self.attempts
        )
        asked = ", ".join(r.behaviour for r in self.requests)
        return (
            f"{self.approved.key} is {self.job['state']} ({self.job['reason']}),"
            f" {len(self.posts)} on the page; attempts: {attempts or 'none'}; asked: {asked}"
        )


def _by_mark(
    log: SandboxLog, pages: set[str]
) -> tuple[dict[str, list[LoggedPost]], dict[str, list[LoggedRequest]]]:
    posts: dict[str, list[LoggedPost]] = defaultdict(list)
    requests: dict[str, list[LoggedRequest]] = defaultdict(list)
    for post in log.ever_posted:
        if post.page in pages and not post.foreign:
            posts[_mark(post.message)].append(post)
    for request in log.requests:
        if request.page in pages and request.publishes:
            requests[_mark(request.message)].append(request)
    return posts, requests


def _number(remote_id: str | None) -> str:
    """What platforms' ids end with, however they and their adapters spell the rest."""
    return re.split(r"[/_]", remote_id or "")[-1]


def _mark(message: str) -> str:
    return message.partition(" ")[0]


def _judge_page(case: _Case, verdict: Verdict) -> None:
    # What a platform took down and a repeat put back is still the one post under its key.
    if len({post.id for post in case.posts}) > 1:
        excused = case.is_blind and (case.was_lied_about or case.has_false_keys)
        (verdict.lied if excused else verdict.duplicates).append(str(case))
    text = Post.from_json(case.job["content"]).text
    verdict.audits += [
        f"not as approved: {post.message!r} for {text!r}"
        for post in case.posts
        if post.message != text
    ]
    if case.posts:
        verdict.counts["on the page"] += 1
    if case.posts and case.job["state"] not in _VISIBLE_WHILE_LIVE:
        (verdict.lied if case.was_lied_about else verdict.unreported).append(str(case))


def _judge_state(case: _Case, verdict: Verdict, gate: Row, seen: Witnessed) -> None:
    job, counts = case.job, verdict.counts
    match job["state"]:
        case "published":
            counts["live in the journal"] += 1
            if job["remote_id"] is None and case.posts:
                counts["attested"] += 1  # a person saw it, and it is there
            elif _number(job["remote_id"]) not in {_number(post.id) for post in case.posts}:
                told = verdict.lied if case.was_told_of_another else verdict.false_success
                told.append(f"{case}; the journal says {job['remote_id']}")
        case "unknown":
            counts["in doubt"] += 1
            if not _may_be_live(case, seen):
                verdict.groundless.append(str(case))
        case "scheduled" if job["hold_reason"] is not None:
            counts["on hold"] += 1
        case "scheduled" if gate["paused_at"] is not None or gate["blocked_at"] is not None:
            counts["on hold"] += 1
        case "scheduled" | "claimed" | "sending":
            verdict.lost.append(str(case))
        case state:
            counts[state] += 1


def _judge_doubt(
    case: _Case, verdict: Verdict, doubts: Doubts, seen: Witnessed, *, is_hidden: bool
) -> None:
    """Count what became of a doubt, and see that a person can see the one there is."""
    job, doubt = case.job, doubts.open.get(case.job["id"])
    if (job["state"] == "unknown") is not (doubt is not None):
        verdict.unreported.append(f"{case}; it is not among the doubts that people see")
    is_asked = doubt is not None and doubt["asked_at"] is not None
    if is_asked and seen.told is not None and public_id(job["id"]) not in seen.told:
        verdict.unreported.append(f"{case}; a person is to decide, and nobody was told")
    became = doubts.became(job, case.posts, case.requests, is_blind=is_hidden)
    if became is not None and case.posts and became.startswith(doubting.ASKED):
        verdict.asked.append(f"{case}; {became}")
    if became is not None and case.posts:
        verdict.doubts[job["platform"], became] += 1


def _may_be_live(case: _Case, seen: Witnessed) -> bool:
    """Whether anything of a request can have reached the platform."""
    started = [attempt for attempt in case.attempts if attempt["token"].hex in seen.started]
    if not started:
        return seen.is_compacted
    # The relay stands in the way of Pages alone.
    if case.attempts[-1]["reason"] in _BY_TRANSPORT and case.job["platform"] == "facebook_pages":
        return case.approved.mark in seen.sent or seen.faceless
    return True
