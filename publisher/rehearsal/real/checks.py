"""Whether each post is on the page exactly once, and the journal says so."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from publisher.engine.evidence import Candidate, Evidence, Found, Inconclusive
from publisher.engine.job import Channel, State, public_id
from publisher.engine.queries import RehearsalJob
from publisher.rehearsal.real.ground import Ground, carries_mark, mark_of
from publisher.rehearsal.real.results import Posted
from publisher.words import _

_ENDED_UNSENT: Final = (State.FAILED, State.MISSED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class Checked:
    """One post with what was wrong about it, what could not be shown, what nobody can show."""

    posted: Posted
    fault: str = ""
    unproved: str = ""
    note: str = ""


def check(ground: Ground, channel: Channel, job: RehearsalJob) -> Checked:
    """Hold the page against the journal for one job."""
    mark = mark_of(job)
    can_look = ground.adapter(channel).capabilities(job.content, job.progress).can_look
    if not can_look:
        return _unseen(job, mark)
    evidence = _looked(ground, channel, job)
    copies = _copies(evidence, job)
    if len(copies) > 1:
        said = _("{mark} is on the page {n} times: {where}").format(
            mark=mark, n=len(copies), where=", ".join(copies)
        )
        return Checked(_posted(job, False), fault=said)
    if job.row.state is State.UNKNOWN:
        return _doubted(job, mark)
    if job.row.state in _ENDED_UNSENT:
        return _unpublished(job, mark, copies)
    return _published(job, mark, evidence, copies)


def _doubted(job: RehearsalJob, mark: str) -> Checked:
    said = _("{mark} ({id}) may be live, and nobody has said whether it is")
    return Checked(_posted(job, None), unproved=said.format(mark=mark, id=public_id(job.row.id)))


def _unseen(job: RehearsalJob, mark: str) -> Checked:
    if job.row.state is State.UNKNOWN:
        return _doubted(job, mark)
    if job.row.state in _ENDED_UNSENT:
        return Checked(_posted(job, None), unproved=_why_unpublished(job, mark))
    note = _("{mark}: this platform shows nobody what is on the page; its answer is believed")
    if not job.answered:
        note = _("{mark}: this platform shows nobody what is on the page; a person's word is taken")
    return Checked(_posted(job, None), note=note.format(mark=mark))


def _unpublished(job: RehearsalJob, mark: str, copies: list[str]) -> Checked:
    if copies:
        said = _("{mark} is on the page, and the journal says that it is {state}: {where}").format(
            mark=mark, state=job.row.state, where=copies[0]
        )
        return Checked(_posted(job, True), fault=said)
    return Checked(_posted(job, False), unproved=_why_unpublished(job, mark))


def _published(job: RehearsalJob, mark: str, evidence: Evidence, copies: list[str]) -> Checked:
    if not copies:
        said = _("{mark} is live in the journal, and the page does not show it: {why}").format(
            mark=mark, why=getattr(evidence, "reason", type(evidence).__name__)
        )
        # A listing that is still settling is no proof that it lied.
        is_lie = not isinstance(evidence, Inconclusive)
        return Checked(
            _posted(job, False), fault=said if is_lie else "", unproved="" if is_lie else said
        )
    if job.row.remote_id is not None and isinstance(evidence, Found):
        if evidence.remote_id != job.row.remote_id:
            said = _("{mark} is on the page as {seen}; the journal says {id}").format(
                mark=mark, seen=evidence.remote_id, id=job.row.remote_id
            )
            return Checked(_posted(job, True), fault=said)
        return Checked(_posted(job, True, evidence.permalink))
    return Checked(_posted(job, True))


def _why_unpublished(job: RehearsalJob, mark: str) -> str:
    said = _("{mark} was not published: {state}, {why}")
    return said.format(mark=mark, state=job.row.state, why=job.row.reason or _("no reason given"))


def _looked(ground: Ground, channel: Channel, job: RehearsalJob) -> Evidence:
    """Look until something is seen of it, for as long as patience lasts."""
    adapter = ground.adapter(channel)
    until = time.monotonic() + ground.patience.look
    patient = job.row.state is State.PUBLISHED
    while True:
        evidence = adapter.look(job.query(channel, ground.bound_elsewhere(job)))
        if _copies(evidence, job) or not patient or time.monotonic() > until:
            return evidence
        time.sleep(ground.patience.pause)


def _copies(evidence: Evidence, job: RehearsalJob) -> list[str]:
    """The posts that are this one: their links, or ids."""
    match evidence:
        case Found(remote_id, permalink):
            return [permalink or remote_id]
        case Inconclusive(candidates=candidates):
            return [one.permalink or one.remote_id for one in candidates if _is_copy(one, job)]
        case _:
            return []


def _is_copy(candidate: Candidate, job: RehearsalJob) -> bool:
    return candidate.ours is not False and carries_mark(candidate.text, job)


def _posted(job: RehearsalJob, once: bool | None, link: str | None = None) -> Posted:  # noqa: FBT001 - a finding
    row = job.row
    return Posted(
        job_id=row.id,
        mark=mark_of(job),
        state=row.state,
        attempts=row.attempts,
        killed=job.died,
        remote_id=row.remote_id,
        permalink=row.permalink or link,
        once=once,
    )
