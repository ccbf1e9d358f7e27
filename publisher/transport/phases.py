"""From how far a call came, and how it ended, to what may be said about it. Pure.

One table, read from the top; the first row that fits decides, and what fits none is *unknown*.
The classes of httpx's exceptions cannot tell sent from unsent: a ``LocalProtocolError``, a
``ReadError`` or a ``ProxyError`` may be either. What can is whether our own request's
``http11.send_request_headers.started`` was seen, which httpcore emits just before the first
byte; a proxy's CONNECT emits it too, for another method (httpcore 1.0.9, ``_sync/http11.py`` and
``_sync/http_proxy.py``). The rows were met over raw sockets in ``tests/transport``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from publisher.engine.outcome import Reason


class Phase(StrEnum):
    """How far our own request came."""

    CONNECTING = "connecting"
    """No byte of it can have left."""
    SENDING = "sending"
    """It may have left, in part or whole; nothing has come back."""
    ANSWERING = "answering"
    """A part of an answer has come back."""


class End(StrEnum):
    """How the call ended."""

    REFUSED = "refused"
    """We would not make the call: its address or the request itself is not allowed."""
    NOT_CONNECTED = "not connected"
    PERMIT_LATE = "permit late"
    PERMIT_USED = "permit used"
    TIME_UP = "time up"
    CLOSED = "closed"
    RESET = "reset"
    GARBLED = "garbled"
    UNDECODABLE = "undecodable"
    TOO_LARGE = "too large"
    BROKE = "broke"
    """Our own code failed, or memory ran out."""
    REUSED = "reused"
    """A whole answer, on a connection that was not made for this call."""
    WHOLE = "whole"


class Verdict(StrEnum):
    """What a publish call may answer."""

    REPLY = "reply"
    DEFERRED = "deferred"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One case. ``phase``, ``end`` or ``statuses`` None: any."""

    phase: Phase | None
    end: End | None
    statuses: range | None
    verdict: Verdict
    reason: Reason
    says: str
    source: str


_ANY = None
_C, _S, _A = Phase.CONNECTING, Phase.SENDING, Phase.ANSWERING
_HTTP11 = "httpcore 1.0.9 _sync/http11.py"
_DESIGN = "design, section 6"

# fmt: off
TABLE: tuple[Row, ...] = (
    # A permit that was used stands for a request that may be on its way: never "not sent".
    Row(_ANY, End.PERMIT_USED, _ANY, Verdict.UNKNOWN, Reason.ADAPTER_BROKE,
        "a second request was tried under one permit; it was not written", _DESIGN),
    Row(_C, End.PERMIT_LATE, _ANY, Verdict.DEFERRED, Reason.PERMIT_LATE,
        "the time to begin had passed; nothing was sent", _DESIGN),
    Row(_C, End.REFUSED, _ANY, Verdict.DEFERRED, Reason.CONNECT_FAILED,
        "the request was not made", _DESIGN),
    Row(_C, End.TIME_UP, _ANY, Verdict.DEFERRED, Reason.CONNECT_FAILED,
        "no connection in time; nothing was sent", "httpcore 1.0.9 _sync/connection.py"),
    Row(_C, End.NOT_CONNECTED, _ANY, Verdict.DEFERRED, Reason.CONNECT_FAILED,
        "no connection; nothing was sent", "httpcore 1.0.9 _sync/connection.py"),
    # What a proxy did to our CONNECT, or our own failure before the request.
    Row(_C, _ANY, _ANY, Verdict.DEFERRED, Reason.CONNECT_FAILED,
        "stopped before the request; nothing was sent", "httpcore 1.0.9 _sync/http_proxy.py"),

    Row(_S, End.TIME_UP, _ANY, Verdict.UNKNOWN, Reason.NO_ANSWER,
        "sent, and no answer in time", _HTTP11),
    Row(_S, End.CLOSED, _ANY, Verdict.UNKNOWN, Reason.CONNECTION_LOST,
        "the connection was closed without an answer", _HTTP11),
    Row(_S, End.RESET, _ANY, Verdict.UNKNOWN, Reason.CONNECTION_LOST,
        "the connection broke before an answer", _HTTP11),
    Row(_A, End.TIME_UP, _ANY, Verdict.UNKNOWN, Reason.ANSWER_CUT,
        "the answer was not whole in time", _HTTP11),
    Row(_A, End.CLOSED, _ANY, Verdict.UNKNOWN, Reason.ANSWER_CUT,
        "the connection was closed in the middle of the answer", _HTTP11),
    Row(_A, End.RESET, _ANY, Verdict.UNKNOWN, Reason.ANSWER_CUT,
        "the connection broke in the middle of the answer", _HTTP11),
    Row(_A, End.GARBLED, _ANY, Verdict.UNKNOWN, Reason.ANSWER_UNREADABLE,
        "the answer is not HTTP", _HTTP11),
    Row(_A, End.UNDECODABLE, _ANY, Verdict.UNKNOWN, Reason.ANSWER_UNREADABLE,
        "the answer could not be unpacked", _DESIGN),
    Row(_A, End.TOO_LARGE, _ANY, Verdict.UNKNOWN, Reason.ANSWER_UNREADABLE,
        "the answer is too large", _DESIGN),
    Row(_ANY, End.REUSED, _ANY, Verdict.UNKNOWN, Reason.ADAPTER_BROKE,
        "a connection was used twice, which must not be; its answer may be another's", _DESIGN),
    Row(_ANY, End.BROKE, _ANY, Verdict.UNKNOWN, Reason.ADAPTER_BROKE,
        "our own code failed half-way", _DESIGN),

    Row(_A, End.WHOLE, range(200, 300), Verdict.REPLY, Reason.NO_ID, "answered", _DESIGN),
    Row(_A, End.WHOLE, range(300, 400), Verdict.UNKNOWN, Reason.REDIRECTED,
        "answered with a redirect, which is not followed", _DESIGN),
    Row(_A, End.WHOLE, range(400, 500), Verdict.REPLY, Reason.UNLISTED_REFUSAL, "refused",
        _DESIGN),
    Row(_A, End.WHOLE, range(500, 600), Verdict.UNKNOWN, Reason.SERVER_ERROR,
        "answered with a server error", _DESIGN),
)
# fmt: on

OTHERWISE = Row(
    None, None, None, Verdict.UNKNOWN, Reason.ANSWER_UNREADABLE,
    "ended in a way that proves nothing", _DESIGN,
)  # fmt: skip
"""Anything else, such as status 101 or 999."""


def judge(phase: Phase, end: End, status: int | None) -> Row:
    """Find the row for a publish call that came so far and ended so."""
    for row in TABLE:
        if (
            row.phase in (None, phase)
            and row.end in (None, end)
            and (row.statuses is None or status in row.statuses)
        ):
            return row
    return OTHERWISE
