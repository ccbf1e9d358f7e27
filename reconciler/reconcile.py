"""One doubt: look, judge, record. Looks only read; nothing here sends."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import timedelta
from time import monotonic
from typing import Protocol, assert_never
from uuid import UUID

import structlog

from publisher.engine import ledger
from publisher.engine.adapter import Adapter
from publisher.engine.errors import Conflict
from publisher.engine.evidence import Evidence, Inconclusive
from publisher.engine.job import DELETE, Channel
from publisher.engine.ledger import AlreadyDecided, Conn, Doubt
from publisher.engine.registry import Registry
from reconciler.judge import (
    AskAPerson,
    Case,
    ItIsAbsent,
    ItIsLive,
    Judgement,
    LookAgain,
    Patience,
    RepeatIt,
    before_looking,
    judge,
)

log = structlog.get_logger(__name__)

WHO = "reconciler"
_REPEAT_MARGIN = 60.0
"""A repeat must have left this long before the platform forgets its key, in seconds."""


class Told(Protocol):
    """Who is told that a person must decide."""

    def __call__(self, conn: Conn, doubt: Doubt, reason: str) -> None:
        """Raise the alert for this doubt, once."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """A doubt that is held for one look, and what is needed for it."""

    doubt: Doubt
    token: UUID
    channel: Channel
    adapter: Adapter
    bound: frozenset[str]

    def case(self) -> Case:
        """The facts as they are before the look."""
        doubt = self.doubt
        capabilities = self.adapter.capabilities(doubt.content, doubt.progress)
        first = doubt.first_begun_at or doubt.since
        lives = capabilities.repeat_for
        return Case(
            capabilities=capabilities,
            sender=doubt.sender,
            began_at=doubt.now,
            now=doubt.now,
            looks=doubt.looks,
            latest=doubt.latest,
            attempt=doubt.attempt,
            repeat_until=None
            if lives is None or math.isinf(lives)
            else first + timedelta(seconds=lives - _REPEAT_MARGIN),
            useful_until=doubt.useful_until,
            repeat_ended=doubt.repeat_ended,
            arrives_until=doubt.arrives_until,
            removes=doubt.kind == DELETE,
        )


def prepare(conn: Conn, registry: Registry, doubt: Doubt, token: UUID) -> Look:
    """Read what a look needs from the database. Raises ``NotFound`` without an adapter."""
    channel = ledger.channels(conn, [doubt.channel_id])[doubt.channel_id]
    since = doubt.live_since or doubt.since
    bound = ledger.bound_elsewhere(conn, channel.id, doubt.job_id, since)
    return Look(doubt, token, channel, registry.adapter(channel.platform), bound)


def look(at: Look, patience: Patience) -> tuple[Evidence, float]:
    """Ask the platform. Any thread; no database. Whatever breaks proves nothing."""
    doubt = at.doubt
    query = doubt.query(at.channel, at.bound, patience.horizon)
    begun = monotonic()
    try:
        evidence = at.adapter.look(query)
    except Exception as error:
        log.exception("look.broke", job=doubt.key)
        evidence = Inconclusive(f"the look broke: {type(error).__name__}")
    return evidence, monotonic() - begun


def record(
    conn: Conn, at: Look, evidence: Evidence, took: float, patience: Patience, told: Told
) -> None:
    """Keep what was seen, and what follows from it; nothing, once the look is another's."""
    doubt = at.doubt
    if not ledger.holds_look(conn, doubt.job_id, at.token):
        log.info("look.lapsed", job=doubt.key)
        return
    if doubt.token is not None:  # pragma: no branch - without one nobody would have looked
        ledger.record_look(
            conn,
            job_id=doubt.job_id,
            attempt=doubt.attempt,
            token=doubt.token,
            by=WHO,
            took=took,
            evidence={"kind": type(evidence).__name__, **asdict(evidence)},
        )
    apply(conn, at, judge(at.case(), evidence, patience), patience, told)


def without_a_look(at: Look, patience: Patience) -> Judgement | None:
    """What is plain before any look, or None."""
    return before_looking(at.case(), patience)


def apply(conn: Conn, at: Look, judgement: Judgement, patience: Patience, told: Told) -> None:
    """Write a judgement. A doubt that was decided meanwhile is left as it was decided."""
    try:
        _apply(conn, at, judgement, patience, told)
    except AlreadyDecided as error:
        log.info("doubt.decided_meanwhile", job=at.doubt.key, how=str(error))
    except Conflict as error:
        log.warning("doubt.refused", job=at.doubt.key, why=str(error))
        ask(conn, at.doubt, at.token, str(error), _pause(at.doubt, patience), told)


def broke(
    conn: Conn, doubt: Doubt, token: UUID, error: Exception, patience: Patience, told: Told
) -> None:
    """Go on after a doubt that could not be worked on: look again, in the end ask a person."""
    log.error("doubt.broke", job=doubt.key, error=str(error).partition("\n")[0], alert=True)
    why = f"what was seen could not be recorded: {type(error).__name__}"
    pause = _pause(doubt, patience)
    if pause is None:
        ask(conn, doubt, token, why, None, told)
    else:
        ledger.look_again(conn, doubt.job_id, token, last_look=why, pause=pause)


def ask(
    conn: Conn, doubt: Doubt, token: UUID, reason: str, pause: float | None, told: Told
) -> None:
    """Ask a person, and tell them so the first time."""
    with conn.transaction():
        asked = ledger.look_again(
            conn, doubt.job_id, token, last_look=reason, pause=pause, asked=reason
        )
        if asked and doubt.asked_at is None:
            told(conn, doubt, reason)


def _pause(doubt: Doubt, patience: Patience) -> float | None:
    """Seconds until the next look, None after the last."""
    return patience.pause(doubt.looks) if doubt.looks + 1 < patience.limit else None


def _apply(conn: Conn, at: Look, judgement: Judgement, patience: Patience, told: Told) -> None:
    doubt = at.doubt
    match judgement:
        case ItIsLive(remote_id, permalink, reason):
            ledger.confirm_published(
                conn, doubt, remote_id=remote_id, permalink=permalink, who=WHO, reason=reason
            )
        case ItIsAbsent(reason, send):
            ledger.confirm_absent(
                conn,
                doubt,
                send_at=None,
                send=send,
                who=WHO,
                reason=reason,
                horizon=patience.horizon,
            )
        case RepeatIt(reason, until, after):
            ledger.repeat(conn, doubt, until=until, after=after, who=WHO, reason=reason)
        case LookAgain(pause, why):
            ledger.look_again(conn, doubt.job_id, at.token, last_look=why, pause=pause)
        case AskAPerson(reason, pause):
            ask(conn, doubt, at.token, reason, pause, told)
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(judgement)
    log.info("doubt.judged", job=doubt.key, judgement=type(judgement).__name__)
