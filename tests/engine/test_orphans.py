"""Sends the database does not hold, answers it lacks, and files that cannot be read just now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from publisher.engine import ledger
from publisher.engine import spool as spools
from publisher.engine.job import JobId, State, Token
from publisher.engine.outcome import (
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unknown,
)
from publisher.engine.points import Point
from publisher.engine.rescue import Rescue
from publisher.engine.spool import Opened
from tests.engine.conftest import Connect
from tests.engine.fallen import Fallen, files, replay
from tests.engine.ground import POLICY, Ground, decided, refused

S = State


@pytest.fixture(autouse=True)
def believed(ground: Ground) -> None:
    """Forget the quarantine that an earlier test's lost send opened."""
    ground.sql("TRUNCATE quarantines, quarantined")


# Sends the database does not hold


def line(run: Fallen, job_id: JobId, outcome: Outcome | None, *, started: bool = True) -> Token:
    token = Token(uuid4())
    run.spool.open([Opened(job_id, 1, token)])
    if started:
        run.spool.start(token)
    if outcome is not None:
        run.spool.answer(token, outcome)
    return token


@pytest.mark.parametrize("outcome", [None, Published("x"), Unknown(Reason.NO_ANSWER, "x")])
def test_a_started_send_the_database_lost_is_a_doubt_of_its_job(
    run: Fallen, ground: Ground, tmp_path: Path, outcome: Outcome | None
) -> None:
    job_id = run.lane.add()
    token = line(run, job_id, outcome)
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job_id) is S.UNKNOWN
    (orphan,) = ground.sql("SELECT * FROM orphans WHERE token = %s", token)
    assert orphan["adopted"]
    kind = None if outcome is None else type(outcome).__name__
    assert (orphan["line"]["outcome"] or {"kind": None})["kind"] == kind
    assert files(tmp_path) == []


@pytest.mark.parametrize("started", [True, False])
def test_one_that_was_never_made_is_none(
    run: Fallen, ground: Ground, tmp_path: Path, *, started: bool
) -> None:
    job_id = run.lane.add()
    line(run, job_id, Deferred(Reason.CONNECT_FAILED, "x") if started else None, started=started)
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job_id) is S.SCHEDULED
    assert files(tmp_path) == []


def test_one_without_a_job_is_kept_as_an_orphan(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    token = line(run, JobId(2**39), None)
    run.dies()
    replay(ground, tmp_path)
    (orphan,) = ground.sql("SELECT * FROM orphans WHERE token = %s", token)
    assert not orphan["adopted"]


def test_a_database_that_cannot_be_held_back_just_now_is_when_the_file_is_read_again(
    run: Fallen, ground: Ground, tmp_path: Path, connect: Connect
) -> None:
    """Nothing of the file is recorded before what else may be missing is held back."""
    token = line(run, run.lane.add(), None)
    waiting = run.lane.add()
    run.dies()
    blocker = connect()
    with blocker.transaction():
        blocker.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [waiting])
        replay(ground, tmp_path)
        assert len(files(tmp_path)) == 1
        assert ground.sql("SELECT id FROM orphans WHERE token = %s", token) == []
    replay(ground, tmp_path)
    assert files(tmp_path) == []
    assert ground.row(waiting)["hold_reason"] == "quarantine"


def test_a_file_that_is_read_again_opens_no_second_quarantine(
    run: Fallen, ground: Ground, tmp_path: Path, connect: Connect
) -> None:
    """A job of it was locked after the quarantine was opened."""
    job = run.sends(Published(f"late {run.number}"))
    assert run.lane.end(job, refused()).done
    line(run, run.lane.add(), None)
    run.dies()
    blocker = connect()
    with blocker.transaction():
        blocker.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        replay(ground, tmp_path)
        assert len(files(tmp_path)) == 1
    replay(ground, tmp_path)
    assert files(tmp_path) == []
    assert len(ground.sql("SELECT id FROM quarantines")) == 1


def test_a_number_given_out_again_after_a_restore_is_not_believed(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    """The run of that number is another one, alive, and in the middle of its sends."""
    lost_job = run.lane.add()
    line(run, lost_job, None)
    run.dies()
    ground.sql("UPDATE incarnations SET file = 'another.spool' WHERE id = %s", run.number)
    job, claimed = run.lane.sending(), run.lane.claimed()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.SENDING
    held = ground.row(claimed.id)
    assert (held["state"], held["hold_reason"]) == ("scheduled", "quarantine")
    assert run.ended is None
    assert ground.state(lost_job) is S.UNKNOWN
    assert files(tmp_path) == []


# An answer the database lacks


def test_a_published_answer_wins_over_what_was_settled(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    """Settled by a refusal, but the file's line says that it is on the page."""
    job = run.sends(Published(f"truth {run.number}"))
    end = decided(Deferred(Reason.BUSY, "x", proof=Proof.REFUSED, row="2"))
    assert run.lane.end(job, end).done
    run.dies()
    replay(ground, tmp_path)
    row = ground.row(job.id)
    assert (row["state"], row["remote_id"]) == ("published", f"truth {run.number}")


def test_published_against_a_cancelled_job_is_kept_and_told(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    job = run.sends(Published(f"late {run.number}"))
    end = decided(Deferred(Reason.BUSY, "x", proof=Proof.REFUSED, row="2"))
    assert run.lane.end(job, end).done
    with ground.app.engine.begin() as conn:
        ledger.cancel(conn, job.id, who="me")
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.CANCELLED
    assert ground.attempt(job.id)["outcome"] == "published"


def test_what_was_settled_already_stays_as_it_is(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    live, refused = (
        run.sends(Published(f"s {run.number}")),
        run.sends(Rejected(Reason.CONTENT_REFUSED, "no", row="1")),
    )
    assert run.lane.end(live, decided(Published(f"s {run.number}"))).done
    assert run.lane.end(refused, decided(Rejected(Reason.CONTENT_REFUSED, "no", row="1"))).done
    before = ground.everything(live.id), ground.everything(refused.id)
    run.dies()
    replay(ground, tmp_path)
    assert (ground.everything(live.id), ground.everything(refused.id)) == before


# Files


def test_ones_own_file_and_the_files_of_the_living_are_not_touched(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    job = run.sends(started=False)
    assert not replay(ground, tmp_path)
    assert ground.state(job.id) is S.SENDING
    run.dies()
    assert not replay(ground, tmp_path, own=run.spool.path)
    assert ground.state(job.id) is S.SENDING


def test_a_file_of_which_nothing_can_be_read_is_set_aside(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "a.spool").write_bytes(b"rubbish")
    (tmp_path / "b.spool").write_bytes(b"")
    assert not replay(ground, tmp_path)
    assert files(tmp_path) == [".damaged"]


@pytest.mark.parametrize("what", ["sending", "claimed", "published late"])
def test_a_row_somebody_holds_keeps_the_file_for_later(
    run: Fallen, ground: Ground, tmp_path: Path, connect: Connect, what: str
) -> None:
    outcome = None if what == "claimed" else Published(f"busy {run.number}")
    job: Any = run.lane.claimed() if what == "claimed" else run.sends(outcome)
    if what == "published late":
        end = decided(Deferred(Reason.BUSY, "x", proof=Proof.REFUSED, row="2"))
        assert run.lane.end(job, end).done
    run.dies()
    other = connect()
    with other.transaction():
        other.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
        replay(ground, tmp_path)
        assert files(tmp_path) == [".spool"]
        assert run.ended is None
    replay(ground, tmp_path)
    assert ground.state(job.id) is (S.SCHEDULED if what == "claimed" else S.PUBLISHED)
    assert files(tmp_path) == []
    assert run.ended is not None


def test_one_bad_file_keeps_nobody_elses(
    run: Fallen, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = run.sends(started=False)
    run.dies()
    (tmp_path / "0.spool").write_bytes(b"x")
    read = spools._parse

    def fail_at_the_first(data: bytes) -> Any:  # noqa: ANN401
        if data == b"x":
            raise RuntimeError
        return read(data)

    monkeypatch.setattr(spools, "_parse", fail_at_the_first)
    assert replay(ground, tmp_path)
    assert ground.state(job.id) is S.SCHEDULED
    assert files(tmp_path) == [".spool"]


def test_a_lost_connection_leaves_every_file(
    run: Fallen, ground: Ground, tmp_path: Path, connect: Connect
) -> None:
    run.sends(started=False)
    run.dies()
    conn = connect()
    ground.sql("SELECT pg_terminate_backend(%s)", conn.info.backend_pid)
    rescue = Rescue(folder=tmp_path, policy=POLICY, grace=15.0, who="x")
    with pytest.raises(Exception, match="terminat"):
        rescue.spools(conn, datetime.now(UTC))
    assert files(tmp_path) == [".spool"]
    assert replay(ground, tmp_path)


def test_leases_and_lateness_in_one_go(own_ground: Ground, tmp_path: Path) -> None:
    lane = own_ground.lane()
    job, late = lane.sending(), lane.add()
    own_ground.sql("UPDATE jobs SET lease_until = now() - interval '1 day' WHERE id = %s", job.id)
    own_ground.sql("UPDATE jobs SET useful_until = now() WHERE id = %s", late)
    seen: list[Point] = []
    rescue = Rescue(folder=tmp_path, policy=POLICY, grace=15.0, who="x", at=seen.append)
    assert rescue.leases(own_ground.conn)
    assert not rescue.leases(own_ground.conn)
    assert own_ground.state(job.id) is S.UNKNOWN
    assert own_ground.state(late) is S.MISSED
    assert seen[:2] == [Point.BEFORE_RESCUE, Point.AFTER_RESCUE]
