"""The operating system account the embedded server runs as.

PostgreSQL refuses to run as root, and ``initdb`` refuses a user without a passwd entry. An ordinary
user simply runs it. Root, as in most containers, runs it as somebody else.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Final

from publisher.db.errors import HomeUnusableError

_ACCOUNTS: Final = ("publisher", "postgres")
_NO_ACCOUNT: Final = (
    "PostgreSQL does not run as root, and no system account for it could be made."
    " Run as an ordinary user, or run: useradd --system publisher"
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line with the identity ``subprocess`` switches to before it; None: keeps ours."""

    argv: list[str]
    user: int | None = None
    group: int | None = None
    extra_groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server; ``switches`` when that is not the user we are."""

    uid: int
    gid: int
    switches: bool

    @classmethod
    def for_home(cls, home: Path) -> Account:
        """Choose who runs the server under ``home``.

        Not root: ourselves. Root where there are data already, or in a home that belongs to
        somebody else (``sudo`` of an operator): their owner, whose later runs must find their own
        files. Root at home: an account ``publisher`` or ``postgres``, or a new system account
        ``publisher``.

        Raises ``HomeUnusableError`` when no account can be had.
        """
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), switches=False)
        owner = _owner_of(home / "postgres" / "data") or _owner_of(home)
        entry = _entry_of(owner) if owner != 0 else (_existing() or _created())
        return cls(entry.pw_uid, entry.pw_gid, switches=True)

    def launch(self, argv: list[str], needed: tuple[Path, ...]) -> Launch:
        """Return how to run ``argv`` as this account, which needs to read the paths ``needed``.

        Root's own folders are often closed to others (``/root`` is 0700), with the interpreter's
        packages or the home inside. Opening them to everybody, as the wheel does, would outlast
        us; so the server gets one capability instead: reading past directory permissions.

        Raises ``HomeUnusableError`` when that cannot be given either.
        """
        if not self.switches:
            return Launch(argv)
        closed = next((path for path in needed if not self._reaches(path)), None)
        if closed is None:
            return Launch(argv, user=self.uid, group=self.gid, extra_groups=())
        setpriv, capability = which("setpriv"), _held_capability()
        if setpriv is None or capability is None:
            message = (
                f"The account with user id {self.uid}, which runs PostgreSQL because root may not,"
                f" cannot reach {closed}. Move it out of the closed folder, or run as an"
                " ordinary user."
            )
            raise HomeUnusableError(message)
        only = f"-all,+{capability}"
        switch = [setpriv, f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        limit = [f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"]
        return Launch([*switch, *limit, "--", *argv])

    def _reaches(self, path: Path) -> bool:
        wanted = 0o5 if path.is_dir() or os.access(path, os.X_OK) else 0o4
        return self._may(path, wanted) and all(self._may(above, 0o1) for above in path.parents)

    def _may(self, path: Path, wanted: int) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            return (status.st_mode >> 6) & wanted == wanted
        if status.st_gid == self.gid:
            return (status.st_mode >> 3) & wanted == wanted
        return status.st_mode & wanted == wanted


def _owner_of(path: Path) -> int:
    """Return the user id that ``path`` belongs to; root's, 0, where there is nothing."""
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return 0


def _entry_of(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        message = (
            f"PUBLISHER_HOME belongs to user id {uid}, which has no account on this machine, and"
            " PostgreSQL does not run as root. Give the folder to an existing user."
        )
        raise HomeUnusableError(message) from None


def _existing() -> pwd.struct_passwd | None:
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _created() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", _ACCOUNTS[0]]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - ours
    except (OSError, subprocess.CalledProcessError):
        entry = _existing()  # another process may have made it in the same moment
    else:
        entry = _existing()
    if entry is None:
        raise HomeUnusableError(_NO_ACCOUNT)
    return entry


def _held_capability() -> str | None:
    """Return the lesser of two capabilities that we hold; Linux only, Docker grants the second."""
    bits = {"dac_read_search": 2, "dac_override": 1}
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    held = next((int(line.split()[1], 16) for line in status.splitlines() if "CapEff" in line), 0)
    return next((name for name, bit in bits.items() if held >> bit & 1), None)
