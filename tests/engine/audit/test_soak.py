"""Real workers, that lose answers, are refused and die: what they leave breaks no invariant."""

from __future__ import annotations

from pathlib import Path

from publisher.engine.audit import audit
from publisher.engine.job import State
from publisher.engine.points import Point
from tests.engine.crew import Crew
from tests.engine.ground import Ground
from tests.engine.platform import Act, busy, lose_answer, refuse, token_refused, unreachable

ENDS = (State.PUBLISHED, State.UNKNOWN, State.FAILED)


def broken(ground: Ground) -> list[tuple[str, object]]:
    found = [audit(ground.conn, full=full) for full in (False, True)]
    assert not [report.unasked for report in found if report.unasked]
    return [(one.invariant.id, one.rows) for report in found for one in report.broken]


def test_what_workers_leave_holds(own_ground: Ground, tmp_path: Path) -> None:
    crew = Crew(own_ground, own_ground.lane(), tmp_path)
    acts: tuple[tuple[Act, ...], ...] = (
        (), (lose_answer,), (refuse,), (busy,), (unreachable, busy), (busy, lose_answer),
    )  # fmt: skip
    jobs = crew.add(len(acts) * 3)
    for job, played in zip(jobs, acts * 3, strict=True):
        crew.fake.acts[job.key].extend(played)
    for point in (Point.AFTER_CLAIM, Point.AFTER_BEGIN):
        crew.dies_at(point)
        assert not broken(own_ground)
    with crew.working():
        crew.await_state(*ENDS, jobs=jobs)
        assert not broken(own_ground)
    last = crew.add()
    crew.fake.acts[last[0].key].append(token_refused)
    with crew.working():
        crew.await_state(State.SCHEDULED, State.PUBLISHED, jobs=last)
    assert not broken(own_ground)
