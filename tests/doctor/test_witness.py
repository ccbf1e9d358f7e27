"""The witness damaged, lost, behind, or somebody else's; and what is in quarantine."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from publisher import witness
from publisher.doctor import spools
from publisher.doctor.finding import Severity
from publisher.doctor.ward import Limits
from publisher.engine import ledger
from publisher.engine.guard import Guard
from publisher.engine.job import State
from tests.doctor.patient import Patient

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE


def tell(patient: Patient) -> Path:
    """As a worker does when it starts and when it ends."""
    guard = Guard(witness.store(patient.settings))
    guard.admit(patient.ground.conn)
    guard.close(patient.ground.conn)
    return patient.settings.home / "witness"


def work(patient: Patient, host: str = socket.gethostname()) -> None:
    ledger.register(patient.ground.conn, host=host, boot_id="b", pid=1, file="f.spool")


@pytest.mark.both_servers
def test_a_witness_that_agrees(patient: Patient) -> None:
    assert patient.codes("witness") == []  # nothing was sent yet, so nothing can be missing
    tell(patient)
    work(patient)
    patient.lane().put(State.PUBLISHED)
    assert patient.codes("witness") == []


def test_a_witness_that_is_not_there(patient: Patient) -> None:
    patient.lane().put(State.PUBLISHED)
    assert patient.ills("witness") == [(N, "witness_missing")]
    work(patient)
    assert patient.ills("witness") == [(W, "witness_missing")]
    assert not (patient.settings.home / "witness").exists()


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE tick SET value = value - 1000",
        "UPDATE tick SET marks = '{}'",
        "UPDATE deployment SET generation = generation - 1",
    ],
)
def test_a_database_that_went_back(patient: Patient, fault: str) -> None:
    tell(patient)
    patient.plant(fault)
    assert patient.ills("witness") == [(E, "witness_disagrees")]


def test_a_witness_of_another_deployment(patient: Patient) -> None:
    tell(patient)
    patient.plant("UPDATE deployment SET id = gen_random_uuid()")
    assert patient.ills("witness") == [(E, "witness_of_another")]


def test_a_witness_that_is_damaged(patient: Patient) -> None:
    tell(patient).write_text('{"deployment": "cut sh')
    assert patient.ills("witness") == [(E, "witness_unreadable")]


def test_a_witness_that_cannot_be_reached(patient: Patient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    gone = patient.has(witness=str(tmp_path / "file" / "witness"))
    assert gone.ills("witness") == [(E, "witness_unreachable")]


def test_a_witness_that_is_no_place(patient: Patient) -> None:
    assert patient.has(witness="ftp://there/it").ills("witness") == [(E, "witness_unusable")]
    assert patient.has(witness="ftp://there/it").codes("witness-reach") == []


def test_a_witness_that_nobody_tells(patient: Patient) -> None:
    path = tell(patient)
    record = json.loads(path.read_text())
    record["at"] = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
    path.write_text(json.dumps(record) + "\n")
    assert patient.codes("witness") == []  # with nobody at work it is as old as the last work
    work(patient)
    assert patient.ills("witness") == [(W, "witness_stale")]
    assert patient.has(witness_step=600).codes("witness") == []


def test_a_file_that_several_machines_do_not_share(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work(patient, "one")
    assert patient.codes("witness-reach") == []
    work(patient, "two")
    (found,) = patient.found("witness-reach")
    assert (found.severity, found.code) == (W, "witness_not_shared")
    assert "one, two" in found.what
    on_disk = patient.has(witness=str(tmp_path / "witness"))
    assert on_disk.codes("witness-reach") == ["witness_not_shared"]
    assert patient.has(witness="s3://bucket/key").codes("witness-reach") == []
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 0:39 / / rw shared:1 - nfs4 server:/x rw\n")
    monkeypatch.setattr(spools, "_MOUNTS", mounts)
    assert on_disk.codes("witness-reach") == []
    patient.plant("UPDATE incarnations SET seen_at = now() - interval '1 hour' WHERE host = 'two'")
    assert patient.codes("witness-reach") == []


def test_posts_in_quarantine(patient: Patient) -> None:
    lane = patient.lane()
    jobs = [lane.add(), lane.add(), lane.add()]
    assert patient.codes("quarantine") == []
    patient.plant(
        "INSERT INTO quarantines (cause, strict, since, absent_after, who)"
        " VALUES ('restored', true, now() - interval '1 hour', now(), 'test')"
    )
    patient.plant(
        "INSERT INTO quarantined (job_id, quarantine_id, strict)"
        " SELECT j.id, q.id, true FROM jobs j, quarantines q"
    )
    patient.plant("UPDATE jobs SET hold_reason = 'quarantine'")
    assert patient.ills("quarantine") == [(N, "quarantine_waits")]
    soon = replace(patient, limits=Limits(overdue=0.0))
    assert soon.ills("quarantine") == [(W, "quarantine_unlooked")]
    patient.plant("UPDATE quarantined SET asked_at = now() WHERE job_id = %s", jobs[0])
    (asked, unlooked) = soon.found("quarantine")
    assert (asked.severity, asked.code, unlooked.code) == (
        W,
        "quarantine_asks",
        "quarantine_unlooked",
    )
    assert asked.what.startswith("1 post is")
    assert unlooked.what.startswith("2 posts are")
    # What is held is no backlog that a worker forgot.
    assert soon.codes("running") == ["no_worker"]
