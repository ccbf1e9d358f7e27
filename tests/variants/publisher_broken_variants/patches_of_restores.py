"""What makes a forked worker or reconciler one of the broken variants; see ``broken``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from publisher.engine import guard
from publisher.engine.adapter import Adapter
from publisher.engine.evidence import Evidence
from publisher.engine.guard import Guard
from publisher.engine.ledger import Suspect, late, leases
from publisher.engine.witness import Doubted, Record, Stands
from reconciler import quarantine as looking
from reconciler.judge import Patience
from reconciler.quarantine import Finding


def guard_never_compares() -> None:
    """Whatever database it is, it is the one."""
    Guard._doubt = lambda *_: None  # type: ignore[method-assign]


def guard_forgets() -> None:
    """What a worker saw of the database ends with its connection."""
    Guard._went_back = lambda *_: None  # type: ignore[method-assign]


def strict_is_ignored() -> None:
    """A look that sees nothing frees a post on a Page that proves no absence."""
    real = looking.judge_suspect

    def judge(suspect: Suspect, evidence: Evidence, patience: Patience) -> Finding:
        return real(replace(suspect, strict=False), evidence, patience)

    looking.judge_suspect = judge


def due_later_is_let_go() -> None:
    """What is due later was not sent, where no look can show it either."""
    real = looking.without_a_look

    def without_a_look(suspect: Suspect, adapter: Adapter) -> Finding | None:
        return real(replace(suspect, loss_shows=False), adapter)

    looking.without_a_look = without_a_look


def tick_alone() -> None:
    """Whichever mark the witness holds, the database knows it."""
    real = guard.doubt_of

    def doubt_of(stands: Stands, record: Record | None, *, step: int) -> Doubted | None:
        known = replace(stands, marks=[] if record is None else [record.mark])
        return real(known, record, step=step)

    guard.doubt_of = doubt_of


def expire_ends_the_quarantined() -> None:
    """What is held back is missed when its time is over, as anything else is."""
    _cut(leases, "_EXPIRE", "AND (j.hold_reason IS DISTINCT FROM 'quarantine')")


def answer_of_another_content() -> None:
    """A number that was given out again is the same post."""
    content = "AND substr(c.content_sha256, 1, length(%(content)s::bytea)) = %(content)s"
    _cut(late, "_OF_CONTENT", content, "AND %(content)s::bytea IS NOT NULL")


def _cut(module: Any, name: str, words: str, instead: str = "") -> None:  # noqa: ANN401 - a module
    statement = getattr(module, name)
    assert words in statement, f"{name} reads otherwise by now"
    setattr(module, name, statement.replace(words, instead))
