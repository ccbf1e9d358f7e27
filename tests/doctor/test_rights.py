"""Roles with more, or less, than they need. Roles belong to the whole server: all is undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from publisher.doctor.finding import Severity
from tests.doctor.patient import Patient

E, W = Severity.ERROR, Severity.WARNING


@contextmanager
def for_a_while(patient: Patient, fault: str, cure: str) -> Iterator[None]:
    patient.plant(fault)
    try:
        yield
    finally:
        patient.plant(cure)


@pytest.mark.both_servers
@pytest.mark.parametrize("role", ["publisher_engine", "publisher_app", "publisher_owner"])
@pytest.mark.parametrize("power", ["SUPERUSER", "BYPASSRLS", "CREATEROLE", "CREATEDB"])
def test_a_role_with_powers_is_named(patient: Patient, role: str, power: str) -> None:
    with for_a_while(patient, f"ALTER ROLE {role} {power}", f"ALTER ROLE {role} NO{power}"):
        (found,) = patient.found("roles")
    assert (found.severity, found.code) == (E, "role_powerful")
    assert f"ALTER ROLE {role} NO{power}" in found.remedy


@pytest.mark.both_servers
@pytest.mark.parametrize("more", ["publisher_owner", "pg_write_all_data"])
def test_a_role_that_may_act_as_another_is_named(patient: Patient, more: str) -> None:
    grant = f"GRANT {more} TO publisher_engine"
    with for_a_while(patient, grant, f"REVOKE {more} FROM publisher_engine"):
        assert patient.ills("roles") == [(E, "role_member")]
    with for_a_while(
        patient, "GRANT pg_monitor TO publisher_app", "REVOKE pg_monitor FROM publisher_app"
    ):
        assert patient.codes("roles") == []


def test_a_superuser_for_a_login_is_named(patient: Patient) -> None:
    url = patient.ground.server.url(patient.ground.name, "postgres")
    assert patient.settings.database_url is not None
    rooted = patient.has(database_url=type(patient.settings.database_url)(url))
    assert rooted.ills("roles") == [(W, "login_superuser")]


def test_what_belongs_to_somebody_else_is_named(patient: Patient) -> None:
    patient.plant("ALTER TABLE jobs OWNER TO publisher_engine")
    found = patient.found("owners")
    assert {one.code for one in found} == {"owner_other", "role_owns"}
    assert any("jobs belongs to publisher_engine" in one.what for one in found)


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("GRANT DELETE ON attempts TO publisher_engine", "grant_extra", "DELETE on attempts"),
        ("GRANT UPDATE ON attempts TO publisher_engine", "grant_extra", "UPDATE on attempts"),
        ("GRANT UPDATE (token) ON attempts TO publisher_app", "grant_extra", "attempts.token"),
        ("GRANT DELETE ON job_events TO publisher_app", "grant_extra", "DELETE on job_events"),
        ("GRANT TRUNCATE ON jobs TO publisher_engine", "grant_extra", "TRUNCATE on jobs"),
        ("GRANT INSERT ON verdicts TO PUBLIC", "grant_extra", "everybody may INSERT"),
        ("GRANT CREATE ON SCHEMA publisher TO publisher_app", "grant_extra", "CREATE"),
        ("GRANT EXECUTE ON FUNCTION job_moved() TO PUBLIC", "grant_extra", "job_moved()"),
        (
            "GRANT SELECT ON posts TO publisher_app WITH GRANT OPTION",
            "grant_extra",
            "with grant option",
        ),
        ("REVOKE INSERT ON attempts FROM publisher_engine", "grant_missing", "INSERT on attempts"),
        ("REVOKE SELECT ON posts FROM publisher_app", "grant_missing", "SELECT on posts"),
    ],
)
def test_grants_are_those_of_the_migrations(
    patient: Patient, fault: str, code: str, said: str
) -> None:
    patient.plant(fault)
    found = patient.found("grants")
    assert found
    assert all(one.severity is E for one in found)
    assert any(one.code == code and said in one.what for one in found)


def test_somebody_else_may_read_and_not_write(patient: Patient) -> None:
    patient.plant("CREATE ROLE doctors_reporter")
    try:
        patient.plant("GRANT SELECT ON ALL TABLES IN SCHEMA publisher TO doctors_reporter")
        assert patient.codes("others", "grants") == []
        patient.plant("GRANT UPDATE, DELETE ON jobs TO doctors_reporter")
        (found,) = patient.found("others")
        assert (found.severity, found.code) == (W, "grant_to_others")
        assert "doctors_reporter may DELETE, UPDATE on jobs" in found.what
    finally:
        patient.plant("DROP OWNED BY doctors_reporter; DROP ROLE doctors_reporter")
