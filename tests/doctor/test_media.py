"""Where media are kept: whether it can be written."""

from __future__ import annotations

from pathlib import Path

from publisher.doctor.finding import Severity
from tests.doctor.patient import Patient

E = Severity.ERROR


def test_the_database_is_asked_elsewhere(patient: Patient) -> None:
    assert patient.codes("media") == []


def test_a_folder(patient: Patient, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    ill = patient.has(media=str(volume))
    assert ill.ills("media") == [(E, "media_unreachable")]
    volume.mkdir()
    assert ill.codes("media") == []
    assert [*volume.iterdir()] == []


def test_a_setting_that_means_nothing(patient: Patient) -> None:
    assert patient.has(media="media").ills("media") == [(E, "media_unusable")]
