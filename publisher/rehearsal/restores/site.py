"""A server of one's own, whose files go back; a platform, a receiver of alerts and a forge."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from publisher.rehearsal.restores.plan import PLATFORMS
from publisher.rehearsal.stage.forge import Forge
from publisher.rehearsal.stage.own_server import OwnServer, new_folder
from publisher.rehearsal.stage.receiver import Receiver
from publisher.sandbox.process import SandboxProcess

_SANDBOX_LIVES_FOR = 10
"""Plans on one sandbox: its log is read whole, again and again."""
_numbers = iter(range(1, 1 << 30))
_NUMBERING = threading.Lock()


class Site:
    """Everything one plan at a time needs. For one thread."""

    def __init__(self, stack: ExitStack, server: OwnServer, forge: Forge, folder: Path) -> None:
        self.server, self.forge, self.folder = server, forge, folder
        self.receiver = stack.enter_context(Receiver.running())
        self._platform = ExitStack()
        stack.callback(self._platform.close)
        self._used = 0
        self.sandbox: SandboxProcess

    @classmethod
    @contextmanager
    def open(cls, programs: Path | None = None) -> Iterator[Self]:
        """Start everything; stop it at the end."""
        with ExitStack() as stack:
            folder = new_folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server = stack.enter_context(OwnServer.running(programs))
            forge = stack.enter_context(Forge.start("publisher.rehearsal.restores.forge"))
            yield cls(stack, server, forge, folder)

    def renew(self) -> None:
        """Get ready for the next plan, on a new sandbox from time to time."""
        if self._used % _SANDBOX_LIVES_FOR == 0:
            self._platform.close()
            log = Path(tempfile.mkdtemp(dir=self.folder))
            started = SandboxProcess.start(log, pages=0, accounts=0)
            self.sandbox = self._platform.enter_context(started)
        self._used += 1
        self.sandbox.control.heal()
        self.forge.poll(0)

    def new_accounts(self) -> list[dict[str, str]]:
        """One of each platform that nothing was ever on, as channels need them."""
        control, found = self.sandbox.control, []
        for platform in PLATFORMS:
            with _NUMBERING:
                number = next(_numbers)
            if platform == "facebook_pages":
                (page,) = control.add_pages(
                    [{"id": str(80_000 + number), "name": f"Page {number}"}]
                )
                found.append({**page, "platform": platform, "base_url": ""})
                continue
            account = control.add_account(platform)
            found.append(
                {
                    "platform": platform,
                    "id": str(account["id"]),
                    "name": f"{platform} {number}",
                    "token": str(account["token"]),
                    "base_url": self.sandbox.url,
                }
            )
        return found
