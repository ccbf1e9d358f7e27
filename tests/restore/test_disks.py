"""Disks that go back or start anew: a cold copy, a standby that lags, an empty home, bad files."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from publisher.engine.job import State
from publisher.sandbox.process import SandboxProcess
from tests.engine.ground import await_that
from tests.postgres import new_folder
from tests.reconciler.stage import Stage
from tests.restore.machine import Machine
from tests.restore.scene import BRISK, SENT, Scene, end_in_order

S = State


@pytest.fixture
def machine() -> Iterator[Machine]:
    """One whose paths are short: a socket's has little room."""
    folder = new_folder()
    yield Machine(folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("is_promoted", [False, True], ids=["cold copy", "standby that lags"])
def test_a_database_of_before_looks_for_what_it_sent(
    machine: Machine, sandbox: SandboxProcess, tmp_path: Path, *, is_promoted: bool
) -> None:
    with machine.running() as ground, Stage.open(ground, sandbox, tmp_path) as stage:
        scene = Scene(stage, "facebook_pages")
        scene.schedule()
        page = scene.page
    copy = machine.copy()
    with machine.running() as ground, Stage.open(ground, sandbox, tmp_path) as stage:
        scene.stage = page.stage = stage
        worker = scene.worker()
        posts = scene.await_sent()
        end_in_order(worker)
    machine.put_back(copy)
    if is_promoted:
        machine.promote()
    with machine.running() as ground, Stage.open(ground, sandbox, tmp_path) as stage:
        scene.stage = page.stage = stage
        scene.worker()
        await_that(scene.quarantines)
        scene.reconciler()
        scene.await_bound(posts)


def test_a_promoted_standby_that_lacks_nothing_still_looks_first(
    machine: Machine, sandbox: SandboxProcess, tmp_path: Path
) -> None:
    """Nobody can tell that it lacks nothing: no commit waited for it."""
    with machine.running() as ground, Stage.open(ground, sandbox, tmp_path) as stage:
        scene = Scene(stage, "bluesky")
        page = scene.page
        end_in_order(scene.worker())
        scene.schedule()
    machine.promote()
    with machine.running() as ground, Stage.open(ground, sandbox, tmp_path) as stage:
        scene.stage = page.stage = stage
        scene.worker()
        await_that(scene.quarantines)
        (only,) = scene.quarantines()
        assert (only["cause"], only["strict"]) == ("failover", True)
        scene.reconciler()
        scene.await_sent()


def forget(home: Path) -> None:
    """A container's disk, new at each start; the key comes from elsewhere."""
    (home / "witness").unlink()
    shutil.rmtree(home / "spool")


def spoil(home: Path) -> None:
    (home / "witness").write_bytes(b'{"tick": 99')


@pytest.mark.parametrize(
    ("fate", "cause", "strict"),
    [(forget, "no_witness", False), (spoil, "witness_unreadable", True)],
)
def test_without_its_witness_it_looks_first_and_goes_on(
    stage: Stage, fate: Callable[[Path], None], cause: str, *, strict: bool
) -> None:
    """Ten were sent with a record; three more fell due while nobody ran."""
    scene = Scene(stage, "facebook_pages")
    scene.schedule()
    worker = scene.worker()
    posts = scene.await_sent()
    end_in_order(worker)
    later = [scene.page.post(f"Later {n}") for n in range(3)]
    fate(stage.ground.home)
    scene.worker()
    await_that(scene.quarantines)
    (only,) = scene.quarantines()
    assert (only["cause"], only["strict"]) == (cause, strict)
    assert {row["job_id"] for row in scene.held()} == set(later)
    scene.reconciler()
    if strict:
        await_that(lambda: all(row["asked_at"] for row in scene.held()), within=30)
        assert len(scene.page.ids()) == SENT
        return
    for job in later:
        stage.await_state(job, S.PUBLISHED, within=30)
    assert len(scene.page.ids()) == SENT + 3
    assert {job: stage.row(job)["remote_id"] for job in posts} == posts


def test_a_witness_out_of_reach_stops_claims_until_it_is_back(stage: Stage) -> None:
    scene = Scene(stage, "facebook_pages")
    end_in_order(scene.worker())
    scene.schedule()
    # A path that leads nowhere, as a volume that is not mounted.
    worker = stage.worker(**BRISK, WITNESS=str(stage.folder / "volume" / "witness"))
    worker.says("witness.unreachable")
    assert scene.page.ids() == []
    (stage.folder / "volume").mkdir()
    shutil.copy(stage.ground.home / "witness", stage.folder / "volume" / "witness")
    scene.await_sent()
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert scene.quarantines() == []
