"""The embedded server's files: where each is, who may read it, and how the cluster is first made.

::

    home/                  0700; when we are root, 0710 with the server account's group
      postgres/            the same
        start.lock         held while somebody starts or stops the server
        users.lock         held shared by every process that uses it
        server.lock        held by the server itself
        start.log          what it said before its own log was open
        data/  log/  socket/    0700, the server account's own
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from publisher.db.account import Account
from publisher.db.binaries import MAJOR
from publisher.db.errors import (
    DiskFullError,
    EmbeddedError,
    HomeUnusableError,
    StartFailedError,
    WrongMajorError,
)
from publisher.db.locks import FileLock

SOCKET_NAME: Final = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES: Final = 103
"""The least of the systems we run on: macOS has room for 103 bytes and a NUL, Linux for 107."""

_PRIVATE: Final = 0o700

_TUNABLE: Final = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A week of small files. Terse, for a DETAIL line may repeat somebody's post.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_file_mode": "0600",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
"""Written to ``postgresql.conf`` once, for its owner to change."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The folders of one embedded server and the account that owns what the server writes."""

    home: Path
    account: Account

    @classmethod
    def at(cls, home: Path) -> Cluster:
        """Make the folders under ``home`` and check that they can be used.

        Raises ``HomeUnusableError`` or ``DiskFullError``.
        """
        home = home.expanduser().absolute()
        try:
            home.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            home = home.resolve()
            cluster = cls(home, Account.for_home(home))
            cluster._make_folders()
        except OSError as error:
            raise unusable(home, error) from error
        return cluster

    @property
    def folder(self) -> Path:
        """Everything the embedded server has."""
        return self.home / "postgres"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def start_log(self) -> Path:
        """What the server prints before it opens its own log."""
        return self.folder / "start.log"

    @property
    def log_folder(self) -> Path:
        """The server's own log files."""
        return self.folder / "log"

    def lock(self, name: str) -> FileLock:
        """Open the lock file ``name`` (start, users or server)."""
        try:
            return FileLock(self.folder / f"{name}.lock", keeper=self.home.stat().st_uid)
        except OSError as error:
            raise unusable(self.home, error) from error

    def socket_folder(self) -> Path:
        """Return a private folder for the socket whose path fits into a socket address.

        A home too deep for that gets a folder under the temporary directory, named after the real
        path and checked to be the server account's own: anybody may make names there.

        Raises ``HomeUnusableError``.
        """
        inside = self.folder / "socket"
        if _fits(inside):
            self._make_own(inside)
            return inside
        identity = f"{self.folder}:{self.folder.stat().st_ino}"
        digest = hashlib.sha256(os.fsencode(identity)).hexdigest()[:20]
        outside = Path(tempfile.gettempdir()) / f"publisher-{digest}"
        if not _fits(outside):
            message = (
                f"The path {self.home} is too long for a socket, and so is the temporary"
                " directory's. Set PUBLISHER_HOME or TMPDIR to a shorter one."
            )
            raise HomeUnusableError(message)
        self._make_own(outside)
        return outside

    def initialise(self, binaries: Path, server_lock: FileLock) -> None:
        """Run ``initdb`` unless the data directory is there; the caller holds ``server_lock``.

        ``initdb`` inherits the lock, so that one left over by a killed parent is waited for. It
        works in a folder beside and is renamed when whole: a data directory is whole or absent.

        Raises ``WrongMajorError``, ``DiskFullError`` or ``StartFailedError``.
        """
        if self.data.exists():
            self._check_major()
            return
        unfinished = self.folder / "data.unfinished"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        self._make_own(unfinished)
        self._run_initdb(binaries, unfinished, server_lock)
        unfinished.rename(self.data)
        _sync(self.folder)

    def last_words(self) -> str:
        """Return the end of what the server logged in its last start, for an error message."""
        said = _tail(self.start_log)
        if "logging collector" in said:  # it went on in a file of its own
            said = _tail(
                max(self.log_folder.glob("*.log"), key=_changed_at, default=self.start_log)
            )
        return "\n".join(said.splitlines()[-8:])

    def _run_initdb(self, binaries: Path, folder: Path, server_lock: FileLock) -> None:
        settings = _TUNABLE | {"log_directory": str(self.log_folder)}
        argv = [
            str(binaries / "initdb"),
            *("-D", str(folder), "--username=postgres", "--data-checksums"),
            *("--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            # Nobody but the server's account can enter the socket's folder, and there is no TCP:
            # who can connect could read the data files as well. A password would guard nothing.
            *("--auth-local=trust", "--auth-host=reject"),
            *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
        ]
        launch = self.account.launch(argv, (binaries / "initdb", self.folder))
        done = subprocess.run(  # noqa: S603 - a program of the wheel
            launch.argv,
            user=launch.user,
            group=launch.group,
            extra_groups=launch.extra_groups,
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env=server_environment(),
            umask=0o077,
            pass_fds=(server_lock.fileno(),),
            start_new_session=True,
        )
        if done.returncode != 0:
            raise failure(self.home, f"initdb failed: {done.stderr.strip()}")

    def _check_major(self) -> None:
        try:
            major = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        except OSError as error:
            message = (
                f"{self.data} is not a PostgreSQL data directory. Move it away, or set"
                " PUBLISHER_HOME to another folder."
            )
            raise HomeUnusableError(message) from error
        if major != str(MAJOR):
            message = (
                f"{self.data} was made by PostgreSQL {major}; this release brings {MAJOR}. Dump it"
                f" with the release that made it and restore it here, or run PostgreSQL {major}"
                " yourself and set PUBLISHER_DATABASE_URL."
            )
            raise WrongMajorError(message)

    def _make_folders(self) -> None:
        self.folder.mkdir(mode=_PRIVATE, exist_ok=True)
        keeper = self.home.stat().st_uid
        if not self.account.switches:
            self.folder.chmod(_PRIVATE)
        elif keeper == 0:
            for folder in (self.home, self.folder):
                self._let_through(folder)
        else:
            os.chown(self.folder, keeper, self.account.gid)
        self._make_own(self.log_folder)

    def _let_through(self, folder: Path) -> None:
        """Let the server account's group pass a folder of root's that is closed to all."""
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077 == 0:
            os.chown(folder, 0, self.account.gid)
            folder.chmod(mode | 0o010)

    def _make_own(self, folder: Path) -> None:
        """Make ``folder`` 0700 for the server account, or check that it is so already."""
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        status = folder.lstat()
        if self.account.switches and stat.S_ISDIR(status.st_mode) and status.st_uid == 0:
            # New, or left by one of us who was killed before this line.
            os.chown(folder, self.account.uid, self.account.gid)
            status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self.account.uid:
            message = (
                f"{folder} is not a folder of user id {self.account.uid}, which runs the embedded"
                " PostgreSQL. Remove it, or run as the user who made it."
            )
            raise HomeUnusableError(message)
        if stat.S_IMODE(status.st_mode) != _PRIVATE:
            folder.chmod(_PRIVATE)


def server_environment() -> dict[str, str]:
    """Return the environment the server runs in: English messages, nobody's ``PG*`` variables."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def unusable(home: Path, error: OSError) -> EmbeddedError:
    """Return the error that says what is wrong with ``home``."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return _disk_full(home)
    reason = error.strerror or type(error).__name__
    return HomeUnusableError(
        f"PUBLISHER_HOME ({home}) cannot be used: {reason}"
        f"{f' ({error.filename})' if error.filename else ''}. Set it to a folder on a local disk"
        f" that user id {os.geteuid()} may write."
    )


def failure(home: Path, said: str) -> EmbeddedError:
    """Return the error for a PostgreSQL program that ``said`` why it failed."""
    if os.strerror(errno.ENOSPC) in said or os.strerror(errno.EDQUOT) in said:
        return _disk_full(home)
    return StartFailedError(f"The embedded PostgreSQL under {home} did not start.\n{said}")


def _disk_full(home: Path) -> DiskFullError:
    return DiskFullError(f"No room is left on the disk of PUBLISHER_HOME ({home}). Make some.")


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) <= _SOCKET_PATH_BYTES


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _changed_at(path: Path) -> float:
    return path.stat().st_mtime


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-4096:].decode(errors="replace")
    except OSError:
        return ""
