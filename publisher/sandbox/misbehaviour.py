"""How each behaviour answers, and how the answer goes over the wire."""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from publisher.sandbox import refusals
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from publisher.sandbox.calls import Call
    from publisher.sandbox.plan import Treatment
    from publisher.sandbox.refusals import Refusal
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


def answer(call: Call, done: Treatment, true: Answer | None, older: str | None) -> Answer | None:
    """Return the answer to give: ``true`` unless the behaviour puts another in its place.

    ``true`` is None where nothing was done; ``older`` is the id of an older post. None: there is
    no answer to give.
    """
    if refuse := _REFUSALS.get(done.behaviour):
        return refuse().answer(call.request, _error(done), **_limit_headers(call, done))
    match done.behaviour:
        case Behaviour.ACCEPT_AND_502 | Behaviour.ACCEPT_AND_504:
            return _gateway(done.behaviour)
        case Behaviour.ANSWER_WITHOUT_ID:
            return Answer.of_json({"success": True})
        case Behaviour.OLDER_ID:
            return Answer.of_json({"id": older})
        case Behaviour.REDIRECT_307:
            return Answer(307, b"", headers={"Location": f"{call.path}?redirected=1"})
        case _:
            return true


_REFUSALS: dict[Behaviour, Callable[[], Refusal]] = {
    Behaviour.ACCEPT_AND_500: refusals.unknown_error,
    Behaviour.FAIL_500: refusals.unknown_error,
    Behaviour.ACCEPT_AND_LIMIT: refusals.limit_reached,
    Behaviour.REFUSE_LIMITED: refusals.limit_reached,
    Behaviour.REFUSE_429: refusals.limit_reached,
    Behaviour.REFUSE_429_RETRY_AFTER: refusals.limit_reached,
    Behaviour.ACCEPT_AND_REFUSE: lambda: refusals.invalid_parameter("Invalid parameter"),
    Behaviour.REFUSE_INVALID: lambda: refusals.invalid_parameter("Invalid parameter"),
    Behaviour.REFUSE_TOKEN: lambda: refusals.bad_token(463),
    Behaviour.REFUSE_DUPLICATE: refusals.duplicate,
    Behaviour.REFUSE_DUPLICATE_FALSELY: refusals.duplicate,
}


def _error(done: Treatment) -> dict[str, Any]:
    too_many = (Behaviour.REFUSE_429, Behaviour.REFUSE_429_RETRY_AFTER)
    return ({"status": 429} if done.behaviour in too_many else {}) | dict(done.error)


def _limit_headers(call: Call, done: Treatment) -> dict[str, str]:
    if done.behaviour in (Behaviour.ACCEPT_AND_LIMIT, Behaviour.REFUSE_LIMITED):
        return refusals.usage_headers(call.route.page, 100, done.seconds)
    if done.behaviour is Behaviour.REFUSE_429_RETRY_AFTER:
        return {"Retry-After": str(round(done.seconds))}
    return {}


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
