"""People: editors before a send, operators after one. They are honest about what they see."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import ledger
from tests.model.acts.worker import moved
from tests.model.ledger import Wrote
from tests.model.state import (
    CANCELLED,
    DROPPED,
    FAILED,
    FORCED,
    MISSED,
    PERSON,
    QUARANTINE,
    REPEAT_SAFE,
    SCHEDULED,
    UNKNOWN,
    Job,
    Journal,
    Look,
    State,
    Step,
    World,
    may_spend,
    put,
    spend,
)

EDITOR, OPERATOR = "editor", "operator"


def steps(world: World, state: State) -> Iterator[Step]:
    """Edits of what is not begun, verdicts on what is in doubt, time that runs out."""
    yield from _time(world, state)
    if world.edits:
        yield from _edits(world, state)
    if world.people:
        yield from _sees(world, state)
        for at, look in enumerate(state.looks):
            if look.who == OPERATOR:
                yield from _decides(world, state, at)


def _time(world: World, state: State) -> Iterator[Step]:
    """A scheduled job whose useful time is over is missed, unless it may be live."""
    job = state.journal.job
    if job.state != SCHEDULED or job.hold == QUARANTINE:
        return
    if ledger.possibly_live(world, state.journal):
        yield _edit(world, "expire", "anybody", state, UNKNOWN, "repeat_ended")
    else:
        yield _edit(world, "expire", "anybody", state, MISSED, "expire")


def _edit(
    world: World, verb: str, who: str, state: State, to: str, event: str, **row: object
) -> Step:
    job = ledger.moved(world, state.journal.job, to)._replace(**row)
    return moved(verb, who, state, Wrote(state.journal._replace(job=job), event))


def _edits(world: World, state: State) -> Iterator[Step]:
    match state.journal.job.state:
        case "scheduled" | "claimed":
            yield from _edits_open(world, state)
        case "sending" if not world.keeps("cancel asks the state"):
            yield _edit(world, "cancel", EDITOR, state, CANCELLED, "cancel")
        case "unknown" if not world.keeps("a doubt gets no new time"):
            yield _edit(world, "reschedule", EDITOR, state, SCHEDULED, "reschedule")
        case "failed" | "missed":
            yield from _requeues(world, state)
        case "cancelled" if not state.journal.attempts:
            yield _edit(world, "restore", EDITOR, state, SCHEDULED, "restore")
        case _:
            pass


def _edits_open(world: World, state: State) -> Iterator[Step]:
    job = state.journal.job
    if ledger.possibly_live(world, state.journal):
        yield _edit(world, "cancel", EDITOR, state, UNKNOWN, "repeat_ended")
    else:
        yield _edit(world, "cancel", EDITOR, state, CANCELLED, "cancel")
    kept = {"hold": job.hold, "held_before": job.held_before, "since": job.since}
    yield _edit(world, "reschedule", EDITOR, state, SCHEDULED, "reschedule", **kept)
    if job.hold == QUARANTINE:
        return
    yield _edit(world, "hold", EDITOR, state, SCHEDULED, "hold", hold=PERSON)
    if job.state == SCHEDULED and job.hold:
        yield _edit(world, "release", EDITOR, state, SCHEDULED, "release_hold")
    if job.state == SCHEDULED and not state.journal.attempts:
        yield _edit(world, "replace", EDITOR, state, SCHEDULED, "replace", hold=job.hold)


def _requeues(world: World, state: State) -> Iterator[Step]:
    proofs = {attempt.proof for attempt in state.journal.attempts}
    if proofs & {"", REPEAT_SAFE} and world.keeps("requeue asks for every proof"):
        return
    yield _edit(world, "requeue", EDITOR, state, SCHEDULED, "requeue")


# Verdicts


def _sees(world: World, state: State) -> Iterator[Step]:
    """An operator opens a doubt, or a job in quarantine, and looks at the page."""
    if sum(look.who == OPERATOR for look in state.looks) >= world.looks:
        return
    job = state.journal.job
    if job.state == UNKNOWN:
        look = doubt_seen(world, state, OPERATOR, "it" if state.page else "no")
    elif job.hold == QUARANTINE:
        look = Look(OPERATOR, job.since, 0, 0, 0, state.landed, "it" if state.page else "no")
    else:
        return
    yield Step("see", OPERATOR, state._replace(looks=(*state.looks, look)))


def doubt_seen(world: World, state: State, who: str, seen: str) -> Look:
    """The doubt as somebody sees it just now."""
    journal = state.journal
    number = ledger.question(journal)
    token = journal.attempts[number - 1].token if number else 0
    return Look(
        who, journal.job.since, number, token, len(journal.attempts),
        unlocked(world, state, number), seen, state.landed,
    )  # fmt: skip


def may_free(world: World, state: State, look: Look) -> bool:
    """Whether that look may say that it is not there: after a loss, begun when it is long over."""
    if look.who == OPERATOR and not world.keeps("a person looks when they may decide"):
        return unlocked(world, state, look.number)
    waits = world.keeps("a doubt from before a loss waits until nothing can arrive")
    return look.clear and not (waits and state.lost == "seen" and not look.after)


def unlocked(world: World, state: State, number: int) -> bool:
    """R4 holds and the horizon has passed: what could have put it there has landed, or never will.

    That is the attempt in question and those whose repeat was said to be safe.
    """
    repeated = [at for at, a in enumerate(state.journal.attempts, 1) if a.proof == REPEAT_SAFE]
    if not world.keeps("absence is said of every send that may have put it there"):
        repeated = []
    return all(_has_landed(world, state, each) for each in {number, *repeated})


def _has_landed(world: World, state: State, number: int) -> bool:
    """Of one attempt; counted from the end of a whole run, of everything that run wrote."""
    if not ledger.is_gone(world, state.journal, number):
        return False
    if not world.keeps("the horizon is waited for"):
        return True
    if number == 0:
        return not any(request.going for request in state.wire)
    attempt = state.journal.attempts[number - 1]
    returned = attempt.end in ledger.RETURNED
    file = -1 if returned else state.journal.runs[attempt.run].file
    return not any(
        request.going and (request.token == attempt.token or request.file == file)
        for request in state.wire
    )


def stands(world: World, state: State, look: Look) -> bool:
    """Whether the very doubt that was looked at still is one (``verdicts._judging``)."""
    job, attempts = state.journal.job, state.journal.attempts
    if job.state != UNKNOWN:
        return False
    if not world.keeps("a verdict is about the doubt that was looked at"):
        return True
    if job.since != look.since or len(attempts) != look.latest:
        return False
    return not look.number or attempts[look.number - 1].token == look.token


def without(state: State, at: int) -> State:
    """The state once that look is over."""
    return state._replace(looks=put(state.looks, at))


def _decides(world: World, state: State, at: int) -> Iterator[Step]:
    look, after = state.looks[at], without(state, at)
    job = state.journal.job
    if not look.latest and not look.number and job.hold == QUARANTINE:
        yield from _of_a_suspect(world, after, job, look)
        return
    if not stands(world, state, look):
        yield Step("look no longer", OPERATOR, after)
        return
    for verb, wrote in _verdicts(world, after, look):
        yield moved(verb, OPERATOR, after, wrote)
    dropped = after.journal._replace(job=ledger.moved(world, job, DROPPED))
    yield moved("drop", OPERATOR, after, Wrote(dropped, "drop"))
    if may_free(world, state, look) and look.seen == "it" and may_spend(world, state, "wrong"):
        wrong = spend(world, after, "wrong")._replace(ghost=after.ghost._replace(wrong=True))
        wrote = ledger.confirm_absent(world, wrong.journal, look.number, SCHEDULED)
        yield moved("absent, wrongly", OPERATOR, wrong, wrote)


def _verdicts(world: World, state: State, look: Look) -> Iterator[tuple[str, Wrote]]:
    journal, number = state.journal, look.number
    if not world.keeps("a verdict is about the doubt that was looked at"):
        number = len(journal.attempts)
    if look.seen == "it":
        yield "live", ledger.confirm_published(world, journal, number, with_id=True)
        yield "attest", ledger.confirm_published(world, journal, number, with_id=False)
    elif may_free(world, state, look):
        yield "absent, send", ledger.confirm_absent(world, journal, number, SCHEDULED)
        yield "absent, give up", ledger.confirm_absent(world, journal, number, FAILED)
        if world.strangers:
            yield "absent, forced", ledger.confirm_absent(world, journal, number, SCHEDULED, FORCED)


def _of_a_suspect(world: World, state: State, job: Job, look: Look) -> Iterator[Step]:
    """A job in quarantine: bound to what is there, or let go when nothing can arrive any more."""
    if look.since != job.since:
        yield Step("look no longer", OPERATOR, state)
    elif look.seen == "it":
        wrote = Wrote(found_live(world, state.journal), "confirm_published")
        yield moved("bind", OPERATOR, state, wrote)
    elif look.clear:
        yield moved("let go", OPERATOR, state, Wrote(let_go(state.journal), "release_hold"))
    else:
        yield Step("look no longer", OPERATOR, state)


def found_live(world: World, journal: Journal) -> Journal:
    """A job in quarantine is on its page."""
    return journal._replace(job=ledger.moved(world, journal.job, "published", live="id"))


def let_go(journal: Journal) -> Journal:
    """Its quarantine is over; a person's own hold stays."""
    job = journal.job
    return journal._replace(job=job._replace(hold=job.held_before, held_before="", since=0))
