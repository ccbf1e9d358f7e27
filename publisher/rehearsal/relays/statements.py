"""PostgreSQL's protocol, as far as one must know it to say which statement is on the wire.

Messages: a type byte and a length (PostgreSQL manual, section "Message Formats"). A statement here
is what a client sends up to its Sync, Flush or simple Query, and its reply what comes back up to
ReadyForQuery, or to the last CommandComplete where there was no Sync (a pipeline). A statement
prepared earlier is recognised by its name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

# In the order in which they are tried. Each is a piece of SQL that only this statement has.
_KINDS: tuple[tuple[str, str], ...] = (
    ("doubts", "look_token = gen_random_uuid()"),
    ("look again", "SET looks = looks + 1"),
    ("verdict bind", "INTO publisher.remote_posts (channel_id, remote_id, job_id, permalink) V"),
    ("verdict move", "AND state = 'unknown' AND attempts ="),
    ("verdict", "INSERT INTO publisher.verdicts"),
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
        """What it holds."""
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


@dataclass(frozen=True, slots=True)
class Sent:
    """Something a client waits for an answer to. ``kind``: empty where it is none of the engine's.

    ``completes``: how many CommandComplete the answer ends with; None: it ends with ReadyForQuery.
    """

    kind: str
    completes: int | None


@dataclass(slots=True)
class Statements:
    """What one connection's client asks for."""

    _prepared: dict[bytes, str] = field(default_factory=dict)
    _sql: str = ""
    _kind: str = ""
    _executes: int = 0
    _transaction: str = ""

    def take(self, message: Message) -> Sent | None:
        """Take one message of the client's; at the end of what it will wait for, say what it is.

        Several statements may come in one go, as in a pipeline: they are named for the last. The
        end of a transaction is called ``<its last statement> commit``.
        """
        match message.type:
            case b"P":
                name, sql, _ = message.body.split(b"\0", 2)
                self._sql = self._prepared[name] = sql.decode(errors="replace")
            case b"B":
                _, name, _ = message.body.split(b"\0", 2)
                self._sql = self._prepared.get(name, "")
            case b"E":
                self._executes += 1
                self._kind = self._named() or self._kind
            case b"Q":
                self._sql = message.body.rstrip(b"\0").decode(errors="replace")
                return Sent(self._named(), None)
            case b"S":
                return self._ended(None)
            case b"H":
                return self._ended(self._executes)
            case b"X":
                return Sent("", None)
            case _:
                pass
        return None

    def _ended(self, completes: int | None) -> Sent:
        kind, self._kind, self._executes = self._kind, "", 0
        return Sent(kind, completes)

    def _named(self) -> str:
        word = self._sql.split(None, 1)[0].upper().rstrip(";") if self._sql.strip() else ""
        match word:
            case "BEGIN" | "ROLLBACK":
                self._transaction = ""
                return ""
            case "COMMIT":
                name, self._transaction = self._transaction, ""
                return f"{name} commit" if name else ""
            case _:
                kind = kind_of(self._sql)
                self._transaction = kind or self._transaction
                return kind
