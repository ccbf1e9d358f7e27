"""A signal may come at any instant, also in the middle of the wait for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from publisher.engine.bell import Bell

STORM = """
import signal
from publisher.engine.bell import Bell

now = [Bell()]
signal.signal(signal.SIGALRM, lambda *_: now[0].ring())
# A signal every 50 microseconds, while the main thread does nothing but wait.
signal.setitimer(signal.ITIMER_REAL, 0.00005, 0.00005)
for _ in range(5_000):
    bell = now[0] = Bell()
    while not bell.wait(0.0001):
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
print("went on")
"""


def test_it_is_heard_at_whatever_instant_it_is_rung() -> None:
    """``threading.Event.set`` would wait here for a lock that its own thread holds."""
    done = subprocess.run(
        [sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_it_stays_rung() -> None:
    bell = Bell()
    assert not bell.is_rung()
    assert not bell.wait(0.01)
    bell.ring()
    assert bell.is_rung()
    assert bell.wait(60)
    assert bell.wait(60)


def test_another_thread_wakes_it() -> None:
    bell = Bell()
    threading.Timer(0.05, bell.ring).start()
    began = time.monotonic()
    assert bell.wait(60)
    assert time.monotonic() - began < 50
