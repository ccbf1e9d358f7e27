"""The processes of one plan: workers, reconcilers and commands, with the settings they share."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import signal
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import psycopg

from publisher.rehearsal.restores.plan import Plan
from publisher.rehearsal.restores.site import Site
from publisher.rehearsal.stage.ground import ALERTED, Ground
from publisher.rehearsal.stage.pace import LOOK_LEASE, pace, times
from publisher.rehearsal.stage.staff import send
from publisher.sandbox.pages import APPLICATION

_STANDSTILL = 60.0
_BROKEN_STANDSTILL = 12.0
_AWAY = ("UnreachableError", "OperationalError", "LoginRefusedError", "InterfaceError")
_STANDING = (
    "SELECT c.key, j.state, j.reason, j.hold_reason, j.run_at - clock_timestamp() AS due,"
    " q.asked_at IS NOT NULL AS asked, q.last_look, q.next_look_at - clock_timestamp() AS look,"
    " d.asked_reason FROM jobs j JOIN job_contents c ON c.job_id = j.id"
    " LEFT JOIN quarantined q ON q.job_id = j.id AND q.released_at IS NULL"
    " LEFT JOIN doubts d ON d.job_id = j.id"
    " WHERE j.state IN ('scheduled', 'claimed', 'sending', 'unknown') ORDER BY j.id"
)


class Staff:
    """Forks, signals, waits. ``problems``: children that ended by a fault of theirs."""

    def __init__(self, site: Site, plan: Plan, ground: Ground, home: Path) -> None:
        self._site, self._plan, self._ground, self._home = site, plan, ground, home
        self.pace = pace()
        self.alive: dict[int, str] = {}
        self.ended: dict[int, int] = {}
        """Exit codes, or minus the signal, of those that have ended."""
        self.problems: list[str] = []
        self.log = home.with_suffix(".log")
        self.log.touch()
        self._key = base64.b64encode(secrets.token_bytes(32)).decode()
        self._forks = 0

    def settings(self) -> dict[str, Any]:
        """Fields of ``Settings``."""
        return {
            **times(self.pace),
            "home": str(self._home),
            "vault_key": self._key,
            "database_url": self._ground.server.url(self._ground.name),
            "graph_url": self._site.sandbox.url,
            "graph_application": APPLICATION,
            "concurrency": self._plan.concurrency,
            "look_limit": 4,
            "alert_channels": [ALERTED],
            "alert_gather_seconds": 0.1,
            "alert_pause_seconds": 0.3,
            "log_format": "json",
            "log_level": "info",
        }

    def fork(
        self,
        kind: str,
        words: Sequence[str] = (),
        **changes: Any,
    ) -> int:
        """Fork a worker, a reconciler, or the command ``publisher`` with these ``words``."""
        self._forks += 1
        name = f"{kind[0]}{self._forks}"
        order = {
            "settings": {**self.settings(), **changes}, "strikes": [], "log": str(self.log),
            "lease": LOOK_LEASE * self.pace, "variant": self._plan.variant,
            "words": list(words),
        }  # fmt: skip
        pid = self._site.forge.fork(kind, name, order)
        self.alive[pid] = name
        return pid

    def start(self, workers: int, *, looks: bool) -> None:
        """Fork so many workers, and a reconciler."""
        for _ in range(workers):
            self.fork("worker")
        if looks:
            self.fork("reconciler")

    def command(self, words: Sequence[str]) -> int:
        """Run ``publisher`` with these words; returns its exit code."""
        pid = self.fork("command", words)
        self.until(lambda: pid not in self.alive)
        return self.ended[pid]

    def signal_all(self, number: signal.Signals, only: Collection[int] | None = None) -> None:
        """Send a signal to everybody who is alive, or to these."""
        for pid in [*self.alive] if only is None else only:
            if pid in self.alive:
                send(pid, number)

    def take(self, seconds: float) -> None:
        """Hear what children said; waits up to ``seconds`` for the first word."""
        for event in self._site.forge.poll(seconds):
            if "ended" in event:
                self.ended[event["ended"]] = event["status"]
                self.alive.pop(event["ended"], None)
            elif "broke" in event and "Error" in event["trace"]:
                self._broke(event)

    def _broke(self, event: dict[str, Any]) -> None:
        """A child that ended by an error: the database may be away for a moment, ours may not."""
        is_away = self._plan.by_files or self._plan.end == "left running"
        if is_away and any(word in event["trace"] for word in _AWAY):
            return
        self.problems.append(f"{event['broke']} broke: {event['trace'][-900:]}")

    def wait(self, seconds: float) -> None:
        """Let them work for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.take(0.05)

    def until(
        self, holds: Callable[[], bool], *, within: float = _STANDSTILL, pause: float = 0.03
    ) -> None:
        """Wait until it holds. Raises ``TimeoutError``."""
        if self._plan.variant is not None:
            within = min(within, _BROKEN_STANDSTILL)
        until = time.monotonic() + within * self.pace
        while True:
            self.take(pause)
            with contextlib.suppress(psycopg.Error):
                if holds():
                    return
            if time.monotonic() > until:
                raise TimeoutError(self._standing())

    def _standing(self) -> str:
        with contextlib.suppress(psycopg.Error):
            rows = json.dumps(self._ground.sql(_STANDING), default=str)
            return f"alive {self.alive}, open {rows[:2500]}"
        return f"alive {self.alive}, and no database"
