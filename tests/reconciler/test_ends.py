"""Workers and reconcilers that are stopped, frozen and killed: R4 and takeovers with processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from publisher.engine import ledger
from publisher.engine.content import Post
from publisher.engine.errors import Conflict
from publisher.engine.job import JobId, State
from publisher.sandbox.behaviours import Behaviour
from publisher.sandbox.pages import APPLICATION
from publisher.sandbox.process import SandboxProcess
from reconciler.__main__ import main
from tests.engine.ground import Ground, Lane, await_that
from tests.engine.ground import lost as answer_lost
from tests.reconciler.stage import Channel, Stage

S = State
HORIZON = timedelta(seconds=60)
LONG = {
    "PUBLISH_TIMEOUT_SECONDS": "100", "PUBLISH_LEASE_SECONDS": "200",
    "TCP_USER_TIMEOUT_SECONDS": "30", "SETTLING_SECONDS": "30",
}  # fmt: skip


@pytest.fixture
def stage(ground: Ground, tmp_path: Path) -> Iterator[Stage]:
    with (
        SandboxProcess.start(tmp_path / "sandbox", pages=0, accounts=0, fsync=False) as sandbox,
        Stage.open(ground, sandbox, tmp_path) as opened,
    ):
        yield opened


def absent(stage: Stage, job: JobId) -> State:
    (doubt,) = ledger.doubts(stage.ground.conn, [job])
    return ledger.confirm_absent(
        stage.ground.conn, doubt, send=True, send_at=None, who="ed", reason="not there",
        horizon=HORIZON,
    ).state  # fmt: skip


def refused(stage: Stage, job: JobId) -> str:
    with pytest.raises(Conflict) as error:
        absent(stage, job)
    assert error.value.code == "sender-may-be-alive"
    return str(error.value)


def is_looking(stage: Stage, job: JobId) -> bool:
    return bool(
        stage.ground.sql(
            "SELECT job_id FROM doubts WHERE job_id = %s AND look_token IS NOT NULL", job
        )
    )


def is_asked(stage: Stage) -> bool:
    """Whether a look has reached the platform."""
    return bool(stage.control.rules()[-1]["used"])


def lapse(stage: Stage, job: JobId) -> None:
    """Let the lease of the look under way be over."""
    stage.ground.sql(
        "UPDATE doubts SET lease_until = now() - interval '1 s' WHERE job_id = %s", job
    )


def lost(stage: Stage, page: Channel, text: str) -> JobId:
    """A post that is on the page and in doubt."""
    lane = Lane(stage.ground, page.id, f"{page.page} {text}")
    job = lane.sending(content=Post(text).to_json())
    stage.control.foreign_post(page.page, text, application=APPLICATION)
    lane.end(job, answer_lost())
    return job.id


def test_a_frozen_worker_is_no_proof_and_a_killed_one_is_after_the_horizon(stage: Stage) -> None:
    page = stage.channel()
    page.behave(Behaviour.ACCEPT_AND_HANG)
    worker = stage.worker(**LONG)
    reconciler = stage.reconciler(**LONG)
    job = page.post("On thin ice")
    await_that(lambda: page.ids() and stage.ground.state(job) is S.SENDING, within=60)
    # Nobody shall find it: what counts here is who may say what.
    page.behave(Behaviour.FAIL_500, endpoint="list", times=None)
    reconciler.says("reconciler.started")
    worker.send(signal.SIGSTOP)
    stage.ground.sql("UPDATE jobs SET lease_until = now() - interval '1 h' WHERE id = %s", job)
    ledger.rescue(stage.ground.conn, grace=0, deaths=3, who="another worker")
    await_that(lambda: stage.looks(job))  # the reconciler has been round since, files and all
    said = refused(stage, job)
    assert "may still send the first one" in said
    assert "It unlocks 60 s after that run is proved stopped" in said
    (doubt,) = ledger.doubts(stage.ground.conn, [job])
    assert doubt.sender.gone_at() is None

    worker.send(signal.SIGKILL)
    worker.ends()
    ended = "SELECT ended_at FROM incarnations WHERE id = %s AND ended_at IS NOT NULL"
    await_that(lambda: stage.ground.sql(ended, doubt.incarnation))
    why = stage.ground.one("SELECT end_reason FROM incarnations WHERE id = %s", doubt.incarnation)
    assert why == "its file could be locked"
    assert "is gone, but what it wrote may still arrive" in refused(stage, job)
    stage.ground.sql(
        "UPDATE incarnations SET ended_at = ended_at - %s WHERE id = %s", HORIZON, doubt.incarnation
    )
    assert absent(stage, job) is S.SCHEDULED
    reconciler.is_left_alone()
    assert reconciler.ends() == 0


def test_killed_in_the_middle_of_a_look_another_takes_over_and_ends_in_order(
    stage: Stage,
) -> None:
    page = stage.channel()
    first, second = stage.reconciler(), stage.reconciler()
    second.says("reconciler.started")
    second.send(signal.SIGSTOP)
    first.says("reconciler.started")
    page.behave(Behaviour.HANG, endpoint="list", times=1)
    job = lost(stage, page, "Taken over")
    await_that(lambda: is_asked(stage))
    assert is_looking(stage, job)
    first.send(signal.SIGKILL)
    first.ends()
    assert is_looking(stage, job)
    lapse(stage, job)
    second.send(signal.SIGCONT)
    row = stage.await_state(job, S.PUBLISHED)
    assert page.ids() == [row["remote_id"]]
    assert len(stage.looks(job)) == 1
    assert len(stage.verdicts(job)) == 1

    page.behave(Behaviour.ANSWER_SLOWLY, endpoint="list", seconds=0.5)
    job = lost(stage, page, "Last orders")
    await_that(lambda: is_asked(stage))
    assert is_looking(stage, job)
    second.send(signal.SIGTERM)
    assert second.ends() == 0
    assert stage.ground.state(job) is S.PUBLISHED
    assert "reconciler.ended" in second.log.read_text()


def test_the_command_is_the_module() -> None:
    (script,) = entry_points(group="console_scripts", name="reconciler")
    assert script.load() is main


def test_without_a_database_it_says_so_and_does_not_start(stage: Stage) -> None:
    nowhere = f"postgresql://nobody@/nothing?host={stage.ground.server.host}"
    reconciler = stage.start("reconciler", settings={"DATABASE_URL": nowhere})
    assert reconciler.ends(within=60) == 2
    assert "reconciler: The database does not let us in" in reconciler.log.read_text()
