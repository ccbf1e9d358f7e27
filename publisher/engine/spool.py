"""The worker's own synced file: the second witness of what was begun, started and answered.

One file per incarnation, locked with ``flock`` for the incarnation's whole life, so that whoever
can take the lock knows that nobody is writing any more. One JSON line per fact, each with its
length and CRC-32:

    head    which deployment, incarnation and boot this file belongs to
    open    a send was recorded in the database (synced before any of the set may start)
    start   a hand is about to call the platform (written before; no sync: it must outlive the
            process, not the machine, and a changed boot id voids it anyway)
    answer  what came of it

A write or sync that fails raises ``OSError``, and then nothing may be sent.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Self
from uuid import UUID, uuid4

from publisher.engine.job import JobId, Token
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)

SUFFIX = ".spool"
_COMPACT_BYTES = 32 * 1024 * 1024


def boot_id() -> str:
    """The kernel's name for this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class Opened:
    """A begun attempt as the spool names it."""

    job_id: JobId
    attempt: int
    token: Token


@dataclass(slots=True)
class Trace:
    """What one file says of one attempt."""

    opened: Opened | None = None
    started: bool = False
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A dead incarnation's file, read. ``whole``: every line stands as it was written."""

    deployment: str
    incarnation: int
    boot: str
    whole: bool
    traces: Mapping[Token, Trace] = field(default_factory=dict)


class Spool:
    """The file of a running incarnation. Safe to write from many threads."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._lock = Lock()
        self._head: bytes | None = None
        self._size = 0
        self._pending: dict[Token, list[bytes]] = {}

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make and lock a new file in ``folder`` (made with mode 0700). Raises ``OSError``."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{uuid4().hex}{SUFFIX}"
        descriptor = _create_locked(path)
        _sync_folder(folder)
        return cls(path, descriptor)

    def head(self, *, deployment: str, incarnation: int) -> None:
        """Say whose file this is; the first line, synced."""
        facts = {"k": "head", "d": deployment, "i": incarnation, "b": boot_id()}
        with self._lock:
            self._head = _line(facts)
            self._write(self._head)
            os.fsync(self._descriptor)

    def open(self, sends: Iterable[Opened]) -> None:
        """Record a begun set and sync it. On ``OSError`` none of the set may be sent."""
        lines = {
            send.token: _line(
                {"k": "open", "j": send.job_id, "n": send.attempt, "t": send.token.hex}
            )
            for send in sends
        }
        with self._lock:
            for token, line in lines.items():
                self._pending[token] = [line]
            if self._size > _COMPACT_BYTES:
                self._compact()
            else:
                self._write(b"".join(lines.values()))
                os.fsync(self._descriptor)

    def start(self, token: Token) -> None:
        """Say that this send is about to be made. On ``OSError`` it must not be."""
        line = b"s" + token.hex.encode()
        self._add(token, line)

    def answer(self, token: Token, outcome: Outcome) -> None:
        """Keep what came of a send. An ``OSError`` here loses a witness, not the answer."""
        self._add(token, _line({"k": "answer", "t": token.hex, "o": outcome_json(outcome)}))

    def forget(self, tokens: Iterable[Token]) -> None:
        """The database holds how these ended; the file need not carry them when it is compacted."""
        with self._lock:
            for token in tokens:
                self._pending.pop(token, None)

    def close(self, *, remove: bool) -> None:
        """Let go of the lock; ``remove`` the file after a clean end."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _add(self, token: Token, line: bytes) -> None:
        if line.startswith(b"s"):
            line = _framed(line)
        with self._lock:
            if token in self._pending:
                self._pending[token].append(line)
            self._write(line)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._size += len(data)

    def _compact(self) -> None:
        """Start the file anew with what is still open, under a lock that never lapses."""
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = _create_locked(fresh)
        old, self._descriptor, self._size = self._descriptor, descriptor, 0
        self._write(self._head or b"")
        for lines in self._pending.values():
            self._write(b"".join(lines))
        os.fsync(descriptor)
        fresh.rename(self.path)
        _sync_folder(self.path.parent)
        os.close(old)


def _create_locked(path: Path) -> int:
    flags = os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Abandoned:
    """A file whose incarnation is proved to be over: this process holds its lock."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Lock the file at ``path``, or None while its incarnation lives or it is gone."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A compacted file has a new inode under the old name; the lock of the old one means
            # nothing then.
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return cls(path, descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None

    def read(self) -> Record | None:
        """What the file says, or None when not even its first line was finished."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            return _parse(file.read())

    def remove(self) -> None:
        """Everything in it is in the database now."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def set_aside(self) -> None:
        """Its first line was never finished, so nothing was begun under it; keep what is odd."""
        if os.fstat(self._descriptor).st_size == 0:
            self.remove()
            return
        self.path.rename(self.path.with_suffix(".damaged"))
        os.close(self._descriptor)

    def leave(self) -> None:
        """Let go; somebody may read it later."""
        os.close(self._descriptor)


def abandoned(folder: Path, *, but: Path | None = None) -> Iterator[Abandoned]:
    """Take each file in ``folder`` whose incarnation is over, one after the other."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if path != but and (taken := Abandoned.take(path)) is not None:
            yield taken


def _framed(body: bytes) -> bytes:
    return b"%06x %08x %s\n" % (len(body), zlib.crc32(body), body)


def _line(facts: Mapping[str, object]) -> bytes:
    return _framed(json.dumps(facts, separators=(",", ":")).encode())


def _parse(data: bytes) -> Record | None:
    head: dict[str, object] | None = None
    traces: dict[Token, Trace] = {}
    bodies, whole = _bodies(data)
    for body in bodies:
        if body.startswith(b"s"):
            token = Token(UUID(hex=body[1:].decode()))
            traces.setdefault(token, Trace()).started = True
            continue
        facts = json.loads(body)
        if facts["k"] == "head":
            head = facts
            continue
        token = Token(UUID(hex=facts["t"]))
        trace = traces.setdefault(token, Trace())
        if facts["k"] == "open":
            trace.opened = Opened(JobId(facts["j"]), facts["n"], token)
        else:
            trace.outcome = outcome_from_json(facts["o"])
    if head is None:
        return None
    return Record(str(head["d"]), int(str(head["i"])), str(head["b"]), whole, traces)


def _bodies(data: bytes) -> tuple[list[bytes], bool]:
    """Each line's body up to the first that is damaged, and whether there was none."""
    bodies: list[bytes] = []
    at = 0
    while at < len(data):
        header = data[at : at + 16]
        try:
            length, crc = int(header[:6], 16), int(header[7:15], 16)
        except ValueError:
            return bodies, False
        body = data[at + 16 : at + 16 + length]
        end = data[at + 16 + length : at + 17 + length]
        if len(body) != length or end != b"\n" or zlib.crc32(body) != crc:
            return bodies, False
        bodies.append(body)
        at += 17 + length
    return bodies, True


_KINDS: dict[str, type[Outcome]] = {
    kind.__name__: kind for kind in (Published, Rejected, Deferred, Unauthorized, Unknown)
}


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """An outcome as plain JSON values."""
    facts = asdict(outcome)
    if facts.get("at") is not None:
        facts["at"] = facts["at"].isoformat()
    return {"kind": type(outcome).__name__, **facts}


def outcome_from_json(facts: Mapping[str, object]) -> Outcome:
    """Read what ``outcome_json`` wrote."""
    fields = dict(facts)
    kind = _KINDS[str(fields.pop("kind"))]
    if isinstance(answer := fields.get("answer"), dict):
        fields["answer"] = Answer(**answer)
    if isinstance(at := fields.get("at"), str):
        fields["at"] = datetime.fromisoformat(at)
    if "reason" in fields:
        fields["reason"] = Reason(str(fields["reason"]))
    if "proof" in fields:
        fields["proof"] = Proof(str(fields["proof"]))
    return kind(**fields)  # type: ignore[arg-type]
