"""A desk on a database of a module's own: posts, three pages, and a worker's verbs on them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from publisher.editorial import drafts, post_events, reviews, schedules, versions
from publisher.editorial.actor import Who
from publisher.editorial.documents import Document, Variant
from publisher.editorial.posts import Destination
from publisher.editorial.reviews import Approved, Withdrawn
from publisher.editorial.schedules import Scheduled
from publisher.editorial.versions import Saved
from publisher.engine import ledger, queries
from publisher.engine.adapter import SendPermit
from publisher.engine.content import Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId
from publisher.engine.ledger import Claimed
from publisher.engine.queries import PostJob
from publisher.engine.registry import Registry
from publisher.engine.retry import Settlement
from tests.editorial.conftest import Stub
from tests.engine.ground import Ground, Lane, published
from tests.postgres import Postgres

DAY = timedelta(days=1)
WRITER, CHIEF = "writer", "chief"


@dataclass
class Desk:
    """What editors do, each act in a transaction of its own in the pages' role."""

    ground: Ground
    registry: Registry = field(default_factory=lambda: Registry([Stub()]))
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def page(self) -> Lane:
        """A channel of the stub's."""
        return self.ground.lane(platform="stub")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.ground.app.engine.begin() as conn:
            yield conn

    def new(self, *pages: Lane, text: str = "Hello", who: Who = WRITER) -> int:
        """A post with its first version, meant for these pages; its number."""
        with self.transaction() as conn:
            ids = [page.channel_id for page in pages]
            draft = drafts.new(conn, Document(Post(text)), who=who, channel_ids=ids)
            saved = versions.save(
                conn, draft.post_id, draft.document, revision=draft.revision, who=who,
                registry=self.registry,
            )  # fmt: skip
            assert saved.is_new
        return draft.post_id

    def save(self, post: int, text: str | Document, *, who: Who = WRITER, **how: Any) -> Saved:  # noqa: ANN401
        document = Document(Post(text)) if isinstance(text, str) else text
        how = {"revision": None} | how
        with self.transaction() as conn:
            return versions.save(conn, post, document, who=who, registry=self.registry, **how)

    def back(self, post: int, number: int, *, who: Who = WRITER) -> Saved:
        with self.transaction() as conn:
            return versions.go_back(
                conn, post, number, revision=None, who=who, registry=self.registry
            )

    def submit(self, post: int, *, who: Who = WRITER, **how: Any) -> bool:  # noqa: ANN401
        with self.transaction() as conn:
            return reviews.submit(conn, post, who=who, **how)

    def approve(self, post: int, *, who: Who = CHIEF, **how: Any) -> Approved:  # noqa: ANN401
        with self.transaction() as conn:
            return reviews.approve(conn, post, who=who, registry=self.registry, **how)

    def withdraw(self, post: int, *, who: Who = CHIEF, **how: Any) -> Withdrawn:  # noqa: ANN401
        with self.transaction() as conn:
            return reviews.withdraw(conn, post, who=who, **how)

    def schedule(
        self,
        post: int,
        *pages: Lane,
        due: timedelta = timedelta(minutes=-1),
        useful_for: timedelta = DAY,
        **how: Any,  # noqa: ANN401
    ) -> Scheduled:
        at = datetime.now(UTC) + due + timedelta(microseconds=next(self._numbers))
        places = [Destination(page.channel_id, at, "UTC") for page in pages]
        with self.transaction() as conn:
            return schedules.schedule(
                conn, post, places, who=CHIEF, registry=self.registry, useful_for=useful_for,
                **how,
            )  # fmt: skip

    def again(self, post: int, page: Lane) -> Scheduled:
        at = datetime.now(UTC) + timedelta(microseconds=next(self._numbers))
        place = Destination(page.channel_id, at, "UTC")
        with self.transaction() as conn:
            return schedules.again(
                conn, post, place, who=CHIEF, registry=self.registry, useful_for=DAY
            )

    def out(self, *pages: Lane, text: str = "Hello", **how: Any) -> tuple[int, list[JobId]]:  # noqa: ANN401
        """A post that is written, approved and scheduled; its jobs in the order of the pages."""
        post = self.new(*pages, text=text)
        self.approve(post)
        done = self.schedule(post, *pages, **how)
        return post, [job.job_id for job in done.jobs]

    def jobs(self, post: int) -> list[PostJob]:
        with self.ground.engine.engine.connect() as conn:
            return queries.jobs_of_post(conn, post)

    def job(self, job_id: int) -> dict[str, Any]:
        return self.ground.row(job_id)

    def text(self, job_id: int) -> str:
        """What the job would send, or sent."""
        content = self.ground.one("SELECT content FROM job_contents WHERE job_id = %s", job_id)
        return Post.from_json(content).text

    def told(self, post: int) -> list[str]:
        with self.transaction() as conn:
            return [event.event for event in post_events.of_post(conn, post)]

    # A worker

    def claim(self, page: Lane, job_id: JobId) -> Claimed | None:
        """Claim this job, if it may be."""
        self.ground.sql("UPDATE jobs SET queue = %s WHERE id = %s", f"only {job_id}", job_id)
        return next(iter(page.claim(queues=[f"only {job_id}"])), None)

    def begin(self, job: Claimed) -> SendPermit | None:
        """Begin its send, if that may be."""
        held = [(job.id, job.token)]
        conn = self.ground.conn
        return ledger.begin_send(conn, held, lease=60.0, window=30.0, budget=30.0).get(job.id)

    def sending(self, page: Lane, job_id: JobId) -> Claimed:
        """The job, claimed and begun."""
        job = self.claim(page, job_id)
        assert job is not None
        assert self.begin(job) is not None
        return job

    def send(self, page: Lane, job_id: JobId, end: Settlement | None = None) -> None:
        """The job is claimed, begun and settled: live, unless another ``end`` is given."""
        job = self.sending(page, job_id)
        assert page.end(job, end or published(f"remote {job_id}")).done


@pytest.fixture(scope="module")
def ground(pg: Postgres) -> Iterator[Ground]:
    with Ground.open(pg) as opened:
        yield opened


@pytest.fixture
def desk(ground: Ground) -> Desk:
    rules(ground)
    return Desk(ground)


def rules(ground: Ground, *, edit_rule: str = "hold", approval_by_other: bool = False) -> None:
    """What the workspace wants."""
    ground.sql(
        "UPDATE workspaces SET edit_rule = %s, approval_by_other = %s",
        edit_rule, approval_by_other,
    )  # fmt: skip


def refused_by(act: Callable[[], object]) -> PublisherError:
    """What an act was refused with."""
    with pytest.raises(PublisherError) as caught:
        act()
    return caught.value


def own_text(document: Document, page: Lane, text: str) -> Document:
    """The document with a text of its own for a page."""
    variants = {**document.variants, page.channel_id: Variant.of(text=text)}
    return Document(document.post, document.first_comment, variants)
