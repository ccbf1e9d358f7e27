"""Edits, approvals, holds, claims and begins in any order: nothing unapproved is ever begun.

What holds of every attempt, under both rules, asked of the journal alone:

- its bytes are those of a version of its post for its channel, and that version's approval stood at
  the moment of its begin;
- under ``hold`` no newer version was there, unless an earlier attempt of the job may be live: a
  repeat of that is of the same post (``docs/posts.md``).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from publisher.editorial import trash
from publisher.editorial.documents import Document
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId, State
from publisher.engine.ledger import Claimed
from publisher.engine.retry import Settlement
from tests.editorial.posts.conftest import Desk, own_text, rules
from tests.engine.ground import Lane, lost, not_sent, published, refused, refused_for_now

# Some more often than others, so that what is begun has a past.
EDITORS = (
    "save", "save", "save own", "approve", "approve", "approve", "withdraw", "withdraw", "back",
    "schedule", "schedule", "again", "trash", "untrash",
)  # fmt: skip
OPERATORS = (
    "hold", "release", "release", "cancel", "cancel", "restore", "restore", "requeue", "requeue",
    "move", "expire",
)  # fmt: skip
WORKERS = (
    "claim", "begin", "send", "send", "send", "send", "send", "live", "refused", "refused",
    "defer", "defer", "not sent", "not sent", "lost", "lost",
)  # fmt: skip
DECISIONS = ("absent", "absent", "forced", "repeat")
ACTS = EDITORS + OPERATORS + WORKERS + DECISIONS

NOTHING: Final = object()
"""What an act gives that found nothing to act on."""

UNAPPROVED = """
SELECT a.job_id, a.number, c.version
  FROM attempts a
  JOIN jobs j ON j.id = a.job_id
  JOIN job_contents c ON c.job_id = a.job_id
 WHERE j.post_id = %s
   AND coalesce((SELECT e.event FROM post_events e
                  WHERE e.post_id = j.post_id AND e.version = c.version
                    AND e.event IN ('approved', 'approval_withdrawn') AND e.at <= a.begun_at
                  ORDER BY e.at DESC, e.id DESC LIMIT 1), '') <> 'approved'
"""
OTHER_BYTES = """
SELECT a.job_id, a.number
  FROM attempts a
  JOIN jobs j ON j.id = a.job_id
  JOIN job_contents c ON c.job_id = a.job_id
  JOIN post_versions v ON v.post_id = j.post_id AND v.number = c.version
  LEFT JOIN version_variants x ON x.version_id = v.id AND x.channel_id = j.channel_id
 WHERE j.post_id = %s
   AND (a.content_sha256 <> coalesce(x.content_sha256, v.content_sha256)
        OR a.content_sha256 <> c.content_sha256)
"""
OUTDATED = """
SELECT a.job_id, a.number, c.version
  FROM attempts a
  JOIN jobs j ON j.id = a.job_id
  JOIN job_contents c ON c.job_id = a.job_id
 WHERE j.post_id = %s
   AND EXISTS (SELECT FROM post_events e
                WHERE e.post_id = j.post_id AND e.version > c.version AND e.at <= a.begun_at
                  AND e.event IN ('saved', 'went_back'))
   AND NOT EXISTS (SELECT FROM attempts b
                    WHERE b.job_id = a.job_id AND b.number < a.number
                      AND b.proof IN ('repeat_safe', 'forced'))
"""
TWICE = """
SELECT j.channel_id, count(*)
  FROM jobs j
  JOIN attempts a ON a.job_id = j.id
 WHERE j.post_id = %s AND j.repeats IS NULL AND a.outcome = 'published'
 GROUP BY j.channel_id HAVING count(*) > 1
"""


@dataclass
class Story:
    """One post on two pages, and everything that is done to it."""

    desk: Desk
    rule: str
    luck: random.Random
    pages: list[Lane] = field(init=False)
    post: int = field(init=False)
    held: dict[JobId, Claimed] = field(default_factory=dict)
    did: Counter[str] = field(default_factory=Counter)
    _texts: int = 0

    def __post_init__(self) -> None:
        rules(self.desk.ground, edit_rule=self.rule)
        self.pages = [self.desk.page(), self.desk.page()]
        self.post = self.desk.new(*self.pages)
        self.desk.approve(self.post)
        self.desk.schedule(self.post, *self.pages)

    def do(self, act: str) -> None:
        """Do it, or be refused; a refusal is an answer like another."""
        try:
            if getattr(self, "_" + act.replace(" ", "_"))() is not NOTHING:
                self.did[act] += 1
        except PublisherError as refusal:
            self.did[f"refused: {refusal.code}"] += 1

    # Editors

    def _text(self) -> str:
        self._texts += 1
        return f"text {self._texts}"

    def _save(self) -> None:
        self.desk.save(self.post, self._text())

    def _save_own(self) -> None:
        document = own_text(Document(Post(self._text())), self.luck.choice(self.pages), "own")
        self.desk.save(self.post, document)

    def _approve(self) -> None:
        self.desk.approve(self.post)

    def _withdraw(self) -> None:
        self.desk.withdraw(self.post)

    def _back(self) -> None:
        self.desk.back(self.post, 1)

    def _schedule(self) -> None:
        self.desk.schedule(self.post, self.luck.choice(self.pages))

    def _again(self) -> None:
        self.desk.again(self.post, self.luck.choice(self.pages))

    def _trash(self) -> None:
        with self.desk.transaction() as conn:
            trash.trash(conn, self.post, who="writer")

    def _untrash(self) -> None:
        with self.desk.transaction() as conn:
            trash.restore(conn, self.post, who="writer")

    # Operators

    def _any(self, *states: State) -> JobId | None:
        found = [job.id for job in self.desk.jobs(self.post) if job.state in states]
        return self.luck.choice(found) if found else None

    def _move(self) -> object:
        at = self.desk.ground.one("SELECT clock_timestamp() - interval '1 second'")
        return self._verb(ledger.reschedule, State.SCHEDULED, State.CLAIMED, at=at)

    def _verb(self, verb: Callable[..., object], *states: State, **how: Any) -> object:  # noqa: ANN401
        job_id = self._any(*states)
        if job_id is None:
            return NOTHING
        with self.desk.transaction() as conn:
            return verb(conn, job_id, who="operator", **how)

    def _hold(self) -> object:
        return self._verb(ledger.hold, State.SCHEDULED, State.CLAIMED)

    def _release(self) -> object:
        return self._verb(ledger.release_hold, State.SCHEDULED)

    def _cancel(self) -> object:
        return self._verb(ledger.cancel, State.SCHEDULED, State.CLAIMED)

    def _restore(self) -> object:
        return self._verb(ledger.restore, State.CANCELLED)

    def _requeue(self) -> object:
        until = self.desk.ground.one("SELECT clock_timestamp() + interval '1 day'")
        return self._verb(ledger.requeue, State.FAILED, State.MISSED, useful_until=until)

    def _expire(self) -> object:
        job_id = self._any(State.SCHEDULED)
        if job_id is None:
            return NOTHING
        self.desk.ground.sql(
            "UPDATE jobs SET useful_until = clock_timestamp() WHERE id = %s", job_id
        )
        return ledger.expire(self.desk.ground.conn, who="worker run 1")

    # Workers

    def _claim(self) -> object:
        for job in self.desk.jobs(self.post):
            if job.state is State.SCHEDULED:
                page = next(at for at in self.pages if at.channel_id == job.channel_id)
                claimed = self.desk.claim(page, job.id)
                if claimed is not None:
                    self.held[job.id] = claimed
        return None if self.held else NOTHING

    def _begin(self) -> object:
        begun = [job_id for job_id, job in self.held.items() if self.desk.begin(job) is not None]
        return None if begun else NOTHING

    def _send(self) -> object:
        self._claim()
        return self._begin()

    def _ends(self, end: Callable[[JobId], Settlement]) -> object:
        """The first that is being sent ends so, and would be tried again at once."""
        for job_id, job in [*self.held.items()]:
            if self.desk.job(job_id)["token"] != job.token:
                del self.held[job_id]
            elif self.desk.job(job_id)["state"] == State.SENDING:
                ledger.settle(self.desk.ground.conn, {(job.id, job.token): end(job_id)})
                del self.held[job_id]
                self.desk.ground.sql(
                    "UPDATE jobs SET run_at = clock_timestamp() WHERE id = %s", job_id
                )
                return None
        return NOTHING

    def _live(self) -> object:
        return self._ends(lambda job_id: published(f"id of {job_id}"))

    def _refused(self) -> object:
        return self._ends(lambda _: refused())

    def _defer(self) -> object:
        return self._ends(lambda _: refused_for_now())

    def _not_sent(self) -> object:
        return self._ends(lambda _: not_sent())

    def _lost(self) -> object:
        return self._ends(lambda _: lost())

    # Decisions about what may be live

    def _decide(self, act: Callable[..., object]) -> object:
        job_id = self._any(State.UNKNOWN)
        if job_id is None:
            return NOTHING
        self.desk.ground.sql(
            "UPDATE incarnations SET ended_at = clock_timestamp() - interval '1 hour',"
            " end_reason = 'over' WHERE id = 7 AND ended_at IS NULL"
        )
        with self.desk.transaction() as conn:
            (doubt,) = ledger.doubts(conn, [job_id])
            return act(conn, doubt)

    def _absent(self, *, forced: bool = False) -> object:
        return self._decide(
            lambda conn, doubt: ledger.confirm_absent(
                conn, doubt, send_at=None, send=True, who="operator", reason="empty page",
                horizon=timedelta(0), forced=forced,
            )
        )  # fmt: skip

    def _forced(self) -> object:
        return self._absent(forced=True)

    def _repeat(self) -> object:
        return self._decide(
            lambda conn, doubt: ledger.repeat(
                conn, doubt, until=None, after=0.0, who="reconciler", reason="key lives"
            )
        )

    # What must hold

    def judge(self) -> None:
        for query in (UNAPPROVED, OTHER_BYTES, TWICE):
            assert self.desk.ground.sql(query, self.post) == [], query
        if self.rule == "hold":
            assert self.desk.ground.sql(OUTDATED, self.post) == []


TOLD: Counter[str] = Counter()


@pytest.mark.timeout(900)  # thousands of transactions, on a machine that has others
@pytest.mark.parametrize("rule", ["hold", "keep"])
def test_nothing_unapproved_is_ever_begun(desk: Desk, rule: str) -> None:
    desk.ground.sql(
        "INSERT INTO incarnations (id, host, boot_id, pid, file) OVERRIDING SYSTEM VALUE"
        " VALUES (7, 'here', 'boot', 1, 'none.spool') ON CONFLICT DO NOTHING"
    )

    @settings(
        max_examples=20,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(st.lists(st.sampled_from(ACTS), min_size=20, max_size=50), st.randoms())
    def check(acts: list[str], luck: random.Random) -> None:
        story = Story(desk, rule, luck)
        for act in acts:
            story.do(act)
        story.judge()
        TOLD.update(story.did)

    check()
    # It proves nothing where nothing happened.
    for act in ("save", "approve", "withdraw", "send"):
        assert TOLD[act] > 0, TOLD


def test_the_question_finds_what_it_asks_for(desk: Desk) -> None:
    story = Story(desk, "hold", random.Random(1))
    for act in ("claim", "begin", "live"):
        story.do(act)
    story.judge()
    for page, job in zip(story.pages, desk.jobs(story.post), strict=True):
        assert job.channel_id == page.channel_id
    # As if nobody had approved it, and as if it had been changed before.
    desk.ground.sql("SET session_replication_role = replica")
    desk.ground.sql(
        "UPDATE post_events SET event = 'approval_withdrawn'"
        " WHERE post_id = %s AND event = 'approved'",
        story.post,
    )
    desk.ground.sql(
        "UPDATE post_events SET version = 9 WHERE post_id = %s AND event = 'saved'", story.post
    )
    desk.ground.sql("RESET session_replication_role")
    assert desk.ground.sql(UNAPPROVED, story.post) != []
    assert desk.ground.sql(OUTDATED, story.post) != []
    with pytest.raises(AssertionError):
        story.judge()
