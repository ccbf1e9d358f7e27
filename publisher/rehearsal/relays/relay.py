"""The process that stands between workers, database and platform.

Orders come as lines on standard input, what happened goes out as lines on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from publisher.rehearsal.lines import Event, Lines
from publisher.rehearsal.plan.blows import Blow, Rule
from publisher.rehearsal.relays.database_relay import DatabaseRelay
from publisher.rehearsal.relays.wire_relay import WireRelay


class Relay:
    """The relay as its starter sees it. ``port``: of the database. For one thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._orders = process.stdin
        self._output = process.stdout
        self.source = Lines(process.stdout.fileno())
        self._waiting: list[Event] = []
        self.port = int(self._answer("ready")["ready"])

    @classmethod
    def start(cls, database: str, platform: int) -> Self:
        """Relay to the server at ``database``, and to the platform's port on this machine."""
        process = subprocess.Popen(
            [sys.executable, "-m", "publisher.rehearsal.relays.relay", database, str(platform)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        return cls(process)

    def port_for(self, worker: str) -> int:
        """Open a port to the platform for ``worker``."""
        self._order(do="listen", worker=worker)
        return int(self._answer("listening")["listening"])

    def rule(self, layer: str, rule: Rule) -> None:
        """Add a rule to ``database`` or ``wire``."""
        self._order(
            do="rule", layer=layer, worker=rule.worker, place=rule.place, when=rule.when,
            blow=rule.blow, nth=rule.nth, seconds=rule.seconds,
        )  # fmt: skip

    def refuse(self, worker: str, seconds: float) -> None:
        """Let this worker's connections to the platform be refused for so long."""
        self._order(do="refuse", worker=worker, seconds=seconds)

    def away(self, seconds: float) -> None:
        """Cut every connection to the database, and let nobody in for so long."""
        self._order(do="away", seconds=seconds)

    def heal(self) -> None:
        """Drop every rule, close workers' ports."""
        self._order(do="heal")
        self._answer("healed")

    def renew(self) -> None:
        """Forget everything of one schedule."""
        self._order(do="renew")
        self._answer("healed")

    def waiting(self) -> list[Event]:
        """What came while an answer was waited for."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._orders.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _order(self, **order: Any) -> None:
        self._orders.write(json.dumps(order).encode() + b"\n")

    def _answer(self, key: str) -> Event:
        while True:
            found: Event | None = None
            for event in self.source.read():
                if key in event and found is None:
                    found = event
                else:
                    self._waiting.append(event)
            if found is not None:
                return found


# The relay itself.


async def serve(database: str, platform: int) -> None:
    """Relay until standard input ends."""

    def tell(**facts: Any) -> None:
        os.write(1, json.dumps(facts).encode() + b"\n")

    below = DatabaseRelay(database, tell)
    beside = WireRelay(platform, tell, below.pids)
    tell(ready=await below.listen())
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    while line := await orders.readline():
        order = json.loads(line)
        match order["do"]:
            case "listen":
                tell(listening=await beside.listen(order["worker"]))
            case "refuse":
                beside.refuse(order["worker"], order["seconds"])
            case "away":
                below.away(order["seconds"])
            case "rule":
                rule = Rule(
                    order["worker"], order["place"], order["when"], Blow(order["blow"]),
                    order["nth"], order["seconds"],
                )  # fmt: skip
                (below if order["layer"] == "database" else beside).rules.append(rule)
            case "heal" | "renew":
                below.rules.clear()
                beside.rules.clear()
                if order["do"] == "renew":
                    below.seen.clear()
                    below.pids.clear()
                    beside.close_all()
                tell(healed=True)
            case other:
                raise ValueError(other)
    # What is still under way ends with the process: nobody is there to hear of it.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
