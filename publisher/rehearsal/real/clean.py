"""Takes down what rehearsals left on real pages, also those that were killed in the middle."""

from __future__ import annotations

from publisher.config import Settings
from publisher.engine.job import Channel
from publisher.rehearsal.real import removal, settling
from publisher.rehearsal.real.ground import (
    WHO,
    Ask,
    Ground,
    Patience,
    Say,
    alone_on,
    find,
    is_over,
    opened,
    with_jobs,
)
from publisher.rehearsal.real.results import CleanResult, LeftBehind, Removed
from publisher.words import _


def clean(
    settings: Settings,
    channel: str | None,
    say: Say,
    *,
    who: str = WHO,
    ask: Ask | None = None,
    patience: Patience | None = None,
) -> CleanResult:
    """Take down every rehearsal's posts on ``channel`` (name or id), or on all of them.

    What was not sent yet is called off, what may be live is looked at first. Raises ``NotFound``
    for a channel that is none, ``Conflict`` while a rehearsal is under way on one,
    ``DatabaseError``, ``CloneRefused``.
    """
    removed: list[Removed] = []
    left: list[LeftBehind] = []
    with opened(settings, say, who=who, ask=ask, patience=patience) as ground:
        every = with_jobs(ground) if channel is None else [find(ground, channel)]
        for one in every:
            with alone_on(ground, one):
                here = sweep(ground, one, None, asks=True)
            removed += here.removed
            left += here.left
    return CleanResult(tuple(removed), tuple(left))


def sweep(ground: Ground, channel: Channel, run: str | None, *, asks: bool) -> CleanResult:
    """Bring every job of the channel's rehearsals (or of one) to its end and its post down.

    ``asks``: a person is asked about doubts; they were not asked before.
    """
    if all(is_over(job) for job in ground.jobs(channel, run)):
        return CleanResult((), ())
    ground.say(_("Taking down what was published on {name} …").format(name=channel.name))
    settling.call_off(ground, channel, run)
    settling.look(ground, channel, run)
    if asks:
        settling.ask(ground, channel, run)
    # A doubt that a look settled as absent may be scheduled again by the channel's policy.
    settling.call_off(ground, channel, run)
    removed: list[Removed] = []
    left: list[LeftBehind] = []
    for job in ground.jobs(channel, run):
        match removal.remove(ground, channel, job):
            case Removed() as gone:
                removed.append(gone)
                ground.say(
                    _("{mark} is gone from {name}.").format(mark=gone.mark, name=channel.name)
                )
            case LeftBehind() as stays:
                left.append(stays)
                words = _("{mark} stays on {name}: {why}. {where}")
                ground.say(
                    words.format(
                        mark=stays.mark,
                        name=channel.name,
                        why=stays.why.rstrip("."),
                        where=stays.where,
                    )
                )
    return CleanResult(tuple(removed), tuple(left))
