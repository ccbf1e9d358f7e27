"""The witness as a file: on one machine's disk, or on a volume that several share.

The file is whole or absent: it is written beside, synced and renamed, and the folder is synced.
Who writes holds a ``flock`` on a lock file beside it, which NFS and the cluster file systems pass
on to one another's machines; where a volume cannot, it says so and nothing is written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from publisher.db.locks import FileLock
from publisher.engine.witness import (
    Held,
    Record,
    WitnessConflict,
    WitnessUnreachable,
    WitnessUnreadable,
)

_LOCK_SECONDS: Final = 5.0
"""A writer needs milliseconds; one that was frozen in between must not stop everybody."""
_READ_BYTES: Final = 65_536
"""Far more than a record has; what is longer is refused for it."""
_WRONG_KIND: Final = {errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV}


class File:
    """A witness at ``path``. ``makes_folder``: ours to make, as the home is; a volume's is not."""

    def __init__(self, path: Path, *, makes_folder: bool = False) -> None:
        # Followed once, here: a rename would otherwise put the file in the place of a link to it.
        self._path = Path(os.path.realpath(path))
        self._makes_folder = makes_folder

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    def read(self) -> Held | None:
        """The record; None where there is no file.

        Raises ``WitnessUnreadable``, ``WitnessUnreachable``.
        """
        with self._explained():
            content = self._content()
        return None if content is None else Held(Record.from_json(content), _stamp(content))

    def write(self, record: Record, *, over: str | None) -> str:
        """Put ``record`` in the place of what ``over`` stands for; it has reached the disk then.

        Raises ``WitnessConflict``, ``WitnessUnreadable``, ``WitnessUnreachable``.
        """
        with self._explained(), self._locked() as keeper:
            content = self._content()
            if (None if content is None else _stamp(content)) != over:
                message = f"Another process has written the witness {self.name}."
                raise WitnessConflict(message)
            return self._put(record.to_json(), keeper)

    def replace(self, record: Record) -> str:
        """Put ``record`` in the place of whatever is there, which is renamed.

        Raises ``WitnessUnreachable``.
        """
        with self._explained(), self._locked() as keeper:
            aside = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}.old")
            with suppress(OSError):
                if self._path.is_dir():
                    self._path.rename(aside)
                else:
                    aside.hardlink_to(self._path)
            return self._put(record.to_json(), keeper)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock; gives the user id that files here belong to."""
        folder = self._path.parent
        if self._makes_folder:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._require_folder()
        keeper = folder.stat().st_uid
        with FileLock(self._path.with_name(f"{self._path.name}.lock"), keeper=keeper) as lock:
            if not lock.exclusive_within(_LOCK_SECONDS):
                message = (
                    f"Another process has held {self.name}.lock for {_LOCK_SECONDS:g} s."
                    " Look for one that is stopped and end it."
                )
                raise WitnessUnreachable(message)
            yield keeper

    def _content(self) -> bytes | None:
        """What the file holds; None where there is none.

        Opened without waiting, for a pipe in its place would wait for a writer.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            self._require_folder()
            return None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            return file.read(_READ_BYTES)

    def _require_folder(self) -> None:
        """Tell a volume that is not mounted from a witness that nobody has written yet."""
        if not self._makes_folder and not self._path.parent.is_dir():
            message = (
                f"The folder of the witness {self.name} is not there. Mount the volume, or make"
                " the folder."
            )
            raise WitnessUnreachable(message)

    def _put(self, content: bytes, keeper: int) -> str:
        """Root gives it to whom the folder belongs to, or ``sudo`` would lock its owner out."""
        draft = self._path.with_name(f".{self._path.name}.draft")
        with suppress(FileNotFoundError):
            draft.unlink()  # of a writer that was killed; we hold its lock
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(draft, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if os.geteuid() == 0 and keeper != 0:
                    os.fchown(descriptor, keeper, -1)
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            draft.replace(self._path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return _stamp(content)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _WRONG_KIND:
                message = f"What lies at {self.name} is no file. Move it away."
                raise WitnessUnreadable(message) from error
            message = (
                f"The witness {self.name} cannot be read or written: {error.strerror}."
                " Give this process access to it, or mend the volume."
            )
            raise WitnessUnreachable(message) from error

    def __repr__(self) -> str:
        return f"<witness {self.name}>"


def _stamp(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
