"""What the machine found, as the shortest steps that lead there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from publisher.engine.job import State
from publisher.engine.points import Point
from reconciler.judge import Patience
from tests.stateful.finish import finish
from tests.stateful.life import Life, Stage
from tests.stateful.machine import day
from tests.stateful.page import Kind
from tests.stateful.people import Desk
from tests.stateful.platform import Fate, Orders


@pytest.fixture
def life(stage: Stage) -> Iterator[Life]:
    run = Life(stage)
    yield run
    run.end()


def test_a_send_that_a_backup_brings_back_is_not_given_back(life: Life) -> None:
    """Its worker, which settled it long since, took it for a claim whose answer was lost."""
    life.write(Kind.LISTED, due_in=0.0, useful_for=86_400.0, photos=0)
    seat = life.crew.hire()
    seat.work("connecting")
    life.save()
    day(seat, Orders(Fate.LIMIT))
    life.restore(cut=True)
    life.wait(2.0)
    seat.work()
    life.check()
    assert [row["state"] for row in life.judge.rows()] == [State.SENDING]
    finish(life, Desk(life))


def test_a_run_that_a_backup_lets_hold_a_send_leaves_its_file(life: Life) -> None:
    """Told to stop, it ended as if nothing were left; its file knew what had come of the send."""
    life.write(Kind.BLIND, due_in=0.0, useful_for=86_400.0, photos=0)
    seat = life.crew.hire()
    seat.work()
    life.wait(2.0)
    seat.work()
    life.save()
    life.wait(2.0)
    day(seat, Orders())
    life.wait(2.0)
    seat.work()
    life.restore(cut=False)
    seat.worker.drain()
    seat.work()
    assert not seat.is_alive
    life.crew.reconcile(Patience()).actor.until()
    assert [row["state"] for row in life.judge.rows()] == [State.PUBLISHED]
    life.judge.audit()


def test_a_worker_that_is_told_to_stop_while_it_claims_gives_the_job_back(life: Life) -> None:
    """It ended there and then, and the job waited for its lease to run out."""
    life.write(Kind.LISTED, due_in=0.0, useful_for=86_400.0, photos=0)
    seat = life.crew.hire()
    seat.work(str(Point.AFTER_CLAIM))
    seat.worker.drain()
    seat.work()
    assert seat.code == 0
    assert [row["state"] for row in life.judge.rows()] == [State.SCHEDULED]
    life.judge.audit()
