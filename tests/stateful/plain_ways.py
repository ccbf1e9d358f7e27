"""Ways through rows that chance goes often enough, and not in every run."""

from __future__ import annotations

from collections.abc import Callable

from publisher.engine.job import State
from publisher.engine.points import Point
from publisher.engine.transitions import Event
from tests.stateful.life import Edit
from tests.stateful.machine import day
from tests.stateful.page import Kind
from tests.stateful.people import Word
from tests.stateful.platform import Fate, Orders, StepFate
from tests.stateful.ways import Way

S, E = State, Event


def _prepared(way: Way) -> None:
    way.write(Kind.LISTED)
    way.hire(str(Point.AFTER_CLAIM))
    way.stands(S.CLAIMED)


def called_off_while_prepared(way: Way) -> None:
    _prepared(way)
    way.life.edit(Edit.CANCEL, way.job)
    way.stands(S.CANCELLED)


def held_while_prepared(way: Way) -> None:
    _prepared(way)
    way.life.edit(Edit.HOLD, way.job)
    way.stands(S.SCHEDULED)


def moved_while_prepared(way: Way) -> None:
    _prepared(way)
    way.life.edit(Edit.PUT_OFF, way.job)
    way.stands(S.SCHEDULED)


def taken_away_while_prepared(way: Way) -> None:
    _prepared(way)
    way.life.wait(80.0)
    way.hire()
    assert way.life.stage.verbs.taken[S.CLAIMED, E.LEASE_EXPIRED]


def given_back_by_a_worker_that_stops(way: Way) -> None:
    _prepared(way)
    seat = way.life.crew.alive[0]
    seat.worker.drain()
    seat.work()
    way.stands(S.SCHEDULED)


def _step(way: Way, fate: StepFate, state: State) -> None:
    way.write(Kind.LISTED, photos=1)
    day(way.hire(), Orders(step=fate))
    way.stands(state)


def a_step_waits(way: Way) -> None:
    _step(way, StepFate.WAIT, S.SCHEDULED)


def a_step_fails_for_now(way: Way) -> None:
    _step(way, StepFate.LATER, S.SCHEDULED)


def a_step_fails_for_good(way: Way) -> None:
    _step(way, StepFate.REFUSE, S.FAILED)


def failed_and_brought_back(way: Way) -> None:
    _step(way, StepFate.REFUSE, S.FAILED)
    way.life.bring_back(way.job)
    way.stands(S.SCHEDULED)


def _ends(way: Way, fate: Fate, state: State) -> None:
    way.write(Kind.LISTED)
    day(way.hire(), Orders(fate))
    way.stands(state)


def refused(way: Way) -> None:
    _ends(way, Fate.REFUSE, S.FAILED)


def revoked(way: Way) -> None:
    _ends(way, Fate.REVOKED, S.SCHEDULED)


def held_and_let_go(way: Way) -> None:
    way.write(Kind.LISTED)
    way.life.edit(Edit.HOLD, way.job)
    way.life.edit(Edit.RELEASE, way.job)
    way.stands(S.SCHEDULED)


def rewritten(way: Way) -> None:
    way.write(Kind.LISTED)
    way.life.edit(Edit.REVISE, way.job)
    way.stands(S.SCHEDULED)


def called_off_and_restored(way: Way) -> None:
    way.write(Kind.LISTED)
    way.life.edit(Edit.CANCEL, way.job)
    way.life.bring_back(way.job)
    way.stands(S.SCHEDULED)


def missed(way: Way) -> None:
    way.write(Kind.LISTED, useful_for=300.0)
    way.life.wait(400.0)
    way.hire()
    way.stands(S.MISSED)


def not_there_and_given_up(way: Way) -> None:
    _ends(way, Fate.NEVER, S.UNKNOWN)
    way.life.wait(62.0)
    way.says(Word.TRUTH_GIVE_UP)
    way.stands(S.FAILED)


def repeated(way: Way) -> None:
    way.write(Kind.KEYED)
    day(way.hire(), Orders(Fate.NEVER))
    way.life.wait(62.0)
    way.looks()
    way.stands(S.SCHEDULED)


def _late(way: Way, fate: Fate, state: State) -> None:
    seat, hand = way.begins(Kind.LISTED, "half written")
    way.rescued()
    seat.let_hand(hand, Orders(fate))
    seat.work()
    way.stands(state)


def answered_late(way: Way) -> None:
    _late(way, Fate.ACCEPT, S.PUBLISHED)


def refused_late_for_now(way: Way) -> None:
    _late(way, Fate.BUSY, S.SCHEDULED)


def a_lie_is_found_before_a_second_send(way: Way) -> None:
    way.write(Kind.KEYED)
    seat = way.hire()
    day(seat, Orders(Fate.LIE_BUSY))
    way.life.wait(62.0)
    day(seat, Orders())
    way.stands(S.PUBLISHED)


def found_after_a_restore(way: Way) -> None:
    way.write(Kind.KEYED)
    way.life.save()
    seat = way.hire()
    day(seat, Orders())
    seat.worker.drain()
    seat.work()
    way.life.restore(cut=True)
    way.life.wait(2.0)
    way.hire()
    way.stands(S.SCHEDULED)
    way.looks()
    way.stands(S.PUBLISHED)


def a_file_tells_of_a_waiting_job(way: Way) -> None:
    way.write(Kind.LISTED)
    way.life.save()
    seat, _ = way.sends("written")
    seat.kill()
    way.life.restore(cut=True)
    way.life.wait(2.0)
    way.looks()
    way.stands(S.UNKNOWN)


PLAIN_WAYS: dict[tuple[State, Event], Callable[[Way], None]] = {
    (S.CLAIMED, E.CANCEL): called_off_while_prepared,
    (S.CLAIMED, E.HOLD): held_while_prepared,
    (S.CLAIMED, E.RESCHEDULE): moved_while_prepared,
    (S.CLAIMED, E.LEASE_EXPIRED): taken_away_while_prepared,
    (S.CLAIMED, E.RELEASE): given_back_by_a_worker_that_stops,
    (S.CLAIMED, E.WAIT): a_step_waits,
    (S.CLAIMED, E.DEFER): a_step_fails_for_now,
    (S.CLAIMED, E.REJECT): a_step_fails_for_good,
    (S.CLAIMED, E.CONFIRM_PUBLISHED): a_lie_is_found_before_a_second_send,
    (S.SENDING, E.REJECT): refused,
    (S.SENDING, E.UNAUTHORIZED): revoked,
    (S.FAILED, E.REQUEUE): failed_and_brought_back,
    (S.SCHEDULED, E.RELEASE_HOLD): held_and_let_go,
    (S.SCHEDULED, E.REPLACE): rewritten,
    (S.SCHEDULED, E.EXPIRE): missed,
    (S.SCHEDULED, E.CONFIRM_PUBLISHED): found_after_a_restore,
    (S.SCHEDULED, E.SPOOL_FOUND): a_file_tells_of_a_waiting_job,
    (S.CANCELLED, E.RESTORE): called_off_and_restored,
    (S.UNKNOWN, E.CONFIRM_ABSENT): not_there_and_given_up,
    (S.UNKNOWN, E.REPEAT): repeated,
    (S.UNKNOWN, E.LATE_PUBLISH): answered_late,
    (S.UNKNOWN, E.DEFER): refused_late_for_now,
}
