"""What a rehearsal on a real page stands on: the user's own database, its adapters, one at a time.

Nothing here, and nothing that uses it, touches a post that is not of a rehearsal: jobs are found by
their key alone, and what is taken down must carry the mark of its run as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import psycopg

from publisher import bootstrap
from publisher.bootstrap import App
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.editorial import channels
from publisher.engine import ledger, queries
from publisher.engine.adapter import Adapter
from publisher.engine.content import ContentError, Post
from publisher.engine.errors import Conflict
from publisher.engine.job import Channel, JobId, State
from publisher.engine.ledger.driver import driver_of
from publisher.engine.matching import normalised
from publisher.engine.queries import RehearsalJob
from publisher.words import _

WHO: Final = "rehearsal"
_LOCK: Final = 0x52454845
"""First half of an advisory lock; the second is the channel's id."""
_TEXT: Final = "test, will be deleted"
"""As the promise made to readers of the page has it, in one language."""

Say = Callable[[str], None]


class Question(StrEnum):
    """What only a person can tell, of a platform that shows nothing to us."""

    IS_IT_THERE = "is it there"
    IS_IT_DELETED = "is it deleted"


Ask = Callable[[Question, str, str], bool]
"""Given the question, the post's mark and where it is; whether the person says yes."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each part may take, in seconds, and how often a platform is asked again."""

    publish: float = 180.0
    settle: float = 300.0
    look: float = 60.0
    pause: float = 2.0
    tries: int = 3


@dataclass(frozen=True, slots=True)
class Ground:
    """``who``: in whose name the journal keeps it. ``ask``: None where nobody is there."""

    app: App
    who: str
    say: Say
    ask: Ask | None
    patience: Patience

    @property
    def settings(self) -> Settings:
        """Those of the deployment."""
        return self.app.settings

    @property
    def database(self) -> Database:
        """Opened as people's commands are."""
        return self.app.database

    @property
    def horizon(self) -> timedelta:
        """After it, what an ended process wrote has landed or never will."""
        return timedelta(seconds=self.settings.horizon)

    def adapter(self, channel: Channel) -> Adapter:
        """What speaks to the channel's platform."""
        return self.app.registry.adapter(channel.platform)

    def jobs(self, channel: Channel, run: str | None = None) -> tuple[RehearsalJob, ...]:
        """The jobs of rehearsals on a channel, as they stand."""
        with self.database.engine.begin() as conn:
            return queries.rehearsal_jobs(conn, channel_id=channel.id, run=run)

    def bound_elsewhere(self, job: RehearsalJob) -> frozenset[str]:
        """Remote ids of its channel that belong to other jobs."""
        since = job.began_at or job.row.due_at
        with self.database.engine.begin() as conn:
            return ledger.bound_elsewhere(driver_of(conn), job.row.channel_id, job.row.id, since)

    def tell(self, job_id: JobId, detail: dict[str, object]) -> None:
        """Keep in a job's journal that nothing of it is on the page any more."""
        with self.database.engine.begin() as conn:
            ledger.tell(conn, job_id, queries.WITHDRAWN, who=self.who, attempt=None, detail=detail)


@contextmanager
def opened(
    settings: Settings, say: Say, *, who: str, ask: Ask | None, patience: Patience | None
) -> Iterator[Ground]:
    """Open the deployment's database. Raises ``DatabaseError``, ``CloneRefused``."""
    with (
        Database.open(
            settings, Role.APP, application_name="publisher rehearse", workspace=EVERY
        ) as database,
        bootstrap.open_app(settings, database) as app,
    ):
        yield Ground(app, who, say, ask, patience or Patience())


@contextmanager
def alone_on(ground: Ground, channel: Channel) -> Iterator[None]:
    """Keep other rehearsals off the channel. Raises ``Conflict`` (``rehearsal-under-way``)."""
    # Past a pooler: the lock is the session's, and goes with the process however that ends.
    with closing(ground.database.connect_driver(direct=True)) as conn:
        if not _locked(conn, channel.id):
            message = _("A rehearsal is under way on {name}. Nothing was done. Wait for its end.")
            raise Conflict(message.format(name=channel.name), code="rehearsal-under-way")
        yield


def _locked(conn: psycopg.Connection[Any], channel_id: int) -> bool:
    row = conn.execute("SELECT pg_try_advisory_lock(%s, %s)", (_LOCK, channel_id)).fetchone()
    return row is not None and bool(row[0])


def find(ground: Ground, name_or_id: str) -> Channel:
    """The channel of that name or id. Raises ``NotFound``."""
    with ground.database.engine.begin() as conn:
        return channels.find(conn, name_or_id)


def with_jobs(ground: Ground) -> list[Channel]:
    """Every channel that a rehearsal was ever on."""
    with ground.database.engine.begin() as conn:
        ids = {job.row.channel_id for job in queries.rehearsal_jobs(conn)}
        every = channels.Directory.read(conn).channels
    return [channel for channel in every if channel.id in ids]


def mark(run: str, number: int) -> str:
    """How the text of a rehearsal's post begins."""
    return f"[rehearsal {run}-{number}]"


def content(run: str, number: int) -> str:
    """What is sent."""
    return Post(f"{mark(run, number)} {_TEXT}").to_json()


def mark_of(job: RehearsalJob) -> str:
    """The mark that its run gave it."""
    return mark(job.run, job.number)


def carries_mark(text: str, job: RehearsalJob) -> bool:
    """Whether a text, as we sent it or as a page shows it, is marked as this job's."""
    return normalised(text).startswith(normalised(mark_of(job)))


def is_marked(job: RehearsalJob) -> bool:
    """Whether what was sent for it carries its mark."""
    try:
        return carries_mark(Post.from_json(job.content).text, job)
    except ContentError:
        return False


def where(job: RehearsalJob, channel: Channel) -> str:
    """Its link, or the nearest to one that is known."""
    return job.row.permalink or job.row.remote_id or f"{channel.platform} {channel.remote_id}"


def is_over(job: RehearsalJob) -> bool:
    """Whether nothing of it is on the page, for certain, or it was taken down."""
    never = (State.FAILED, State.MISSED, State.CANCELLED)
    return job.removed_at is not None or job.row.state in never
