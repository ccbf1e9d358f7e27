"""A server, a platform, a relay and a forge, on which schedules run one after the other."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Self

from publisher.rehearsal.relays.relay import Relay
from publisher.rehearsal.stage.forge import Forge
from publisher.rehearsal.stage.own_server import OwnServer, new_folder
from publisher.rehearsal.stage.receiver import Receiver
from publisher.rehearsal.stage.server import Server
from publisher.sandbox.process import SandboxProcess

_SANDBOX_LIVES_FOR = 25
"""Schedules on one sandbox: its log is read whole after each of them."""


Serve = Callable[[], AbstractContextManager[Server]]
"""Runs a server, or takes the one that is there."""


class Lane:
    """Everything one schedule at a time needs. For one thread."""

    def __init__(self, stack: ExitStack, server: Server, forge: Forge, folder: Path) -> None:
        self._stack = stack
        self.server = server
        self.forge = forge
        self.folder = folder
        self.receiver = stack.enter_context(Receiver.running())
        self._platform = ExitStack()
        self._used = 0
        self._pages = 0
        self.sandbox: SandboxProcess
        self.relay: Relay

    @classmethod
    @contextmanager
    def open(cls, serve: Serve = OwnServer.running) -> Iterator[Self]:
        """Start everything; stop it at the end."""
        with ExitStack() as stack:
            folder = new_folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server = stack.enter_context(serve())
            forge = stack.enter_context(Forge.start())
            lane = cls(stack, server, forge, folder)
            stack.push(lane._close)
            yield lane

    def _close(self, *_: object) -> None:
        self._platform.close()

    def renew(self) -> None:
        """Get ready for the next schedule, on a new sandbox from time to time."""
        if self._used % _SANDBOX_LIVES_FOR == 0:
            self._platform.close()
            log = Path(tempfile.mkdtemp(dir=self.folder))
            self.sandbox = self._platform.enter_context(SandboxProcess.start(log, pages=0))
            port = int(self.sandbox.url.rpartition(":")[2])
            self.relay = self._platform.enter_context(Relay.start(self.server.upstream, port))
        self._used += 1
        self.relay.renew()
        self.sandbox.control.heal()
        self.forge.poll(0)

    def new_pages(self, count: int, others: Sequence[str]) -> list[dict[str, str]]:
        """So many Facebook Pages that nothing was ever on, and an account of each other platform.

        Each has ``platform`` (as channels call it), ``id``, ``name``, ``token``, ``base_url``.
        """
        numbers = range(self._pages + 1, self._pages + count + 1)
        self._pages += count
        control = self.sandbox.control
        pages = control.add_pages([{"id": str(90_000 + n), "name": f"Page {n}"} for n in numbers])
        # A Page is reached by each worker's own way through the relay, the others directly.
        found = [{**page, "platform": "facebook_pages", "base_url": ""} for page in pages]
        for platform in others:
            self._pages += 1
            account = control.add_account(platform)
            found.append(
                {
                    "platform": platform,
                    "id": str(account["id"]),
                    "name": f"{platform} {self._pages}",
                    "token": str(account["token"]),
                    "base_url": self.sandbox.url,
                }
            )
        return found
