"""What a dead worker's own file proves about each of its attempts, and what it does not."""

from __future__ import annotations

import socket
from pathlib import Path
from uuid import uuid4

import pytest

from publisher.engine import ledger
from publisher.engine import spool as spools
from publisher.engine.job import State, Token
from publisher.engine.outcome import (
    Answer,
    Deferred,
    Outcome,
    Proof,
    Published,
    Reason,
    Rejected,
    Unauthorized,
    Unknown,
)
from publisher.engine.spool import boot_id
from tests.engine.fallen import Fallen, files, replay
from tests.engine.ground import Ground, Lane, key, lost

S = State


# What a whole file of this boot proves


@pytest.mark.parametrize("has_lines", [True, False], ids=["open line", "no line"])
def test_without_a_start_line_it_was_not_sent(
    run: Fallen, ground: Ground, tmp_path: Path, *, has_lines: bool
) -> None:
    job = run.sends(started=False) if has_lines else run.lane.sending()
    run.dies()
    assert replay(ground, tmp_path)
    row, attempt = ground.row(job.id), ground.attempt(job.id)
    assert (row["state"], row["reason"]) == ("scheduled", Reason.NOT_STARTED)
    assert row["failures"] == 0
    assert (attempt["outcome"], attempt["proof"]) == ("deferred", "not_sent")
    assert attempt["proved_by"] == "worker run 99"
    assert ground.events(job.id)[-1]["event"] == "spool_read"
    assert files(tmp_path) == []
    assert run.ended == "its file could be locked"


@pytest.mark.parametrize(
    ("outcome", "state", "proof"),
    [
        (Published("", "x"), S.UNKNOWN, None),
        (Published("live", "https://example.org/9", answer=Answer(200)), S.PUBLISHED, None),
        (Rejected(Reason.CONTENT_REFUSED, "no", row="100"), S.FAILED, "refused"),
        (Deferred(Reason.BUSY, "x", proof=Proof.REFUSED, row="2"), S.SCHEDULED, "refused"),
        (Deferred(Reason.CONNECT_FAILED, "x"), S.SCHEDULED, "not_sent"),
        (Unauthorized(Reason.NEEDS_RECONNECTING, "x", row="190"), S.SCHEDULED, "refused"),
        (Unknown(Reason.ANSWER_CUT, "x", answer=Answer(200, body="{")), S.UNKNOWN, None),
    ],
    ids=["no id", "live", "rejected", "deferred", "not sent", "unauthorized", "unknown"],
)
def test_an_answer_line_settles_it(
    run: Fallen, ground: Ground, tmp_path: Path, outcome: Outcome, state: State, proof: str | None
) -> None:
    if isinstance(outcome, Published) and outcome.remote_id:
        outcome = Published(f"live {run.number}", outcome.permalink, answer=outcome.answer)
    job = run.sends(outcome)
    run.dies()
    assert replay(ground, tmp_path)
    row, attempt = ground.row(job.id), ground.attempt(job.id)
    assert (row["state"], attempt["proof"]) == (state, proof)
    if isinstance(outcome, Published) and outcome.remote_id:
        assert row["remote_id"] == attempt["remote_id"] == outcome.remote_id
    if outcome.answer is not None:
        assert attempt["answer"]["status"] == 200
    assert files(tmp_path) == []


def test_a_start_without_an_answer_is_a_doubt(run: Fallen, ground: Ground, tmp_path: Path) -> None:
    job = run.sends()
    run.dies()
    replay(ground, tmp_path)
    row, attempt = ground.row(job.id), ground.attempt(job.id)
    assert (row["state"], row["reason"]) == ("unknown", Reason.WORKER_DIED)
    assert (attempt["outcome"], attempt["proof"]) == ("unknown", None)


def test_a_refusal_no_look_could_check_is_a_doubt(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    job = run.lane.sending()
    run.begins(job, can_look=False)
    run.spool.start(job.token)
    run.spool.answer(job.token, Rejected(Reason.CONTENT_REFUSED, "no", row="400"))
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.UNKNOWN


def test_claims_of_the_dead_are_taken_back_and_a_death_counted(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    waiting, worked_on = run.lane.claimed(), run.lane.claimed()
    ledger.start_hands(ground.conn, [key(worked_on)], lease=60)
    run.dies()
    assert replay(ground, tmp_path)
    assert [ground.row(job.id)["deaths"] for job in (waiting, worked_on)] == [0, 1]
    assert {ground.state(job.id) for job in (waiting, worked_on)} == {S.SCHEDULED}


def test_what_rescue_had_already_doubted_is_freed_by_the_file(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    """The lease was over first; the file, read later, knows more."""
    unsent, live = run.sends(started=False), run.sends(Published(f"late {run.number}"))
    ledger.forsake(ground.conn, run.number, deaths=3, who="worker run 98")
    assert ground.state(unsent.id) is S.UNKNOWN
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(unsent.id) is S.SCHEDULED
    assert ground.state(live.id) is S.PUBLISHED


# What proves nothing


def test_a_torn_file_frees_nothing_and_is_kept_for_a_person(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    unsent, live = run.sends(started=False), run.sends(Published(f"torn {run.number}"))
    run.dies()
    with run.spool.path.open("ab") as file:
        file.write(b"00")
    replay(ground, tmp_path)
    assert ground.state(unsent.id) is S.UNKNOWN
    assert ground.state(live.id) is S.PUBLISHED
    assert files(tmp_path) == [".damaged"]


def test_after_another_boot_only_answers_are_believed(
    lane: Lane, ground: Ground, tmp_path: Path
) -> None:
    run = Fallen.start(lane, tmp_path, boot="the boot before")
    unsent, live = run.sends(started=False), run.sends(Published(f"boot {run.number}"))
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(unsent.id) is S.UNKNOWN
    assert ground.state(live.id) is S.PUBLISHED
    assert run.ended == "its machine was restarted"


def test_the_file_of_another_machine_is_left_alone(
    lane: Lane, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared folder a lock says nothing of a process elsewhere."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(socket, "gethostname", lambda: "elsewhere")
        run = Fallen.start(lane, tmp_path, boot="its own")
    job = run.sends(started=False)
    run.dies()
    assert not replay(ground, tmp_path)
    assert ground.state(job.id) is S.SENDING
    assert files(tmp_path) == [".spool"]


def test_the_file_of_another_deployment_is_left_alone(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    job = run.sends(started=False)
    run.dies()
    text = run.spool.path.read_bytes()
    other = spools._line(
        {"k": "head", "d": str(uuid4()), "i": run.number, "h": socket.gethostname(), "b": boot_id()}
    )
    run.spool.path.write_bytes(other + text[text.index(b"\n") + 1 :])
    assert not replay(ground, tmp_path)
    assert ground.state(job.id) is S.SENDING
    assert files(tmp_path) == [".spool"]
    taken = list(spools.abandoned(tmp_path))
    assert len(taken) == 1  # and its lock was let go
    taken[0].leave()


def test_a_doubt_its_own_worker_settled_never_becomes_not_started(
    run: Fallen, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where its lines are gone from the file."""
    job = run.sends()
    assert run.lane.end(job, lost()).done
    run.spool.forget([job.token])
    monkeypatch.setattr(spools, "_COMPACT_BYTES", 0)
    run.begins(run.lane.sending())
    run.dies()
    assert job.token.hex.encode() not in run.spool.path.read_bytes()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.UNKNOWN
    assert ground.attempt(job.id)["proof"] is None


def test_a_file_does_not_overrule_what_its_own_worker_settled(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    """Not even a whole one without a start line: the worker knew what it had done."""
    job = run.sends(started=False)
    assert run.lane.end(job, lost()).done
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.UNKNOWN
    assert ground.attempt(job.id)["proof"] is None


def test_in_a_compacted_file_a_missing_line_proves_nothing(
    run: Fallen, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = run.sends()
    run.spool.forget([forgotten.token])
    monkeypatch.setattr(spools, "_COMPACT_BYTES", 0)
    unsent = run.sends(started=False)
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(forgotten.id) is S.UNKNOWN
    assert ground.state(unsent.id) is S.SCHEDULED


def test_a_started_line_whose_opening_was_lost_proves_nothing(
    run: Fallen, ground: Ground, tmp_path: Path
) -> None:
    job = run.lane.sending()
    run.spool.answer(Token(uuid4()), Published("nobody's"))
    run.spool._add(job.token, spools._line({"k": "answer", "t": job.token.hex, "o": None}))
    run.dies()
    replay(ground, tmp_path)
    assert ground.state(job.id) is S.UNKNOWN
