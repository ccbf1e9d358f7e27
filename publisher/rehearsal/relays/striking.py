"""How a blow is dealt."""

from __future__ import annotations

import os
import signal
import socket
import struct
from contextlib import suppress

from publisher.rehearsal.plan.blows import Blow

SIGNALS = {Blow.KILL: signal.SIGKILL, Blow.FREEZE: signal.SIGSTOP, Blow.TERM: signal.SIGTERM}


def hit(pid: int, blow: Blow) -> None:
    """Send the signal of ``blow`` to a process we started; it may be gone by now."""
    with suppress(ProcessLookupError):
        os.kill(pid, SIGNALS[blow])


def reset(sock: socket.socket) -> None:
    """Make the close that follows send RST."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
