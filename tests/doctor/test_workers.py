"""Who works, who fell silent, what waits; who is told of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from publisher.doctor.finding import Severity
from publisher.doctor.ward import Limits
from publisher.engine import ledger
from publisher.engine.job import State
from tests.doctor.patient import Patient
from tests.engine.fallen import Fallen

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
CHECKS = ("running", "silent", "ended", "doubts", "orphans")
SEEN_LONG_AGO = "UPDATE incarnations SET seen_at = now() - interval '1 hour'"


def test_nobody_works_which_is_no_fault(patient: Patient) -> None:
    assert patient.ills(*CHECKS) == [(N, "no_worker")]


def test_somebody_works(patient: Patient) -> None:
    patient.ground.incarnation()
    assert patient.codes(*CHECKS) == []


def test_posts_that_are_long_due(patient: Patient) -> None:
    lane = patient.lane()
    job = lane.add()
    assert patient.codes("running") == ["no_worker"]
    patient.plant("UPDATE jobs SET run_at = now() - interval '1 hour' WHERE id = %s", job)
    (found,) = patient.found("running")
    assert (found.severity, found.code) == (W, "overdue")
    assert "publisher worker" in found.remedy
    patient.ground.incarnation()
    (found,) = patient.found("running")
    assert "PUBLISHER_QUEUES" in found.remedy
    # Somebody is busy with that channel: the rest waits its turn.
    held = lane.put(State.CLAIMED)
    assert patient.codes("running") == []
    patient.plant("UPDATE gates SET paused_at = now() WHERE channel_id = %s", lane.channel_id)
    assert patient.ground.state(held.id) is State.CLAIMED
    assert patient.codes("running") == []


def test_a_run_that_fell_silent(patient: Patient, tmp_path: Path) -> None:
    run = Fallen.start(patient.lane(), tmp_path)
    patient.plant(SEEN_LONG_AGO)
    (found,) = patient.found("silent")
    assert (found.severity, found.code) == (W, "worker_silent")
    assert f"declare-gone {run.number}" in found.remedy
    patient.plant("UPDATE incarnations SET declared_gone_at = now()")
    assert patient.codes("silent") == []
    patient.plant("UPDATE incarnations SET declared_gone_at = NULL")
    ledger.end(patient.ground.conn, run.number, "drained")
    assert patient.codes(*CHECKS) == ["no_worker"]


def test_a_run_that_ended_out_of_order(patient: Patient, tmp_path: Path) -> None:
    run = Fallen.start(patient.lane(), tmp_path)
    ledger.end(patient.ground.conn, run.number, "its file could be locked")
    assert patient.ills("ended") == [(N, "horizon_open")]
    patient.plant("UPDATE incarnations SET ended_at = now() - interval '1 hour'")
    assert patient.codes("ended") == []


def test_doubts_that_wait(patient: Patient) -> None:
    lane = patient.lane()
    lane.put(State.UNKNOWN)
    assert patient.codes("doubts") == []
    soon = replace(patient, limits=Limits(overdue=0.0))
    assert soon.ills("doubts") == [(W, "looks_overdue")]
    patient.plant("UPDATE doubts SET asked_at = now(), asked_reason = 'x', next_look_at = NULL")
    assert soon.ills("doubts") == [(N, "doubts_wait")]


def test_sends_that_belong_to_no_job(patient: Patient) -> None:
    patient.plant(
        "INSERT INTO orphans (incarnation, job_id, token, line)"
        " VALUES ('3', 9, gen_random_uuid(), '{}')"
    )
    assert patient.ills("orphans") == [(W, "orphans")]
    patient.plant("UPDATE orphans SET adopted = true")
    assert patient.codes("orphans") == []


def test_nobody_is_told(patient: Patient) -> None:
    assert patient.ills("alerts") == [(N, "alerts_unset")]


def test_those_who_are_to_be_told(patient: Patient) -> None:
    hook, mail, page = patient.lane("webhook"), patient.lane("mail"), patient.lane("telegram")
    told = patient.has(alert_channels=("PAGE 1", str(mail.channel_id)), alert_to=("a@b.example",))
    assert told.codes("alerts") == []
    assert told.has(alert_to=()).ills("alerts") == [(E, "alert_to_nobody")]
    assert told.has(queues=("publish", "mail")).ills("alerts") == [(W, "alert_queue_unserved")]
    assert told.has(alert_channels=("nowhere",)).ills("alerts") == [(E, "alert_channel_missing")]
    unfit = told.has(alert_channels=(str(page.channel_id),))
    assert unfit.ills("alerts") == [(E, "alert_channel_unfit")]
    patient.plant("UPDATE gates SET paused_at = now() WHERE channel_id = %s", hook.channel_id)
    assert told.ills("alerts") == [(E, "alert_channel_closed")]


@pytest.fixture
def port() -> Iterator[tuple[int, socket.socket]]:
    """A port that nobody listens on yet."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1], listener


def test_the_port_for_metrics(patient: Patient, port: tuple[int, socket.socket]) -> None:
    number, listener = port
    measured = patient.has(metrics_port=number)
    assert patient.codes("metrics") == []
    assert measured.codes("metrics") == []
    ledger.register(
        patient.ground.conn, host=socket.gethostname(), boot_id="b", pid=1, file="f.spool"
    )
    assert measured.ills("metrics") == [(W, "metrics_silent")]
    listener.listen()
    assert measured.codes("metrics") == []
    patient.plant(SEEN_LONG_AGO)
    assert measured.ills("metrics") == [(N, "metrics_port_taken")]
