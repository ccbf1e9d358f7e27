"""One schedule, from the empty database to the verdict."""

from __future__ import annotations

import contextlib
import json
import math
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pydantic import SecretStr

from publisher.config import Settings
from publisher.db.roles import Role
from publisher.rehearsal.lines import Event
from publisher.rehearsal.plan import variants
from publisher.rehearsal.plan.blows import PEOPLE
from publisher.rehearsal.plan.catalogue import HOLD_CONNECTIONS, Hit
from publisher.rehearsal.plan.schedule import OTHERS, Schedule, with_victims
from publisher.rehearsal.stage import recorder, stories
from publisher.rehearsal.stage.ground import Ground
from publisher.rehearsal.stage.lane import Lane
from publisher.rehearsal.stage.result import Result
from publisher.rehearsal.stage.staff import Staff
from publisher.rehearsal.verdict import questions
from publisher.rehearsal.verdict import verdict as judging
from publisher.rehearsal.verdict.verdict import Verdict, Witnessed
from publisher.sandbox import log as sandbox_log
from publisher.sandbox.behaviours import Behaviour

_CHAOS_SECONDS = 7.0
_IDLE_SECONDS = 0.8
_STANDSTILL = 60.0
_BROKEN_STANDSTILL = 8.0
_ENDS_WITHIN = 60.0
_AT_MOST = 600.0
_HASTE_SECONDS = 0.2
_LANDED_SECONDS = 1.4
"""What was accepted late is on its page by then."""
_MARGIN_SECONDS = 0.3
_BROKEN_LINES = frozenset({
    "move.broke", "job.parked", "clock.parted", "progress.refused", "transport.broke",
    "prepare.broke", "publish.broke", "look.broke", "step.broke", "spool.damaged",
})  # fmt: skip
"""What a worker never logs, whatever is done to it from outside."""
_AWAY = ("UnreachableError", "OperationalError", "LoginRefusedError", "InterfaceError")
"""What a child may end with when the database is away just then."""


class Run:
    """A schedule on a lane."""

    def __init__(self, lane: Lane, schedule: Schedule, ground: Ground, home: Path) -> None:
        self.lane, self.schedule, self.ground, self.home = lane, schedule, ground, home
        self.keeps_journal = False
        self.staff = Staff(lane, schedule, ground, home)
        self.seen = Witnessed(
            is_compacted=schedule.compact_bytes is not None, false_keys=bool(schedule.keys)
        )
        self.result = Result(
            schedule.seed,
            Verdict(),
            variant=schedule.variant,
            scenario=schedule.scenario,
            server=lane.server.version,
        )
        self._hastened = 0.0
        self._reserve = 1
        self._is_healed = False
        self._all_landed_at = math.inf

    def go(self) -> Result:
        """Run it."""
        began = time.monotonic()
        try:
            self._set_up()
            self._chaos()
            self._heal()
            self._await_quiet()
            self._judge()
        except TimeoutError as error:
            self.result.problems.append(f"not quiet: {error}")
            with contextlib.suppress(psycopg.Error):
                self._judge()
        finally:
            self._clear_up()
        self.result.seconds = time.monotonic() - began
        return self.result

    # The way

    def _set_up(self) -> None:
        schedule, control = self.schedule, self.lane.sandbox.control
        pages = self.lane.new_pages(schedule.pages, schedule.others)
        alerted = self.lane.receiver.url(self.home.name)
        self.ground.add_pages(schedule, pages, alerted=alerted)
        if schedule.variant is not None:
            self.ground.break_guards(variants.load("crashes")[schedule.variant].guards)
        self._arrange(pages)
        self._enqueue()
        if schedule.holds_connections:
            control.hold_connections(2.0)
            self.result.behaviours[HOLD_CONNECTIONS] += 1
        if schedule.edits:
            self.staff.fork_editor()
        if schedule.settlers:
            self.staff.fork_settler(schedule.settlers, waits=_CHAOS_SECONDS)

    def _arrange(self, pages: list[dict[str, str]]) -> None:
        """Tell the platforms how to behave, as far as no text of a post does."""
        schedule, control = self.schedule, self.lane.sandbox.control
        for plan in schedule.posts:
            if plan.behaviour is Behaviour.REFUSE_DUPLICATE:
                control.foreign_post(pages[plan.page]["id"], plan.text(schedule.seed))
        if schedule.reset_unread:
            control.behave(Behaviour.RESET_UNREAD, page=pages[0]["id"], endpoint="feed", after=1)
        for behaviour, times, seconds in schedule.uploads:
            control.behave(
                behaviour, page=pages[0]["id"], endpoint="photos", times=times, seconds=seconds
            )
        for page in pages:
            if schedule.keys and page["platform"] == "mastodon":
                control.mastodon(page["id"], keys=schedule.keys)
                self.result.behaviours[f"key {schedule.keys}"] += 1
            if schedule.listing is not None:
                control.behave(
                    schedule.listing, page=page["id"], endpoint="list", times=None,
                    seconds=schedule.listing_seconds,
                )  # fmt: skip

    def _enqueue(self) -> None:
        """Add the posts, again and again while whoever does it is killed over it."""
        struck = [hit for hit in self.schedule.hits if hit.place.startswith("enqueue")]
        for number in range(1, 12):
            name = f"s{number}"
            if struck:
                self.staff.rule(name, struck.pop())
            order = {
                "settings": self.staff.settings(role=Role.APP),
                "jobs": self.ground.jobs,
            }
            pid = self.lane.forge.fork("scheduler", name, order)
            if self.lane.forge.await_end(pid) == 0 and not struck:
                return
            self._take(self._events(0))
        message = "the posts could not be added"
        raise TimeoutError(message)

    def _chaos(self) -> None:
        """Let everything strike; in the end, or when nothing more comes, it is over."""
        until = time.monotonic() + _CHAOS_SECONDS * self.staff.pace
        busy_at = time.monotonic()
        while time.monotonic() < until:
            self._take(self._events(0.05))
            self.staff.fill()
            with contextlib.suppress(psycopg.Error):
                self.staff.thaw()
                self._hasten()
                if self._reserve or self.staff.is_waiting or self.ground.open_jobs():
                    busy_at = time.monotonic()
            if self.staff.is_struck or time.monotonic() - busy_at > _IDLE_SECONDS:
                return

    def _heal(self) -> None:
        # A broken variant is given no better world to hide in.
        if self.schedule.variant is None:
            self.lane.relay.heal()
            self.lane.sandbox.control.heal()
            self.staff.wake_all()
        self._is_healed = True

    def _await_quiet(self) -> None:
        """Let the struck ones end; one calm worker does the rest, and reads what they left."""
        staff = self.staff
        is_broken = self.schedule.variant is not None
        final = staff.fork("final", [], is_calm=not is_broken)
        # A broken variant is left to itself until it has done what it does.
        self._until(lambda: final in staff.ready and (not is_broken or self._is_done()))
        if is_broken:
            self._until(lambda: not any(name[0] == PEOPLE for name in staff.alive.values()))
        kept, looker = {final}, None
        if self.schedule.reconcilers:
            looker = staff.fork_reconciler("rf", [])
            kept.add(looker)
        staff.signal_all(signal.SIGTERM, but=kept)
        try:
            self._until(lambda: {*staff.alive} == kept, within=_ENDS_WITHIN)
        except TimeoutError:
            self.result.problems.append(f"did not end when told to: {staff.alive}")
            staff.signal_all(signal.SIGUSR1, but=kept)
            self._take(self._events(1.0))
            staff.signal_all(signal.SIGKILL, but=kept)
            self._until(lambda: {*staff.alive} == kept)
        self._until(lambda: self._is_done() and self.ground.spools() == 1)
        horizon = Settings(**staff.settings()).horizon
        self._all_landed_at = time.monotonic() + horizon + _MARGIN_SECONDS
        if looker is not None:
            self._until(lambda: looker in staff.ready)
            self._await_looks()
        if self.schedule.late_settlers:
            settler = staff.fork_settler(self.schedule.late_settlers, waits=0.3)
            self._until(lambda: settler not in staff.alive)
            self._await_looks()
        staff.signal_all(signal.SIGTERM)
        self._until(lambda: not staff.alive)
        if staff.ended[final] != 0:
            self.result.problems.append(f"the last worker ended with {staff.ended[final]}")
        if looker is not None and staff.ended[looker] != 0:
            self.result.problems.append(f"the last reconciler ended with {staff.ended[looker]}")
        self._until(lambda: not sandbox_log.read(self.lane.sandbox.log).promised)

    def _await_looks(self) -> None:
        """Let the reconciler look until it has found it, or asks a person, and all else be done.

        Whoever began a send is gone by now, and what they wrote lands within the horizon: where
        absence or a repeat is at stake, the rest of the looks is of use only then.
        """

        def is_over() -> bool:
            is_done = self._is_done()
            has_all_landed = time.monotonic() > self._all_landed_at
            but = [] if has_all_landed else [*OTHERS]
            if self.schedule.variant and not has_all_landed:
                but.append("facebook_pages")  # some of them show themselves only then
            left = self.ground.hasten_looks(but, since=_LANDED_SECONDS)
            # Asked once more: a send may have become a doubt, and a doubt a send, meanwhile.
            return is_done and not left and not self.ground.untold() and self._is_done()

        self._until(is_over)

    def _judge(self) -> None:
        journal = {name: self.ground.sql(query) for name, query in judging.JOURNAL.items()}
        audits = {name: self.ground.sql(query) for name, query in judging.AUDITS.items()}
        log = sandbox_log.read(self.lane.sandbox.log)
        result = self.result
        receiver, path = self.lane.receiver, self.home.name
        self.seen.told = receiver.told(path) if self.schedule.reconcilers else None
        result.verdict = judging.judge(self.ground.approved, journal, audits, log, self.seen)
        moves = self.ground.sql(recorder.MOVES)
        result.moves.update((m["was"], m["became"]) for m in moves if m["was"] is not None)
        result.races = self.staff.races
        if self.keeps_journal:
            result.journal = journal | {"moves": moves}
        if not self.schedule.variant:
            settings = Settings(**self.staff.settings(direct=True))
            told = bool(self.schedule.reconcilers)
            result.verdict.audits += questions.ask(settings, alerted=told)
        changed = receiver.changed(path)
        result.verdict.audits += [f"an event came with another body: {event}" for event in changed]
        pages = {one.page for one in self.ground.approved}
        result.behaviours.update(r.behaviour for r in log.requests if r.page in pages)
        result.problems += self._broken_lines()
        result.stories += stories.tell(result.broken, self.ground, log, self.lane.sandbox.url)

    def _clear_up(self) -> None:
        self.staff.signal_all(signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            self._until(lambda: not self.staff.alive, within=_ENDS_WITHIN)
        if (self.home / "log").exists():
            self.result.log = (self.home / "log").read_text()

    # What happens

    def _events(self, seconds: float) -> list[Event]:
        forge, relay = self.lane.forge, self.lane.relay
        waiting = forge.poll(0) + relay.waiting()
        with selectors.DefaultSelector() as ready:
            for source in (*forge.sources, relay.source):
                ready.register(source.descriptor, selectors.EVENT_READ, source)
            came = ready.select(0 if waiting else seconds)
            return waiting + [event for key, _ in came for event in key.data.read()]

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if "fired" in event:
                is_persons = str(event.get("worker", "")).startswith(PEOPLE)
                layer = "people" if is_persons else event["layer"]
                hit = Hit(layer, event["place"], event.get("when", "at"), event["fired"])
                self.result.fired.append(hit)
                self.staff.fired(hit, event.get("pid") or 0)
            elif "broke" in event and not any(word in event["trace"] for word in _AWAY):
                self.result.problems.append(f"{event['broke']} broke: {event['trace'][-900:]}")
            elif "settled" in event:
                if "breach" in event:
                    self.result.problems.append(f"verdict: {event['breach']}")
                said = event.get("refused", "done")
                self.result.verdicts[f"{event['settled']}: {said}"] += 1
                self.result.verdicts.update(event.get("others", ()))
            elif "edited" in event:
                said = "refused" if "refused" in event else "done"
                self.result.edits[f"{event['edited']} {said}"] += 1
            elif not self.staff.take(event):
                self.seen.take(event)

    def _hasten(self) -> None:
        if time.monotonic() - self._hastened < _HASTE_SECONDS:
            return
        self._hastened = time.monotonic()
        self.ground.hasten()
        few = max(2, len(self.staff.alive) // 2)
        if self._reserve and (self._is_healed or self.ground.open_jobs() < few):
            self._reserve = self.ground.release_reserve(1000 if self._is_healed else 2)

    def _until(self, holds: Callable[[], bool], *, within: float = _STANDSTILL) -> None:
        """Wait until it holds; in vain when nothing moves for so long, not when it is slow.

        Raises ``TimeoutError``.
        """
        if self.schedule.variant is not None:
            within = min(within, _BROKEN_STANDSTILL)
        seen, since, until = "", time.monotonic(), time.monotonic() + _AT_MOST
        while True:
            self._take(self._events(0.03))
            with contextlib.suppress(psycopg.Error):
                self.staff.thaw()
                self._hasten()
                if holds():
                    return
                if (now := f"{self.ground.moves()} {self.staff.alive}") != seen:
                    seen, since = now, time.monotonic()
            if time.monotonic() > min(since + within, until):
                raise TimeoutError(self._standing())

    def _is_done(self) -> bool:
        """Every job has ended; none is left on hold or, brought back by a person, in reserve."""
        ground = self.ground
        return not (ground.release_reserve(1000) or ground.release_holds() or ground.open_jobs())

    def _standing(self) -> str:
        with contextlib.suppress(psycopg.Error):
            shown = json.dumps(self.ground.unfinished(), default=str)
            return f"alive {self.staff.alive}, files {self.ground.spools()}, open {shown[:1500]}"
        return f"alive {self.staff.alive}, and no database"

    def _broken_lines(self) -> list[str]:
        lines = (self.home / "log").read_text().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [
            f"log: {event}"
            for event in events
            if event.get("event") in _BROKEN_LINES
            and "psycopg.OperationalError" not in event.get("exception", "")
        ]


def run(lane: Lane, schedule: Schedule, *, keeps_journal: bool = False) -> Result:
    """Run one schedule on ``lane``."""
    lane.renew()
    schedule = with_victims(schedule)
    with _database(lane, schedule) as (ground, home):
        this = Run(lane, schedule, ground, home)
        this.keeps_journal = keeps_journal
        return this.go()


@contextmanager
def _database(lane: Lane, schedule: Schedule) -> Iterator[tuple[Ground, Path]]:
    home = lane.folder / f"home-{schedule.seed}-{time.monotonic_ns()}"
    home.mkdir()
    with lane.server.new_database() as name:
        settings = Settings(home=home, database_url=SecretStr(lane.server.url(name)))
        ground = Ground(lane.server, name, settings)
        try:
            yield ground, home
        finally:
            ground.close()
