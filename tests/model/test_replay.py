"""Traces of real runs are paths of the model; traces that nobody could have left are refused."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from publisher_broken_variants.crashes import VARIANTS

from tests.model import runs
from tests.model.coverage import NEVER, OBSERVABLE, Coverage
from tests.model.replay import Unexplained, beyond, explain
from tests.model.trace import Trace

KEPT = [
    json.loads(line) for line in (Path(__file__).parent / "traces.jsonl").read_text().splitlines()
]
"""Traces of real runs, few and different; ``python -m tests.model.runs`` makes new ones."""
SCHEDULES = ("random:3", "random:12", "poison:1", "late-refusals:1")
BROKEN = ("send before begin commits", "timeout read as failure", "cancel ignores sending")
FEWEST_JOBS = 40
FEWEST_MOVES = 18


def _named(trace: Trace) -> str:
    return f"{trace['of']} {trace['key']}"


@pytest.mark.parametrize("trace", KEPT, ids=_named)
def test_a_kept_trace_is_a_path_of_the_model(trace: Trace) -> None:
    assert not beyond(trace)
    assert explain(trace).path


def test_the_kept_traces_take_every_row_of_the_table_but_those_that_say_why_not() -> None:
    """One that is taken after all leaves the list, and none comes to it."""
    coverage = Coverage()
    coverage.add(map(explain, KEPT))
    assert coverage.unseen() == NEVER.keys(), coverage.told()
    assert NEVER.keys() <= OBSERVABLE
    assert len(NEVER) <= MOST_NEVER_SEEN


MOST_NEVER_SEEN = 2
"""This may only become less."""


@pytest.mark.timeout(600)
def test_what_real_workers_did_is_a_path_of_the_model() -> None:
    coverage = Coverage()
    for _, traces in runs.real(runs.drawn(SCHEDULES)):
        coverage.add(explain(trace) for trace in traces if not beyond(trace))
    assert coverage.jobs >= FEWEST_JOBS
    assert len(coverage.events) >= FEWEST_MOVES, coverage.told()


@pytest.mark.timeout(300)
def test_what_broken_workers_did_is_not() -> None:
    refused = Counter[str]()
    schedules = [VARIANTS[name].aim(name, 1) for name in BROKEN]
    for name, traces in zip(BROKEN, runs.broken(schedules), strict=True):
        for trace in traces:
            try:
                explain(trace)
            except Unexplained:
                refused[name] += 1
    assert {*refused} == {*BROKEN}


# What was tampered with


def _without_its_post(trace: Trace) -> bool:
    trace["seen"] = [one for one in trace["seen"] if one["what"] not in {"store", "know"}]
    trace["final"]["posts"] = 0
    return trace["final"]["state"] == "published" and trace["final"]["attempts"] == 1


def _sent_twice(trace: Trace) -> bool:
    stores = [one for one in trace["seen"] if one["what"] == "store"]
    trace["seen"] += [{**one, "at": one["at"] + 0.0001} for one in stores[:1]]
    trace["final"]["posts"] += 1
    return trace["final"]["attempts"] == 1 and len(stores) == 1 and _is_a_page(trace)


def _begun_before_the_first_had_ended(trace: Trace) -> bool:
    ends = [one for one in trace["seen"] if one["what"] == "settle" and one["attempt"] == 1]
    later = [one for one in trace["seen"] if one["what"] in {"claim", "begin", "look"}
             and one["attempt"] == 2]  # fmt: skip
    if not ends or not later:
        return False
    for one in later:
        one["at"] = ends[0]["at"] - 0.0001
    return True


def _settled_before_it_began(trace: Trace) -> bool:
    begun = [one for one in trace["seen"] if one["what"] == "begin"]
    ends = [one for one in trace["seen"] if one["what"] == "settle"]
    if not begun or not ends:
        return False
    ends[0]["at"] = begun[0]["at"] - 0.0001
    return True


def _cancelled_while_it_is_sent(trace: Trace) -> bool:
    begun = next((one for one in trace["seen"] if one["what"] == "begin"), None)
    if begun is None:
        return False
    cancel = {"what": "event", "event": "cancel", "who": "editor", "attempt": 1}
    trace["seen"].append({**cancel, "at": begun["at"] + 0.0001})
    return True


def _requeued_by_rescue(trace: Trace) -> bool:
    rescued = [one for one in trace["seen"] if one.get("event") == "lease_expired"
               and one["from"] == "sending"]  # fmt: skip
    for one in rescued:
        one["to"] = "scheduled"
    return bool(rescued)


def _proved_not_sent_though_it_is_there(trace: Trace) -> bool:
    attempt = next((a for a in trace["attempts"] if a["outcome"] == "unknown"), None)
    if attempt is None or attempt["proof"] or not trace["final"]["posts"]:
        return False
    attempt["proof"] = "not_sent"
    return True


def _said_to_be_cancelled(trace: Trace) -> bool:
    trace["final"]["state"] = "cancelled"
    return trace["final"]["attempts"] > 0


def _judged_though_it_is_published(trace: Trace) -> bool:
    verdict = {"what": "verdict", "decision": "absent", "who": "anna", "attempt": 1, "send": True}
    trace["seen"].append({**verdict, "at": trace["seen"][-1]["at"] + 1})
    return trace["final"]["state"] == "published"


def _published_by_nobody(trace: Trace) -> bool:
    trace["seen"] = [one for one in trace["seen"] if one.get("attempt") is None]
    trace["attempts"], trace["final"]["attempts"] = [], 0
    return trace["final"]["state"] == "published"


def _is_a_page(trace: Trace) -> bool:
    return bool(trace["platform"] == "facebook_pages")


def _one_claim_less(trace: Trace) -> bool:
    claims = [move for move in trace["moves"] or () if move[2] == "claimed"]
    if claims:
        trace["moves"].remove(claims[-1])
    return bool(claims)


def _cancelled_and_restored_by_nobody(trace: Trace) -> bool:
    if not trace["moves"]:
        return False
    at = trace["moves"][0][0]
    there_and_back = [[at, "scheduled", "cancelled", None], [at, "cancelled", "scheduled", None]]
    trace["moves"][:0] = there_and_back
    return trace["final"]["attempts"] == 0


OF_MOVES = (_one_claim_less, _cancelled_and_restored_by_nobody)
"""What only the recorded changes of state give away."""
TAMPERINGS: tuple[Callable[[Trace], bool], ...] = (
    _without_its_post, _sent_twice, _begun_before_the_first_had_ended, _settled_before_it_began,
    _cancelled_while_it_is_sent, _requeued_by_rescue, _proved_not_sent_though_it_is_there,
    _said_to_be_cancelled, _judged_though_it_is_published, _published_by_nobody, *OF_MOVES,
)  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=[each.__name__[1:] for each in TAMPERINGS])
def test_a_trace_that_was_tampered_with_is_refused(tamper: Callable[[Trace], bool]) -> None:
    _require_refused(tamper)


@pytest.mark.parametrize(
    "tamper",
    [each for each in TAMPERINGS if each not in OF_MOVES],
    ids=[each.__name__[1:] for each in TAMPERINGS if each not in OF_MOVES],
)
def test_its_rows_alone_give_it_away(tamper: Callable[[Trace], bool]) -> None:
    """Where nobody recorded the changes of state, as in any other database than a rehearsal's."""
    _require_refused(tamper, are_recorded=False)


def _require_refused(tamper: Callable[[Trace], bool], *, are_recorded: bool = True) -> None:
    refused = 0
    for kept in KEPT:
        trace = copy.deepcopy(kept)
        if not tamper(trace):
            continue
        if not are_recorded:
            trace["moves"] = None
        trace["seen"].sort(key=lambda one: one["at"])
        with pytest.raises(Unexplained, match=trace["key"]):
            explain(trace)
        refused += 1
    assert refused


def test_the_first_step_that_nothing_explains_is_named() -> None:
    trace = copy.deepcopy(next(one for one in KEPT if _said_to_be_cancelled(copy.deepcopy(one))))
    _said_to_be_cancelled(trace)
    with pytest.raises(Unexplained) as refused:
        explain(trace)
    assert "how its rows stand at the end" in str(refused.value)
    assert "where the model could be" in str(refused.value)
