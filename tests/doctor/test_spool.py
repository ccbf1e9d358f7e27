"""Workers' files against the database, and the workers that hold them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from publisher.doctor.finding import Severity
from publisher.doctor.ward import Limits
from publisher.engine import ledger
from publisher.engine.spool import Spool, boot_id
from tests.doctor.patient import Patient
from tests.engine.fallen import Fallen

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
CHECKS = ("spool", "spool-damaged", "spool-database", "spool-waiting", "frozen")

HOLDER = """
import sys
from pathlib import Path
from publisher.engine.spool import Spool
spool = Spool.create(Path(sys.argv[1]))
print(spool.path.name, flush=True)
spool.head(deployment=sys.argv[2], incarnation=int(sys.stdin.readline()))
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(patient: Patient) -> Path:
    return patient.settings.home / "spool"


def test_a_run_that_works_leaves_nothing_to_say(patient: Patient, folder: Path) -> None:
    run = Fallen.start(patient.lane(), folder)
    run.sends()
    assert patient.codes(*CHECKS) == []
    run.spool.close(remove=True)
    assert patient.codes(*CHECKS) == []


def test_a_dead_runs_file_waits_and_is_then_late(patient: Patient, folder: Path) -> None:
    run = Fallen.start(patient.lane(), folder)
    run.sends()
    run.dies()
    patient.plant("UPDATE incarnations SET seen_at = now() - interval '1 day'")
    assert patient.ills(*CHECKS) == [(N, "spool_waits")]
    # Another run works on this machine and should have read it.
    other = Fallen.start(patient.lane(), folder)
    late = replace(patient, limits=Limits(spool_waits=-1.0))
    assert late.ills(*CHECKS) == [(W, "spool_unread")]
    assert patient.ills(*CHECKS) == [(N, "spool_waits")]
    other.spool.close(remove=True)
    assert (folder / run.spool.path.name).exists()  # nothing was taken or changed


def test_sends_that_the_database_has_lost(patient: Patient, folder: Path) -> None:
    """As after a restore: the file of a run, alive or dead, names what is not there."""
    run = Fallen.start(patient.lane(), folder)
    kept, lost = run.sends(), run.sends()
    assert patient.codes("spool-database") == []
    patient.plant("SET session_replication_role = replica")
    patient.plant("DELETE FROM attempts WHERE job_id = %s", lost.id)
    patient.plant("SET session_replication_role = origin")
    (found,) = patient.found("spool-database")
    assert (found.severity, found.code) == (E, "begin_lost")
    assert "lacks 1 send" in found.what
    # Under the same job and number, but not the same send.
    patient.plant("SET session_replication_role = replica")
    patient.plant("UPDATE attempts SET token = %s WHERE job_id = %s", uuid4(), kept.id)
    patient.plant("SET session_replication_role = origin")
    run.dies()
    (found,) = patient.found("spool-database")
    assert "lacks 2 sends" in found.what


def test_a_file_of_another_deployment(patient: Patient, folder: Path) -> None:
    Fallen.start(patient.lane(), folder).dies()
    assert patient.codes("spool-database") == []
    patient.plant("UPDATE deployment SET id = gen_random_uuid()")
    assert patient.ills(*CHECKS) == [(W, "spool_of_another")]


def test_a_file_of_another_machine(
    patient: Patient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Fallen.start(patient.lane(), folder, boot=str(uuid4()))
    run.dies()
    assert patient.codes("spool-waiting") == ["spool_waits"]  # this machine, before its restart
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert patient.ills("spool-waiting") == [(W, "spool_of_another_machine")]


def test_a_file_that_was_set_aside(patient: Patient, folder: Path) -> None:
    run = Fallen.start(patient.lane(), folder)
    run.dies()
    run.spool.path.rename(run.spool.path.with_suffix(".damaged"))
    assert patient.ills(*CHECKS) == [(W, "spool_damaged")]


def test_a_file_without_a_first_line_waits(patient: Patient, folder: Path) -> None:
    Spool.create(folder).close(remove=False)
    assert patient.ills(*CHECKS) == [(N, "spool_waits")]


@contextmanager
def holder(patient: Patient, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds a file as a worker does, and is in the database."""
    deployment = patient.ground.one("SELECT id::text FROM deployment")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), deployment],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        name = process.stdout.readline().strip()
        number, _ = ledger.register(
            patient.ground.conn,
            host=socket.gethostname(),
            boot_id=boot_id(),
            pid=process.pid,
            file=name,
        )
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate("\n", timeout=30)


def test_a_worker_that_was_frozen(patient: Patient, folder: Path) -> None:
    with holder(patient, folder) as process:
        process.send_signal(signal.SIGSTOP)
        assert patient.codes(*CHECKS) == []  # it was seen a moment ago
        patient.plant("UPDATE incarnations SET seen_at = now() - interval '100 seconds'")
        (found,) = patient.found(*CHECKS)
        assert (found.severity, found.code) == (W, "worker_frozen")
        assert f"process {process.pid}" in found.what
