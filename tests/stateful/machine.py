"""The state machine: what may happen, in any order, and what must hold after each of it."""

from __future__ import annotations

from enum import StrEnum

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from publisher.engine.job import JobId
from publisher.engine.points import Point
from reconciler.judge import Patience
from tests.stateful.baton import Actor
from tests.stateful.crew import Seat
from tests.stateful.finish import finish
from tests.stateful.judge import NOBODY_CAME
from tests.stateful.life import Edit, Life, Stage
from tests.stateful.page import Kind
from tests.stateful.people import Desk, Word
from tests.stateful.platform import Fate, Orders, StepFate
from tests.stateful.verbs import Cut

WORKERS = 3
AUDIT_EVERY = 5

_any = st.integers(0, 3)
_kinds = st.sampled_from(Kind)
_fates = st.sampled_from(Fate)
# Where a coordinator is left standing: between any two of its verbs.
_places = st.sampled_from([
    "", "", "", str(Point.AFTER_CLAIM), str(Point.AFTER_SAVE_PROGRESS), str(Point.BEFORE_BEGIN),
    str(Point.AFTER_BEGIN), str(Point.AFTER_SPOOL_OPEN), str(Point.BEFORE_SETTLE),
    str(Point.AFTER_SETTLE), str(Point.BEFORE_RESCUE), "before settle", "before record_late",
    "before claim", "before begin_send", "before stands", "before raise_tick",
    "before open_quarantine", "before unsettled_of", "before forsake", "before known_attempts",
    "before spool_found", "before bound_elsewhere", "before rest_channels",
])  # fmt: skip
_hand_places = st.sampled_from([
    "", "", str(Point.BEFORE_START), str(Point.AFTER_START), "connecting", "half written",
    "written", "stored", str(Point.AFTER_PUBLISH), str(Point.AFTER_ANSWER), "looking", "looked",
    "uploading",
])  # fmt: skip
_looking_places = st.sampled_from([
    "", "", "", str(Point.AFTER_DOUBTS), "looking", "looked", str(Point.BEFORE_VERDICT),
    "before record_look", "before confirm_published", "before repeat", "before look_again",
    "before found_live", "before release_suspects", "before look_for_again", "before forsake",
    "killed",
])  # fmt: skip
_waits = st.sampled_from([1.0, 6.0, 31.0, 31.0, 62.0, 80.0, 130.0, 400.0, 500.0, 1_900.0, 4_000.0])


class Blow(StrEnum):
    """What befalls a worker."""

    KILL = "kill"
    TERMINATE = "terminate"
    CUT_BEFORE = "before"
    CUT_AFTER = "after"
    WARNED = "warned"


CUT_AT = ("begin_send", "begin_send", "settle", "claim", "save_progress", "rescue", "record_late")


class Happenings(RuleBasedStateMachine):
    """Everything that editors, workers, platforms, operators, the machine and time may do."""

    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.life = Life(self.stage)
        self.desk = Desk(self.life)
        self.steps = 0

    @initialize(kinds=st.lists(_kinds, min_size=1, max_size=3), upto=_places)
    def begin(self, kinds: list[Kind], upto: str) -> None:
        """Some posts that are due, and a worker."""
        for kind in kinds:
            self.life.write(kind, due_in=0.0, useful_for=86_400.0, photos=0)
        self.life.crew.hire().work(upto)

    # Editors

    @rule(
        kind=_kinds,
        due_in=st.sampled_from([0.0, 0.0, 0.0, 0.0, 100.0, 3_000.0]),
        useful_for=st.sampled_from([86_400.0, 86_400.0, 1_800.0, 300.0]),
        photos=st.sampled_from([0, 0, 0, 0, 1, 2]),
    )
    def write(self, kind: Kind, due_in: float, useful_for: float, photos: int) -> None:
        self.life.write(kind, due_in=due_in, useful_for=useful_for, photos=photos)

    @rule(act=st.sampled_from(Edit), n=_any)
    def edit(self, act: Edit, n: int) -> None:
        """Of those that are under way first: that is when it matters."""
        if act is Edit.BRING_BACK:
            self.life.bring_back(self._job(n, "failed", "missed", "cancelled"))
        else:
            self.life.edit(act, self._job(n, "claimed", "scheduled", "sending"))

    @rule(kind=_kinds)
    def gate(self, kind: Kind) -> None:
        """Pause a channel; or open it again, whatever closed it."""
        self.life.turn_gate(kind)

    # Workers

    @rule(n=_any, upto=_places)
    def work(self, n: int, upto: str) -> None:
        """A coordinator goes on to a place between two of its verbs, or until it would wait."""
        self._seat(n).work(upto)

    @precondition(lambda self: self.life.crew.busy)
    @rule(n=_any, upto=_hand_places)
    def go_on(self, n: int, upto: str) -> None:
        """A hand goes on with its send, step or look, as far as this place."""
        seat, hand = self._hand(n)
        seat.let_hand(hand, Orders(), upto)

    @precondition(lambda self: self.life.crew.busy)
    @rule(n=_any, fate=_fates, step=st.sampled_from(StepFate), hidden=st.booleans())
    def end(self, *, n: int, fate: Fate, step: StepFate, hidden: bool) -> None:
        """A hand ends what it does, and this comes of it."""
        seat, hand = self._hand(n)
        seat.let_hand(hand, Orders(fate=fate, step=step, hidden=hidden))

    @rule(
        n=_any,
        kind=st.none() | _kinds,
        fate=_fates,
        step=st.sampled_from(StepFate),
        hidden=st.booleans(),
    )
    def day(self, *, n: int, kind: Kind | None, fate: Fate, step: StepFate, hidden: bool) -> None:
        """A worker goes on undisturbed, with a new post; this comes of all that it sends."""
        if kind is not None:
            self.life.write(kind, due_in=0.0, useful_for=86_400.0, photos=0)
        day(self._seat(n), Orders(fate=fate, step=step, hidden=hidden))

    @precondition(lambda self: self.life.crew.alive)
    @rule(n=_any, blow=st.sampled_from(Blow), verb=st.sampled_from(CUT_AT))
    def strike(self, n: int, blow: Blow, verb: str) -> None:
        """Kill a worker, stop it, or have its connection break at its next such verb."""
        seat = self._seat(n)
        match blow:
            case Blow.KILL:
                seat.kill()
            case Blow.TERMINATE:
                seat.worker.drain()
                seat.work()
            case Blow.CUT_BEFORE | Blow.CUT_AFTER | Blow.WARNED:
                self.stage.verbs.faults[id(seat)] = (verb, Cut(blow))

    # The wire and the clock

    @precondition(lambda self: self.life.world.page.flying)
    @rule(n=_any, lands=st.booleans())
    def arrive(self, *, n: int, lands: bool) -> None:
        """What is on its way lands now, or is lost."""
        flying = self.life.world.page.flying
        request = flying[n % len(flying)]
        request.lands = lands
        self.life.resolve(request)

    @rule(seconds=_waits, is_silent=st.sampled_from([False, False, False, True]))
    def wait(self, *, seconds: float, is_silent: bool) -> None:
        """Time goes by; ``is_silent``: and no worker of the fleet reached the database."""
        self.life.wait(seconds, is_silent=is_silent)

    # Doubts

    @rule(
        upto=_looking_places,
        fails=st.sampled_from([False, False, False, True]),
        requeues=st.booleans(),
    )
    def reconcile(self, *, upto: str, fails: bool, requeues: bool) -> None:
        """The reconciler goes on with its round, or begins one; or it is killed in it."""
        crew = self.life.crew
        looker = crew.looker
        if looker is None or looker.is_over:
            looker = crew.reconcile(Patience(limit=5, requeue_absent=requeues))
        elif upto == "killed":
            looker.kill()
            return
        looker.actor.orders = Orders(look_fails=fails)
        looker.actor.until(upto)

    @precondition(lambda self: self.life.ids("unknown"))
    @rule(n=_any, act=st.sampled_from(["see", "see", "look", "take", "hand over", "snooze"]))
    def see(self, n: int, act: str) -> None:
        """A person opens the page of a doubt, and does this there."""
        self.desk.see(self._job(n, "unknown"))
        if act != "see" and self.desk.open:
            self.desk.put_off(self.desk.open[-1], act)

    @precondition(lambda self: self.desk.open or self.life.ids("unknown"))
    @rule(n=_any, word=st.sampled_from(Word), afresh=st.booleans())
    def decide(self, *, n: int, word: Word, afresh: bool) -> None:
        """A person decides: of a page that was opened some time ago, or ``afresh``."""
        if afresh and self.life.ids("unknown"):
            self.desk.see(self._job(n, "unknown"))
        if self.desk.open:
            seen = self.desk.open[-1 if afresh else n % len(self.desk.open)]
            self.desk.decide(seen, word)

    @precondition(lambda self: any(not s.is_alive and s.run for s in self.life.crew.seats))
    @rule(n=_any)
    def state_gone(self, n: int) -> None:
        """An operator states that the machine of a dead worker is gone."""
        dead = [seat for seat in self.life.crew.seats if not seat.is_alive and seat.run]
        self.desk.state_gone(dead[-1 - n % len(dead)].run)

    # Backups

    @precondition(lambda self: self.steps >= self.life.saved_at + 4)
    @rule(cut=st.booleans(), makes=st.booleans())
    def back_up(self, *, cut: bool, makes: bool) -> None:
        """Make a backup, or put the last one back."""
        if makes or self.life.backup is None:
            self.life.save()
        else:
            self.life.restore(cut=cut)
        self.life.saved_at = self.steps

    @precondition(lambda self: self.life.world.restored_at is not None)
    @rule(n=_any, kind=_kinds, act=st.sampled_from(["bind", "release", "release blindly"]))
    def unquarantine(self, n: int, kind: Kind, act: str) -> None:
        """A person says what is on the page of what is in quarantine."""
        if act == "bind":
            self.desk.bind(self._job(n, "scheduled"))
        else:
            self.desk.release(self.stage.channels[kind], blindly=act != "release")

    @precondition(lambda self: self.steps % 3 == 0)
    @rule()
    def witness(self) -> None:
        """It cannot be reached any more; or it can again."""
        witness = self.life.crew.witness
        witness.is_away = not witness.is_away

    # What must hold

    @invariant()
    def holds(self) -> None:
        self.life.check()
        self.steps += 1
        if self.steps % AUDIT_EVERY == 0:
            self.life.judge.audit(but=NOBODY_CAME)

    def teardown(self) -> None:
        try:
            if self.life.is_whole:
                finish(self.life, self.desk)
        finally:
            self.life.end()

    # Parts

    def _seat(self, n: int) -> Seat:
        """One of the workers alive, or a new one."""
        alive = self.life.crew.alive
        if not alive or (n == WORKERS and len(alive) < WORKERS):
            return self.life.crew.hire()
        return alive[n % len(alive)]

    def _hand(self, n: int) -> tuple[Seat, Actor]:
        busy = self.life.crew.busy
        return busy[n % len(busy)]

    def _job(self, n: int, *states: str) -> JobId:
        """One that is in one of these states, the earlier ones first; else any."""
        for state in states:
            if ids := self.life.ids(state):
                return ids[n % len(ids)]
        ids = self.life.ids()
        return ids[n % len(ids)] if ids else JobId(0)


def day(seat: Seat, orders: Orders) -> None:
    """Go on until nothing is left to be done just now."""
    for _ in range(12):
        if not seat.is_alive:
            return
        seat.work()
        if not seat.hands:
            seat.work()
            if not seat.hands:
                return
        for hand in list(seat.hands):
            if seat.is_alive:
                seat.let_hand(hand, orders)
