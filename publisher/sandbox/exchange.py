"""One request under Graph, from its head to its answer.

The order is the point: read, decide, record what was asked, do it and record that, record the
answer, wait until all of it is on the disk, and only then answer, or not.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from publisher.sandbox import calls, misbehaviour, refusals
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.forms import UnreadableForm
from publisher.sandbox.plan import Target, Treatment
from publisher.sandbox.refusals import Refusal
from publisher.sandbox.wire import Answer

if TYPE_CHECKING:
    from publisher.sandbox.calls import Call, Route
    from publisher.sandbox.platform import Platform
    from publisher.sandbox.wire import Connection, Head

_TWINS = frozenset({Behaviour.TWIN, Behaviour.ACCEPT_WITH_TWIN})


def serve(conn: Connection, head: Head, route: Route, platform: Platform) -> None:
    """Treat one request. Raises ``OSError`` and ``BadRequest`` from the connection."""
    request = secrets.token_hex(8)
    if platform.plan.cuts_unread(Target(route.page, route.endpoint, False, "")):
        _record_unread(request, head, route, platform)
        conn.reset()
        return
    body = conn.read_body(head)
    try:
        call = calls.read(request, route, head, body)
    except UnreadableForm as error:
        _refuse_unread(conn, request, str(error), keep=head.keeps_open)
        return
    done = platform.plan.treat(
        call.target(), possible=lambda behaviour: platform.can(behaviour, call)
    )
    answer, done = _answer(call, done, platform)
    platform.stopping.wait(platform.delay)
    misbehaviour.deliver(conn, answer, done, keep=head.keeps_open, stopping=platform.stopping)


def _answer(call: Call, done: Treatment, platform: Platform) -> tuple[Answer | None, Treatment]:
    """Do and record everything; return the answer and how it is to be sent."""
    older = platform.older_id(call) if done.behaviour is Behaviour.OLDER_ID else None
    platform.record(call.fact(done.behaviour))
    true = None
    if done.behaviour.accepts or not _treats_the_call(done.behaviour):
        try:
            true = Answer.of_json(platform.perform(call, done))
        except (Refusal, UnreadableForm) as error:
            # A call that would not be accepted anyway is refused, whatever was planned for it.
            done = Treatment()
            true = _refusal(error).answer(call.request)
    answer = misbehaviour.answer(call, done, true, older)
    if done.behaviour in _TWINS:
        platform.add_twin(call)
    if answer is not None:
        _add_headers(answer, call, platform)
    platform.record(_answer_fact(call.request, answer, done.behaviour))()
    return answer, done


def _treats_the_call(behaviour: Behaviour) -> bool:
    """Say whether a behaviour takes the place of doing the call; a bad listing does not."""
    return behaviour not in (Behaviour.LISTING_DELAYED, Behaviour.LISTING_GAP)


def _refusal(error: Refusal | UnreadableForm) -> Refusal:
    return error if isinstance(error, Refusal) else refusals.invalid_parameter(str(error))


def _add_headers(answer: Answer, call: Call, platform: Platform) -> None:
    answer.headers["facebook-api-version"] = call.route.version
    answer.headers["x-fb-trace-id"] = call.request
    if platform.usage_percent is not None:
        usage = refusals.usage_headers(call.route.page, platform.usage_percent)
        answer.headers.update({**usage, **answer.headers})


def _answer_fact(request: str, answer: Answer | None, behaviour: Behaviour) -> dict[str, object]:
    sent = misbehaviour.outcome(behaviour)
    shown = None if answer is None or sent == "lost" else answer
    return {
        "fact": "answer", "request": request, "answer": sent,
        "status": shown.status if shown else None, "code": shown.code if shown else None,
    }  # fmt: skip


def _record_unread(request: str, head: Head, route: Route, platform: Platform) -> None:
    platform.record(
        {
            "fact": "request", "request": request, "method": head.method, "path": head.path,
            "page": route.page, "endpoint": route.endpoint, "publishes": False, "message": "",
            "link": None, "media": [], "client_mutation_id": None,
            "behaviour": Behaviour.RESET_UNREAD,
        },
        _answer_fact(request, None, Behaviour.RESET_UNREAD),
    )()  # fmt: skip


def _refuse_unread(conn: Connection, request: str, reason: str, *, keep: bool) -> None:
    answer = refusals.invalid_parameter(reason).answer(request)
    conn.send(answer.head(keep=keep) + answer.body)
    if not keep:
        conn.finish()
