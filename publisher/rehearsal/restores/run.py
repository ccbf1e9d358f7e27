"""One plan, from the empty database over the loss to the verdict."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY
from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.job import NewJob
from publisher.rehearsal.restores import verdict as judging
from publisher.rehearsal.restores.backups import Backup, copy_beside, drop
from publisher.rehearsal.restores.person import Person
from publisher.rehearsal.restores.plan import Plan, PostPlan, Since
from publisher.rehearsal.restores.queries import AT_REST, SENDS, TIME_GOES_ON
from publisher.rehearsal.restores.result import Result
from publisher.rehearsal.restores.site import Site
from publisher.rehearsal.restores.staff import Staff
from publisher.rehearsal.restores.verdict import Approved
from publisher.rehearsal.stage import recorder
from publisher.rehearsal.stage.ground import ALERTED, Ground
from publisher.rehearsal.stage.receiver import SECRET
from publisher.rehearsal.verdict import questions
from publisher.sandbox import log as sandbox_log
from publisher.vault import Vault

_ENDS_WITHIN = 30.0
SENDS_WITHIN = 5.0
_TICKS = 1.5
"""Seconds in which every worker at work has counted on, however little it does."""
_RECONCILER_LATE = 6.0
_CLONE_RUNS = 3.0
_HIDDEN_SECONDS = 3_600.0
_CLONE_REFUSED = 3
_ORPHANS = "S07"
"""The invariant that is broken while there are sends without a record, as there are here."""


class Run:
    """A plan on a site."""

    def __init__(self, site: Site, plan: Plan, ground: Ground, home: Path) -> None:
        self.site, self.plan, self.ground, self.home = site, plan, ground, home
        self.staff = Staff(site, plan, ground, home)
        self.result = Result(plan, problems=self.staff.problems, server=site.server.version)
        self._accounts = {at["platform"]: at for at in site.new_accounts()}
        self._channels: dict[str, int] = {}
        self._enqueued: dict[str, datetime] = {}

    def go(self) -> Result:
        """Run it."""
        began = time.monotonic()
        plan = self.plan
        try:
            self._set_up()
            self._enqueue("before")
            backup = self._work_and_dump()
            self._go_on()
            self._end()
            if plan.is_clone:
                self._beside_a_clone()
            else:
                self._lose(backup)
            self._settle()
        except (TimeoutError, AssertionError) as error:
            self.result.problems.append(f"{type(error).__name__}: {error}")
        finally:
            self.staff.signal_all(signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                self.staff.until(lambda: not self.staff.alive, within=_ENDS_WITHIN)
            self._judge_what_is_there()
        self.result.log = self.staff.log.read_text()
        self.result.seconds = time.monotonic() - began
        return self.result

    # Before the loss

    def _set_up(self) -> None:
        (deployment,) = self.ground.sql("SELECT id::text FROM deployment")
        vault = Vault.from_settings(Settings(**self.staff.settings()), deployment["id"])
        receiver = {
            "platform": "webhook", "name": ALERTED, "id": ALERTED, "token": SECRET,
            "base_url": self.site.receiver.url(self.home.name),
        }  # fmt: skip
        for account in [*self._accounts.values(), receiver]:
            (row,) = self.ground.sql(
                "INSERT INTO channels (platform, name, remote_id, base_url, trusted)"
                " VALUES (%s, %s, %s, nullif(%s, ''), true) RETURNING id",
                account["platform"],
                account["name"],
                account["id"],
                account["base_url"],
            )
            sealed = vault.seal(account["token"], channel_id=row["id"])
            self.ground.sql("UPDATE channels SET sealed = %s WHERE id = %s", sealed, row["id"])
            self.ground.sql(
                "INSERT INTO gates (channel_id, max_in_flight) VALUES (%s, 4)", row["id"]
            )
            self._channels[account["platform"]] = row["id"]
        if self.plan.listing is not None:
            self.site.sandbox.control.behave(
                self.plan.listing, page=self._accounts["facebook_pages"]["id"], endpoint="list",
                times=None, seconds=_HIDDEN_SECONDS,
            )  # fmt: skip

    def _enqueue(self, since: Since) -> None:
        posts = [post for post in self.plan.posts if post.since == since]
        for post in posts:
            if post.behaviour is not None:
                self.site.sandbox.control.behave(
                    post.behaviour, page=self._accounts[post.platform]["id"], endpoint="publish",
                    match=f"{post.mark(self.plan.seed)} ", seconds=post.seconds,
                )  # fmt: skip
        with self._database() as database, database.engine.begin() as conn:
            registry = bootstrap.describing_registry(Settings(**self.staff.settings()))
            now = datetime.now(UTC)
            jobs = [self._job(post, registry.adapter(post.platform), now) for post in posts]
            ledger.enqueue(conn, jobs)
        self._enqueued |= {post.mark(self.plan.seed): now for post in posts}

    def _job(self, post: PostPlan, adapter: Any, now: datetime) -> NewJob:
        mark, at = post.mark(self.plan.seed), now + timedelta(seconds=post.due_in)
        useful = post.useful_for
        return NewJob(
            key=mark,
            kind="post",
            queue="publish",
            channel_id=self._channels[post.platform],
            content=Post(post.text(self.plan.seed)).to_json(),
            run_at=at,
            useful_until=None
            if useful is None
            else at + timedelta(seconds=useful * self.staff.pace),
            platform_key=adapter.platform_key(mark, at),
        )

    def _work_and_dump(self) -> Backup:
        plan = self.plan
        if not plan.dumps_first:
            self.staff.start(plan.workers, looks=plan.looks_before)
            self._await_sent(plan.sent_before)
        self.ground.close()
        backup = Backup(
            self.site.server, self.ground.name, self.home.parent, plan, self.staff.command
        )
        if plan.dumps_first:
            self.staff.start(plan.workers, looks=plan.looks_before)
        return backup

    def _go_on(self) -> None:
        plan = self.plan
        if plan.joins:
            before = self._witness()
            self.staff.fork("worker")
            self.staff.until(lambda: self._witness() != before)
        self._enqueue("after")
        self._bring_forward([post.mark(plan.seed) for post in plan.posts if post.is_moved])
        self._await_sent(len(self._requested()) + plan.sent_after)
        if plan.end == "left running":
            self.staff.wait(_TICKS * self.staff.pace)

    def _bring_forward(self, marks: Sequence[str] | None = None) -> int:
        """Let posts be due now, as an editor does; all that wait for their time, unless told.

        Returns how many.
        """
        waiting = self.ground.sql(
            "SELECT j.id, c.key FROM jobs j JOIN job_contents c ON c.job_id = j.id"
            " WHERE j.kind = 'post' AND j.state = 'scheduled' AND j.hold_reason IS NULL"
        )
        chosen = [row["id"] for row in waiting if marks is None or row["key"] in marks]
        with self._database() as database, database.engine.begin() as conn:
            for job in chosen:
                ledger.reschedule(conn, job, at=datetime.now(UTC), who="editor")
        return len(chosen)

    def _end(self) -> None:
        """Let everybody end as planned. Who would only clear up after them goes first."""
        how = {"in order": signal.SIGTERM, "killed": signal.SIGKILL}.get(self.plan.end)
        if how is not None:
            for kind in "rw":
                self.staff.signal_all(
                    how, [p for p, name in self.staff.alive.items() if name[0] == kind]
                )
            self.staff.until(lambda: not self.staff.alive, within=_ENDS_WITHIN)
        if self.plan.outlives:
            ends = [
                self._enqueued[post.mark(self.plan.seed)]
                + timedelta(seconds=post.useful_for * self.staff.pace)
                for post in self.plan.posts
                if post.useful_for is not None and post.since != "anew"
            ]
            left = (max(ends) - datetime.now(UTC)).total_seconds() if ends else 0.0
            self.staff.wait(max(0.0, left))

    # The loss

    def _lose(self, backup: Backup) -> None:
        plan = self.plan
        guard = ("restore-guard", "--since", backup.at.isoformat())
        if plan.announced == "before":
            assert self.staff.command(guard) == 0
        self.ground.close()
        backup.put_back()
        witness, spool = self.home / "witness", self.home / "spool"
        if plan.witness == "lost":
            witness.unlink(missing_ok=True)
        elif plan.witness == "spoilt":
            witness.write_bytes(b'{"tick": 99')
        if plan.spool == "lost":
            shutil.rmtree(spool, ignore_errors=True)
        for statement in (*plan.guards, *recorder.INSTALL):
            self.ground.sql(statement)
        self._enqueue("anew")
        if plan.announced == "after":
            assert self.staff.command(guard) == 0
        before = self._witness()
        self.staff.start(plan.again, looks=not plan.looks_late)
        self.staff.until(lambda: self._witness() != before)
        if plan.looks_late:
            self.staff.wait(_RECONCILER_LATE * self.staff.pace)
            self.staff.fork("reconciler")

    def _beside_a_clone(self) -> None:
        """Run a copy beside the original, as somebody does by mistake who tries something out."""
        copy = f"{self.ground.name}_copy"
        self.ground.close()
        copy_beside(self.site.server, self.ground.name, copy)
        try:
            before = self._witness()
            self.staff.start(self.plan.again, looks=True)
            self.staff.until(lambda: self._witness() != before)
            self._enqueue("anew")
            self._run_clone(copy)
        finally:
            drop(self.site.server, copy)

    def _run_clone(self, copy: str) -> None:
        changes: dict[str, Any] = {"database_url": self.ground.server.url(copy)}
        refused = self.plan.way == "clone, no key"
        if refused:
            changes |= {"home": str(self.home.with_name("elsewhere")), "vault_key": None}
        with self.site.server.admin(copy) as conn:
            (began,) = conn.execute(SENDS).fetchone() or (0,)
            if refused:
                mine = [self.staff.fork("command", ["worker"], **changes)]
                mine.append(self.staff.fork("reconciler", **changes))
                self.staff.until(lambda: not {*mine} & {*self.staff.alive})
                codes = {self.staff.ended[pid] for pid in mine}
                if codes != {_CLONE_REFUSED}:
                    self.result.problems.append(f"clone: it ended with {codes}")
            else:
                mine = [self.staff.fork(kind, **changes) for kind in ("worker", "reconciler")]
                self.staff.wait(_CLONE_RUNS * self.staff.pace)
                self.staff.signal_all(signal.SIGKILL, mine)
                self.staff.until(lambda: not {*mine} & {*self.staff.alive})
            (now,) = conn.execute(SENDS).fetchone() or (0,)
        if now != began:
            self.result.problems.append(f"clone: it began {now - began} sends")

    # The end

    def _settle(self) -> None:
        """Let machine and person settle everything; then let time go on, and once more."""
        pages = {self._channels[at["platform"]]: at["id"] for at in self._accounts.values()}
        settings = Settings(**self.staff.settings())
        gone = self.plan.spool == "lost"
        person = Person(settings, self.site.sandbox.log, pages, files_are_gone=gone)

        def is_quiet() -> bool:
            for statement in TIME_GOES_ON:
                self.ground.sql(statement)
            person.act()
            (open_,) = self.ground.sql(AT_REST, [*person.locked])
            promised = sandbox_log.read(self.site.sandbox.log).promised
            return not open_["jobs"] and not promised

        try:
            self.staff.until(is_quiet, pause=0.25)
            while self._bring_forward():
                self.staff.until(is_quiet, pause=0.25)
        finally:
            person.leave()
            self.result.did.update(person.did)
        last = {*self.staff.alive}
        self.staff.signal_all(signal.SIGTERM)
        self.staff.until(lambda: not self.staff.alive, within=_ENDS_WITHIN)
        ended = {self.staff.ended[pid] for pid in last}
        # Whoever was left running may have stopped by itself, and says so.
        if ended - {0, 1 if self.plan.end == "left running" else 0}:
            self.result.problems.append(f"the last ones ended with {ended}")

    def _judge_what_is_there(self) -> None:
        try:
            self._judge()
        except psycopg.Error as error:
            self.result.problems.append(f"the journal cannot be read: {error}")

    def _judge(self) -> None:
        journal = {name: self.ground.sql(query) for name, query in judging.JOURNAL.items()}
        log = sandbox_log.read(self.site.sandbox.log)
        approved = [
            Approved(
                post,
                post.mark(self.plan.seed),
                self._accounts[post.platform]["id"],
                may_be_gone=post.since == "after" and not self.plan.is_clone,
            )
            for post in self.plan.posts
            if post.mark(self.plan.seed) in self._enqueued
        ]
        self.result.verdict = judging.judge(approved, journal, log)
        if not self.plan.is_clone:
            moves = [m for m in self.ground.sql(recorder.MOVES) if m["was"] is not None]
            self.result.moves.update((m["was"], m["became"]) for m in moves)
        # Sends of posts that are gone with the journal: told, and for people to look at.
        settings = Settings(**self.staff.settings())
        self.result.verdict.audits += questions.ask(settings, alerted=True, but={_ORPHANS})

    # What there is to see

    def _requested(self) -> set[str]:
        """Marks that were asked to be published, by the platform's own log."""
        pages = {at["id"] for at in self._accounts.values()}
        return {
            request.message.partition(" ")[0]
            for request in sandbox_log.read(self.site.sandbox.log).requests
            if request.publishes and request.page in pages
        }

    def _await_sent(self, count: int) -> None:
        """Wait until so many were asked for, or no more are to come for now."""
        until = time.monotonic() + SENDS_WITHIN * self.staff.pace
        while time.monotonic() < until and len(self._requested()) < count:
            self.staff.take(0.05)

    def _database(self) -> Any:
        settings = Settings(**self.staff.settings())
        return Database.open(
            settings, Role.APP, application_name="editor", pool_size=1, workspace=EVERY
        )

    def _witness(self) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return (self.home / "witness").read_bytes()
        return b""


def run(site: Site, plan: Plan) -> Result:
    """Run one plan on ``site``."""
    site.renew()
    folder = site.folder / f"plan-{plan.seed}-{time.monotonic_ns()}"
    folder.mkdir()
    with _database(site, folder) as ground:
        result = Run(site, plan, ground, ground.settings.home).go()
    shutil.rmtree(folder, ignore_errors=True)
    return result


@contextmanager
def _database(site: Site, folder: Path) -> Iterator[Ground]:
    home = folder / "home"
    home.mkdir()
    with site.server.new_database() as name:
        url = SecretStr(site.server.url(name))
        ground = Ground(site.server, name, Settings(home=home, database_url=url))
        try:
            yield ground
        finally:
            ground.close()
