"""A short piece of ``make crash`` in every ``make test``: some schedules, and some of the proof."""

from __future__ import annotations

import pytest
from publisher_broken_variants.crashes import VARIANTS

from publisher.rehearsal.plan.catalogue import BEHAVIOURS, HITS
from publisher.rehearsal.plan.schedule import BEHAVIOURS_EACH, HITS_EACH, scheduled
from publisher.rehearsal.relays.statements import Message, Sent, Statements, kind_of
from publisher.rehearsal.report import proof
from publisher.rehearsal.report.tally import Tally
from publisher.rehearsal.stage.crew import each
from publisher.rehearsal.verdict.doubts import BY_ITSELF

SEEDS = range(1, 7)
SOME = (
    "send before begin commits",
    "spool says not started unread",
    "a late published ignored",
    "reconciler trusts absence",
    "a verdict of an old look applied to a new attempt",
)
LANES = 3


@pytest.mark.timeout(300)
def test_the_page_and_the_journal_agree_whatever_was_done_to_the_workers() -> None:
    tally = Tally()
    for result in each(map(scheduled, SEEDS), lanes=LANES):
        tally.add(result)
    assert not [(result.seed, result.broken) for result in tally.failed]
    assert tally.schedules == len(SEEDS)
    assert tally.faults
    assert tally.counts["live in the journal"]
    assert tally.settled.sum(*BY_ITSELF)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", SOME)
def test_a_broken_variant_is_caught(variant: str) -> None:
    assert proof.prove(1, said=lambda _: None, names=[variant])[variant] is not None


def test_a_round_of_seeds_covers_the_catalogue() -> None:
    schedules = [scheduled(seed) for seed in range(len(HITS) // HITS_EACH + 1)]
    assert {hit for schedule in schedules for hit in schedule.hits} == set(HITS)
    few = schedules[: len(BEHAVIOURS) // BEHAVIOURS_EACH + 1]
    assert {b for schedule in few for b in schedule.behaviours} == set(BEHAVIOURS)


def test_a_seed_always_means_the_same() -> None:
    assert scheduled(217) == scheduled(217)
    assert VARIANTS["fence by number"].aim("x", 3) == VARIANTS["fence by number"].aim("x", 3)


def test_a_statement_is_known_by_its_name_once_it_was_prepared() -> None:
    sql = b"UPDATE jobs j SET state = 'sending', attempts = j.attempts + 1"
    statements = Statements()
    assert _sent(statements, (b"P", b"_pg3_0\0" + sql + b"\0\0\0"), (b"S", b"")) == Sent("", None)
    execute = ((b"B", b"\0_pg3_0\0"), (b"E", b"\0\0\0\0\0"))
    assert _sent(statements, *execute, (b"S", b"")) == Sent("begin", None)


def test_what_a_pipeline_waits_for_is_named_for_its_last_statement() -> None:
    statements = Statements()
    gates = kind_of("SELECT 1 FOR UPDATE OF g SKIP LOCKED")
    first = (*_once(b"BEGIN"), *_once(b"SELECT 1 FOR UPDATE OF g SKIP LOCKED"), (b"H", b""))
    assert _sent(statements, *first) == Sent(gates, 2)
    assert _sent(statements, *_once(b"COMMIT"), (b"S", b"")) == Sent("claim gates commit", None)


def _once(sql: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"P", b"\0" + sql + b"\0\0\0"), (b"B", b"\0\0"), (b"E", b"\0\0\0\0\0"))


def _sent(statements: Statements, *messages: tuple[bytes, bytes]) -> Sent | None:
    """What is said at the last of these; nothing is said before."""
    *earlier, last = (
        Message(kind, kind + (len(body) + 4).to_bytes(4, "big") + body) for kind, body in messages
    )
    for message in earlier:
        assert statements.take(message) is None
    return statements.take(last)
