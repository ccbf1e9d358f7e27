"""One run: a database at its beginning, empty pages, workers, people; and what they can do."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from publisher.editorial import posts
from publisher.editorial.posts import Destination, Draft, Version
from publisher.engine import ledger
from publisher.engine.content import Media, Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import JobId
from publisher.engine.registry import Registry
from tests.engine.ground import Driver, Ground
from tests.postgres import Postgres
from tests.stateful.clock import Clock
from tests.stateful.crew import Crew, Lines, Log, Noted
from tests.stateful.judge import Judge
from tests.stateful.page import Kind, Page, Request
from tests.stateful.platform import Scripted, World
from tests.stateful.vaults import BACKUP, EMPTY, Vaults
from tests.stateful.verbs import NOTED, Verbs

HORIZON = timedelta(seconds=60)

_PHOTOS = 2
"""As many as a post has at most."""


class Edit(StrEnum):
    """What an editor may do to a job."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    MOVE = "move"
    PUT_OFF = "put off"
    REVISE = "revise"
    BRING_BACK = "bring back"


@dataclass
class Stage:
    """What all runs of a session share: one database, which each finds as the first did."""

    ground: Ground
    clock: Clock
    verbs: Verbs
    vaults: Vaults
    log: Log
    channels: dict[Kind, int]
    lines: Lines
    noted: Noted
    did: Counter[str] = field(default_factory=Counter)

    @classmethod
    @contextmanager
    def open(cls, pg: Postgres) -> Iterator[Stage]:
        with ExitStack() as stack:
            ground = stack.enter_context(Ground.open(pg))
            ground.app.engine.dispose()
            clock = Clock.install(ground)
            log, verbs, noted = Log(), Verbs(), Noted()
            stack.enter_context(clock.kept_everywhere())
            stack.enter_context(log.kept())
            stack.enter_context(Crew.stepped(noted))
            channels = {kind: _channel(ground, kind) for kind in Kind}
            ground.root.execute("UPDATE publisher.deployment SET created_at = clock_timestamp()")
            ground.root.execute(
                "UPDATE publisher.pulse SET beat_at = clock_timestamp(),"
                " rescue_not_before = clock_timestamp()"
            )
            ground.root.execute("UPDATE publisher.tick SET raised_at = clock_timestamp()")
            ground.root.execute(NOTED.encode())
            vaults = Vaults(ground.root)
            # Planned once: the audit is asked again and again of a few rows.
            ground.root.execute("SET plan_cache_mode = force_generic_plan")
            ground.root.execute("SET jit = off")
            stack.enter_context(verbs.watched())
            vaults.take(EMPTY)
            lines = Lines(ground.engine.connect_driver)
            yield cls(ground, clock, verbs, vaults, log, channels, lines, noted)
            for conn in lines.idle:
                conn.close()


def _channel(ground: Ground, kind: Kind) -> int:
    channel_id: int = ground.one(
        "INSERT INTO channels (platform, name, remote_id) VALUES (%s, %s, %s) RETURNING id",
        str(kind), f"page {kind}", f"p-{kind}",
    )  # fmt: skip
    ground.sql("INSERT INTO gates (channel_id, max_in_flight) VALUES (%s, 1)", channel_id)
    for photo in range(_PHOTOS):
        digest = hashlib.sha256(f"{photo}".encode()).digest()
        ground.sql(
            "INSERT INTO media (sha256, type, size) VALUES (%s, 'image/png', 1)"
            " ON CONFLICT DO NOTHING",
            digest,
        )
        ground.sql(
            "INSERT INTO media_uploads (workspace_id, sha256, original_sha256)"
            " SELECT min(id), %s, %s FROM workspaces ON CONFLICT DO NOTHING",
            digest, digest,
        )  # fmt: skip
    return channel_id


@dataclass
class Backup:
    """Which jobs a snapshot holds in which state, and what else was so then."""

    states: dict[str, str]
    quarantines: int
    tick: int
    marks: list[str]


@dataclass
class Life:
    """One run."""

    stage: Stage
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="stateful-")))
    backup: Backup | None = None
    versions: dict[str, Version] = field(default_factory=dict)
    world: World = field(init=False)
    crew: Crew = field(init=False)
    judge: Judge = field(init=False)
    registry: Registry = field(init=False)
    is_whole: bool = True
    """Nothing was found broken so far."""
    saved_at: int = -6
    """At which step a backup was last made or put back."""
    _written: int = 0
    _quarantines_then: int = 0

    def __post_init__(self) -> None:
        stage = self.stage
        stage.clock.begin()
        stage.vaults.put_back(EMPTY)
        stage.verbs.begin()
        stage.log.troubles.clear()
        noted = stage.noted
        noted.begin()
        self.world = World(Page(stage.clock.now), started=noted.started, answered=noted.answered)
        self.registry = Registry([Scripted(kind, self.world) for kind in Kind])
        self.crew = Crew(stage.lines, self.registry, self.folder)
        self.judge = Judge(stage.ground, self.world)

    # Editors

    def write(self, kind: Kind, *, due_in: float, useful_for: float, photos: int) -> None:
        """Write a post, approve it and schedule it."""
        self._written += 1
        now = self.stage.clock.now() + timedelta(microseconds=self._written)
        text = _text(self._written, 1)
        draft = Draft(
            _content(text, photos),
            (Destination(self.stage.channels[kind], now + timedelta(seconds=due_in), "UTC"),),
        )
        with self.app() as conn:
            version = posts.create(conn, [draft], who="editor")[0]
            assert version is not None
            posts.approve(conn, [version], who="chief")
            (job,) = posts.schedule(
                conn, [version], useful_for=timedelta(seconds=useful_for), registry=self.registry
            )
        self.judge.approved.append(job.key)
        self.versions[job.key] = version

    def revise(self, job_id: JobId) -> None:
        """Approve a new version and put it in the place of the old one."""
        key = self.key(job_id)
        photos = len(Post.from_json(self.versions[key].content).media)
        self._written += 1
        with self.app() as conn:
            post_id = self.versions[key].post_id
            content = _content(_text(self._written, 2), photos)
            version = posts.revise(conn, post_id, content, who="editor")
            posts.approve(conn, [version], who="chief")
            ledger.replace(
                conn, job_id, content=content, who="editor", version_id=version.id,
                version=version.number,
            )  # fmt: skip
        self.versions[key] = replace(version)

    def edit(self, act: Edit, job_id: JobId) -> None:
        """What an editor does to one job; a refusal is an answer like another."""
        self._acts_on(job_id)
        clock = self.stage.clock
        verbs: dict[Edit, Callable[[Connection], Any]] = {
            Edit.CANCEL: lambda conn: ledger.cancel(conn, job_id, who="editor"),
            Edit.HOLD: lambda conn: ledger.hold(conn, job_id, who="editor"),
            Edit.RELEASE: lambda conn: ledger.release_hold(conn, job_id, who="editor"),
            Edit.MOVE: lambda conn: ledger.reschedule(
                conn, job_id, at=clock.after(0), who="editor"
            ),
            Edit.PUT_OFF: lambda conn: ledger.reschedule(
                conn, job_id, at=clock.after(200), who="editor"
            ),
            Edit.REVISE: lambda _: self.revise(job_id),
        }
        self.attempt(verbs[act])

    def bring_back(self, job_id: JobId) -> None:
        """Requeue what failed or was missed; restore what was cancelled."""
        self._acts_on(job_id)
        until = self.stage.clock.after(7_200)
        if self.stage.ground.row(job_id)["state"] == "cancelled":
            self.attempt(lambda conn: ledger.restore(conn, job_id, who="editor"))
        else:
            self.attempt(
                lambda conn: ledger.requeue(conn, job_id, who="editor", useful_until=until)
            )

    def _acts_on(self, job_id: JobId) -> None:
        if self.judge.excuses.unnoticed:
            # Nobody who does this could know what the database lacks.
            self.judge.excuses.sworn.add(self.key(job_id))

    def turn_gate(self, kind: Kind) -> None:
        """Pause a channel, or open it again, with a new credential where it needs one."""
        channel = self.stage.channels[kind]
        gate = self.stage.ground.sql("SELECT * FROM gates WHERE channel_id = %s", channel)[0]
        if gate["paused_at"] is None and gate["blocked_at"] is None:
            self.attempt(lambda conn: ledger.pause(conn, channel, who="editor"))
            return
        self.attempt(lambda conn: ledger.resume(conn, channel))
        self.attempt(lambda conn: ledger.unblock(conn, channel))

    def attempt(self, act: Callable[[Connection], Any]) -> bool:
        """Do something in a transaction of the pages' role. False: it was refused."""
        try:
            with self.app() as conn:
                act(conn)
        except PublisherError as error:
            self.stage.did[f"refused: {error.code}"] += 1
            return False
        return True

    def app(self) -> Any:  # noqa: ANN401 - SQLAlchemy's
        return self.stage.ground.app.engine.begin()

    # What there is

    @property
    def root(self) -> Driver:
        return self.stage.ground.root

    def ids(self, *states: str) -> list[JobId]:
        """Jobs in these states; in any, without."""
        wanted = " WHERE state = ANY(%s)" if states else ""
        rows = self.root.execute(
            f"SELECT id FROM publisher.jobs{wanted} ORDER BY id".encode(),
            [list(states)] if states else None,
        ).fetchall()
        return [JobId(row[0]) for row in rows]

    def key(self, job_id: JobId) -> str:
        key: str = self.stage.ground.one(
            "SELECT key FROM publisher.job_contents WHERE job_id = %s", job_id
        )
        return key

    # The wire and the clock

    def resolve(self, request: Request) -> None:
        """What is on its way lands, or never will."""
        if request.lands:
            self.world.store(request)
        else:
            self.world.page.vanish(request)

    def wait(self, seconds: float, *, is_silent: bool = False) -> None:
        """Let time go by; what must have landed by then has, at the last moment.

        Meanwhile some other worker keeps the fleet's pulse, unless ``is_silent``.
        """
        clock, page = self.stage.clock, self.world.page
        until = clock.now() + timedelta(seconds=seconds)
        for request in sorted(page.flying, key=lambda one: one.lands_by):
            if request.lands_by <= until:
                early = (request.lands_by - clock.now()).total_seconds()
                clock.pass_by(max(0.0, early))
                self.resolve(request)
        clock.pass_by(max(0.0, (until - clock.now()).total_seconds()))
        if not is_silent:
            self.root.execute("UPDATE publisher.pulse SET beat_at = clock_timestamp()")

    # Backups

    def save(self) -> None:
        """Make a backup; the last one counts."""
        states = {row["key"]: row["state"] for row in self.judge.rows()}
        self.stage.vaults.take(BACKUP)
        tick = self.stage.ground.sql("SELECT value, marks FROM tick")[0]
        self.backup = Backup(states, self._quarantines(), tick["value"], tick["marks"])

    def restore(self, *, cut: bool) -> None:
        """Put the backup back; ``cut``: and everybody's connection is lost meanwhile.

        A connection that lives on tells only by the tick, so whoever saw none since the backup, or
        sent since the last, is cut off. Where the witness was told nothing since the backup either,
        this is a standby that is promoted and lacks the last commits: its timeline is another.
        """
        backup = self.backup
        assert backup is not None
        crew, witness = self.crew, self.crew.witness
        for seat in crew.alive:
            guard = seat.worker.guard
            assert guard is not None
            if cut or guard.floor <= backup.tick or self._sent_since_the_tick():
                for conn in seat.conns:
                    conn.close()
        if crew.looker is not None and not crew.looker.is_over:
            crew.looker.kill()
        if witness.held is not None and witness.held.record.mark in backup.marks:
            older = replace(witness.held.record, timeline=witness.held.record.timeline + 1)
            witness.held = replace(witness.held, record=older)
        self.stage.vaults.put_back(BACKUP)
        excuses = self.judge.excuses
        excuses.unnoticed = True
        excuses.lost |= {key for key in self.judge.approved if key not in backup.states}
        self.world.restored_at = self.stage.clock.now()
        self._quarantines_then = backup.quarantines

    def _sent_since_the_tick(self) -> bool:
        since: bool = self.stage.ground.one(
            "SELECT coalesce((SELECT max(begun_at) FROM attempts) > (SELECT raised_at FROM tick),"
            " false)"
        )
        return since

    def notice(self) -> None:
        """Whether somebody has seen that the database went back."""
        if self.judge.excuses.unnoticed and self._quarantines() > self._quarantines_then:
            self.judge.excuses.unnoticed = False

    def _quarantines(self) -> int:
        count: int = self.stage.ground.one("SELECT count(*) FROM publisher.quarantines")
        return count

    def check(self) -> None:
        """What must hold now."""
        is_whole, self.is_whole = self.is_whole, False
        self.notice()
        assert not self.stage.log.troubles, f"BROKE: {self.stage.log.troubles}"
        self.judge.check()
        self.is_whole = is_whole

    def end(self) -> None:
        """Leave nothing behind."""
        self.crew.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def _text(number: int, version: int) -> str:
    """A text like no other."""
    return hashlib.sha256(f"{number}.{version}".encode()).hexdigest()


def _content(text: str, photos: int) -> str:
    media = tuple(
        Media("image", "image/png", sha256=hashlib.sha256(f"{n}".encode()).hexdigest(), size=1)
        for n in range(photos)
    )
    return Post(text, media=media).to_json()
