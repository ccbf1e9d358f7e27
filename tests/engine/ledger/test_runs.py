"""Worker runs, gates, chores and the tick: each act is on its own row, and is made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from publisher.engine import ledger
from publisher.engine.errors import NotFound
from publisher.engine.job import Channel, State, Token
from publisher.engine.ledger import chores, deployment
from publisher.engine.outcome import Answer, Reason
from tests.engine.ground import Ground, Lane, Placed, key, lost, not_sent, published

S = State


def run(ground: Ground, *, file: str = "a.spool", boot_id: str = "boot") -> int:
    return ledger.register(ground.conn, host="here", boot_id=boot_id, pid=1, file=file)[0]


def row_of(ground: Ground, incarnation: int) -> dict[str, object]:
    return ground.sql("SELECT * FROM incarnations WHERE id = %s", incarnation)[0]


def test_a_run_beats_and_ends_for_itself(own_ground: Ground) -> None:
    one, other = run(own_ground), run(own_ground)
    before = row_of(own_ground, other)
    ledger.beat(own_ground.conn, one, gap=60.0, pause=60.0)
    ledger.end(own_ground.conn, one, "drained")
    assert row_of(own_ground, other) == before
    ended = row_of(own_ground, one)
    assert ended["end_reason"] == "drained"
    assert ended["ended_at"] is not None


def test_an_end_is_recorded_once(own_ground: Ground) -> None:
    one = run(own_ground)
    ledger.end(own_ground.conn, one, "drained")
    before = row_of(own_ground, one)
    ledger.end(own_ground.conn, one, "its file could be locked")
    assert row_of(own_ground, one) == before


def test_a_run_is_known_by_number_file_and_boot(own_ground: Ground) -> None:
    one, other = run(own_ground), run(own_ground, file="b.spool", boot_id="another")

    def known(incarnation: int, file: str, boot_id: str) -> bool:
        return ledger.is_registered(own_ground.conn, incarnation, file=file, boot_id=boot_id)

    assert known(one, "a.spool", "boot")
    assert known(other, "b.spool", "another")
    assert not known(one, "b.spool", "boot")
    assert not known(one, "a.spool", "another")
    assert not known(other + 1, "a.spool", "boot")


@pytest.mark.parametrize(("silent", "may"), [("1 minute", True), ("10 minutes", False)])
def test_rescue_waits_after_a_silence_of_all(own_ground: Ground, silent: str, *, may: bool) -> None:
    own_ground.sql(f"UPDATE pulse SET beat_at = now() - interval '{silent}',"
                   " rescue_not_before = now() - interval '1 hour'")  # fmt: skip
    one = run(own_ground)
    assert ledger.beat(own_ground.conn, one, gap=300.0, pause=60.0).may_rescue is may
    assert ledger.beat(own_ground.conn, one, gap=300.0, pause=60.0).may_rescue is may


def test_what_a_run_holds_is_its_own(own_ground: Ground) -> None:
    mine, theirs = own_ground.lane(), own_ground.lane()
    theirs.incarnation = 8
    claimed, sending = mine.claimed(), mine.sending()
    theirs.claimed()
    theirs.sending()
    mine.put(S.UNKNOWN)
    conn = own_ground.conn
    assert ledger.held_by(conn, 7) == dict([key(claimed), key(sending)])
    assert ledger.claimed_by(conn, 7) == dict([key(claimed)])
    assert ledger.held_by(conn, 9) == {}


def ends(lane: Lane) -> dict[str, Placed]:
    doubted, proved = lane.put(S.UNKNOWN), lane.sending()
    assert lane.end(proved, not_sent()).done
    live = lane.sending()
    assert lane.end(live, published(f"id {live.id}")).done
    return {"sending": lane.sending(), "doubted": doubted, "proved": proved, "live": live}


def test_what_of_a_runs_sends_is_not_settled(own_ground: Ground) -> None:
    mine, theirs = own_ground.lane(), own_ground.lane()
    theirs.incarnation = 8
    own, others = ends(mine), ends(theirs)
    mine.claimed()
    conn = own_ground.conn
    for incarnation, made in ((7, own), (8, others)):
        unsettled = ledger.unsettled_of(conn, incarnation)
        assert len(unsettled) == 2
        found = {each.job_id: each for each in unsettled}
        assert set(found) == {made["sending"].id, made["doubted"].id}
        assert {each.token for each in found.values()} == {
            made["sending"].token, made["doubted"].token,
        }  # fmt: skip
        assert found[made["sending"].id].only_rescue_settled
        assert not found[made["doubted"].id].only_rescue_settled


def test_of_several_attempts_the_newest_is_unsettled(own_ground: Ground) -> None:
    lane = own_ground.lane()
    first = lane.put(S.SCHEDULED, begun=True)
    second = lane.sending(first.id)
    ledger.forsake(own_ground.conn, 7, deaths=3, who="me")
    (found,) = ledger.unsettled_of(own_ground.conn, 7)
    assert (found.job_id, found.attempt, found.token) == (first.id, 2, second.token)
    assert found.only_rescue_settled
    ledger.record_late(own_ground.conn, first.id, second.token, lost(), who="worker run 7")
    assert ledger.unsettled_of(own_ground.conn, 7) != (found,)


def test_an_attempt_is_known_by_job_number_and_token(own_ground: Ground) -> None:
    lane = own_ground.lane()
    job, other = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)

    def known(job_id: int, number: int, token: Token) -> bool:
        return bool(ledger.known_attempts(own_ground.conn, [(job_id, number, token)]))  # type: ignore[list-item]

    assert known(job.id, 1, job.token)
    assert not known(other.id, 1, job.token)
    assert not known(job.id, 2, job.token)
    assert not known(job.id, 1, Token(uuid4()))


# Gates and channels


GATE_ACTS: dict[str, Callable[[Ground, int], object]] = {
    "pause": lambda ground, channel: _with(ground, ledger.pause, channel, who="me"),
    "resume": lambda ground, channel: _with(ground, ledger.resume, channel),
    "unblock": lambda ground, channel: _with(ground, ledger.unblock, channel),
}


def _with(ground: Ground, verb: Callable[..., object], channel: int, **how: object) -> None:
    with ground.app.engine.begin() as conn:
        verb(conn, channel, **how)


@pytest.mark.parametrize("name", GATE_ACTS)
def test_a_gate_is_moved_alone(own_ground: Ground, name: str) -> None:
    one, other = own_ground.lane(), own_ground.lane()
    for blocked in (one, other):
        own_ground.sql(
            "UPDATE gates SET blocked_at = now(), blocked_reason = 'x', not_before = now(),"
            " paused_at = %s WHERE channel_id = %s",
            None if name == "pause" else "2026-01-01", blocked.channel_id,
        )  # fmt: skip
    before = own_ground.sql("SELECT * FROM gates ORDER BY channel_id")
    GATE_ACTS[name](own_ground, one.channel_id)
    after = own_ground.sql("SELECT * FROM gates ORDER BY channel_id")
    assert after[1] == before[1]
    assert after[0] != before[0]
    with pytest.raises(NotFound):
        GATE_ACTS[name](own_ground, 4711)


def test_only_the_channels_that_are_asked_for_are_opened(own_ground: Ground) -> None:
    one, _ = own_ground.lane(), own_ground.lane()
    found = ledger.channels(own_ground.conn, [one.channel_id])
    assert set(found) == {one.channel_id}
    assert isinstance(found[one.channel_id], Channel)


# Chores and the tick


def test_a_chore_has_one_turn_in_its_time_whatever_others_have(own_ground: Ground) -> None:
    take = lambda name, every: chores.take_turn(own_ground.conn, name, every=every)  # noqa: E731
    assert take("a", 60.0)
    assert not take("a", 60.0)
    assert take("b", 60.0)
    own_ground.sql("UPDATE chores SET done_at = now() - interval '2 minutes' WHERE name = 'a'")
    assert take("a", 60.0)
    assert not take("a", 60.0)
    assert not take("b", 60.0)


def test_the_tick_is_raised_apart_and_never_past_what_the_witness_holds(
    own_ground: Ground,
) -> None:
    conn = own_ground.conn
    value = own_ground.one("SELECT value FROM tick")
    own_ground.sql("UPDATE tick SET raised_at = now() - interval '1 hour'")
    assert ledger.raise_tick(conn, ceiling=value, apart=1.0) == value
    assert ledger.raise_tick(conn, ceiling=value + 1, apart=7200.0) == value
    assert ledger.raise_tick(conn, ceiling=value + 1, apart=1.0) == value + 1
    own_ground.sql("UPDATE tick SET raised_at = now() - interval '1 hour'")
    assert ledger.raise_tick(conn, ceiling=value + 1, apart=1.0) == value + 1


def test_a_credential_is_sealed_and_dropped_for_its_channel_alone(own_ground: Ground) -> None:
    one, other = own_ground.lane(), own_ground.lane()
    own_ground.sql("UPDATE channels SET sealed = 'old'")

    def rest() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        return (
            own_ground.sql("SELECT * FROM channels WHERE id = %s", other.channel_id),
            own_ground.sql("SELECT * FROM gates WHERE channel_id = %s", other.channel_id),
        )

    before = rest()
    with own_ground.app.engine.begin() as conn:
        deployment.reseal(conn, one.channel_id, b"new")
    assert rest() == before
    assert own_ground.one("SELECT sealed FROM channels WHERE id = %s", one.channel_id) == b"new"
    with own_ground.app.engine.begin() as conn:
        deployment.drop_credential(conn, one.channel_id, "copied")
    assert rest() == before
    (gate,) = own_ground.sql("SELECT * FROM gates WHERE channel_id = %s", one.channel_id)
    assert (gate["blocked_reason"], gate["blocked_detail"]) == ("needs_reconnecting", "copied")
    assert own_ground.one("SELECT sealed FROM channels WHERE id = %s", one.channel_id) is None


def test_what_is_no_longer_followed_is_not_unsettled(own_ground: Ground) -> None:
    lane = own_ground.lane()
    job = lane.put(S.UNKNOWN)
    (doubt,) = ledger.doubts(own_ground.conn, [job.id])
    ledger.drop(own_ground.conn, doubt, who="me", reason="x")
    assert ledger.unsettled_of(own_ground.conn, 7) == ()


def test_a_worker_that_left_an_answer_settled_it_whatever_its_reason(own_ground: Ground) -> None:
    lane = own_ground.lane()
    job = lane.sending()
    ledger.forsake(own_ground.conn, 7, deaths=3, who="me")
    end = replace(lost(), reason=Reason.WORKER_DIED, answer=Answer(status=502))
    ledger.record_late(own_ground.conn, job.id, job.token, end, who="worker run 7")
    (found,) = ledger.unsettled_of(own_ground.conn, 7)
    assert not found.only_rescue_settled


def test_a_send_whose_repeat_ended_is_settled_for_its_worker(own_ground: Ground) -> None:
    lane = own_ground.lane()
    job = lane.put(S.UNKNOWN)
    (doubt,) = ledger.doubts(own_ground.conn, [job.id])
    ledger.repeat(own_ground.conn, doubt, until=None, after=0.0, who="me", reason="x")
    with own_ground.app.engine.begin() as conn:
        ledger.cancel(conn, job.id, who="me")
    assert own_ground.state(job.id) is S.UNKNOWN
    assert ledger.unsettled_of(own_ground.conn, 7) == ()
