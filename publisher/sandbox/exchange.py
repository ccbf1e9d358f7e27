"""One request to a platform, from its head to its answer.

The order is the point: read, decide, record what was asked, do it and record that, record the
answer, wait until all of it is on the disk, and only then answer, or not.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from publisher.sandbox import misbehaviour
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.dialect import C, Refusal
from publisher.sandbox.forms import UnreadableForm
from publisher.sandbox.plan import Treatment

if TYPE_CHECKING:
    from publisher.sandbox.dialect import Asked, Dialect
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Answer, Connection, Head

_TWINS = frozenset({Behaviour.TWIN, Behaviour.ACCEPT_WITH_TWIN})


def serve(
    conn: Connection, head: Head, asked: Asked, dialect: Dialect[C], platform: Platform
) -> None:
    """Treat one request. Raises ``OSError`` and ``BadRequest`` from the connection."""
    request = secrets.token_hex(8)
    if platform.plan.cuts_unread(asked.target()):
        _record_unread(request, asked, platform)
        conn.reset()
        return
    body = conn.read_body(head)
    try:
        call = dialect.read(request, asked, head, body, platform.state)
    except UnreadableForm as error:
        _refuse_unread(conn, dialect.unreadable(request, str(error)), keep=head.keeps_open)
        return
    done = platform.plan.treat(
        call.asked.target(),
        possible=lambda behaviour: platform.can(behaviour, call.asked, dialect),
    )
    answer, done = _answer(call, done, dialect, platform)
    platform.stopping.wait(platform.delay)
    misbehaviour.deliver(conn, answer, done, keep=head.keeps_open, stopping=platform.stopping)


def _answer(
    call: C, done: Treatment, dialect: Dialect[C], platform: Platform
) -> tuple[Answer | None, Treatment]:
    """Do and record everything; return the answer and how it is to be sent."""
    older = platform.older_post(call.asked) if done.behaviour is Behaviour.OLDER_ID else None
    platform.record(call.asked.fact(call.request, done.behaviour))
    true = None
    if done.behaviour.accepts or not _treats_the_call(done.behaviour):
        try:
            true = dialect.perform(call, done, platform)
        except (Refusal, UnreadableForm) as error:
            # A call that would not be accepted anyway is refused, whatever was planned for it.
            done = Treatment()
            true = (
                error.answer(call.request)
                if isinstance(error, Refusal)
                else dialect.unreadable(call.request, str(error))
            )
    if older is not None:
        true = dialect.older(call, older, platform)
    answer = misbehaviour.answer(call, done, true, dialect)
    if done.behaviour in _TWINS:
        platform.add_twin(call.asked, call.request)
    if answer is not None:
        dialect.finish(answer, call, platform)
    platform.record(_answer_fact(call.request, answer, done.behaviour))()
    return answer, done


def _treats_the_call(behaviour: Behaviour) -> bool:
    """Say whether a behaviour takes the place of doing the call; a bad listing does not."""
    return behaviour not in (Behaviour.LISTING_DELAYED, Behaviour.LISTING_GAP)


def _answer_fact(request: str, answer: Answer | None, behaviour: Behaviour) -> dict[str, object]:
    sent = misbehaviour.outcome(behaviour)
    shown = None if answer is None or sent == "lost" else answer
    return {
        "fact": "answer", "request": request, "answer": sent,
        "status": shown.status if shown else None, "code": shown.code if shown else None,
    }  # fmt: skip


def _record_unread(request: str, asked: Asked, platform: Platform) -> None:
    platform.record(
        asked.fact(request, Behaviour.RESET_UNREAD),
        _answer_fact(request, None, Behaviour.RESET_UNREAD),
    )()


def _refuse_unread(conn: Connection, answer: Answer, *, keep: bool) -> None:
    conn.send(answer.head(keep=keep) + answer.body)
    if not keep:
        conn.finish()
