"""One job in quarantine: is it on its page already? Looks only read; nothing here sends.

The database may lack the send of it, so there is no attempt to judge: what is looked for is any
send of this content since the commits went missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import assert_never
from uuid import UUID

import structlog

from publisher.engine import ledger
from publisher.engine.adapter import Adapter
from publisher.engine.errors import Conflict
from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
from publisher.engine.job import Channel
from publisher.engine.ledger import Conn, Suspect
from publisher.engine.registry import Registry
from publisher.engine.retry import is_storable_id, storable_link
from reconciler.judge import Patience

log = structlog.get_logger(__name__)

WHO = "reconciler"
_CLEAN_LOOKS = 2
"""So many looks that see nothing like it, before a page that proves no absence is left at that."""


@dataclass(frozen=True, slots=True)
class ItIsThere:
    """It was sent before, and this is it."""

    remote_id: str
    permalink: str | None


@dataclass(frozen=True, slots=True)
class LetItGo:
    """It was not sent before."""

    reason: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Nothing is plain yet; look again in ``pause`` seconds, or, with None, a person decides."""

    seen: str
    pause: float | None


Finding = ItIsThere | LetItGo | LookAgain


def judge_suspect(suspect: Suspect, evidence: Evidence, patience: Patience) -> Finding:
    """Decide what follows from a look for a job in quarantine. Pure.

    Strictly, only a find or a proved absence settles it. Otherwise, where nothing speaks for a
    loss, looks that see nothing like it are enough.
    """
    match evidence:
        case Found():
            return _found(suspect, evidence, patience)
        case Absent(searched):
            if not suspect.nothing_can_arrive:
                return _later(suspect, f"not among {searched}, but it may still arrive")
            return LetItGo(f"a complete listing of {searched} does not hold it")
        case Inconclusive():
            return _inconclusive(suspect, evidence, patience)
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(evidence)


def _found(suspect: Suspect, found: Found, patience: Patience) -> Finding:
    if suspect.twins:
        more = f"{suspect.twins} more of its channel's jobs have the same content"
        return LookAgain(f"{found.remote_id} is on the page, and {more}", None)
    if not is_storable_id(found.remote_id):
        return _again(suspect, "what was found has an id that cannot be kept", patience)
    return ItIsThere(found.remote_id, storable_link(found.permalink))


def _inconclusive(suspect: Suspect, seen: Inconclusive, patience: Patience) -> Finding:
    """A look that failed, or saw what could be it, frees nothing; a clean one may."""
    if seen.candidates or not seen.clean:
        return _again(suspect, seen.reason, patience)
    if not suspect.nothing_can_arrive:
        return _later(suspect, f"{seen.reason}; it may still arrive")
    if suspect.looks + 1 < _CLEAN_LOOKS:
        return LookAgain(seen.reason, patience.pause(suspect.looks))
    if suspect.strict:
        return LookAgain(f"{seen.reason}; this page proves no absence", None)
    return LetItGo(f"{seen.reason}, and nothing speaks for a loss")


def without_a_look(suspect: Suspect, adapter: Adapter) -> Finding | None:
    """What no look can help: a repeat that is safe whatever happened, or a person; else None."""
    can = adapter.capabilities(suspect.content, suspect.progress)
    if can.can_look:
        return None
    if can.repeat_is_atomic and can.repeat_for is not None and suspect.platform_key is not None:
        return LetItGo("whoever has it knows it by its key: a repeat cannot double it")
    # What is due later may have been sent before its time, and here no look would show it.
    if suspect.strict or suspect.loss_shows:
        return LookAgain("this platform cannot be looked at", None)
    return LetItGo("this platform cannot be looked at, and nothing speaks for a loss")


@dataclass(frozen=True, slots=True)
class Search:
    """A job that is held for one look, and what is needed for it."""

    suspect: Suspect
    token: UUID
    channel: Channel
    adapter: Adapter
    bound: frozenset[str]


def prepare(conn: Conn, registry: Registry, suspect: Suspect, token: UUID) -> Search:
    """Read what a look needs from the database. Raises ``NotFound`` without an adapter."""
    channel = ledger.channels(conn, [suspect.channel_id])[suspect.channel_id]
    bound = ledger.bound_elsewhere(conn, channel.id, suspect.job_id, suspect.since)
    return Search(suspect, token, channel, registry.adapter(channel.platform), bound)


def search(at: Search) -> Evidence:
    """Ask the platform. Any thread; no database. Whatever breaks proves nothing."""
    try:
        return at.adapter.look(at.suspect.query(at.channel, at.bound))
    except Exception as error:
        log.exception("look.broke", job=at.suspect.key)
        return Inconclusive(f"the look broke: {type(error).__name__}")


def record(conn: Conn, at: Search, finding: Finding, evidence: Evidence | None = None) -> None:
    """Write what was found; nothing, once the look is another's or somebody decided."""
    suspect = at.suspect
    seen = {} if evidence is None else {"kind": type(evidence).__name__, **asdict(evidence)}
    with conn.transaction():
        pause = finding.pause if isinstance(finding, LookAgain) else 0.0
        words = finding.seen if isinstance(finding, LookAgain) else type(finding).__name__
        if not ledger.look_for_again(conn, suspect.job_id, at.token, seen=words, pause=pause):
            log.info("look.lapsed", job=suspect.key)
            return
        if evidence is not None:
            ledger.tell(
                conn,
                suspect.job_id,
                "quarantine_look",
                who=WHO,
                attempt=suspect.attempts,
                detail=seen,
            )
        try:
            with conn.transaction():
                _settle(conn, suspect, finding)
        except Conflict as error:
            log.warning("quarantine.refused", job=suspect.key, why=str(error))
            ledger.ask_about_suspect(conn, suspect.job_id, seen=str(error))
    log.info("quarantine.judged", job=suspect.key, finding=type(finding).__name__)


def _settle(conn: Conn, suspect: Suspect, finding: Finding) -> None:
    match finding:
        case ItIsThere(remote_id, permalink):
            ledger.found_live(
                conn,
                suspect.job_id,
                remote_id=remote_id,
                permalink=permalink,
                who=WHO,
                reason="found on the page, and it can be no other",
            )
        case LetItGo(reason):
            ledger.release_suspects(conn, [suspect.job_id], who=WHO, reason=reason)
        case LookAgain():
            pass
        case _:  # pragma: no cover - mypy proves that nothing gets here
            assert_never(finding)


def _again(suspect: Suspect, seen: str, patience: Patience) -> LookAgain:
    is_last = suspect.looks + 1 >= patience.limit
    return LookAgain(seen, None if is_last else patience.pause(suspect.looks))


def _later(suspect: Suspect, seen: str) -> LookAgain:
    """Once more when nothing can arrive any more: that look is the one that counts."""
    return LookAgain(seen, max(0.1, (suspect.absent_after - suspect.now).total_seconds()))
