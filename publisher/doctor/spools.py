"""The workers' own files: whether their folder can be trusted, and what lies in it."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from publisher.doctor.finding import Finding, error, note, warning
from publisher.doctor.ward import Ward
from publisher.engine import queries, spool
from publisher.engine.spool import Record, boot_id
from publisher.words import _

_WITHOUT_LOCKS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "fuse.s3fs", "virtiofs"}
)
"""File systems whose locks another machine does not see, or that have none."""
_MOUNTS: Final = Path("/proc/self/mountinfo")
_TRANSIENT: Final = frozenset({"tmpfs", "ramfs"})


def folder(ward: Ward) -> Iterator[Finding]:
    """Whether a file can be made, locked and synced there."""
    if not ward.spool.exists():
        return  # a worker makes it; ``home_unusable`` says where it could not
    try:
        locks = _probe(ward.spool)
    except OSError as problem:
        yield error(
            "spool_unusable",
            _("No file can be made in {folder}: {why}.").format(
                folder=ward.spool, why=problem.strerror or type(problem).__name__
            ),
            _("Give the folder to the user that runs workers; without it nothing is sent."),
        )
        return
    if not locks:
        yield error(
            "spool_not_locking",
            _("Locks on files in {folder} keep nobody out.").format(folder=ward.spool),
            _("Put PUBLISHER_HOME on a local disk."),
        )


def _probe(where: Path) -> bool:
    """Make a file, sync it, and see whether its lock holds against a second opening."""
    with tempfile.NamedTemporaryFile(dir=where, prefix=".doctor-") as first:
        first.write(b"probe")
        first.flush()
        os.fsync(first.fileno())
        fcntl.flock(first.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        with Path(first.name).open("rb") as second:
            try:
                fcntl.flock(second.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def mount(ward: Ward) -> Iterator[Finding]:
    """On what kind of file system the folder lies."""
    kind = file_system(ward.spool if ward.spool.exists() else ward.settings.home)
    if kind in _WITHOUT_LOCKS:
        yield error(
            "spool_on_network",
            _("{folder} lies on {kind}, where a lock proves nothing.").format(
                folder=ward.spool, kind=kind
            ),
            _("Put PUBLISHER_HOME on a local disk."),
        )
    elif kind in _TRANSIENT:
        yield note(
            "spool_in_memory",
            _("{folder} lies in memory ({kind}): it is empty after a restart.").format(
                folder=ward.spool, kind=kind
            ),
            _("Put PUBLISHER_HOME on a disk."),
        )


def is_network(path: Path) -> bool:
    """Whether other machines may have the same files under ``path``."""
    return file_system(path) in _WITHOUT_LOCKS


def file_system(path: Path) -> str | None:
    """The type of the file system that ``path`` is on (proc_pid_mountinfo(5)), if it is known."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    wanted = path.absolute().resolve()
    best, kind = -1, None
    for line in lines:
        before, _dash, after = line.partition(" - ")
        point = Path(_unescaped(before.split(" ")[4]))
        # The last of equals lies on top.
        if wanted.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def _unescaped(field: str) -> str:
    for code in (" ", "\t", "\n", "\\"):
        field = field.replace(f"\\{ord(code):03o}", code)
    return field


@dataclass(frozen=True, slots=True)
class _Found:
    """A file, what it says, and whether a process still holds it."""

    path: Path
    record: Record | None
    is_held: bool
    age: float


def _files(ward: Ward) -> list[_Found]:
    found = []
    for path in sorted(ward.spool.glob(f"*{spool.SUFFIX}")):
        try:
            record, is_held = spool.peek(path)
            age = time.time() - path.stat().st_mtime
        except FileNotFoundError:
            continue  # its worker ended meanwhile
        found.append(_Found(path, record, is_held, age))
    return found


def damaged(ward: Ward) -> Iterator[Finding]:
    """Files that could not be read whole and were kept for a person."""
    for path in sorted(ward.spool.glob("*.damaged")):
        yield warning(
            "spool_damaged",
            _("{name} could not be read whole and was set aside.").format(name=path.name),
            _("See whether its posts are doubts (publisher unknowns list), then remove it."),
        )


def against_database(ward: Ward) -> Iterator[Finding]:
    """Whether the database knows every send that this machine's files say was begun."""
    # Files first: what they say was begun was committed before.
    files = [(one, one.record) for one in _files(ward) if one.record is not None]
    with ward.reading() as conn:
        deployment = queries.deployment_id(conn)
        for one, record in files:
            if record.deployment != deployment:
                yield warning(
                    "spool_of_another",
                    _("{name} belongs to another deployment, {id}.").format(
                        name=one.path.name, id=record.deployment
                    ),
                    _("Start a worker on that database with this home, or move the file there."),
                )
                continue
            begun = [
                (int(trace.opened.job_id), trace.opened.attempt, UUID(str(trace.opened.token)))
                for trace in record.traces.values()
                if trace.opened is not None
            ]
            lost = queries.tokens_unknown(conn, begun)
            if lost:
                yield error(
                    "begin_lost",
                    _("The database lacks {n} sends that {name} says were begun.").format(
                        n=len(lost), name=one.path.name
                    ),
                    _("It was restored or lost commits: see publisher quarantine status."),
                )


def waiting(ward: Ward) -> Iterator[Finding]:
    """Files of dead worker runs that nobody has read yet."""
    with ward.reading() as conn:
        deployment = queries.deployment_id(conn)
        rows = queries.worker_rows(conn)
    silence = ward.settings.rescue_after_seconds
    here = socket.gethostname()
    works_here = any(
        row.host == here and (row.now - row.seen_at).total_seconds() < silence for row in rows
    )
    for one in _files(ward):
        if one.is_held or (one.record is not None and one.record.deployment != deployment):
            continue
        if one.record is not None and one.record.host != here and one.record.boot != boot_id():
            yield warning(
                "spool_of_another_machine",
                _("{name} was written on {host}; its lock says nothing here.").format(
                    name=one.path.name, host=one.record.host
                ),
                _("Give each machine a PUBLISHER_HOME of its own."),
            )
        elif works_here and one.age > ward.limits.spool_waits:
            yield warning(
                "spool_unread",
                _("{name} of a dead worker run is not read, though a worker runs here.").format(
                    name=one.path.name
                ),
                _("Look for spool.unread in the worker's log."),
            )
        else:
            yield note(
                "spool_waits",
                _("{name} of a dead worker run waits to be read.").format(name=one.path.name),
                _("Start a worker or the reconciler on this machine."),
            )


def frozen(ward: Ward) -> Iterator[Finding]:
    """Worker runs that hold their file and give no sign of life: stopped, or cut off."""
    silence = ward.settings.rescue_after_seconds
    with ward.reading() as conn:
        deployment = queries.deployment_id(conn)
        rows = {row.id: row for row in queries.worker_rows(conn)}
    for one in _files(ward):
        if not one.is_held or one.record is None or one.record.deployment != deployment:
            continue
        row = rows.get(one.record.incarnation)
        if row is None or row.host != one.record.host:
            continue
        silent_for = (row.now - row.seen_at).total_seconds()
        if silent_for >= silence:
            yield warning(
                "worker_frozen",
                _("Worker run {run} (process {pid}) holds its file, silent for {n:.0f} s.").format(
                    run=row.id, pid=row.pid, n=silent_for
                ),
                _("Let it go on or end it (kill -CONT, then kill {pid}).").format(pid=row.pid),
            )
