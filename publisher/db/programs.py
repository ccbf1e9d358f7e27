"""PostgreSQL's own programs for dumps: those on the PATH, or those of the embedded server."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Final

from publisher.db.binaries import find_binaries
from publisher.db.errors import BackupError, WheelMissingError

_NEEDED: Final = ("pg_dump", "pg_restore", "psql")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder that holds ``pg_dump``, ``pg_restore`` and ``psql`` of one major version."""

    folder: Path
    major: int

    @classmethod
    def for_server(cls, major: int) -> Programs:
        """The oldest that can serve a server, or a dump, of version ``major``: its own if there.

        Raises ``BackupError``.
        """
        found = installed()
        able = [one for one in found if one.major >= major]
        if able:
            return able[0]
        there = ", ".join(str(one.major) for one in found) or "none"
        message = (
            f"PostgreSQL {major} needs pg_dump, pg_restore and psql of version {major} or newer;"
            f" found: {there}. Install the client programs of PostgreSQL {major} and put them on"
            " the PATH."
        )
        raise BackupError(message)

    def argv(self, program: str, *words: str) -> list[str]:
        """A command line of ``program``."""
        return [str(self.folder / program), *words]


def installed() -> list[Programs]:
    """Those there are, the oldest first."""
    folders = []
    on_path = which("pg_dump")
    if on_path is not None:
        folders.append(Path(on_path).parent)
    with suppress(WheelMissingError):
        folders.append(find_binaries())
    found = [
        Programs(folder, major)
        for folder in folders
        if all(os.access(folder / name, os.X_OK) for name in _NEEDED)
        and (major := _major_of(folder / "pg_dump")) is not None
    ]
    return sorted(found, key=lambda one: one.major)


def _major_of(program: Path) -> int | None:
    try:
        said = subprocess.run(  # noqa: S603 - found above
            [program, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = _VERSION.search(said)
    return None if version is None else int(version[1])
