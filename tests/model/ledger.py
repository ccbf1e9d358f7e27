"""What the statements of ``publisher.engine.ledger`` do to the journal, one function each.

Each is one transaction. A rule that a broken variant drops is asked for by its sentence.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.model.state import (
    ABSENT,
    CANCELLED,
    CLAIMED,
    DROPPED,
    FAILED,
    MISSED,
    NOT_SENT,
    PUBLISHED,
    QUARANTINE,
    REFUSED,
    REPEAT_SAFE,
    SCHEDULED,
    SENDING,
    UNKNOWN,
    Attempt,
    Job,
    Journal,
    Run,
    World,
    put,
)

NEW_DOUBT: Final = -1
NEW_TOKEN: Final = -2
"""Names for what is made in this very step; ``canonical`` gives them numbers."""
LATE_PUBLISH_FROM: Final = frozenset({SCHEDULED, CLAIMED, UNKNOWN, FAILED, MISSED, DROPPED})
RETURNED: Final = frozenset({"doubt", "live", "no"})


class Wrote(NamedTuple):
    """A journal as a statement left it, and what the move was called."""

    journal: Journal
    event: str = ""
    said: str = ""


class End(NamedTuple):
    """How a claim or a send ends, as its worker decided."""

    event: str
    to: str
    outcome: str = ""
    proof: str = ""


def moved(world: World, job: Job, to: str, *, live: str = "", repeats: bool | None = None) -> Job:
    """The row in another state, let go of; what a loss leaves in doubt comes back held."""
    after = Job(
        to,
        since=NEW_DOUBT if to == UNKNOWN else 0,
        repeats=job.repeats if repeats is None else repeats,
        doubtful=(job.doubtful or job.hold == QUARANTINE) and to not in {SCHEDULED, PUBLISHED},
        live=live,
    )
    if to == SCHEDULED and job.doubtful and world.keeps(_COMES_BACK.get(job.state, "")):
        return after._replace(hold=QUARANTINE, since=NEW_DOUBT)
    return after


_ENDED_BEFORE: Final = "what comes back is held as well"
_UNDER_WAY: Final = "what was under way at a loss comes back into quarantine"
_COMES_BACK: Final = {
    FAILED: _ENDED_BEFORE, MISSED: _ENDED_BEFORE, CANCELLED: _ENDED_BEFORE,
    SENDING: _UNDER_WAY, UNKNOWN: _UNDER_WAY,
}  # fmt: skip


def possibly_live(world: World, journal: Journal) -> bool:
    """Whether an attempt's only proof is that a repeat is safe."""
    return world.keeps("a safe repeat hides no doubt") and any(
        attempt.proof == REPEAT_SAFE for attempt in journal.attempts
    )


def ends(world: World, word: str) -> tuple[End, ...]:
    """What may follow from what came of a send (``retry.settle``)."""
    kept = _ENDS[word]
    misread, rule = _MISREAD.get(word, (kept, ""))
    if word == "refused" and not world.can_look:
        kept, misread = (_DOUBT,), _REFUSED
        rule = "a refusal is believed where a look can"
    return kept if world.keeps(rule) else misread


_DOUBT = End("lose_answer", UNKNOWN, "doubt")
DRAINED = End("lose_answer", UNKNOWN, "drained")
_LIVE = End("publish", PUBLISHED, "live")
_NOT_SENT = (
    End("defer", SCHEDULED, "no", NOT_SENT),
    End("defer", FAILED, "no", NOT_SENT),
)
_REFUSED = (
    End("defer", SCHEDULED, "no", REFUSED),
    End("defer", FAILED, "no", REFUSED),
    End("reject", FAILED, "no", REFUSED),
    End("unauthorized", SCHEDULED, "no", REFUSED),
)
_ENDS: Final = {
    "published": (_LIVE,),
    "another": (_DOUBT,),
    "silent": (_DOUBT,),
    "unclear": (_DOUBT,),
    "refused": _REFUSED,
    "not sent": _NOT_SENT,
}
_MISREAD: Final = {
    "another": ((_LIVE,), "an id of another job proves nothing"),
    "silent": (_NOT_SENT, "a timeout is a doubt"),
    "unclear": (_REFUSED, "a 5xx is a doubt"),
}
"""What a broken variant makes of it, and the rule it breaks."""


def claim(journal: Journal, run: int) -> Wrote:
    """Scheduled → claimed, under a new token."""
    job = journal.job._replace(state=CLAIMED, token=NEW_TOKEN, run=run)
    return Wrote(journal._replace(job=job), "claim")


def may_begin(world: World, journal: Journal, token: int) -> bool:
    """What ``begin_send`` asks of the row, but for lease and key, which are clocks."""
    job = journal.job
    if world.keeps("begin matches the token"):
        return job.state == CLAIMED and job.token == token
    return job.state in {CLAIMED, SENDING, SCHEDULED}


def is_promised(world: World, journal: Journal) -> bool:
    """Whether the promise index would refuse another attempt."""
    return world.keeps("the promise index") and any(not a.proof for a in journal.attempts)


def begin(journal: Journal, token: int, run: int) -> Wrote:
    """The attempt's row, and claimed → sending."""
    attempts = (*journal.attempts, Attempt(token, run))
    job = journal.job._replace(state=SENDING, token=token, run=run)
    return Wrote(journal._replace(job=job, attempts=attempts), "begin_send")


def settle(world: World, journal: Journal, token: int, end: End) -> Wrote | None:
    """How a claim or send ended; None where the job is no longer held under this token."""
    job, attempts = journal.job, journal.attempts
    matches = job.token == token or not world.keeps("a settle matches its token")
    if not matches or job.state not in {CLAIMED, SENDING}:
        return None
    to, event = end.to, end.event
    if len(attempts) > 1 and any(attempt.end == "live" for attempt in attempts):
        to = PUBLISHED
        event = "publish" if job.state == SENDING else "late_publish"
    elif to in {FAILED, MISSED} and possibly_live(world, journal):
        to, event = UNKNOWN, "repeat_ended"
    if job.state == SENDING:
        last = attempts[-1]._replace(end=end.outcome, proof=end.proof)
        attempts = (*attempts[:-1], last)
    kept = job
    if job.state == SENDING and not world.keeps("what its own worker frees after a loss is held"):
        kept = job._replace(doubtful=False)
    after = moved(world, kept, to, live="id" if to == PUBLISHED else "")
    return Wrote(journal._replace(job=after, attempts=attempts), event, "done")


def attempt_of(world: World, journal: Journal, token: int, number: int) -> int:
    """The place of the attempt that an answer is about, -1 for none."""
    if not world.keeps("an answer matches its token"):
        return number - 1 if 0 < number <= len(journal.attempts) else -1
    return next((at for at, a in enumerate(journal.attempts) if a.token == token), -1)


def record_late(world: World, journal: Journal, token: int, number: int, end: End) -> Wrote:
    """An answer by its attempt's token, whatever became of the job."""
    at = attempt_of(world, journal, token, number)
    is_fenced = end.proof != NOT_SENT or world.keeps("late not sent is of its own attempt")
    at = at if is_fenced else len(journal.attempts) - 1
    if at < 0:
        return Wrote(journal, said="no attempt")
    attempt = journal.attempts[at]
    if is_fenced and _is_known(attempt, end):
        return Wrote(journal, said="known")
    if end.outcome == "live" and not world.keeps("a late published always wins"):
        return Wrote(journal, said="kept")
    kept = attempt._replace(end=end.outcome, proof=attempt.proof or end.proof)
    journal = journal._replace(attempts=put(journal.attempts, at, kept))
    is_latest = at == len(journal.attempts) - 1
    to, event = _late_target(world, journal, end, is_latest=is_latest)
    if not to:
        return Wrote(journal, said="kept")
    after = moved(world, journal.job, to, live="id" if to == PUBLISHED else "")
    return Wrote(journal._replace(job=after), event, "moved")


def _is_known(attempt: Attempt, end: End) -> bool:
    if "live" in {end.outcome, attempt.end}:
        return attempt.end == "live"
    if end.outcome in {"doubt", "drained"}:
        return attempt.end in {"doubt", "no", end.outcome} or bool(attempt.proof)
    return bool(attempt.proof)


def _late_target(world: World, journal: Journal, end: End, *, is_latest: bool) -> tuple[str, str]:
    state = journal.job.state
    if end.outcome == "live":
        if state in LATE_PUBLISH_FROM:
            return PUBLISHED, "late_publish"
        return (PUBLISHED, "publish") if state == SENDING and is_latest else ("", "")
    if not end.proof or not is_latest or state not in {UNKNOWN, SENDING}:
        return "", ""
    if end.to == FAILED and possibly_live(world, journal):
        return ("", "") if state == UNKNOWN else (UNKNOWN, "repeat_ended")
    return end.to, end.event


def rescue(world: World, journal: Journal, *, poison: bool) -> Wrote:
    """Take the job from its holder: a claim is freed or poison, a send becomes a doubt."""
    job, attempts = journal.job, journal.attempts
    if job.state == CLAIMED:
        if not poison:
            return Wrote(journal._replace(job=moved(world, job, SCHEDULED)), "lease_expired")
        to = UNKNOWN if possibly_live(world, journal) else FAILED
        event = "lease_expired" if to == FAILED else "repeat_ended"
        return Wrote(journal._replace(job=moved(world, job, to)), event)
    last = attempts[-1]
    if not last.end:
        attempts = (*attempts[:-1], last._replace(end="rescued"))
    to = UNKNOWN
    if not world.keeps("rescue never frees what was begun"):
        to = SCHEDULED
        attempts = (*attempts[:-1], last._replace(end="no", proof=NOT_SENT))
    return Wrote(journal._replace(job=moved(world, job, to), attempts=attempts), "lease_expired")


def spool_found(world: World, journal: Journal) -> Wrote:
    """A started send that the journal does not hold: doubt the job, or keep an orphan."""
    job = journal.job
    if job.state not in {SCHEDULED, CLAIMED, FAILED, MISSED}:
        return Wrote(journal, said="orphan")
    return Wrote(journal._replace(job=moved(world, job, UNKNOWN)), "spool_found")


def publish_lost(world: World, journal: Journal) -> Wrote:
    """A lost send whose answer says published."""
    job = journal.job
    if job.state not in LATE_PUBLISH_FROM:
        return Wrote(journal, said="no")
    return Wrote(journal._replace(job=moved(world, job, PUBLISHED, live="id")), "late_publish")


def quarantine(world: World, journal: Journal) -> Journal:
    """Hold back what may be a lost send; what has ended is doubted when it comes back."""
    job = journal.job
    if not world.keeps("what may be lost is held back"):
        return journal
    if job.state in {SCHEDULED, CLAIMED}:
        held = moved(world, job, SCHEDULED)._replace(
            hold=QUARANTINE,
            since=NEW_DOUBT,
            held_before=job.held_before if job.hold == QUARANTINE else job.hold,
        )
        return journal._replace(job=held)
    return journal._replace(job=job._replace(doubtful=job.state != PUBLISHED))


def question(journal: Journal) -> int:
    """The number of the attempt that a doubt is about, 0 where the journal lost it."""
    doubted = [
        (bool(a.proof), a.proof != REPEAT_SAFE, -n if a.proof == REPEAT_SAFE else n, n)
        for n, a in enumerate(journal.attempts, 1)
        if a.proof != NOT_SENT
    ]
    return min(doubted)[3] if doubted else 0


def is_gone(world: World, journal: Journal, number: int) -> bool:
    """R4: whether the sender of this attempt is proved unable to write."""
    if not world.keeps("the sender is proved gone"):
        return True
    if number == 0:
        return False
    attempt = journal.attempts[number - 1]
    if attempt.end in RETURNED:
        return True
    if attempt.end == "drained" and not world.keeps("a hand that was given up has not returned"):
        return True
    return attempt.run < len(journal.runs) and journal.runs[attempt.run].ended


def confirm_published(world: World, journal: Journal, number: int, *, with_id: bool) -> Wrote:
    """It is live, by a link or by somebody's word."""
    attempts = journal.attempts
    if with_id and number:
        attempts = put(attempts, number - 1, attempts[number - 1]._replace(end="live"))
    after = moved(world, journal.job, PUBLISHED, live="id" if with_id else "seen")
    return Wrote(journal._replace(job=after, attempts=attempts), "confirm_published")


def proved(journal: Journal, number: int, proof: str) -> tuple[Attempt, ...]:
    """The attempts once a verdict said this of the post."""
    found = []
    for at, attempt in enumerate(journal.attempts, 1):
        about = at == number and (not attempt.proof or proof == "forced")
        repeat = attempt.proof == REPEAT_SAFE and proof != REPEAT_SAFE
        end = attempt.end or "rescued"
        found.append(attempt._replace(proof=proof, end=end) if about or repeat else attempt)
    return tuple(found)


def confirm_absent(
    world: World, journal: Journal, number: int, to: str, proof: str = ABSENT
) -> Wrote:
    """It is not on the page: send it again, or give it up."""
    attempts = proved(journal, number, proof)
    after = moved(world, journal.job, to, repeats=False)
    return Wrote(journal._replace(job=after, attempts=attempts), "confirm_absent")


def repeat(world: World, journal: Journal, number: int) -> Wrote:
    """Send it again under its key."""
    attempts = proved(journal, number, REPEAT_SAFE)
    after = moved(world, journal.job, SCHEDULED, repeats=True)
    return Wrote(journal._replace(job=after, attempts=attempts), "repeat")


def registered(journal: Journal, run: int, file: int) -> bool:
    """Whether this number still means that run."""
    return run < len(journal.runs) and journal.runs[run].file == file


def end_run(journal: Journal, run: int) -> Journal:
    """Record a proved end."""
    return journal._replace(runs=put(journal.runs, run, journal.runs[run]._replace(ended=True)))


def register(journal: Journal, file: int) -> tuple[Journal, int]:
    """A new run's row; its number is the next one."""
    return journal._replace(runs=(*journal.runs, Run(file))), len(journal.runs)
