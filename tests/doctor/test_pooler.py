"""What stands between a worker and the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from publisher.doctor.finding import Severity
from tests.doctor.patient import Patient
from tests.pooler import OptionDroppingPooler
from tests.transaction_pooler import TransactionPooler

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "p"
    made.mkdir()
    return made


def behind(patient: Patient, folder: Path, **more: object) -> Patient:
    address = f"postgresql://publisher@/{patient.ground.name}?host={folder}&port=5432"
    return patient.has(database_url=SecretStr(address), **more)


@pytest.mark.both_servers
def test_a_pooler_that_lends_processes_to_transactions(patient: Patient, folder: Path) -> None:
    past = patient.settings.database_url
    with TransactionPooler(folder, patient.ground.server.host):
        assert behind(patient, folder).ills("pooler") == [
            (W, "direct_url_missing"),
            (E, "prepared_lost"),
        ]
        agreed = behind(patient, folder, direct_url=past, prepare="off")
        assert agreed.codes("pooler", "direct-url") == []
        with_direct = behind(patient, folder, direct_url=past)
        assert with_direct.codes("pooler", "direct-url") == ["prepared_lost"]


def test_a_pooler_that_lends_processes_to_sessions_is_none_to_us(
    patient: Patient, folder: Path
) -> None:
    with TransactionPooler(folder, patient.ground.server.host, whole_sessions=True):
        assert behind(patient, folder).codes("pooler") == []


def test_no_pooler_and_no_prepared_statements(patient: Patient) -> None:
    assert patient.codes("pooler") == []
    assert patient.has(prepare="off").ills("pooler") == [(N, "prepare_off")]


def test_a_pooler_that_drops_start_up_options(patient: Patient, folder: Path) -> None:
    for line in ("role = publisher_engine", "search_path = publisher"):
        patient.plant(f"ALTER ROLE publisher IN DATABASE {patient.ground.name} SET {line}")
    with OptionDroppingPooler(folder, patient.ground.server.host):
        found = behind(patient, folder).found("pooler")
    assert {(one.severity, one.code) for one in found} == {(W, "session_settings_lost")}
    assert any("enable_seqscan = on" in one.what for one in found)


def test_where_the_direct_address_leads(patient: Patient, folder: Path) -> None:
    pg = patient.ground.server
    same = patient.has(direct_url=patient.settings.database_url)
    assert same.codes("direct-url") == []
    nowhere = patient.has(direct_url=SecretStr("postgresql://publisher@127.0.0.1:1/none"))
    assert nowhere.ills("direct-url") == [(E, "direct_url_closed")]
    with pg.migrated_database() as other:
        patient.plant("UPDATE deployment SET id = gen_random_uuid()")
        elsewhere = patient.has(direct_url=SecretStr(pg.url(other)))
        assert elsewhere.ills("direct-url") == [(E, "direct_url_elsewhere")]
    with TransactionPooler(folder, pg.host):
        pooled = patient.has(direct_url=behind(patient, folder).settings.database_url)
        assert pooled.ills("direct-url") == [(W, "direct_url_pooled")]
