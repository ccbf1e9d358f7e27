"""Room on the disks we write to, and open files a process may have."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.words import _

_FILES_OF_A_HAND: Final = 3
"""A socket, and room for a picture and a look."""
_FILES_OF_A_WORKER: Final = 64
_MEGABYTE: Final = 1 << 20


def room(ward: Ward) -> Iterator[Finding]:
    """Bytes and inodes where the spool, the key and the embedded server are."""
    limits = ward.limits
    for folder in _folders(ward):
        status = os.statvfs(folder)
        free = status.f_bavail * status.f_frsize
        if free < limits.disk_warning:
            make = error if free < limits.disk_error else warning
            yield make(
                "disk_full",
                _("Only {n:,} MB are free in {folder}.").format(n=free // _MEGABYTE, folder=folder),
                _("Make room: without it nothing is sent."),
            )
        # A file system without a fixed number of inodes says 0.
        if status.f_files and status.f_favail < limits.inodes_warning:
            make = error if status.f_favail < limits.inodes_error else warning
            yield make(
                "inodes_used_up",
                _("Only {n:,} more files can be made in {folder}.").format(
                    n=status.f_favail, folder=folder
                ),
                _("Remove files there: without inodes nothing is sent."),
            )


def _folders(ward: Ward) -> list[Path]:
    """One per file system, the first that lies on it."""
    home = ward.settings.home
    wanted = [home, ward.spool, home / "postgres", home / "postgres" / "data"]
    by_device: dict[int, Path] = {}
    for folder in wanted:
        try:
            by_device.setdefault(folder.stat().st_dev, folder)
        except OSError:
            continue
    return [*by_device.values()]


def home(ward: Ward) -> Iterator[Finding]:
    """Whether the home is there, ours and closed to others."""
    folder = ward.settings.home
    if not folder.exists():
        yield note(
            "home_missing",
            _("There is no folder {folder} yet.").format(folder=folder.absolute()),
            _("Start in the right folder, or set PUBLISHER_HOME; a worker makes it."),
        )
        return
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield error(
            "home_unusable",
            _("{folder} cannot be written by this user.").format(folder=folder.absolute()),
            _("Give it to the user that runs workers, or set PUBLISHER_HOME."),
        )
    elif folder.stat().st_mode & 0o007:
        yield note(
            "home_open",
            _("Everybody on this machine may look into {folder}.").format(folder=folder.absolute()),
            _("Run: chmod o-rwx {folder}").format(folder=folder.absolute()),
        )


def open_files(ward: Ward) -> Iterator[Finding]:
    """Whether so many sends at once can each have their files."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    hands = ward.settings.concurrency
    needed = _FILES_OF_A_WORKER + _FILES_OF_A_HAND * hands
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        yield warning(
            "few_files",
            _("{n} open files are allowed here; {hands} sends at once may need {needed}.").format(
                n=allowed, hands=hands, needed=needed
            ),
            _("Raise it (ulimit -n, LimitNOFILE=) or lower PUBLISHER_CONCURRENCY."),
        )
