"""The whole of it: well at rest, each check by itself, with or without a database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from publisher import bootstrap
from publisher.config import Settings
from publisher.doctor import examination
from publisher.doctor.catalogue import CHECKS, FAILED, Check, Group, Needs
from publisher.doctor.finding import Finding, Severity, error
from publisher.doctor.ward import Ward
from tests.doctor.patient import Patient

HERE = Path(__file__)
GUIDE = HERE.parents[2] / "docs" / "doctor.md"
CODES = {code for check in CHECKS for code in check.codes}
MAY_BE_NOTED = {"no_worker", "alerts_unset", "no_checksums", "zones_age", "spool_in_memory"}


@pytest.mark.both_servers
def test_a_fresh_deployment_has_notes_at_most(patient: Patient) -> None:
    report = examination.examine(patient.settings)
    assert all(result.done for result in report.results)
    assert report.is_well, [*report.findings()]
    assert {one.code for one in report.findings()} <= MAY_BE_NOTED
    assert not patient.settings.key_file.exists()


def test_nothing_is_changed_by_looking(patient: Patient) -> None:
    lane = patient.lane()
    job = lane.add()
    before = patient.ground.everything(job), sorted(patient.settings.home.rglob("*"))
    examination.examine(patient.settings, ask_platforms=True)
    assert before == (patient.ground.everything(job), sorted(patient.settings.home.rglob("*")))


def test_without_a_database_the_machine_is_still_examined(patient: Patient) -> None:
    url = SecretStr("postgresql://someone:hunter2@127.0.0.1:1/none")
    (patient.settings.home / "spool").touch()  # no folder: that is found, too
    report = examination.examine(Settings(home=patient.settings.home, database_url=url))
    codes = [one.code for one in report.findings()]
    assert codes == [examination.UNREACHABLE, "spool_unusable"]
    assert "hunter2" not in str([*report.findings()])
    for result in report.results:
        assert result.done is (result.check.needs is Needs.NOTHING)


def test_an_embedded_server_that_cannot_start(tmp_path: Path) -> None:
    data = tmp_path / "home" / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    report = examination.examine(Settings(home=tmp_path / "home"))
    first = next(report.findings())
    assert first.code == examination.UNREACHABLE
    assert "PostgreSQL 9" in first.what
    assert report.results[0].done


def test_a_schema_of_another_release_is_not_picked_to_pieces(patient: Patient) -> None:
    patient.plant("UPDATE alembic_version SET version_num = 'from the future'")
    report = examination.examine(patient.settings)
    errors = [one.code for one in report.findings() if one.severity is Severity.ERROR]
    assert errors == ["schema_newer"]
    for result in report.results:
        assert result.done is (result.check.needs is not Needs.SCHEMA)


def test_a_check_that_breaks_is_a_finding_and_hides_no_other(patient: Patient) -> None:
    patient.plant("REVOKE SELECT ON gates FROM publisher_engine")
    found = examination.examine(patient.settings).findings()
    codes = [one.code for one in found if one.severity is not Severity.NOTE]
    assert FAILED in codes
    assert "grant_missing" in codes


def test_what_was_found_before_a_check_broke_is_kept(patient: Patient) -> None:
    def half(ward: Ward) -> Iterator[Finding]:
        yield error("first", "It is so.", "Change it.")
        message = "postgresql://someone:hunter2@there/db"
        raise ValueError(message)

    broken = Check("half", Group.MACHINE, Needs.NOTHING, half, ("first",))
    registry = bootstrap.describing_registry(patient.settings)
    ward = Ward(patient.settings, patient.settings.home, registry)
    (result,) = examination.run(ward, [broken])
    assert [one.code for one in result.findings] == ["first", FAILED]
    assert "hunter2" not in result.findings[1].what


def test_names_and_codes_are_words_and_questions_are_asked() -> None:
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
    for check in CHECKS:
        assert re.fullmatch(r"[a-z-]+", check.name)
        assert all(re.fullmatch(r"[a-z_]+", code) for code in check.codes)
        assert check.question.endswith(".")


def test_every_code_is_planted_in_some_test() -> None:
    written = "".join(path.read_text() for path in HERE.parent.glob("test_*.py"))
    # No such server, and no disk whose locks keep nobody out, is at hand.
    beyond_us = {"version_too_old", "spool_not_locking"}
    assert {code for code in CODES - beyond_us if f'"{code}"' not in written} == set()


def test_the_guide_tells_of_every_check_and_code_and_of_no_other() -> None:
    text = GUIDE.read_text()
    told = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))
    assert told == CODES | {FAILED, examination.UNREACHABLE}
    sections = re.findall(r"^### `([a-z-]+)`", text, re.MULTILINE)
    assert sections == [check.name for check in CHECKS]
    for check in CHECKS:
        section = text.partition(f"### `{check.name}`")[2].partition("\n### ")[0]
        assert {*re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)} >= set(check.codes)


def test_findings_are_sentences(patient: Patient) -> None:
    """With everything wrong that one statement can make so."""
    patient.plant(
        "DROP INDEX attempts_promise; DROP INDEX jobs_due; DROP TRIGGER jobs_moved ON jobs"
    )
    found = patient.found()
    assert len(found) > 3
    for one in found:
        assert one.what[-1] in ".:", one
        assert one.remedy
        assert "{" not in one.what
