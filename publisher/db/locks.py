"""Advisory file locks (``flock``), which the kernel drops when their holder dies however it dies.

A ``flock`` belongs to an open file description. A forked child shares its parent's: an explicit
unlock in one would unlock both, while a mere close does nothing as long as the other has it open.
So a child only closes, and never unlocks; whoever wants the lock in a child takes one of its own.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

_POLL_SECONDS: Final = 0.01
_open_locks: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """One open file that can be locked shared or exclusively; closing it gives the lock up."""

    def __init__(self, path: Path, *, keeper: int | None = None) -> None:
        """Open ``path``, made with mode 0600 when it is not there.

        Root gives it to the user id ``keeper``. Raises ``OSError`` as ``open`` does.
        """
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT, 0o600)
        if keeper is not None and os.geteuid() == 0 and os.fstat(self._fd).st_uid != keeper:
            os.fchown(self._fd, keeper, -1)
        _open_locks.add(self)

    def fileno(self) -> int:
        """Return the descriptor, for handing the lock on to a child process; -1 once closed."""
        return self._fd

    def share(self) -> None:
        """Take the lock shared; waits for a holder of the exclusive lock."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take the lock exclusively if nobody else has it; tell whether we have it now."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def exclusive_within(self, seconds: float) -> bool:
        """Take the lock exclusively, waiting up to ``seconds``; tell whether we have it now."""
        until = time.monotonic() + seconds
        while not self.try_exclusive():
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Close the file; the lock goes with its last open copy. Closing twice is harmless."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _forget_in_child() -> None:
    """Close what was inherited, or a child that outlives its parent would keep its locks."""
    for lock in tuple(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_forget_in_child)
