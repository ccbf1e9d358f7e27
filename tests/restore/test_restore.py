"""A backup that is put back re-arms every post sent since. Nothing of them is sent again."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from publisher.engine.job import State
from tests.engine.ground import await_that
from tests.reconciler.stage import Process, Stage
from tests.restore.conftest import Backup
from tests.restore.scene import Scene, end_in_order, kill, leave_running

S = State
WAITING = 3


@pytest.mark.parametrize(
    ("platform", "end"),
    [
        ("facebook_pages", end_in_order),
        ("facebook_pages", kill),
        ("facebook_pages", leave_running),
        ("bluesky", end_in_order),
        ("mastodon", kill),
    ],
)
def test_posts_sent_after_the_backup_are_found_and_bound(
    stage: Stage, platform: str, end: Callable[[Process], None]
) -> None:
    scene = Scene(stage, platform)
    scene.schedule()
    backup = Backup(scene.stage)
    worker = scene.worker()
    posts = scene.await_sent()
    end(worker)
    if end is leave_running:
        seen = scene.tick()
        await_that(lambda: scene.tick() > seen + 1)
    backup.put_back()
    if end is leave_running:
        assert worker.ends() == 1, "it must not go on with a database that does not know it"
    scene.worker()
    await_that(scene.quarantines)
    assert all(row["strict"] for row in scene.quarantines())
    scene.reconciler()
    scene.await_bound(posts)


@pytest.mark.parametrize("platform", ["facebook_pages", "bluesky", "mastodon"])
def test_what_was_not_sent_needs_a_proof_of_it(stage: Stage, platform: str) -> None:
    """Where its very record can be asked for they go on; elsewhere a person decides."""
    scene = Scene(stage, platform)
    jobs = [scene.page.post(f"Waits {n}") for n in range(WAITING)]
    backup = Backup(stage)
    stage.ground.sql("UPDATE jobs SET hold_reason = 'held by a person'")
    end_in_order(scene.worker())
    backup.put_back()
    scene.worker()
    await_that(lambda: len(scene.held()) == WAITING)
    scene.reconciler()
    if platform != "bluesky":
        await_that(lambda: all(row["asked_at"] for row in scene.held()), within=30)
        assert [stage.ground.state(job) for job in jobs] == [S.SCHEDULED] * WAITING
        assert scene.page.ids() == []
        return
    for job in jobs:
        stage.await_state(job, S.PUBLISHED, within=30)
    assert len(scene.page.ids()) == WAITING


def test_a_persons_hold_outlives_the_quarantine(stage: Stage) -> None:
    scene = Scene(stage, "bluesky")
    job = scene.page.post("Held")
    stage.ground.sql("UPDATE jobs SET hold_reason = 'held by a person'")
    backup = Backup(stage)
    end_in_order(scene.worker())
    backup.put_back()
    worker = scene.worker()
    await_that(scene.held)
    scene.reconciler()
    await_that(lambda: not scene.held(), within=30)
    assert stage.ground.row(job)["hold_reason"] == "held by a person"
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert scene.page.ids() == []
