"""The sandbox's process: listens on the loopback address, one thread for each connection."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from publisher.sandbox import exchange, levers, wall
from publisher.sandbox.dialects import spoken
from publisher.sandbox.journal import JournalInUse
from publisher.sandbox.plan import Plan
from publisher.sandbox.platform import Platform
from publisher.sandbox.wire import Answer, BadRequest, Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.sandbox.plan import Chaos
    from publisher.sandbox.wire import Head

ADDRESS = "127.0.0.1"
BACKLOG = 4096


class PortBusy(Exception):
    """Another process listens on the port."""


class Server:
    """Accepts connections until told to stop; ``url`` is where."""

    def __init__(self, platform: Platform, listener: socket.socket) -> None:
        self._platform = platform
        self._listener = listener
        self._port: int = listener.getsockname()[1]
        self._wake, self._wake_end = socket.socketpair()
        self._wake.setblocking(False)
        self._wake_end.setblocking(False)
        self._orders: list[tuple[str, float]] = []
        self.url = f"http://{ADDRESS}:{self._port}"
        platform.base = self.url
        platform.order_listener = self._order

    def run(self) -> None:
        """Serve until ``stop``; connections under way end with the process."""
        while not self._platform.stopping.is_set():
            ready, _, _ = select.select([self._listener, self._wake], [], [])
            if self._wake in ready:
                self._wake.recv(64)
                self._obey()
            elif not self._platform.stopping.is_set():
                self._accept()
        self._listener.close()

    def stop(self) -> None:
        """Make ``run`` return; may be called from a signal handler or another thread."""
        self._platform.stopping.set()
        self._nudge()

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake already
            self._wake_end.send(b".")

    def _order(self, mode: str, seconds: float) -> None:
        self._orders.append((mode, seconds))
        self._nudge()

    def _obey(self) -> None:
        """Stand still: ``hold`` leaves connections waiting unaccepted, ``refuse`` refuses them."""
        while self._orders:
            mode, seconds = self._orders.pop(0)
            if mode == "refuse":
                self._listener.close()
            self._platform.stopping.wait(seconds)
            if mode == "refuse" and not self._platform.stopping.is_set():
                self._listener = _listen(self._port)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                time.sleep(0.02)  # out of descriptors: those under way give some back
                return
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        conn = Connection(sock)
        try:
            while not conn.closed and (head := conn.read_head()):
                self._serve(conn, head)
        except BadRequest as error:
            _say(conn, Answer(400, f"{error}\n".encode(), "text/plain; charset=utf-8"))
        except OSError:
            pass  # the client went away, or was kept waiting too long
        except Exception:  # noqa: BLE001  one bad connection must not end the sandbox
            traceback.print_exc()
            fault = b"The sandbox has a fault; see its error output.\n"
            _say(conn, Answer(500, fault, "text/plain"))
        finally:
            conn.finish()

    def _serve(self, conn: Connection, head: Head) -> None:
        if head.path.startswith("/_control/"):
            answer = levers.answer(head, conn.read_body(head), self._platform)
        else:
            for dialect in self._platform.dialects.values():
                if asked := dialect.route(head, self._platform.state):
                    exchange.serve(conn, head, asked, dialect, self._platform)
                    return
            conn.read_body(head)
            answer = wall.answer(head, self._platform)
        body = b"" if head.method == "HEAD" else answer.body
        conn.send(answer.head(keep=head.keeps_open) + body)
        if not head.keeps_open:
            conn.finish()


def serve(  # noqa: PLR0913  one for each option of the command
    *,
    port: int,
    log: Path,
    pages: int = 2,
    accounts: int = 1,
    chaos: Chaos | None = None,
    triggers: bool = True,
    fsync: bool = True,
    delay_ms: float = 0.0,
    ready: Callable[[str], None] | None = None,
    parent_pipe: bool = False,
) -> int:
    """Run the sandbox until SIGTERM or SIGINT; return the process's exit code.

    ``log`` is a directory. ``pages``, ``accounts``: how many Facebook Pages, and accounts of each
    other platform, there are at least. ``port`` 0 picks a free one. ``ready`` is called with the
    address; unset, one line is printed. ``parent_pipe`` ends it when standard input ends, so that
    it does not outlive the process that started it. 0: told to stop; 2: port or log in use, said
    on standard error. Call it from the main thread: it sets signal handlers.
    """
    _raise_descriptor_limit()
    threading.stack_size(512 * 1024)
    plan = Plan(triggers=triggers, chaos=chaos)
    try:
        listener = _listen(port)
        counts = {"graph": pages} | dict.fromkeys(("bluesky", "mastodon", "telegram"), accounts)
        platform = Platform(log, plan, spoken(), counts=counts, fsync=fsync, delay=delay_ms / 1000)
    except PortBusy:
        sys.stderr.write(
            f"Port {port} is taken by another process. Set PUBLISHER_SANDBOX_PORT to a free one,"
            " or to 0 to have one picked.\n"
        )
        return 2
    except JournalInUse as error:
        sys.stderr.write(f"Another sandbox writes {error}. Stop it, or give another --log.\n")
        return 2
    server = Server(platform, listener)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    if parent_pipe:
        threading.Thread(target=_stop_with_parent, args=(server,), daemon=True).start()
    (ready or _print_ready)(server.url)
    server.run()
    platform.close()
    return 0


def _print_ready(url: str) -> None:
    sys.stdout.write(f"Sandbox ready at {url} (nothing leaves this machine)\n")
    sys.stdout.flush()


def _stop_with_parent(server: Server) -> None:
    # Not through sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 64):
        pass
    server.stop()


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Only so that a port whose old connections linger can be taken again; two listeners still
    # cannot share it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
    except OSError:
        listener.close()
        raise PortBusy from None
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _say(conn: Connection, answer: Answer) -> None:
    with contextlib.suppress(OSError):
        conn.send(answer.head(keep=False) + answer.body)
