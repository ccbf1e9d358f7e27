"""From how far a mail came, and what was said, to what may be said about it. Pure.

One table, read from the top; the first row that fits decides, and what fits none is *unknown*.
Nothing before the final dot is a send: a server that never saw it has no message (RFC 5321,
4.1.1.4). After it, its reply alone says who is responsible, and there the RFC is strict: 2yz, the
server is; 4yz and 5yz, it must not deliver (4.2.5), which is what makes a refusal a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from publisher.engine.outcome import Reason


class Stage(IntEnum):
    """How far it came; the names are what was under way."""

    CONNECT = 0
    GREETING = 1
    HELLO = 2
    ENCRYPT = 3
    ACCESS = 4
    SENDER = 5
    RECIPIENT = 6
    DATA = 7
    CONTENT = 8
    """The message may have left, in part or whole, and its final dot."""


class End(StrEnum):
    """How it ended."""

    SAID = "said"
    """A whole reply, other than the one that leads on."""
    REFUSED = "refused"
    """We would not go on: the relay, its certificate or the message is not allowed."""
    NO_ACCESS = "no access"
    """The relay does not take the access we have."""
    TOO_LARGE = "too large"
    PERMIT_LATE = "permit late"
    PERMIT_USED = "permit used"
    TIME_UP = "time up"
    CLOSED = "closed"
    BROKEN = "broken"
    GARBLED = "garbled"
    BROKE = "broke"
    """Our own code failed."""


class Verdict(StrEnum):
    """What follows."""

    TAKEN = "taken"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One case. None: any. ``kind``: a reply's first digit; ``codes``: exactly these."""

    name: str
    stages: frozenset[Stage] | None
    end: End | None
    kind: int | None
    codes: frozenset[int] | None
    verdict: Verdict
    reason: Reason
    says: str
    source: str


_SENT = frozenset({Stage.CONTENT})
_BEFORE = frozenset(Stage) - _SENT
_OPENING = frozenset({Stage.CONNECT, Stage.GREETING, Stage.HELLO, Stage.ENCRYPT})
_MAIL = frozenset({Stage.SENDER, Stage.RECIPIENT, Stage.DATA})
_ACCESS = frozenset({Stage.ACCESS})
_ACCESS_CODES = frozenset({530, 534, 535, 538})
_CLOSING = frozenset({421})
_RFC, _AUTH, _DESIGN = "RFC 5321", "RFC 4954", "design, section 6"

V, R = Verdict, Reason
# fmt: off
TABLE: tuple[Row, ...] = (
    Row("permit-used", None, End.PERMIT_USED, None, None, V.UNKNOWN, R.ADAPTER_BROKE,
        "a second mail was tried under one permit; it was not sent", _DESIGN),
    Row("permit-late", _BEFORE, End.PERMIT_LATE, None, None, V.DEFERRED, R.PERMIT_LATE,
        "the time to begin had passed; nothing was sent", _DESIGN),
    Row("too-large", _BEFORE, End.TOO_LARGE, None, None, V.REJECTED, R.CONTENT_REFUSED,
        "the mail is larger than the relay takes", "RFC 1870, 4"),
    Row("no-access", _BEFORE, End.NO_ACCESS, None, None, V.UNAUTHORIZED, R.NEEDS_RECONNECTING,
        "the relay does not take our access", f"{_AUTH}, 4"),
    # Said at any command by a relay that wants another user, or none of us (RFC 4954, 6).
    Row("access-code", _BEFORE, End.SAID, 5, _ACCESS_CODES, V.UNAUTHORIZED, R.NEEDS_RECONNECTING,
        "the relay refuses our access", f"{_AUTH}, 6"),
    Row("access", _ACCESS, End.SAID, 5, None, V.UNAUTHORIZED, R.NEEDS_RECONNECTING,
        "the relay refuses our access", f"{_AUTH}, 4"),
    # Before it heard of a message it refuses us, or this moment, and never the message.
    Row("opening", _OPENING, End.SAID, None, None, V.DEFERRED, R.CONNECT_FAILED,
        "the relay does not serve us; nothing was sent", f"{_RFC}, 3.1"),
    Row("later", _BEFORE, End.SAID, 4, None, V.DEFERRED, R.BUSY,
        "the relay takes it later, not now; nothing was sent", f"{_RFC}, 4.2.1"),
    Row("refused", _MAIL, End.SAID, 5, None, V.REJECTED, R.CONTENT_REFUSED,
        "the relay refuses it; nothing was sent", f"{_RFC}, 4.2.1"),
    Row("before", _BEFORE, None, None, None, V.DEFERRED, R.CONNECT_FAILED,
        "stopped before the message; nothing was sent", f"{_RFC}, 4.1.1.4"),

    Row("taken", _SENT, End.SAID, 2, None, V.TAKEN, R.NO_ANSWER,
        "taken", f"{_RFC}, 4.2.5"),
    # A 421 says that the channel closes, at any moment and in reply to nothing (3.8); gateways
    # say it of a backend they lost after the dot. What became of the message it does not say.
    Row("closing", _SENT, End.SAID, 4, _CLOSING, V.UNKNOWN, R.CONNECTION_LOST,
        "sent, and the relay closed without saying what became of it", f"{_RFC}, 3.8"),
    Row("dot-4yz", _SENT, End.SAID, 4, None, V.DEFERRED, R.BUSY,
        "the relay did not take it, and may later", f"{_RFC}, 4.2.5"),
    Row("dot-5yz", _SENT, End.SAID, 5, None, V.REJECTED, R.CONTENT_REFUSED,
        "the relay refuses it", f"{_RFC}, 4.2.5"),
    Row("silence", _SENT, End.TIME_UP, None, None, V.UNKNOWN, R.NO_ANSWER,
        "sent, and no answer in time", f"{_RFC}, 4.5.3.2.6"),
    Row("closed", _SENT, End.CLOSED, None, None, V.UNKNOWN, R.CONNECTION_LOST,
        "the connection was closed without an answer", _DESIGN),
    Row("broken", _SENT, End.BROKEN, None, None, V.UNKNOWN, R.CONNECTION_LOST,
        "the connection broke before an answer", _DESIGN),
    Row("broke", _SENT, End.BROKE, None, None, V.UNKNOWN, R.ADAPTER_BROKE,
        "our own code failed half-way", _DESIGN),
)
# fmt: on

OTHERWISE = Row(
    "otherwise", None, None, None, None, V.UNKNOWN, R.ANSWER_UNREADABLE,
    "ended in a way that proves nothing", _DESIGN,
)  # fmt: skip
"""Anything else, such as a 354 in reply to the final dot."""


def judge(stage: Stage, end: End, code: int | None) -> Row:
    """Find the row for a mail that came so far, and ended so."""
    for row in TABLE:
        if (
            (row.stages is None or stage in row.stages)
            and row.end in (None, end)
            and (row.kind is None or (code is not None and code // 100 == row.kind))
            and (row.codes is None or code in row.codes)
        ):
            return row
    return OTHERWISE
