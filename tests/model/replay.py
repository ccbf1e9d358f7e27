"""Finds a path of the model that explains what was seen of a real job, step by step.

What cannot be seen (a crash, a freeze, an answer on its way, a look that began) may come in
between as it must. The first thing seen that no path explains is what ``Unexplained`` names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from publisher.sandbox.behaviours import Kind
from tests.model.acts.all import steps
from tests.model.explore import described
from tests.model.state import (
    ENDLESS,
    FAULTS,
    UNKNOWN,
    Attempt,
    Journal,
    State,
    Step,
    World,
    start,
)
from tests.model.tidying import canonical
from tests.model.trace import FORMAT, Trace
from tests.model.way import At, Way

Seen = dict[str, Any]
Came = dict[At, tuple[At, Step] | None]

_KEYS: Final = {"bluesky": "atomic", "webhook": "atomic", "mastodon": "life"}
_AT_MOST: Final = 60_000
"""States that may explain one moment; more of them and the trace says too little."""
_PLATFORM: Final = frozenset({
    "store", "store and refuse", "promise", "know it", "refuse", "refuse unclearly",
    "answer with another's id",
})  # fmt: skip
_UNSEEN_EVENTS: Final = frozenset({"", "claim", "release", "wait", "release_hold", "look_again"})


class Unexplained(AssertionError):
    """A moment of a trace that the model cannot have come to."""


class TooWide(Exception):
    """So many paths fit that no verdict on the trace is possible in bounded time and memory."""


@dataclass(slots=True)
class Explained:
    """One explanation: its moves, and which of the model's were among them."""

    trace: Trace
    path: list[str] = field(default_factory=list)
    verbs: Counter[str] = field(default_factory=Counter)
    events: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    widest: int = 0


def world_of(trace: Trace) -> World:
    """The world a trace is replayed in: every fault as often as it must, looks as they were."""
    shown = {one["saw"] for one in trace["seen"] if one["what"] == "look"}
    decisions = {one["decision"] for one in trace["seen"] if one["what"] == "verdict"}
    if "live" in decisions or "confirm_published" in _events(trace):
        shown.add("found")
    if decisions & {"repeat", "absent"}:
        shown |= {"absent", "nothing"}
    if "look_unclear" in _events(trace):
        shown.add("unclear")
    if trace["final"]["attempts"] > 1:
        shown.add("nothing")
    by_people = [one for one in trace["seen"] if one["what"] == "verdict"]
    looked = {one.get("who") for one in trace["seen"] if one["what"] in {"look", "verdict"}}
    return World(
        trace["key"],
        key=_KEYS.get(trace["platform"], ""),
        requeues=True,
        attempts=max(1, trace["final"]["attempts"]),
        workers=3,
        runs=ENDLESS,
        faults=tuple((fault, ENDLESS) for fault in FAULTS if fault not in _NEVER),
        reconciler="reconciler" in looked,
        people=any(one["who"] != "reconciler" for one in by_people),
        edits=bool(_events(trace) & _EDITS),
        late=True,
        foreign=True,
        strangers=True,
        shown=tuple(sorted(shown)),
        answers=("published", "unclear", "refused"),
    )  # fmt: skip


_NEVER: Final = frozenset({"restore", "reboot", "damage", "wrong", "compact"})
_EDITS: Final = frozenset({
    "cancel", "hold", "release_hold", "reschedule", "replace", "requeue", "restore", "repeat_ended",
})  # fmt: skip


def _events(trace: Trace) -> set[str]:
    return {one["event"] for one in trace["seen"] if one["what"] == "event"}


def beyond(trace: Trace) -> str:
    """Why the model does not speak of this trace, or nothing."""
    if any(event.startswith("quarantine") for event in _events(trace)):
        return "commits were lost: one database's rows do not hold the whole of it"
    if trace["final"]["state"] == "published" and trace["final"]["posts"] == 0:
        return "the platform named a post that is not there"
    if (trace["final"]["posts"] or 0) > 1 and trace["platform"] in _KEYS:
        return "the platform did not keep its word about keys"
    return ""


def explain(trace: Trace) -> Explained:
    """Explain everything that was seen, and how the rows stood at the end.

    Raises ``Unexplained``, naming the first moment that no path comes to; ``TooWide``;
    ``ValueError`` for a trace of another format.
    """
    if trace["format"] != FORMAT:
        message = f"a trace of format {trace['format']}, and this reads {FORMAT}"
        raise ValueError(message)
    way = Way(world_of(trace), trace["moves"], has_page=trace["final"]["posts"] is not None)
    result = Explained(trace)
    layers: list[Came] = []
    here: Came = {(canonical(way.world, start(way.world)), 0): None}
    moments = [one for one in trace["seen"] if _is_a_moment(one)]
    for at, moment in enumerate(moments):
        least, most = way.bounds(moment["at"])
        reached = _spread(way, here, most=most, quiet=_quiet_before(moments, at))
        result.widest = max(result.widest, len(reached))
        found = {
            there: came for there, came in _taken(way, reached, moment).items()
            if least <= there[1] <= most
        }  # fmt: skip
        if not found:
            raise Unexplained(_said(trace, moments, at, reached))
        layers += (reached, found)
        here = found
    reached = _spread(way, here, most=len(trace["moves"] or ()), quiet=frozenset())
    layers.append(reached)
    ends = [at for at in reached if way.is_over(at) and _is_final(trace, at[0])]
    if not ends:
        raise Unexplained(_said(trace, moments, len(moments), reached))
    _walk_back(layers, ends[0], result)
    return result


def _is_a_moment(one: Seen) -> bool:
    """A worker's look that decided something is told by what it decided."""
    is_workers = one["what"] == "look" and one["who"] != "reconciler"
    return not (is_workers and one["saw"] not in {"nothing", "absent"})


def _quiet_before(moments: list[Seen], at: int) -> frozenset[str]:
    """What cannot come unseen just now: a claim that was seen is the one that begins."""
    for one in reversed(moments[:at]):
        if one["what"] == "begin":
            break
        if one["what"] == "claim":
            return frozenset({"claim", "give back", "drop"})
    return frozenset()


def _spread(way: Way, first: Came, *, most: int, quiet: frozenset[str]) -> Came:
    """Everything that may have come about unseen, with at ``most`` so many changes of state.

    Raises ``TooWide``.
    """
    reached: Came = dict.fromkeys(first)
    frontier = list(first)
    while frontier:
        found: list[At] = []
        for at in frontier:
            for step in steps(way.world, at[0]):
                if step.verb in quiet or not _is_unseen(at[0], step, has_page=way.has_page):
                    continue
                after = way.after(at, step)
                if after is not None and after[1] <= most and after not in reached:
                    reached[after] = (at, step)
                    found.append(after)
        if len(reached) > _AT_MOST:
            message = f"{way.world.name}: more than {_AT_MOST} states explain one moment"
            raise TooWide(message)
        frontier = found
    return reached


def _is_unseen(before: State, step: Step, *, has_page: bool) -> bool:
    if has_page and step.verb in _PLATFORM:
        return False
    if step.event not in _UNSEEN_EVENTS:
        return False
    return bool(step.event) or _rows(before.journal) == _rows(step.state.journal)


def _rows(journal: Journal) -> object:
    """What of a journal can be seen: not how far a hand came."""
    job = journal.job
    return job.state, job.hold, job.live, [(a.end, a.proof) for a in journal.attempts]


def _taken(way: Way, reached: Came, moment: Seen) -> Came:
    found: Came = {}
    matches = _MATCHES[moment["what"]]
    for at in reached:
        if moment["what"] == "look" and at[0].journal.job.state != UNKNOWN:
            found[at] = None  # written just after somebody else had decided
        for step in steps(way.world, at[0]):
            if matches(moment, at[0], step):
                after = way.after(at, step)
                if after is not None:
                    found.setdefault(after, (at, step))
    return found


# What explains a moment


def _claim(_moment: Seen, _before: State, step: Step) -> bool:
    return step.verb == "claim"


def _begin(moment: Seen, _before: State, step: Step) -> bool:
    begun = len(step.state.journal.attempts) == moment["attempt"]
    return step.verb in {"begin", "begin, unconfirmed"} and begun


def _settle(moment: Seen, before: State, step: Step) -> bool:
    if step.verb not in {"settle", "settle, unconfirmed", "give up"}:
        return False
    was, now = _attempt(before, moment), _attempt(step.state, moment)
    if was is None or now is None or was.end == now.end:
        return False
    if "outcome" not in moment:
        return True
    is_so = now.end == end_of(moment["outcome"], moment["reason"])
    return is_so and _is_called(step.event, moment["outcome"])


_CALLED: Final = {"rejected": "reject", "deferred": "defer", "unauthorized": "unauthorized"}
"""What a certain failure is called where it moves the job: the model lets each come of any."""


def _is_called(event: str, outcome: str | None) -> bool:
    return event not in _CALLED.values() or _CALLED.get(outcome or "") == event


def _attempt(state: State, moment: Seen) -> Attempt | None:
    attempts = state.journal.attempts
    number = moment.get("attempt") or 0
    return attempts[number - 1] if 0 < number <= len(attempts) else None


def end_of(outcome: str | None, reason: str | None) -> str:
    """The model's word for how an attempt's row stands."""
    if outcome is None:
        return ""
    if outcome == "unknown":
        return {"worker_died": "rescued", "drained": "drained"}.get(reason or "", "doubt")
    return "live" if outcome == "published" else "no"


_BY_FILE: Final = frozenset({"read a file", "read a file, interrupted"})
_OWN_VERBS: Final = {
    "lease_expired": _BY_FILE | {"rescue"},
    "late_answer": frozenset({"settle late", "give up", "see"}),
    "spool_read": _BY_FILE,
}


def _event(moment: Seen, before: State, step: Step) -> bool:
    verbs = _OWN_VERBS.get(moment["event"])
    if verbs is None:
        return step.event == moment["event"]
    if step.verb not in verbs or (step.was or before.journal.job.state) != moment["from"]:
        return False
    # Of what a file tells, the model says where it led, and not in which of the words.
    named = "outcome" in moment and step.verb not in _BY_FILE
    if named and not _is_called(step.event, moment["outcome"]):
        return False
    return step.state.journal.job.state == moment["to"]


def _look(moment: Seen, before: State, step: Step) -> bool:
    if moment["who"] != "reconciler":
        return step.verb == "see" and any(w.at == "looked" for w in step.state.workers)
    if step.who != "reconciler" or step.verb not in {"look again", "look no longer"}:
        return False
    gone = Counter(before.looks) - Counter(step.state.looks)
    return any(look.seen == moment["saw"] for look in gone)


_JUDGED: Final = {
    "live": "confirm_published", "attested": "confirm_published", "absent": "confirm_absent",
    "repeat": "repeat", "dropped": "drop",
}  # fmt: skip
_BY_PEOPLE: Final = {
    "live": frozenset({"live"}), "attested": frozenset({"attest"}), "dropped": frozenset({"drop"}),
}  # fmt: skip


def _verdict(moment: Seen, _before: State, step: Step) -> bool:
    decision = moment["decision"]
    if step.event != _JUDGED[decision]:
        return False
    if moment["who"] == "reconciler":
        return step.verb == "judge"
    if decision == "absent":
        verbs = {"absent, send", "absent, forced"} if moment["send"] else {"absent, give up"}
        return step.verb in verbs
    return step.verb in _BY_PEOPLE[decision]


def _store(moment: Seen, _before: State, step: Step) -> bool:
    """A platform that lies says so in its own log."""
    lies = moment["kind"] == Kind.FALSE_REFUSAL
    return step.verb == "store" or (lies and step.verb == "store and refuse")


def _promise(_moment: Seen, _before: State, step: Step) -> bool:
    return step.verb == "promise"


def _know(_moment: Seen, _before: State, step: Step) -> bool:
    return step.verb == "know it"


def _refuse(_moment: Seen, _before: State, step: Step) -> bool:
    return step.verb in {"refuse", "refuse unclearly", "answer with another's id"}


def _say_nothing(_moment: Seen, _before: State, step: Step) -> bool:
    return step.verb in {"lose the request", "refuse unclearly"}


_MATCHES: Final[dict[str, Callable[[Seen, State, Step], bool]]] = {
    "claim": _claim, "begin": _begin, "settle": _settle, "event": _event, "look": _look,
    "verdict": _verdict, "store": _store, "promise": _promise, "know": _know, "refuse": _refuse,
    "say nothing": _say_nothing,
}  # fmt: skip


# The end


def _is_final(trace: Trace, state: State) -> bool:
    final, job = trace["final"], state.journal.job
    if job.state != final["state"] or bool(job.hold) != bool(final["hold"]):
        return False
    if final["posts"] is not None and state.page != min(final["posts"], 3):
        return False
    rows = [(end_of(a["outcome"], a["reason"]), a["proof"] or "") for a in trace["attempts"]]
    return rows == [(a.end, a.proof) for a in state.journal.attempts]


def _walk_back(layers: list[Came], end: At, result: Explained) -> None:
    moves: list[tuple[Step, State]] = []
    here = end
    for at in range(len(layers) - 1, -1, -1):
        came = layers[at].get(here)
        while came is not None:
            moves.append((came[1], here[0]))
            here = came[0]
            came = layers[at].get(here) if at % 2 == 0 else None  # seen moments are single moves
    moves.reverse()
    for number, (step, after) in enumerate(moves, 1):
        result.path.append(described(number, step.who, step.verb, after))
        result.verbs[f"{step.who.partition(' ')[0]}: {step.verb}"] += 1
        if step.event:
            result.events[step.was, step.event, step.became] += 1


def _said(trace: Trace, moments: list[Seen], at: int, reached: Iterable[At]) -> str:
    """The moment, what came before it, and where the model could have been."""
    lines = [f"{trace['key']} on {trace['platform']}: no path of the model explains"]
    if at < len(moments):
        lines.append(f"  {_told(moments[at])}")
    else:
        lines.append(f"  how its rows stand at the end: {trace['final']} {trace['attempts']}")
    lines += ["after", *(f"  {_told(one)}" for one in moments[:at])]
    lines.append("where the model could be")
    stands = Counter(
        described(0, "", "", state).partition("|")[0].split(":", 1)[-1].strip()
        for state, _ in reached
    )
    lines += [f"  {state} ({many} ways)" for state, many in stands.most_common(8)]
    return "\n".join(lines)


def _told(moment: Seen) -> str:
    facts = " ".join(f"{k}={v}" for k, v in moment.items() if k not in {"at", "what"})
    return f"{moment['at']:.3f} {moment['what']} {facts}"
