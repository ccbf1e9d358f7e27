"""A relay before PostgreSQL that knows which statement passes, and cuts before or after it."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from publisher.rehearsal.plan.blows import Blow, Rule
from publisher.rehearsal.relays.statements import Message, Messages, Sent, Statements
from publisher.rehearsal.relays.striking import SIGNALS, hit, reset

Tell = Callable[..., None]
_COMPLETE = (b"C", b"I", b"s")
"""CommandComplete, EmptyQueryResponse, PortalSuspended."""
_CANCEL_OR_TLS = (80877102, 80877103, 80877104)


class DatabaseRelay:
    """Listens on the loopback address; each connection goes on to the server.

    ``upstream``: the path of its socket, or ``host:port``.
    """

    def __init__(self, upstream: str, tell: Tell) -> None:
        self._upstream = upstream
        self._away_until = 0.0
        self._sessions: set[_Session] = set()
        self.tell = tell
        self.rules: list[Rule] = []
        self.pids: dict[str, int] = {}
        """Workers' process ids, by the name they connected under."""
        self.seen: set[tuple[str, str]] = set()

    async def listen(self) -> int:
        """Start; returns the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    def rule_for(self, worker: str, place: str, when: str) -> Rule | None:
        """Count the visit with every rule; the first whose turn it is is taken off."""
        struck = [rule for rule in self.rules if rule.strikes(worker, place, when)]
        if not struck:
            return None
        self.rules.remove(struck[0])
        return struck[0]

    def watches_answers_to(self, kind: str) -> bool:
        """Whether an answer to such a statement may have to be kept back until it is whole."""
        return any(rule.place == kind and rule.when == "after" for rule in self.rules)

    def away(self, seconds: float) -> None:
        """Cut every session and let nobody in for so long, as a server that is stopped at once."""
        self._away_until = time.monotonic() + seconds
        for session in [*self._sessions]:
            session.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await reader.readexactly(4)
            rest = await reader.readexactly(struct.unpack("!i", first)[0] - 4)
            if struct.unpack_from("!i", rest)[0] in _CANCEL_OR_TLS:
                writer.close()
                return
            if time.monotonic() < self._away_until:
                _abort(writer)
                return
            up_reader, up_writer = await self._open_up()
        except (OSError, asyncio.IncompleteReadError):
            _abort(writer)
            return
        name, pid = _who(rest)
        if pid:
            self.pids[name] = pid
        up_writer.write(first + rest)
        session = _Session(self, name, reader, writer, up_reader, up_writer)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)

    async def _open_up(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._upstream.startswith("/"):
            return await asyncio.open_unix_connection(self._upstream)
        host, _, port = self._upstream.rpartition(":")
        return await asyncio.open_connection(host, int(port))


@dataclass(slots=True)
class _Waiting:
    """See ``statements.Sent``, which this is after it was sent."""

    kind: str
    completes: int | None
    has_failed: bool = False


class _Answers:
    """What has gone to the server and is not answered yet, in order."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self.is_aborted = False

    @property
    def next_kind(self) -> str:
        """What the answer that comes now is to."""
        return self._waiting[0].kind if self._waiting else ""

    def expect(self, sent: Sent) -> None:
        """Something was sent. A Flush behind nothing is not answered."""
        if sent.completes != 0:
            self._waiting.append(_Waiting(sent.kind, sent.completes))

    def take(self, message: Message) -> _Waiting | None:
        """Count a message of an answer; at its last, say what was answered."""
        if not self._waiting:
            return None
        if message.type == b"Z":
            # Behind an error the server passes over everything up to the Sync.
            while (ended := self._waiting.popleft()).completes is not None:
                pass
            ended.has_failed, self.is_aborted = self.is_aborted, False
            return ended
        self.is_aborted |= message.type == b"E"
        first = self._waiting[0]
        if first.completes is not None and message.type in _COMPLETE:
            first.completes -= 1
            if first.completes == 0:
                return self._waiting.popleft()
        return None


class _Session:
    """One connection. One statement is under way at a time, as libpq has it."""

    def __init__(
        self,
        relay: DatabaseRelay,
        worker: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        self._relay, self._worker = relay, worker
        self._reader, self._writer = reader, writer
        self._up_reader, self._up_writer = up_reader, up_writer
        self._statements = Statements()
        self._backend = 0
        self._answers = _Answers()

    async def run(self) -> None:
        tasks = [asyncio.create_task(self._up()), asyncio.create_task(self._down())]
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in (self._writer, self._up_writer):
            writer.close()

    async def _up(self) -> None:
        messages, unit = Messages(), bytearray()
        while data := await self._reader.read(1 << 16):
            for message in messages.feed(data):
                unit += message.raw
                sent = self._statements.take(message)
                if sent is None:
                    continue
                if not await self._before(sent.kind):
                    return
                self._answers.expect(sent)
                self._up_writer.write(bytes(unit))
                unit.clear()

    async def _down(self) -> None:
        messages, held = Messages(), bytearray()
        while data := await self._up_reader.read(1 << 16):
            for message in messages.feed(data):
                held += message.raw
                if message.type == b"K":
                    (self._backend,) = struct.unpack_from("!i", message.body)
                if (answered := self._answers.take(message)) is not None:
                    if not await self._is_passed_on(answered):
                        return
                    self._flush(held)
            # Behind an error nothing more comes until the client has heard of it.
            is_kept = self._relay.watches_answers_to(self._answers.next_kind)
            if not is_kept or self._answers.is_aborted:
                self._flush(held)

    def _flush(self, held: bytearray) -> None:
        self._writer.write(bytes(held))
        held.clear()

    async def _before(self, kind: str) -> bool:
        """What is done before a statement goes on; False: it does not."""
        rule = self._relay.rule_for(self._worker, kind, "before") if kind else None
        return rule is None or await self._strike(rule)

    async def _is_passed_on(self, answered: _Waiting) -> bool:
        """What is done when a statement has been answered; False: nobody hears of it."""
        if not answered.kind or answered.has_failed:
            return True
        key = (self._worker.rstrip("0123456789"), answered.kind)
        if key not in self._relay.seen:
            self._relay.seen.add(key)
            self._relay.tell(seen=answered.kind, worker=self._worker)
        rule = self._relay.rule_for(self._worker, answered.kind, "after")
        return rule is None or await self._strike(rule)

    async def _strike(self, rule: Rule) -> bool:
        relay = self._relay
        relay.tell(
            fired=rule.blow, place=rule.place, when=rule.when, worker=self._worker,
            layer="database", pid=relay.pids.get(self._worker),
        )  # fmt: skip
        match rule.blow:
            case Blow.CUT:
                self.cut()
                return False
            case Blow.HOLD:
                await asyncio.sleep(rule.seconds)
            case Blow.HOLD_AND_CUT:
                await asyncio.sleep(rule.seconds)
                self.cut()
                return False
            case Blow.TERMINATE if self._backend:
                with suppress(ProcessLookupError):
                    os.kill(self._backend, signal.SIGTERM)
            case Blow.KILL:
                hit(relay.pids[self._worker], rule.blow)
                return False
            case blow if blow in SIGNALS:
                hit(relay.pids[self._worker], blow)
            case _:
                pass
        return True

    def cut(self) -> None:
        """Reset both sides."""
        for writer in (self._writer, self._up_writer):
            _abort(writer)


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.transport.is_closing():
        reset(sock)
        writer.transport.abort()


def _who(startup: bytes) -> tuple[str, int]:
    """Name and process id out of an ``application_name`` like ``crash:w1:4711``."""
    parts = startup[4:].split(b"\0")
    settings: dict[bytes, Any] = dict(zip(parts[::2], parts[1::2], strict=False))
    words = settings.get(b"application_name", b"").decode().split(":")
    if len(words) == 3 and words[0] == "crash":
        return words[1], int(words[2])
    return "", 0
