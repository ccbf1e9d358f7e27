"""The end of a run: everything heals and has its time; then each post has ended, or is visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.judge import Patience
from tests.stateful.platform import Orders

if TYPE_CHECKING:
    from tests.stateful.crew import Seat
    from tests.stateful.life import Life
    from tests.stateful.people import Desk

ROUNDS = 60


def finish(life: Life, desk: Desk) -> None:
    """Heal, drain with a clean worker, and judge what came of it."""
    crew = life.crew
    life.stage.verbs.faults.clear()
    crew.witness.is_away = False
    crew.end()
    for channel in life.stage.channels.values():
        life.root.execute(
            "UPDATE publisher.gates SET paused_at = NULL, paused_by = NULL, blocked_at = NULL,"
            " blocked_reason = NULL, blocked_detail = NULL WHERE channel_id = %s", [channel],
        )  # fmt: skip
    life.root.execute(
        "UPDATE publisher.jobs SET hold_reason = NULL"
        " WHERE hold_reason IN ('held by a person', 'approval withdrawn')"
    )
    life.root.execute(
        "UPDATE publisher.quarantined SET held_before = NULL WHERE released_at IS NULL"
    )
    seat = crew.hire()
    before = None
    for n in range(ROUNDS):
        seat = _round(life, desk, seat)
        now = life.root.execute(
            "SELECT count(*) FILTER (WHERE state IN ('scheduled', 'claimed', 'sending')),"
            " count(*) FILTER (WHERE state = 'unknown') FROM publisher.jobs"
        ).fetchone()
        assert now is not None
        if now[0] == 0 and n > 1 and (now[1] == 0 or (now == before and n > 12)):
            break
        before = now
    seat.worker.drain()
    seat.work()
    assert not seat.is_alive, "the worker does not end"
    life.check()
    life.judge.check(at_the_end=True)
    life.judge.heard()
    life.judge.audit(but={"S05", "S07", "S08"} if life.world.restored_at else {"S05"})


def _round(life: Life, desk: Desk, seat: Seat) -> Seat:
    if not seat.is_alive:
        seat = life.crew.hire()
    _go_on(seat)
    looker = life.crew.reconcile(Patience(limit=3, first=30.0, longest=120.0))
    looker.actor.until()
    desk.settle_all()
    life.check()
    life.wait(_until_something_is_due(life))
    return seat


_DUE = """
SELECT extract(epoch FROM min(at) - clockwork.now())::float8 FROM (
    SELECT greatest(j.run_at, g.not_before) AS at FROM publisher.jobs j
      JOIN publisher.gates g USING (channel_id)
     WHERE j.state = 'scheduled' AND j.hold_reason IS NULL
    UNION ALL SELECT least(q.next_look_at, z.absent_after)
      FROM publisher.quarantined q JOIN publisher.quarantines z ON z.id = q.quarantine_id
     WHERE q.released_at IS NULL AND q.next_look_at IS NOT NULL
    UNION ALL SELECT z.absent_after
      FROM publisher.quarantined q JOIN publisher.quarantines z ON z.id = q.quarantine_id
     WHERE q.released_at IS NULL AND z.absent_after > clockwork.now()
    UNION ALL SELECT greatest(next_look_at, lease_until) FROM publisher.doubts
     WHERE next_look_at IS NOT NULL
    UNION ALL SELECT lease_until + interval '20 seconds' FROM publisher.jobs
     WHERE incarnation IS NOT NULL) AS due
"""


def _until_something_is_due(life: Life) -> float:
    row = life.root.execute(_DUE).fetchone()
    seconds = 65.0 if row is None or row[0] is None else float(row[0])
    return min(max(seconds + 1.0, 31.0), 4_000.0)


def _go_on(seat: Seat) -> None:
    for _ in range(8):
        seat.work()
        if not seat.is_alive or not seat.hands:
            return
        for hand in list(seat.hands):
            if seat.is_alive:
                seat.let_hand(hand, Orders())
