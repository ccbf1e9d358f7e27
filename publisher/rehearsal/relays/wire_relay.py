"""A relay before the platform that knows how much of a request or an answer has passed.

Each worker has a port of its own here, so it is known whose bytes they are. One request on each
connection, as publish calls have it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from publisher.rehearsal.plan.blows import Blow, Rule
from publisher.rehearsal.relays.striking import SIGNALS, hit, reset

Tell = Callable[..., None]

_MARK = re.compile(rb"c\d+-\d+")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_CALLS = (
    (re.compile(rb"^POST /\S*/(feed|videos)[ ?]"), "publish"),
    (re.compile(rb"^POST /\S*/photos[ ?]"), "upload"),
    (re.compile(rb"^GET "), "listing"),
)


class WireRelay:
    """Listens for each worker; every connection goes on to the sandbox."""

    def __init__(self, port: int, tell: Tell, pids: dict[str, int]) -> None:
        self._port = port
        self.tell = tell
        self.pids = pids
        self.rules: list[Rule] = []
        self._listeners: dict[str, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, worker: str, port: int = 0) -> int:
        """Open a port for ``worker``; returns it."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _Call(self, worker, reader, writer).run()

        server = await asyncio.start_server(serve, "127.0.0.1", port)
        self._listeners[worker] = server
        return int(server.sockets[0].getsockname()[1])

    def close_all(self) -> None:
        """Close every port."""
        for server in self._listeners.values():
            server.close()
        self._listeners.clear()

    async def open_up(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the sandbox."""
        return await asyncio.open_connection("127.0.0.1", self._port)

    def rule_for(self, worker: str, place: str) -> Rule | None:
        """Count the visit with every rule; the first whose turn it is is taken off."""
        struck = [rule for rule in self.rules if rule.strikes(worker, place, "at")]
        if not struck:
            return None
        self.rules.remove(struck[0])
        return struck[0]

    def expects(self, worker: str, call: str) -> bool:
        """Whether a rule waits for an answer to such a call of this worker."""
        return any(
            rule.worker in ("", worker) and rule.place.startswith(f"{call}: ")
            for rule in self.rules
        )

    def refuse(self, worker: str, seconds: float) -> None:
        """Close a worker's port for so long."""
        server = self._listeners.pop(worker)
        self.tell(fired="refuse", place="connecting", when="at", worker=worker, layer="wire")
        port = int(server.sockets[0].getsockname()[1])
        server.close()

        async def later() -> None:
            await asyncio.sleep(seconds)
            await self.listen(worker, port)

        task = asyncio.create_task(later())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Call:
    def __init__(
        self,
        relay: WireRelay,
        worker: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._relay, self._worker = relay, worker
        self._reader, self._writer = reader, writer
        self._up_writer: asyncio.StreamWriter | None = None
        self._call = ""

    async def run(self) -> None:
        try:
            await self._relay_all()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two went away; so does the other
        finally:
            for writer in (self._writer, self._up_writer):
                if writer is not None:
                    writer.close()

    async def _relay_all(self) -> None:
        if not self._is_let_through("connecting"):
            return
        head = await self._reader.readuntil(b"\r\n\r\n")
        self._call = next((name for pattern, name in _CALLS if pattern.match(head)), "other")
        up_reader, self._up_writer = await self._relay.open_up()
        self._note(b"", whole=False)
        self._up_writer.write(head)
        await self._up_writer.drain()
        if not self._is_let_through("headers sent"):
            return
        found = _LENGTH.search(head)
        body = await self._reader.readexactly(int(found[1])) if found else b""
        half = len(body) // 2
        self._up_writer.write(body[:half])
        await self._up_writer.drain()
        self._note(body, whole=False)
        if body and not self._is_let_through("half the body"):
            return
        self._up_writer.write(body[half:])
        await self._up_writer.drain()
        self._note(body, whole=True)
        if not self._is_let_through("all of it"):
            return
        answer = asyncio.create_task(self._answer(up_reader))
        gone = asyncio.create_task(self._reader.read(1))
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        for task in (answer, gone):
            task.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)

    async def _answer(self, up_reader: asyncio.StreamReader) -> None:
        if not self._relay.expects(self._worker, self._call):
            while data := await up_reader.read(1 << 16):
                self._writer.write(data)
                await self._writer.drain()
            return
        status = await up_reader.readuntil(b"\r\n")
        self._writer.write(status)
        await self._writer.drain()
        if not self._is_let_through("status read"):
            return
        rest = await up_reader.read(1 << 20)
        half = len(rest) // 2
        self._writer.write(rest[:half])
        await self._writer.drain()
        if not self._is_let_through("half the answer"):
            return
        self._writer.write(rest[half:])
        while data := await up_reader.read(1 << 16):
            self._writer.write(data)
            await self._writer.drain()
        self._is_let_through("whole answer")

    def _is_let_through(self, place: str) -> bool:
        full = f"{self._call}: {place}" if self._call else place
        self._relay.tell(seen=full, worker=self._worker)
        rule = self._relay.rule_for(self._worker, full)
        if rule is None:
            return True
        pid = self._relay.pids.get(self._worker, 0)
        self._relay.tell(
            fired=rule.blow, place=full, when="at", worker=self._worker, layer="wire", pid=pid
        )
        match rule.blow:
            case Blow.CUT:
                for writer in (self._writer, self._up_writer):
                    if writer is not None:
                        reset(writer.get_extra_info("socket"))
                        writer.transport.abort()
                return False
            case Blow.KILL:
                hit(pid, rule.blow)
                return False
            case blow if blow in SIGNALS:
                hit(pid, blow)
            case _:
                pass
        return True

    def _note(self, body: bytes, *, whole: bool) -> None:
        """Say whose publish left the worker, as far as can be seen."""
        if self._call == "publish":
            marks = sorted({mark.decode() for mark in _MARK.findall(body)})
            self._relay.tell(sent=marks, whole=whole, worker=self._worker)
