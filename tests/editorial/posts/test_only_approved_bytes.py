"""Editors and workers at once, and a real platform: what reaches the page was approved.

Two worker processes claim and send while editors save, approve, take back, hold and cancel around
the very second at which their posts are due; the platform refuses some sends, loses the answers of
others, and stores some that it says it refused. Judged from the bytes that the platform received:
each was a form of its post whose approval stood when that send began, and nothing is there twice
but what somebody asked for.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from publisher.editorial.documents import Document
from publisher.engine import ledger
from publisher.engine.audit import audit
from publisher.engine.content import Post, digest
from publisher.engine.errors import PublisherError
from publisher.engine.job import Hold, State
from publisher.sandbox.behaviours import Behaviour
from tests.editorial.posts.conftest import own_text, rules
from tests.editorial.posts.site import Site
from tests.editorial.posts.test_nothing_unapproved import OTHER_BYTES, UNAPPROVED
from tests.engine.ground import Ground, await_that
from tests.reconciler.stage import Channel

ACTS = (
    "save", "save", "save", "save own", "approve", "approve", "approve", "withdraw", "back",
    "hold", "release", "cancel", "restore", "schedule", "again", "requeue",
)  # fmt: skip
LIES = (Behaviour.ACCEPT_AND_REFUSE, Behaviour.ACCEPT_AND_LIMIT)
WEATHER = (
    None, None, Behaviour.REFUSE_LIMITED, Behaviour.REFUSE_INVALID, Behaviour.LOSE_ANSWER,
    Behaviour.DROP, *LIES,
)  # fmt: skip
POSTS: Final = 12
ON_A_PAGE: Final = {"published", "unknown"}
BEGUN = """
SELECT a.job_id, a.number, a.content_sha256, a.version, a.outcome, j.channel_id, j.post_id,
       c.content
  FROM attempts a
  JOIN jobs j ON j.id = a.job_id
  JOIN job_contents c ON c.job_id = a.job_id
 WHERE j.post_id = ANY(%s)
"""


@pytest.fixture(scope="module")
def site(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site.open(ground, tmp_path_factory.mktemp("site")) as opened:
        yield opened


# The sentence of the product's promise, word for word


@pytest.mark.parametrize("rule", ["hold", "keep"])
def test_edited_one_second_before_its_time(site: Site, rule: str) -> None:
    rules(site.stage.ground, edit_rule=rule)
    page, desk = site.pages[0], site.desk
    post = desk.new(site.lane(page), text=f"First words, {rule}")
    desk.approve(post)
    job = site.due_in(post, page, 1.5)
    due = desk.job(job)["due_at"]
    await_that(lambda: datetime.now(UTC) >= due - timedelta(seconds=1))
    desk.save(post, f"Second words, {rule}")
    if rule == "keep":
        site.stage.await_state(job, State.PUBLISHED)
        assert [t for t in page.texts() if rule in t] == ["First words, keep"]
        return
    await_that(lambda: datetime.now(UTC) >= due + timedelta(seconds=1))
    assert desk.job(job)["hold_reason"] == Hold.EDITED
    assert not [t for t in page.texts() if rule in t]
    desk.approve(post)
    site.stage.await_state(job, State.PUBLISHED)
    assert [t for t in page.texts() if rule in t] == ["Second words, hold"]


# And in whatever order


@dataclass
class Author:
    """One post, what is done to it, and when: seconds before (or after) it is due."""

    site: Site
    page: Channel
    other: Channel
    name: str
    script: list[tuple[float, str]]
    luck: random.Random
    due: datetime
    is_lied_to: bool
    post: int = field(init=False)
    did: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        lanes = [self.site.lane(self.page), self.site.lane(self.other)]
        self.post = self.site.desk.new(*lanes, text=self._text())
        self.site.desk.approve(self.post)
        seconds = (self.due - datetime.now(UTC)).total_seconds()
        for page in (self.page, self.other):
            self.site.due_in(self.post, page, seconds)

    def play(self) -> None:
        for at, act in sorted(self.script):
            time.sleep(max(0.0, (self.due - datetime.now(UTC)).total_seconds() + at))
            self.do(act)

    def do(self, act: str) -> None:
        try:
            getattr(self, "_" + act.replace(" ", "_"))()
            self.did[act] += 1
        except PublisherError as refusal:
            self.did[f"refused: {refusal.code}"] += 1

    def _text(self) -> str:
        # Two that resembled one another could not be told apart by a look.
        return f"{self.name} {self.luck.getrandbits(160):040x}"

    def _save(self) -> None:
        self.site.desk.save(self.post, self._text())

    def _save_own(self) -> None:
        lane = self.site.lane(self.luck.choice([self.page, self.other]))
        document = own_text(Document(Post(self._text())), lane, self._text())
        self.site.desk.save(self.post, document)

    def _approve(self) -> None:
        self.site.desk.approve(self.post)

    def _withdraw(self) -> None:
        self.site.desk.withdraw(self.post)

    def _back(self) -> None:
        self.site.desk.back(self.post, 1)

    def _schedule(self) -> None:
        self.site.due_in(self.post, self.page, 0.0)

    def _again(self) -> None:
        self.site.desk.again(self.post, self.site.lane(self.page))

    def _verb(self, verb: Callable[..., object], *states: State, **how: Any) -> None:  # noqa: ANN401
        found = [job.id for job in self.site.desk.jobs(self.post) if job.state in states]
        if found:
            with self.site.desk.transaction() as conn:
                verb(conn, self.luck.choice(found), who="operator", **how)

    def _hold(self) -> None:
        self._verb(ledger.hold, State.SCHEDULED, State.CLAIMED)

    def _release(self) -> None:
        self._verb(ledger.release_hold, State.SCHEDULED)

    def _cancel(self) -> None:
        self._verb(ledger.cancel, State.SCHEDULED, State.CLAIMED)

    def _restore(self) -> None:
        self._verb(ledger.restore, State.CANCELLED)

    def _requeue(self) -> None:
        self._verb(ledger.requeue, State.FAILED)


def judge(site: Site, authors: list[Author]) -> Counter[str]:
    """Hold what the platform received against what was approved. Counts what it saw."""
    seen: Counter[str] = Counter()
    ground = site.stage.ground
    rows = ground.sql(BEGUN, [author.post for author in authors])
    for author in authors:
        for query in (UNAPPROVED, OTHER_BYTES):
            assert ground.sql(query, author.post) == [], query
        for page in (author.page, author.other):
            place = (author.post, page.id)
            mine = [row for row in rows if (row["post_id"], row["channel_id"]) == place]
            there = [text for text in page.texts() if text.startswith(f"{author.name} ")]
            for text in there:
                # The very bytes, hashed as an approver's were.
                approved = digest(Post(text).to_json())
                sent = [row for row in mine if bytes(row["content_sha256"]) == approved]
                assert sent, (text, mine)
                # A lie that nobody had to look for stays one.
                assert author.is_lied_to or {row["outcome"] for row in sent} & ON_A_PAGE
            repeats = sum(job.repeats is not None for job in site.desk.jobs(author.post))
            assert len(there) <= 1 + repeats, there
            seen["on a page"] += len(there)
        seen.update(author.did)
    seen["begun"] += len(rows)
    seen["of a later version"] += sum(row["version"] > 1 for row in rows)
    return seen


TOLD: Counter[str] = Counter()
_NUMBERS = iter(range(1_000_000))
MOMENTS = st.floats(min_value=-0.6, max_value=0.8, allow_nan=False)
SCRIPTS = st.lists(
    st.lists(st.tuples(MOMENTS, st.sampled_from(ACTS)), min_size=1, max_size=8),
    min_size=POSTS, max_size=POSTS,
)  # fmt: skip


@pytest.mark.timeout(900)  # real seconds pass in it, on a machine that has others
@pytest.mark.parametrize("rule", ["hold", "keep"])
def test_what_the_platform_received_was_approved(site: Site, rule: str) -> None:
    rules(site.stage.ground, edit_rule=rule)
    TOLD.clear()

    @settings(
        max_examples=8,
        deadline=None,
        phases=[Phase.generate],  # what a race broke once, a shorter script need not break again
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(SCRIPTS, st.lists(st.sampled_from(WEATHER), min_size=POSTS, max_size=POSTS),
           st.randoms())  # fmt: skip
    def check(
        scripts: list[list[tuple[float, str]]],
        weather: list[Behaviour | None],
        luck: random.Random,
    ) -> None:
        due = datetime.now(UTC) + timedelta(seconds=2.0)
        authors = []
        for script, sky in zip(scripts, weather, strict=True):
            pages = luck.sample(site.pages, 2)
            name = f"p{next(_NUMBERS)}"
            if sky is not None:
                pages[0].behave(sky, match=f"{name} ", seconds=0.5)
            own = random.Random(luck.random())
            authors.append(Author(site, *pages, name, script, own, due, sky in LIES))
        with ThreadPoolExecutor(POSTS) as pool:
            for played in [pool.submit(author.play) for author in authors]:
                played.result(120)
        site.quiet()
        TOLD.update(judge(site, authors))

    check()
    report = audit(site.stage.ground.conn, full=True)
    assert not [(one.invariant.id, one.rows) for one in report.broken]
    # It proves nothing where nothing happened.
    for fact in ("on a page", "begun", "of a later version", "save", "approve", "withdraw"):
        assert TOLD[fact] > 0, TOLD
