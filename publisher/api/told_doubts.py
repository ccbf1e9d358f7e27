"""A doubt as the API tells of it: the evidence, what could be the post, what may be decided."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from publisher.api.strict import Instant, Told
from publisher.api.told_jobs import JobWhole, StateWord, job_whole
from publisher.editorial.unknowns import Decision, Seen
from publisher.engine.errors import PublisherError
from publisher.engine.evidence import Candidate
from publisher.engine.job import public_id
from publisher.engine.queries import DoubtRow, OrphanRow
from publisher.engine.registry import Registry


class DoubtListed(Told):
    """One job that may be live."""

    id: str
    key: str
    external_reference: str | None
    channel_id: int
    channel: str
    platform: str
    needs_a_person: bool
    since: Instant
    reason: str | None
    useful_until: Instant | None
    can_look: bool = Field(description="Whether the platform shows what is on the page.")
    looks: int
    last_look: str | None
    looked_at: Instant | None
    candidates: list[str] = Field(description="Ids of posts that could be it.")
    next_look_at: Instant | None
    asked_at: Instant | None
    asked_reason: str | None
    taken_by: str | None
    snoozed_until: Instant | None
    url: str


class Orphan(Told):
    """A send that the database has no record of; it may be on a page."""

    id: int
    told_at: Instant
    worker_run: str
    job_number: int
    outcome: str | None
    remote_id: str | None


class DoubtPage(Told):
    """What may be live, what needs a person first."""

    unknowns: list[DoubtListed]
    orphans: list[Orphan]


class CandidatePost(Told):
    """A post on the page that could be ours."""

    remote_id: str
    permalink: str | None
    created_at: Instant
    text: str
    ours: bool | None = Field(description="Null where the platform does not say.")


class DoubtWhole(Told):
    """One doubt with everything a decision rests on."""

    job: JobWhole
    since: Instant
    attempt: int = Field(description="The send in question.")
    latest_attempt: int = Field(description="Send it back with a decision, as what you saw.")
    looks_made: int
    can_look: bool
    taken_by: str | None
    asked_at: Instant | None
    asked_reason: str | None
    locked: str | None = Field(
        description="Why it may not be sent again, or given up, yet; null where it may."
    )
    candidates: list[CandidatePost]


class Decided(Told):
    """What was recorded of a doubt."""

    id: str
    state: StateWord
    remote_id: str | None
    permalink: str | None
    also: str | None
    was_read: bool = Field(description="The platform showed it to us; else it rests on your word.")
    forced: bool = Field(description="It was decided against what the last look showed.")
    send_at: Instant | None
    hold_reason: str | None = Field(description="It is not sent while this holds it back.")


def doubt_page(rows: list[DoubtRow], orphans: list[OrphanRow], registry: Registry) -> DoubtPage:
    """The list."""
    return DoubtPage(
        unknowns=[_listed(row, registry) for row in rows],
        orphans=[
            Orphan(
                id=row.id,
                told_at=row.at,
                worker_run=row.worker_run,
                job_number=row.job_id,
                outcome=row.outcome,
                remote_id=row.remote_id,
            )
            for row in orphans
        ],
    )


def doubt_whole(seen: Seen, tries: int) -> DoubtWhole:
    """One with its evidence."""
    doubt, row = seen.doubt, seen.detail.row
    return DoubtWhole(
        job=job_whole(seen.detail, tries),
        since=doubt.since,
        attempt=doubt.attempt,
        latest_attempt=doubt.latest,
        looks_made=doubt.looks,
        can_look=seen.can_look,
        taken_by=doubt.taken_by,
        asked_at=row.asked_at,
        asked_reason=row.asked_reason,
        locked=seen.locked,
        candidates=[_candidate(one) for one in seen.candidates],
    )


def decided(decision: Decision, hold_reason: str | None) -> Decided:
    """What was recorded, and what holds the job back all the same."""
    post, also = decision.post, decision.also
    return Decided(
        id=public_id(decision.job_id),
        state=decision.state.value,
        remote_id=None if post is None else post.remote_id,
        permalink=None if post is None else post.permalink,
        also=None if also is None else also.remote_id,
        was_read=decision.was_read,
        forced=decision.forced,
        send_at=decision.send_at,
        hold_reason=hold_reason,
    )


def _candidate(one: Candidate) -> CandidatePost:
    return CandidatePost(
        remote_id=one.remote_id,
        permalink=one.permalink,
        created_at=one.created_at,
        text=one.text,
        ours=one.ours,
    )


def _listed(row: DoubtRow, registry: Registry) -> DoubtListed:
    listed: list[dict[str, Any]] = (row.evidence or {}).get("candidates") or []
    return DoubtListed(
        id=public_id(row.id),
        key=row.key,
        external_reference=row.ref,
        channel_id=row.channel_id,
        channel=row.channel,
        platform=row.platform,
        needs_a_person=row.needs_a_person,
        since=row.since,
        reason=row.reason,
        useful_until=row.useful_until,
        can_look=_can_look(row, registry),
        looks=row.looks,
        last_look=row.last_look,
        looked_at=row.looked_at,
        candidates=[str(item.get("remote_id")) for item in listed],
        next_look_at=row.next_look_at,
        asked_at=row.asked_at,
        asked_reason=row.asked_reason,
        taken_by=row.taken_by,
        snoozed_until=row.snoozed_until,
        url=f"/api/v1/unknowns/{public_id(row.id)}",
    )


def _can_look(row: DoubtRow, registry: Registry) -> bool:
    try:
        return registry.adapter(row.platform).capabilities(row.content, row.progress).can_look
    except PublisherError:
        return False
