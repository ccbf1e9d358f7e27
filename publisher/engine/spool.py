"""The worker's own synced file: the second witness of what was begun, started and answered.

One file per incarnation, locked with ``flock`` for the incarnation's whole life, so that whoever
can take the lock knows that nobody is writing any more. One JSON line per fact, each with its
length and CRC-32:

    head    which deployment, incarnation and boot this file belongs to
    open    a send was recorded in the database (synced before any of the set may start)
    start   a hand is about to call the platform (written before; no sync: it must outlive the
            process, not the machine, and a changed boot id voids it anyway)
    answer  what came of it

A write or sync that fails raises ``OSError``; then nothing may be sent.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Self
from uuid import UUID, uuid4

from publisher.engine.job import JobId, Token
from publisher.engine.outcome import Outcome, Reason, Unknown, outcome_from_json, outcome_json
from publisher.engine.quickly import put

# Made once: ``json.dumps`` with separators makes an encoder for every line.
_encode = json.JSONEncoder(separators=(",", ":")).encode

SUFFIX = ".spool"
CONTENT_BYTES = 8  # of a content's hash, should its job's number be given out again
_COMPACT_BYTES = 32 * 1024 * 1024
_FRAME = 16


def boot_id() -> str:
    """The kernel's name for this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class Opened:
    """A begun attempt as the spool names it.

    ``can_look``: its platform shows what is on the page. ``content``: what it sends, by the
    beginning of its hash; empty in files of releases that did not say.
    """

    job_id: JobId
    attempt: int
    token: Token
    can_look: bool = False
    content: bytes = b""


@dataclass(slots=True)
class Trace:
    """What one file says of one attempt."""

    opened: Opened | None = None
    started: bool = False
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A dead incarnation's file, read.

    ``whole``: every line stands as it was written. ``compacted``: lines of settled attempts were
    dropped, so an attempt that has none may still have been started. ``made_at``: by the worker's
    own clock; None in files of releases that did not say.
    """

    deployment: str
    incarnation: int
    host: str
    boot: str
    whole: bool
    compacted: bool
    traces: Mapping[Token, Trace] = field(default_factory=dict)
    made_at: datetime | None = None


class Spool:
    """The file of a running incarnation. Safe to write from many threads."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._lock = Lock()
        self.boot = boot_id()
        self._head: dict[str, object] = {}
        self._size = 0
        # By the token's number: a UUID's own hash is made by Python code each time.
        self._pending: dict[int, list[bytes]] = {}

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Make and lock a new file in ``folder`` (made with mode 0700). Raises ``OSError``."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{uuid4().hex}{SUFFIX}"
        # It gets its name when it is locked: nobody may find it abandoned in between.
        unlocked = path.with_suffix(".new")
        descriptor = _create_locked(unlocked)
        unlocked.rename(path)
        _sync_folder(folder)
        return cls(path, descriptor)

    def head(self, *, deployment: str, incarnation: int) -> None:
        """Say whose file this is; the first line, synced."""
        with self._lock:
            self._head = {
                "k": "head",
                "d": deployment,
                "i": incarnation,
                "h": socket.gethostname(),
                "b": self.boot,
                "m": datetime.now(UTC).isoformat(),
            }
            self._write(_line(self._head))
            os.fsync(self._descriptor)

    def open(self, sends: Iterable[Opened]) -> None:
        """Record a begun set and sync it. On ``OSError`` none of the set may be sent."""
        lines = {send.token.int: _open_line(send) for send in sends}
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
        self._add(token, _framed(b"s%032x" % token.int))

    def answer(self, token: Token, outcome: Outcome) -> None:
        """Keep what came of a send. An ``OSError`` here loses a witness, not the answer."""
        self._add(token, _line({"k": "answer", "t": token.hex, "o": outcome_json(outcome)}))

    def forget(self, tokens: Iterable[Token]) -> None:
        """The database holds how these ended; the file need not carry them when it is compacted."""
        with self._lock:
            for token in tokens:
                self._pending.pop(token.int, None)

    def close(self, *, remove: bool) -> None:
        """Let go of the lock; ``remove`` the file after a clean end."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _add(self, token: Token, line: bytes) -> None:
        with self._lock:
            pending = self._pending.get(token.int)
            if pending is not None:
                pending.append(line)
            self._write(line, put)

    def _write(self, data: bytes, by: Callable[[int, bytes], int] | None = None) -> None:
        try:
            done = 0 if by is None else by(self._descriptor, data)
            if done < len(data):
                _write(self._descriptor, data[done:])
        except OSError:
            # A torn line in the middle would make those after it hard to read.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def _compact(self) -> None:
        """Start the file anew with what is still open, under a lock that never lapses.

        The old file stays the one that is written to until the new one stands in its place: lines
        in a file that nobody would read make a send that was started look as if it was not.
        """
        head = _line({**self._head, "c": True})
        data = b"".join([head, *(b"".join(lines) for lines in self._pending.values())])
        fresh = self.path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = _create_locked(fresh)
        try:
            _write(descriptor, data)
            os.fsync(descriptor)
            fresh.rename(self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        old, self._descriptor, self._size = self._descriptor, descriptor, len(data)
        os.close(old)
        _sync_folder(self.path.parent)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


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
        except OSError:
            # Gone; or another user's, whose workers will read it.
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
        """Not all of it could be read: keep it under another name, for a person to look at."""
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


def peek(path: Path) -> tuple[Record | None, bool]:
    """What the file says, and whether its incarnation still holds it. Nothing is changed.

    The last line of a file that is held may be half written. Raises ``OSError``.
    """
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _parse(file.read()), True
        return _parse(file.read()), False


def _framed(body: bytes) -> bytes:
    return b"%06x %08x %s\n" % (len(body), zlib.crc32(body), body)


def _open_line(send: Opened) -> bytes:
    # Spelled as the encoder would: it takes four times as long, and this is on the way to a send.
    return _framed(
        b'{"k":"open","j":%d,"n":%d,"t":"%032x","l":%s,"c":"%s"}'
        % (
            send.job_id,
            send.attempt,
            send.token.int,
            b"true" if send.can_look else b"false",
            send.content.hex().encode(),
        )
    )


def _line(facts: Mapping[str, object]) -> bytes:
    return _framed(_encode(facts).encode())


def _parse(data: bytes) -> Record | None:
    head: dict[str, object] | None = None
    traces: dict[Token, Trace] = {}
    bodies, whole = _bodies(data)
    for body in bodies:
        try:
            head = _read_line(body, traces) or head
        except (ValueError, TypeError, KeyError):
            # Written by another release: it may say that a send was started, for all we know.
            whole = False
    if head is None:
        return None
    return Record(
        deployment=str(head["d"]),
        incarnation=int(str(head["i"])),
        host=str(head["h"]),
        boot=str(head["b"]),
        whole=whole,
        compacted=bool(head["c"]),
        traces=traces,
        made_at=datetime.fromisoformat(str(head["m"])) if "m" in head else None,
    )


def _read_line(body: bytes, traces: dict[Token, Trace]) -> dict[str, object] | None:
    """Add to ``traces`` what a line says; the head is returned."""
    if body.startswith(b"s"):
        token = Token(UUID(hex=body[1:].decode()))
        traces.setdefault(token, Trace()).started = True
        return None
    facts = json.loads(body)
    if facts["k"] == "head":
        return {"c": False, **{name: facts[name] for name in ("d", "i", "h", "b")}, **facts}
    token = Token(UUID(hex=facts["t"]))
    match facts["k"]:
        case "open":
            job, content = JobId(facts["j"]), bytes.fromhex(facts.get("c", ""))
            opened = Opened(job, facts["n"], token, bool(facts.get("l")), content)
            traces.setdefault(token, Trace()).opened = opened
        case "answer":
            traces.setdefault(token, Trace()).outcome = _readable_outcome(facts.get("o"))
        case other:
            raise ValueError(other)
    return None


def _readable_outcome(facts: object) -> Outcome:
    """An answer as it was written; one in words of another release is a doubt."""
    try:
        return outcome_from_json(facts)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        return Unknown(Reason.ANSWER_UNREADABLE, f"the answer in the spool: {error!r}")


def _bodies(data: bytes) -> tuple[list[bytes], bool]:
    """Each undamaged line's body, and whether there was nothing else."""
    bodies: list[bytes] = []
    whole = True
    at = 0
    while at < len(data):
        body = _body(data, at)
        if body is None:
            whole = False
            newline = data.find(b"\n", at)
            at = len(data) if newline < 0 else newline + 1
            continue
        bodies.append(body)
        at += _FRAME + len(body) + 1
    return bodies, whole


def _body(data: bytes, at: int) -> bytes | None:
    """The body of the line that starts ``at``, or None where it is damaged."""
    try:
        length, crc = int(data[at : at + 6], 16), int(data[at + 7 : at + 15], 16)
    except ValueError:
        return None
    body = data[at + _FRAME : at + _FRAME + length]
    ends = data[at + _FRAME + length : at + _FRAME + length + 1] == b"\n"
    return body if ends and len(body) == length and zlib.crc32(body) == crc else None
