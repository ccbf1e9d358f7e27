"""Ways through rows of the transition table that chance seldom goes, each in a few steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from publisher.engine.job import JobId, State
from publisher.engine.points import Point
from publisher.engine.transitions import Event
from reconciler.judge import Patience
from tests.stateful.baton import Actor
from tests.stateful.crew import Seat
from tests.stateful.life import Edit, Life
from tests.stateful.machine import day
from tests.stateful.page import Kind
from tests.stateful.people import Desk, Word
from tests.stateful.platform import Fate, Orders, StepFate

S, E = State, Event
_LEASE = 380.0
_DECLARED = 15 * 60.0 + 61.0


@dataclass
class Way:
    """One run, and the few verbs that a way is made of."""

    life: Life
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(self.life)

    @property
    def job(self) -> JobId:
        return self.life.ids()[0]

    def stands(self, state: State) -> None:
        self.life.check()
        assert self.life.stage.ground.state(self.job) is state, self.life.judge.rows()

    def write(self, kind: Kind, *, useful_for: float = 86_400.0, photos: int = 0) -> None:
        self.life.write(kind, due_in=0.0, useful_for=useful_for, photos=photos)

    def hire(self, *places: str, folder: Path | None = None) -> Seat:
        seat = self.life.crew.hire(folder)
        seat.work(*places)
        return seat

    def begins(self, kind: Kind, place: str, *, folder: Path | None = None) -> tuple[Seat, Actor]:
        """A worker sends a new post, and its hand stands at this place."""
        self.write(kind)
        return self.sends(place, folder=folder)

    def sends(self, place: str, *, folder: Path | None = None) -> tuple[Seat, Actor]:
        seat = self.hire(folder=folder)
        for _ in range(5):
            (hand,) = seat.hands
            seat.let_hand(hand, Orders(), place)
            if not hand.over:
                return seat, hand
            seat.work()  # that was a step
        message = f"no send comes to {place}"
        raise AssertionError(message)

    def rescued(self) -> Seat:
        """A lease runs out, and another worker takes the job away."""
        self.life.wait(_LEASE)
        seat = self.hire()
        self.stands(S.UNKNOWN)
        return seat

    def looks(self, **how: bool) -> None:
        looker = self.life.crew.reconcile(Patience(limit=5))
        looker.actor.orders = Orders(**how)
        looker.actor.until()

    def says(self, word: Word) -> None:
        self.desk.see(self.job)
        self.desk.decide(self.desk.open[-1], word)


def _repeated(way: Way) -> None:
    """A lost answer of a keyed post is repeated: scheduled, and possibly live."""
    way.write(Kind.KEYED)
    seat = way.hire()
    day(seat, Orders(Fate.NEVER))
    way.stands(S.UNKNOWN)
    way.life.wait(62.0)
    way.looks()
    way.stands(S.SCHEDULED)
    seat.kill()


def called_off_while_possibly_live(way: Way) -> None:
    _repeated(way)
    way.life.edit(Edit.CANCEL, way.job)
    way.stands(S.UNKNOWN)


def called_off_while_a_repeat_is_prepared(way: Way) -> None:
    _repeated(way)
    way.life.wait(62.0)
    way.hire(str(Point.AFTER_CLAIM))
    way.life.edit(Edit.CANCEL, way.job)
    way.stands(S.UNKNOWN)


def a_repeat_is_refused(way: Way) -> None:
    _repeated(way)
    way.life.wait(62.0)
    day(way.hire(), Orders(Fate.REFUSE))
    way.stands(S.UNKNOWN)


def _late(way: Way, fate: Fate, state: State) -> None:
    seat, hand = way.begins(Kind.LISTED, "half written")
    way.rescued()
    seat.let_hand(hand, Orders(fate))
    seat.work()
    way.stands(state)


def refused_late(way: Way) -> None:
    _late(way, Fate.REFUSE, S.FAILED)


def revoked_late(way: Way) -> None:
    _late(way, Fate.REVOKED, S.SCHEDULED)


def revoked_at_a_step(way: Way) -> None:
    way.write(Kind.LISTED, photos=1)
    day(way.hire(), Orders(step=StepFate.REVOKED))
    way.stands(S.SCHEDULED)


def too_late_when_it_was_ready(way: Way) -> None:
    way.write(Kind.LISTED, useful_for=20.0)
    seat = way.hire(str(Point.BEFORE_BEGIN))
    way.life.wait(31.0)
    day(seat, Orders())
    way.stands(S.MISSED)


def missed_and_brought_back(way: Way) -> None:
    too_late_when_it_was_ready(way)
    way.life.bring_back(way.job)
    way.stands(S.SCHEDULED)


def a_look_before_a_second_send_fails(way: Way) -> None:
    way.write(Kind.LISTED)
    seat = way.hire()
    day(seat, Orders(Fate.BUSY))
    way.life.wait(62.0)
    day(seat, Orders(look_fails=True))
    way.stands(S.UNKNOWN)


def _answered_late(way: Way) -> tuple[Seat, Actor, Seat]:
    """The first sender stands before its answer; the repeat of a keyed post waits."""
    seat, hand = way.begins(Kind.KEYED, "half written")
    other = way.rescued()
    way.life.wait(62.0)
    way.looks()
    way.stands(S.SCHEDULED)
    return seat, hand, other


def answered_while_a_repeat_waits(way: Way) -> None:
    seat, hand, _ = _answered_late(way)
    seat.let_hand(hand, Orders())
    seat.work()
    way.stands(S.PUBLISHED)


def answered_while_a_repeat_is_prepared(way: Way) -> None:
    seat, hand, other = _answered_late(way)
    way.life.wait(40.0)
    other.work(str(Point.AFTER_CLAIM))
    way.stands(S.CLAIMED)
    seat.let_hand(hand, Orders())
    seat.work()
    way.stands(S.PUBLISHED)


def answered_after_it_was_dropped(way: Way) -> None:
    seat, hand = way.begins(Kind.LISTED, "half written")
    way.rescued()
    way.says(Word.DROP)
    way.stands(S.DROPPED)
    seat.let_hand(hand, Orders())
    seat.work()
    way.stands(S.PUBLISHED)


def _died_elsewhere(way: Way) -> Path:
    """Its worker died on another machine, with the answer in a file that nobody reads yet."""
    there = way.life.folder / "elsewhere"
    seat, _ = way.begins(Kind.BLIND, str(Point.AFTER_ANSWER), folder=there)
    seat.kill()
    way.rescued()
    way.life.wait(70.0)
    way.desk.state_gone(seat.run)
    way.life.wait(_DECLARED)
    way.looks()
    return there


def a_file_is_found_after_it_was_given_up(way: Way) -> None:
    """Against what is on the page, which nobody looked at."""
    there = _died_elsewhere(way)
    way.says(Word.NOT_LIVE_GIVE_UP)
    way.stands(S.FAILED)
    way.hire(folder=there)
    way.stands(S.PUBLISHED)


def a_file_is_found_after_it_was_missed(way: Way) -> None:
    there = _died_elsewhere(way)
    way.says(Word.NOT_LIVE_LATER)
    way.stands(S.SCHEDULED)
    way.life.wait(8_000.0)
    way.hire()
    way.stands(S.MISSED)
    way.hire(folder=there)
    way.stands(S.PUBLISHED)


def _lost_by_a_restore(way: Way, state: State) -> None:
    """Brought back and sent after the backup, by a worker that died over it."""
    way.life.crew.end()
    way.stands(state)
    way.life.save()
    way.life.bring_back(way.job)
    way.life.wait(2.0)
    seat, _ = way.sends("written")
    seat.kill()
    way.life.restore(cut=True)
    way.life.wait(2.0)
    way.looks()
    way.stands(S.UNKNOWN)


def a_file_tells_of_a_failed_job(way: Way) -> None:
    way.write(Kind.LISTED, photos=1)
    day(way.hire(), Orders(step=StepFate.REFUSE))
    _lost_by_a_restore(way, S.FAILED)


def a_file_tells_of_a_missed_job(way: Way) -> None:
    too_late_when_it_was_ready(way)
    _lost_by_a_restore(way, S.MISSED)


def a_worker_lost_the_send_of_what_another_holds(way: Way) -> None:
    """The backup is of when another had it: that one let it go, and this one sent it."""
    way.write(Kind.LISTED)
    first, seat = way.hire(str(Point.AFTER_CLAIM)), way.hire()
    way.life.save()
    first.worker.drain()
    first.work()
    way.life.wait(2.0)
    seat.work()
    seat.let_hand(seat.hands[0], Orders(), "written")
    way.life.restore(cut=True)
    way.life.wait(2.0)
    seat.work()
    seat.work("before stands")
    way.stands(S.UNKNOWN)


WAYS: dict[tuple[State, Event], Callable[[Way], None]] = {
    (S.SCHEDULED, E.REPEAT_ENDED): called_off_while_possibly_live,
    (S.CLAIMED, E.REPEAT_ENDED): called_off_while_a_repeat_is_prepared,
    (S.SENDING, E.REPEAT_ENDED): a_repeat_is_refused,
    (S.UNKNOWN, E.REJECT): refused_late,
    (S.UNKNOWN, E.UNAUTHORIZED): revoked_late,
    (S.CLAIMED, E.UNAUTHORIZED): revoked_at_a_step,
    (S.CLAIMED, E.EXPIRE): too_late_when_it_was_ready,
    (S.MISSED, E.REQUEUE): missed_and_brought_back,
    (S.CLAIMED, E.LOOK_UNCLEAR): a_look_before_a_second_send_fails,
    (S.SCHEDULED, E.LATE_PUBLISH): answered_while_a_repeat_waits,
    (S.CLAIMED, E.LATE_PUBLISH): answered_while_a_repeat_is_prepared,
    (S.DROPPED, E.LATE_PUBLISH): answered_after_it_was_dropped,
    (S.FAILED, E.LATE_PUBLISH): a_file_is_found_after_it_was_given_up,
    (S.MISSED, E.LATE_PUBLISH): a_file_is_found_after_it_was_missed,
    (S.FAILED, E.SPOOL_FOUND): a_file_tells_of_a_failed_job,
    (S.MISSED, E.SPOOL_FOUND): a_file_tells_of_a_missed_job,
    (S.CLAIMED, E.SPOOL_FOUND): a_worker_lost_the_send_of_what_another_holds,
}
"""By the row they are there for."""

_NO_VERB = "no verb does it: what people find live is decided from unknown or in quarantine"
EXCUSED: dict[tuple[State, Event], str] = {
    (S.FAILED, E.CONFIRM_PUBLISHED): _NO_VERB,
    (S.MISSED, E.CONFIRM_PUBLISHED): _NO_VERB,
    (S.DROPPED, E.CONFIRM_PUBLISHED): _NO_VERB,
}
"""Rows that nothing goes through, with why."""
