"""The moments at which a reconciler can be made to die are where their names say."""

from __future__ import annotations

from publisher.engine.evidence import Found
from publisher.engine.job import State
from publisher.engine.points import Point
from tests.reconciler.desk import Desk, looks, verdicts


def test_a_reconciler_says_where_it_is(desk: Desk) -> None:
    desk.lane.incarnation = desk.ground.incarnation()
    job = desk.lane.put(State.UNKNOWN)
    desk.platform.evidence.append(Found("501", "https://example.org/501"))
    seen: list[tuple[Point, bool, int, int]] = []

    def at(point: Point) -> None:
        held = desk.ground.sql("SELECT job_id FROM doubts WHERE look_token IS NOT NULL")
        written = len(looks(desk.ground, job)), len(verdicts(desk.ground, job))
        seen.append((point, bool(held), *written))

    assert desk.reconciler(at=at).once(desk.conn, desk.pool)
    assert seen == [
        (Point.BEFORE_DOUBTS, False, 0, 0),
        (Point.AFTER_DOUBTS, True, 0, 0),
        (Point.BEFORE_VERDICT, True, 0, 0),
        (Point.AFTER_VERDICT, False, 1, 1),
    ]
