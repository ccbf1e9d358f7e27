"""How each behaviour answers, and how the answer goes over the wire."""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING

from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.dialect import C, Complaint
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from publisher.sandbox.dialect import Dialect
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.wire import Connection

BOMB_BYTES = 256 * 1024 * 1024
"""What a gzip bomb unpacks to."""
DRIBBLE_PAUSE = 0.2
"""Seconds between two bytes of a dribbled head."""

LOST = frozenset({
    Behaviour.LOSE_ANSWER, Behaviour.ACCEPT_AND_RESET, Behaviour.ACCEPT_LATE,
    Behaviour.ACCEPT_AND_HANG, Behaviour.DROP, Behaviour.HANG, Behaviour.RESET_UNREAD,
    Behaviour.TWIN, Behaviour.ACCEPT_WITH_TWIN,
})  # fmt: skip
"""Nothing of the answer goes out."""
SPOILED = frozenset({
    Behaviour.HALF_ANSWER, Behaviour.GARBAGE_ANSWER, Behaviour.GZIP_BOMB, Behaviour.ENDLESS_BODY,
})  # fmt: skip
"""Something goes out, but not an answer that can be read whole."""


def outcome(behaviour: Behaviour) -> str:
    """Return what the log says of the answer: ``sent``, ``spoiled`` or ``lost``."""
    if behaviour in LOST:
        return "lost"
    return "spoiled" if behaviour in SPOILED else "sent"


def answer(call: C, done: Treatment, true: Answer | None, dialect: Dialect[C]) -> Answer | None:
    """Return the answer to give: ``true`` unless the behaviour puts another in its place.

    ``true`` is None where nothing was done. None: there is no answer to give.
    """
    if complaint := _COMPLAINTS.get(done.behaviour):
        return dialect.complain(complaint, call, done)
    match done.behaviour:
        case Behaviour.ACCEPT_AND_502 | Behaviour.ACCEPT_AND_504:
            return _gateway(done.behaviour)
        case Behaviour.ANSWER_WITHOUT_ID:
            return dialect.without_id()
        case Behaviour.REDIRECT_307:
            # Relative to the address that was asked, so that no path (it may hold a token) has to
            # be remembered for it.
            return Answer(307, b"", headers={"Location": "?redirected=1"})
        case _:
            return true


_COMPLAINTS = {
    Behaviour.ACCEPT_AND_500: Complaint.BROKEN,
    Behaviour.FAIL_500: Complaint.BROKEN,
    Behaviour.ACCEPT_AND_LIMIT: Complaint.LIMITED,
    Behaviour.REFUSE_LIMITED: Complaint.LIMITED,
    Behaviour.REFUSE_429: Complaint.LIMITED,
    Behaviour.REFUSE_429_RETRY_AFTER: Complaint.LIMITED,
    Behaviour.ACCEPT_AND_REFUSE: Complaint.INVALID,
    Behaviour.REFUSE_INVALID: Complaint.INVALID,
    Behaviour.REFUSE_TOKEN: Complaint.TOKEN,
    Behaviour.REFUSE_DUPLICATE: Complaint.DUPLICATE,
    Behaviour.REFUSE_DUPLICATE_FALSELY: Complaint.DUPLICATE,
}


def deliver(
    conn: Connection, answer: Answer | None, done: Treatment, *, keep: bool, stopping: Event
) -> None:
    """Put an answer on the wire as the behaviour says; closes unless the answer came through."""
    send = _DELIVERIES.get(done.behaviour)
    if send is not None:
        send(conn, answer, done.seconds, stopping)
        conn.finish()
    elif answer is None:
        conn.finish()
    else:
        if done.behaviour is Behaviour.ANSWER_SLOWLY:
            stopping.wait(done.seconds)
        conn.send(answer.head(keep=keep) + answer.body)
        if not keep:
            conn.finish()


def _reset(conn: Connection, _answer: Answer | None, _seconds: float, _stopping: Event) -> None:
    conn.reset()


def _hang(conn: Connection, _answer: Answer | None, seconds: float, _stopping: Event) -> None:
    conn.wait_for_client(seconds)


def _half(conn: Connection, answer: Answer | None, _seconds: float, _stopping: Event) -> None:
    if answer is not None:
        conn.send(answer.head(keep=False) + answer.body[: len(answer.body) // 2])


def _garbage(conn: Connection, _answer: Answer | None, _seconds: float, _stop: Event) -> None:
    conn.send(b"\x15\x03\x03\x00\x02\x02\x16 this is not HTTP\r\n\r\n")


def _bomb(conn: Connection, answer: Answer | None, _seconds: float, _stopping: Event) -> None:
    if answer is None:
        return
    packed = Answer(
        answer.status, bomb(), answer.content_type, {**answer.headers, "Content-Encoding": "gzip"}
    )
    conn.send(packed.head(keep=False) + packed.body)


def _endless(conn: Connection, answer: Answer | None, seconds: float, stopping: Event) -> None:
    if answer is None:
        return
    conn.send(answer.head(keep=False, length=False) + b'{"id":')
    blanks = b" " * 65536
    for _ in range(int(seconds / 0.005)):
        conn.send(blanks)
        if stopping.wait(0.005):
            return


def _dribble(conn: Connection, answer: Answer | None, seconds: float, stopping: Event) -> None:
    if answer is None:
        return
    head = answer.head(keep=False)
    first = head.index(b"\r\n") + 2
    conn.send(head[:first] + b"X-Padding: ")
    for _ in range(int(seconds / DRIBBLE_PAUSE)):
        conn.send(b"a")
        if stopping.wait(DRIBBLE_PAUSE):
            return
    conn.send(b"\r\n" + head[first:] + answer.body)


_DELIVERIES: dict[Behaviour, Callable[[Connection, Answer | None, float, Event], None]] = {
    Behaviour.ACCEPT_AND_RESET: _reset,
    Behaviour.RESET_UNREAD: _reset,
    Behaviour.ACCEPT_AND_HANG: _hang,
    Behaviour.HANG: _hang,
    Behaviour.HALF_ANSWER: _half,
    Behaviour.GARBAGE_ANSWER: _garbage,
    Behaviour.GZIP_BOMB: _bomb,
    Behaviour.ENDLESS_BODY: _endless,
    Behaviour.HEADER_DRIBBLE: _dribble,
    Behaviour.LOSE_ANSWER: lambda *_: None,
    Behaviour.ACCEPT_LATE: lambda *_: None,
    Behaviour.DROP: lambda *_: None,
    Behaviour.TWIN: lambda *_: None,
    Behaviour.ACCEPT_WITH_TWIN: lambda *_: None,
}


@cache
def bomb() -> bytes:
    """Return a gzip body, about 256 KiB, that unpacks to JSON of 256 MiB without an id."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    blanks = b" " * (1024 * 1024)
    parts = [pack.compress(b'{"data":"')]
    parts.extend(pack.compress(blanks) for _ in range(BOMB_BYTES // len(blanks)))
    parts.append(pack.compress(b'"}') + pack.flush())
    return b"".join(parts)


def _gateway(behaviour: Behaviour) -> Answer:
    is_502 = behaviour is Behaviour.ACCEPT_AND_502
    name = "502 Bad Gateway" if is_502 else "504 Gateway Time-out"
    body = f"<html><head><title>{name}</title></head><body><h1>{name}</h1></body></html>\r\n"
    return Answer(int(name[:3]), body.encode(), "text/html")
