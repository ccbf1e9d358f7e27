"""PostgreSQL's protocol, as far as one must know it to say which statement is on the wire.

Messages: a type byte and a length (PostgreSQL manual, section "Message Formats"). A statement here
is what a client sends up to its Sync or simple Query, and its reply what comes back up to
ReadyForQuery. A statement prepared earlier is recognised by its name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

# In the order in which they are tried. Each is a piece of SQL that only this statement has.
_KINDS: tuple[tuple[str, str], ...] = (
    ("enqueue", "publisher.enqueue("),
    ("register", "INSERT INTO incarnations"),
    ("beat", "UPDATE pulse"),
    ("claim gates", "FOR UPDATE OF g SKIP LOCKED"),
    ("claim rows", "claims = j.claims + 1"),
    ("claim read", "ch.generation, j.kind"),
    ("channels", "sealed, generation, trusted FROM channels"),
    ("earlier attempts", "FROM attempts WHERE job_id = ANY"),
    ("hands", "SET hand_at = clock_timestamp()"),
    ("progress", "SET progress = h.progress"),
    ("begin", "attempts = j.attempts + 1"),
    ("unbegun", "AS gate_closed"),
    ("settle", "INTO remote_posts (channel_id, remote_id, job_id, permalink) SELECT"),
    ("settle locked", "token FROM jobs WHERE id = ANY"),
    ("rest", "go.blocked"),
    ("rescue", "j.lease_until < clock_timestamp() - make_interval"),
    ("forsake", "j.incarnation = "),
    ("leases", "UPDATE jobs j SET lease_until"),
    ("expire", "j.useful_until <= clock_timestamp() AND (j.hold_reason"),
    ("late job", "token FROM jobs WHERE id = $1 FOR UPDATE SKIP LOCKED"),
    ("late attempt", "FROM attempts WHERE job_id = $1 AND token"),
    ("late keep", "coalesce(settled_at, clock_timestamp())"),
    ("late move", "failures = failures +"),
    ("look", "INSERT INTO looks"),
    ("bound elsewhere", "FROM remote_posts WHERE channel_id = ANY"),
    ("suspects", "j.deaths > 0 AND j.run_at"),
    ("unsettled", "WITH doubtful AS"),
    ("known attempts", "a.answer IS NOT NULL FROM unnest"),
    ("known attempts", "FROM attempts a JOIN"),
    ("held", "incarnation IS NOT NULL AND incarnation ="),
    ("registered", "SELECT EXISTS (SELECT FROM incarnations"),
    ("end", "UPDATE incarnations SET ended_at"),
    ("deployment", "FROM deployment"),
)
_SPACES = re.compile(r"\s+")
_END_OF_TRANSACTION = frozenset({"COMMIT", "RELEASE"})


def kind_of(sql: str) -> str:
    """What a statement is for, or an empty string when it is none of the engine's."""
    flat = _SPACES.sub(" ", sql)
    return next((kind for kind, piece in _KINDS if piece in flat), "")


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``raw`` with its head."""

    type: bytes
    raw: bytes

    @property
    def body(self) -> bytes:
        return self.raw[5:]


class Messages:
    """Cuts a stream into messages."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take bytes in; give the messages that are whole by now."""
        self._buffer += data
        while len(self._buffer) >= 5:
            (length,) = struct.unpack_from("!i", self._buffer, 1)
            if len(self._buffer) < length + 1:
                return
            raw, self._buffer = self._buffer[: length + 1], self._buffer[length + 1 :]
            yield Message(raw[:1], raw)


@dataclass(slots=True)
class Statements:
    """What one connection's client asks for."""

    _prepared: dict[bytes, str] = field(default_factory=dict)
    _sql: str = ""
    _executes: bool = False
    _transaction: str = ""
    _in_transaction: bool = False

    def take(self, message: Message) -> str | None:
        """Take one message of the client's; at the end of a statement, say its kind.

        An empty string for one that is none of the engine's or only prepares. The end of a
        transaction is called ``<its last statement> commit``.
        """
        match message.type:
            case b"P":
                name, sql, _ = message.body.split(b"\0", 2)
                self._prepared[name] = sql.decode(errors="replace")
                self._sql = self._prepared[name]
            case b"B":
                _, name, _ = message.body.split(b"\0", 2)
                self._sql = self._prepared.get(name, "")
            case b"E":
                self._executes = True
            case b"Q":
                self._sql = message.body.rstrip(b"\0").decode(errors="replace")
                return self._named()
            case b"S":
                if self._executes:
                    self._executes = False
                    return self._named()
                return ""
            case _:
                pass
        return None

    def _named(self) -> str:
        word = self._sql.split(None, 1)[0].upper().rstrip(";") if self._sql.strip() else ""
        if word == "BEGIN":
            self._in_transaction, self._transaction = True, ""
            return ""
        if word == "COMMIT":
            name, self._in_transaction = self._transaction, False
            return f"{name} commit" if name else ""
        if word == "ROLLBACK":
            self._in_transaction = False
            return ""
        kind = kind_of(self._sql)
        if self._in_transaction and kind:
            self._transaction = kind
        return kind
