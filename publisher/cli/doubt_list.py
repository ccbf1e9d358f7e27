"""A list of doubts on the screen: one line each, those that need a person first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from publisher import reasons
from publisher.cli import moments, screen
from publisher.cli.screen import Column
from publisher.engine.content import ContentError, Post
from publisher.engine.errors import PublisherError
from publisher.engine.job import public_id
from publisher.engine.queries import DoubtRow, OrphanRow
from publisher.engine.registry import Registry
from publisher.words import _, many

_OVERDUE_SECONDS: Final = 60.0
"""A look that is due for so long: nobody seems to look."""
_POST: Final = 24


def show(rows: Sequence[DoubtRow], registry: Registry, *, digits: int) -> None:
    """Write the list; ``rows`` is not empty."""
    screen.say(_summary(rows))
    screen.show_table(
        [
            Column(_("ID"), whole=True),
            Column(_("AGE"), right=True),
            Column(_("CHANNEL")),
            Column(_("POST")),
            Column(_("WHY")),
            Column(_("LOOKS")),
            Column(_("USEFUL UNTIL")),
            Column(_("TAKEN")),
        ],
        (_cells(row, registry, digits) for row in rows),
    )
    _tell_when_nobody_looks(rows)


def as_json(row: DoubtRow, registry: Registry) -> dict[str, object]:
    """One doubt as ``--json`` has it."""
    evidence = row.evidence or {}
    return {
        "id": public_id(row.id),
        "key": row.key,
        "ref": row.ref,
        "channel": row.channel,
        "platform": row.platform,
        "needs_a_person": row.needs_a_person,
        "since": moments.iso(row.since),
        "reason": row.reason,
        "useful_until": moments.iso(row.useful_until),
        "can_look": _can_look(row, registry),
        "looks": row.looks,
        "last_look": row.last_look,
        "looked_at": moments.iso(row.looked_at),
        "candidates": [item.get("remote_id") for item in evidence.get("candidates") or []],
        "searched": evidence.get("searched"),
        "next_look_at": moments.iso(row.next_look_at),
        "asked_at": moments.iso(row.asked_at),
        "asked_reason": row.asked_reason,
        "taken_by": row.taken_by,
        "snoozed_until": moments.iso(row.snoozed_until),
    }


def show_orphans(rows: Sequence[OrphanRow]) -> None:
    """Sends that the database has no record of: where to look, while they are remembered."""
    if not rows:
        return
    screen.say(
        many(
            "{n} send that the database has no record of, and no post of:",
            "{n} sends that the database has no record of, and no posts of:",
            len(rows),
        )
    )
    for row in rows:
        words = _("told {ago} · worker run {run}, job number {job} · {answer}")
        screen.say(
            "  "
            + words.format(
                ago=moments.relative(row.at, row.now),
                run=row.worker_run,
                job=row.job_id,
                answer=_answer(row),
            )
        )


def _answer(row: OrphanRow) -> str:
    if row.remote_id is not None:
        return _("the platform answered: {id}").format(id=screen.visible(row.remote_id))
    if row.outcome is not None:
        return _("its end: {outcome}").format(outcome=row.outcome)
    return _("no answer; it may be on a page")


def orphan_as_json(row: OrphanRow) -> dict[str, object]:
    """One such send as ``--json`` has it."""
    return {
        "orphan": row.id,
        "told_at": moments.iso(row.at),
        "worker_run": row.worker_run,
        "job_number": row.job_id,
        "outcome": row.outcome,
        "remote_id": row.remote_id,
    }


def _summary(rows: Sequence[DoubtRow]) -> str:
    asking = sum(row.needs_a_person for row in rows)
    parts = []
    if asking:
        parts.append(many("{n} needs a person", "{n} need a person", asking))
    if len(rows) > asking:
        parts.append(many("{n} checking", "{n} checking", len(rows) - asking))
    oldest = max((row.now - row.since).total_seconds() for row in rows)
    parts.append(_("oldest {age}").format(age=moments.duration(oldest)))
    return " · ".join(parts)


def _tell_when_nobody_looks(rows: Sequence[DoubtRow]) -> None:
    overdue = [
        (row.now - row.next_look_at).total_seconds() for row in rows if row.next_look_at is not None
    ]
    if max(overdue, default=0.0) > _OVERDUE_SECONDS:
        screen.note(
            _("Nobody looks: a look is due since {time}. Start one who does: reconciler").format(
                time=moments.duration(max(overdue))
            )
        )


def _cells(row: DoubtRow, registry: Registry, digits: int) -> list[str]:
    until = "" if row.useful_until is None else moments.short(row.useful_until, row.now)
    return [
        public_id(row.id)[:digits],
        moments.duration((row.now - row.since).total_seconds()),
        f"{row.platform} {row.channel}",
        _text(row),
        reasons.brief(row.reason),
        _looks(row, registry),
        until,
        row.taken_by or ("" if row.needs_a_person else _("machine")),
    ]


def _looks(row: DoubtRow, registry: Registry) -> str:
    """What the looks came to: ``2 candidates``, ``cannot look``, ``0 of 40, next in 1 min``."""
    if not _can_look(row, registry):
        return _("cannot look")
    evidence = row.evidence or {}
    candidates = len(evidence.get("candidates") or [])
    if candidates:
        said = many("{n} candidate", "{n} candidates", candidates)
    elif row.evidence is None:
        said = _("none yet")
    else:
        said = _("0 of {n}").format(n=int(evidence.get("searched") or 0))
    if row.next_look_at is None:
        return said
    if row.next_look_at <= row.now:
        return _("{said}, next is due").format(said=said)
    return _("{said}, next {when}").format(
        said=said, when=moments.relative(row.next_look_at, row.now)
    )


def _can_look(row: DoubtRow, registry: Registry) -> bool:
    try:
        return registry.adapter(row.platform).capabilities(row.content, row.progress).can_look
    except PublisherError:
        return False


def _text(row: DoubtRow) -> str:
    try:
        return screen.excerpt(Post.from_json(row.content).text, _POST) or (row.ref or "")
    except ContentError:
        return row.ref or ""
