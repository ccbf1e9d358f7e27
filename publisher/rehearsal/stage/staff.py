"""The processes of one schedule: who is alive, who is frozen, and what is still to strike whom."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from publisher.db.roles import Role
from publisher.rehearsal.lines import Event
from publisher.rehearsal.plan.blows import PEOPLE, Blow, Rule
from publisher.rehearsal.plan.catalogue import Hit
from publisher.rehearsal.plan.places import Fault, Place
from publisher.rehearsal.plan.schedule import Schedule
from publisher.rehearsal.stage.ground import ALERTED, Ground
from publisher.rehearsal.stage.lane import Lane
from publisher.rehearsal.stage.pace import LOOK_LEASE, calm_times, pace, times
from publisher.sandbox.pages import APPLICATION

Strikes = list[tuple[str, str, int]]

_HOLD_SECONDS = 3.2
"""Longer than any lease lasts and any window is open."""
_AWAY_SECONDS = 3.0
_STARTS_SECONDS = 0.4
"""About what a server takes that was stopped at once."""
_REFUSED_SECONDS = 1.0
_MOMENT = 0.4
_LEASE_IS_OVER = 1.5
_FROZEN_AT_MOST = 6.0
_SLOW_SECONDS = 0.5
_CROWD = 8
_FORKS = 30
_RECONCILERS = 3
"""At most so many at once, whoever is frozen among them."""


@dataclass
class _Frozen:
    """A stopped worker. ``until``: for a moment, until its jobs are taken, or until they ended."""

    since: float
    until: str
    jobs: list[int] | None = None


class Staff:
    """Forks workers, strikes them, wakes them up."""

    def __init__(self, lane: Lane, schedule: Schedule, ground: Ground, home: Path) -> None:
        self._lane, self._schedule, self._ground, self._home = lane, schedule, ground, home
        self._rng = schedule.rng
        self.pace = pace()
        hits = [h for h in schedule.hits if not h.place.startswith("enqueue")]
        self._pending = deque(h for h in hits if not h.is_reconcilers and h.layer != "people")
        self._for_reconcilers = deque(h for h in hits if h.is_reconcilers)
        self._for_people = deque(h for h in hits if h.layer == "people")
        self._waited_for: set[Hit] = set()
        self._twice: set[int] = set()
        self._frozen: dict[int, _Frozen] = {}
        self._forks = 0
        self._last_fork = 0.0
        self._reconcilers = self._settlers = 0
        self._last_reconciler = 0.0
        self.alive: dict[int, str] = {}
        self.ended: dict[int, int] = {}
        """Exit codes, or minus the signal, of those that have ended."""
        self.races = 0
        """Jobs that were taken from a frozen worker, which then woke up and wanted to go on."""
        self.ready: set[int] = set()
        """Those that have their database and hear signals."""

    @property
    def is_struck(self) -> bool:
        """Everything that was to strike has, and nobody is frozen."""
        return not (self._pending or self._for_reconcilers or self._waited_for or self._frozen)

    @property
    def is_waiting(self) -> bool:
        """More is to come whatever the workers do."""
        return bool(self._pending or self._frozen)

    def fill(self) -> None:
        """See that enough workers are at work, and that each hit comes to one."""
        working = [pid for pid, name in self.alive.items() if name[0] == "w"]
        awake = [pid for pid in working if pid not in self._frozen]
        is_slow = time.monotonic() - self._last_fork > _SLOW_SECONDS
        wanted = (len(awake) < self._schedule.workers or is_slow) if self._pending else not awake
        if wanted and len(working) < _CROWD and self._forks < _FORKS:
            self._next_worker()
        self._fill_reconcilers()

    def _fill_reconcilers(self) -> None:
        working = [pid for pid, name in self.alive.items() if name[0] == "r"]
        awake = [pid for pid in working if pid not in self._frozen]
        is_slow = time.monotonic() - self._last_reconciler > _SLOW_SECONDS
        wanted = len(awake) < self._schedule.reconcilers or (self._for_reconcilers and is_slow)
        if wanted and len(working) < _RECONCILERS and self._reconcilers < _FORKS:
            self._reconcilers += 1
            self._last_reconciler = time.monotonic()
            name, strikes = f"r{self._reconcilers}", []
            if self._for_reconcilers and self._schedule.reconcilers:
                hit = self._for_reconcilers.popleft()
                self._waited_for.add(hit)
                if hit.layer == "reconciler":
                    strikes = [(hit.place, hit.fault, 1)]
                else:
                    self.rule("" if self._schedule.variant is None else name, hit)
            self.fork_reconciler(name, strikes)

    def fork_reconciler(self, name: str, strikes: Strikes) -> int:
        """Fork a reconciler."""
        order = {
            "settings": self.settings(graph=self._lane.relay.port_for(name)), "strikes": strikes,
            "log": str(self._home / "log"), "lease": LOOK_LEASE * self.pace,
            "variant": self._schedule.variant,
        }  # fmt: skip
        pid = self._lane.forge.fork("reconciler", name, order)
        self.alive[pid] = name
        return pid

    def fork_settler(self, times: int, *, waits: float) -> int:
        """Fork a person who settles doubts at random moments, ``times`` of them.

        ``waits``: seconds after which they go away when nothing is in doubt.
        """
        self._settlers += 1
        name = f"{PEOPLE}{self._settlers}"
        places: Counter[str] = Counter()
        while self._for_people:
            hit = self._for_people.popleft()
            self._waited_for.add(hit)
            places[hit.when] += 1
            self.rule(name, hit, nth=places[hit.when])
        port = int(self._lane.sandbox.url.rpartition(":")[2])
        order = {
            "settings": self.settings(graph=port, role=Role.APP), "times": times,
            "waits": waits * self.pace, "acts": self._schedule.acts,
            "page": str(self._lane.sandbox.log),
            "chance": f"{self._schedule.seed}:{name}", "variant": self._schedule.variant,
        }  # fmt: skip
        pid = self._lane.forge.fork("settler", name, order)
        self.alive[pid] = name
        return pid

    def fork(
        self, name: str, strikes: Strikes, *, refused: bool = False, is_calm: bool = False
    ) -> int:
        """Fork a worker. ``refused``: the platform refuses its connections at first.

        ``is_calm``: with durations that no swamped machine makes too short.
        """
        port = self._lane.relay.port_for(name)
        if refused:
            self._lane.relay.refuse(name, _REFUSED_SECONDS)
        settings = self.settings(graph=port) | (calm_times() if is_calm else {})
        order = {
            "settings": settings, "strikes": strikes,
            "log": str(self._home / "log"), "listen": self._schedule.listens,
            "variant": self._schedule.variant, "chance": f"{self._schedule.seed}:{name}",
            "people": self.settings(direct=True),
        }  # fmt: skip
        if self._schedule.compact_bytes is not None:
            order["compact_bytes"] = self._schedule.compact_bytes
        pid = self._lane.forge.fork("worker", name, order)
        self.alive[pid] = name
        self._last_fork = time.monotonic()
        return pid

    def fork_editor(self) -> None:
        """Fork a person who edits at random moments."""
        order = {
            "settings": self.settings(direct=True), "times": self._schedule.edits,
            "of": self._schedule.edits_of,
            "chance": self._schedule.seed, "variant": self._schedule.variant,
        }  # fmt: skip
        self.alive[self._lane.forge.fork("editor", "e1", order)] = "e1"

    def rule(self, worker: str, hit: Hit, *, nth: int = 1) -> None:
        """Let the relay strike ``worker`` the ``nth`` time; empty: whoever comes there."""
        seconds = _HOLD_SECONDS * self.pace
        rule = Rule(worker, hit.place, hit.when, Blow(hit.fault), nth=nth, seconds=seconds)
        self._lane.relay.rule("wire" if hit.layer == "wire" else "database", rule)

    def settings(
        self, *, graph: int = 1, direct: bool = False, role: Role = Role.ENGINE
    ) -> dict[str, Any]:
        """Fields of ``Settings``. ``direct``: past relay and pooler."""
        name = self._ground.name
        server, past = self._ground.server, self._ground.server.direct_url(self._ground.name)
        relayed = server.url(name, port=self._lane.relay.port, role=role)
        return {
            **times(self.pace),
            "home": str(self._home),
            "database_url": (past or server.url(name)) if direct else relayed,
            "direct_url": past,
            "graph_url": f"http://127.0.0.1:{graph}",
            # Known, as the manual asks for: somebody else may have posted the same text.
            "graph_application": APPLICATION,
            "concurrency": self._schedule.concurrency,
            "alert_channels": [ALERTED],
            "alert_gather_seconds": 0.1,
            "alert_pause_seconds": 0.3,
            "log_format": "json",
            "log_level": "info",
        }

    def take(self, event: Event) -> bool:
        """Keep the books; whether the event was about that."""
        pid = event.get("pid", 0)
        if "ended" in event:
            self.ended[event["ended"]] = event["status"]
            self.alive.pop(event["ended"], None)
            self._frozen.pop(event["ended"], None)
            return True
        if "ready" in event:
            self.ready.add(pid)
            return True
        if "draining" in event and pid in self._twice:
            self._twice.discard(pid)
            send(pid, signal.SIGTERM)
            return True
        return False

    def fired(self, hit: Hit, pid: int) -> None:
        """Something struck: do the part of it that somebody else must do."""
        self._waited_for.discard(hit)
        match hit.fault:
            case Fault.FREEZE if pid in self.alive:
                until = self._schedule.frozen_for or self._rng.choice(("moment", "taken", "ended"))
                self._frozen[pid] = _Frozen(time.monotonic(), until)
            case Fault.TERM_TWICE:
                self._twice.add(pid)
            case Blow.RESTART:
                self._stop_server(_STARTS_SECONDS)
            case Blow.OUTAGE:
                self._stop_server(_AWAY_SECONDS * self.pace)
            case Blow.TERMINATE if not self._lane.server.can_stop:
                self._ground.server.end_sessions(self._ground.name)
            case _:
                pass

    def _stop_server(self, seconds: float) -> None:
        """Stop it at once; one that is not ours to stop is cut off for so long."""
        if self._lane.server.can_stop:
            self._lane.server.restart(away_for=0.0 if seconds == _STARTS_SECONDS else seconds)
        else:
            self._lane.relay.away(seconds)

    def thaw(self) -> None:
        """Wake who was frozen when its time has come, at the latest after a short while."""
        for pid, frozen in [*self._frozen.items()]:
            passed = (time.monotonic() - frozen.since) / self.pace
            if passed < _MOMENT:
                continue
            if frozen.jobs is None:
                frozen.jobs = self._ground.jobs_of(pid)
            is_patient = frozen.until == "decided"
            is_over = frozen.until == "moment" or (
                not self._ground.still_open(frozen.jobs, or_in_doubt=is_patient)
                if frozen.until == "ended" or is_patient
                else passed > _LEASE_IS_OVER and not self._ground.jobs_of(pid)
            )
            at_most = _FROZEN_AT_MOST * (2 if is_patient else 1)
            if is_over or passed > at_most:
                if self._schedule.kills_frozen:
                    send(pid, signal.SIGKILL)
                elif passed > _LEASE_IS_OVER:
                    self.races += len({*frozen.jobs} - {*self._ground.jobs_of(pid)})
                self._wake(pid)

    def wake_all(self) -> None:
        """Wake everybody now."""
        for pid in [*self._frozen]:
            self._wake(pid)

    def signal_all(self, number: signal.Signals, *, but: Collection[int] = ()) -> None:
        """Send a signal to everybody who is alive."""
        for pid in [*self.alive]:
            if pid not in but:
                send(pid, number)

    def _wake(self, pid: int) -> None:
        self._frozen.pop(pid, None)
        send(pid, signal.SIGCONT)

    def _next_worker(self) -> None:
        self._forks += 1
        name = f"w{self._forks}"
        if not self._pending:
            self.fork(name, [])
            return
        hit = self._pending.popleft()
        self._waited_for.add(hit)
        if hit.layer != "worker" and hit.fault != "refuse":
            # Whoever comes there: which of them it is makes no difference.
            self.rule("" if self._schedule.variant is None else name, hit)
        for companion in self._schedule.companions:
            self.rule(name, companion)
        strikes = self._strikes(hit) if hit.layer == "worker" else []
        self.fork(name, strikes, refused=hit.fault == "refuse")

    def _strikes(self, hit: Hit) -> Strikes:
        if hit.place == Place.SPOOL_CLOSED:
            return [("after settle", Fault.TERM, 1), (hit.place, hit.fault, 1)]
        if hit.place == Place.SPOOL_WRITE:
            return [(hit.place, hit.fault, self._rng.choice((2, 3, 4)))]
        if self._schedule.variant is not None:
            return [(hit.place, hit.fault, 1)]
        return [(hit.place, hit.fault, self._rng.choice((1, 1, 2)))]


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process we forked; it may be gone by now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
