"""Everything the migrations made, taken away or changed piece by piece."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from publisher.doctor import objects
from publisher.doctor.finding import Finding, Severity
from tests.doctor.patient import Patient
from tests.doctor.record import made

RECORDED = objects.recorded()
UNIQUE = sorted(
    name
    for name, definition in RECORDED.objects["indexes"].items()
    if definition.startswith("CREATE UNIQUE INDEX") and name != "attempts_promise"
)
DROP_PROMISE = "DROP INDEX attempts_promise;"


@pytest.mark.both_servers
def test_what_is_recorded_is_what_the_migrations_make(patient: Patient) -> None:
    """After a migration was added: ``python -m tests.doctor.record``, and read the difference."""
    assert made(patient.ground.server, patient.ground.name) == {
        "revision": RECORDED.revision,
        "objects": RECORDED.objects,
    }


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (DROP_PROMISE, "missing"),
        # A copy under the same name, on the same columns and rows, that lets two through.
        (
            (
                f"{DROP_PROMISE} CREATE INDEX attempts_promise ON attempts (job_id)"
                " WHERE proof IS NULL"
            ),
            "not unique",
        ),
        (
            (
                f"{DROP_PROMISE} CREATE UNIQUE INDEX attempts_promise ON attempts (job_id, number)"
                " WHERE proof IS NULL"
            ),
            "another one",
        ),
        (
            (
                f"{DROP_PROMISE} CREATE UNIQUE INDEX attempts_promise ON attempts (job_id)"
                " WHERE proof IS NULL AND settled_at IS NULL"
            ),
            "another one",
        ),
        (
            (
                f"{DROP_PROMISE} CREATE UNIQUE INDEX attempts_promise ON looks (job_id)"
                " WHERE ended_at IS NULL"
            ),
            "another one",
        ),
        (
            (
                "UPDATE pg_index SET indisvalid = false"
                " WHERE indexrelid = 'attempts_promise'::regclass"
            ),
            "not valid",
        ),
        (
            (
                "UPDATE pg_index SET indisready = false"
                " WHERE indexrelid = 'attempts_promise'::regclass"
            ),
            "not valid",
        ),
    ],
)
def test_the_promise_index_is_named_when_it_does_not_hold(
    patient: Patient, fault: str, said: str
) -> None:
    patient.plant(fault)
    (found,) = patient.found("promise", "unique-indexes", "other-indexes", "foreign")
    assert (found.severity, found.code) == (Severity.ERROR, "promise_broken")
    assert said in found.what
    assert "CREATE UNIQUE INDEX CONCURRENTLY attempts_promise" in found.remedy


def test_a_unique_index_that_could_not_be_built_is_named(patient: Patient) -> None:
    """As it is left behind by CREATE UNIQUE INDEX CONCURRENTLY over rows that are not unique."""
    lane = patient.lane()
    patient.plant("DROP INDEX posts_ref")
    patient.plant("INSERT INTO posts (ref, created_by) VALUES ('r', 'a'), ('r', 'b')")
    with pytest.raises(Exception, match="could not create unique index"):
        patient.plant(
            "CREATE UNIQUE INDEX CONCURRENTLY posts_ref ON posts (ref) WHERE ref IS NOT NULL"
        )
    assert patient.codes("unique-indexes") == ["index_invalid"]
    assert lane.ground is patient.ground


def named(found: list[Finding], code: str, names: Iterable[str]) -> set[str]:
    """Those of ``names`` that a finding with this code, and one alone, speaks of."""
    said = [one.what for one in found if one.code == code]
    return {name for name in names if sum(f" {name} " in one for one in said) == 1}


def set_flags(patient: Patient, flags: str) -> None:
    """Of every unique index but the promise's; nothing else than the catalogue is touched."""
    of = "indexrelid = ANY (%s::regclass[])"
    patient.plant(f"UPDATE pg_index SET {flags} WHERE {of}", UNIQUE)


@pytest.mark.both_servers
def test_every_other_unique_index_is_missed(patient: Patient) -> None:
    set_flags(patient, "indisunique = false")
    found = patient.found("unique-indexes")
    assert named(found, "index_not_unique", UNIQUE) == set(UNIQUE)
    set_flags(patient, "indisunique = true, indislive = false")
    found = patient.found("unique-indexes")
    assert named(found, "index_invalid", UNIQUE) == set(UNIQUE)
    set_flags(patient, "indislive = true")
    for name in UNIQUE:
        constraint = patient.ground.sql(
            "SELECT conrelid::regclass::text AS at FROM pg_constraint"
            " WHERE conindid = %s::regclass AND contype IN ('p', 'u')",
            name,
        )
        if constraint:
            patient.plant(f"ALTER TABLE {constraint[0]['at']} DROP CONSTRAINT {name} CASCADE")
        else:
            patient.plant(f"DROP INDEX {name}")
    found = patient.found("unique-indexes")
    assert named(found, "index_missing", UNIQUE) == set(UNIQUE)


def test_an_index_that_only_makes_it_quick_is_a_warning(patient: Patient) -> None:
    patient.plant("DROP INDEX jobs_due")
    assert patient.ills("other-indexes") == [(Severity.WARNING, "index_missing")]


def test_an_index_on_other_columns_is_another_one(patient: Patient) -> None:
    patient.plant("DROP INDEX jobs_one_open")
    patient.plant(
        "CREATE UNIQUE INDEX jobs_one_open ON jobs (post_id, channel_id, kind, id)"
        " WHERE post_id IS NOT NULL"
    )
    assert patient.codes("unique-indexes") == ["index_changed"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("ALTER TABLE attempts SET UNLOGGED", "table_changed"),
        ("DROP VIEW timeline", "table_missing"),
        ("CREATE TABLE kept () INHERITS (attempts)", "table_inherited"),
        ("ALTER TABLE jobs DISABLE ROW LEVEL SECURITY", "table_changed"),
        ("ALTER TABLE jobs ALTER COLUMN state DROP DEFAULT", "table_changed"),
        ("ALTER TABLE jobs ALTER COLUMN reason TYPE varchar(9)", "table_changed"),
        ("ALTER TABLE attempts DROP COLUMN proof_detail", "table_missing"),
    ],
)
def test_tables_and_columns(patient: Patient, fault: str, code: str) -> None:
    if "UNLOGGED" in fault:
        patient.plant("ALTER TABLE looks DROP CONSTRAINT looks_job_id_attempt_fkey")
    if "proof_detail" in fault or "reason" in fault:
        patient.plant("DROP VIEW timeline")
    patient.plant(fault)
    assert code in patient.codes("tables")


@pytest.mark.both_servers
def test_every_constraint_is_missed(patient: Patient) -> None:
    names = sorted(RECORDED.objects["constraints"])
    for name in names:
        table, _dot, constraint = name.partition(".")
        patient.plant(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{constraint}" CASCADE')
    found = patient.found("constraints")
    assert named(found, "constraint_missing", names) == set(names)


@pytest.mark.parametrize(
    "fault",
    [
        "ALTER TABLE attempts ADD CONSTRAINT attempts_check CHECK (true)",
        (
            "ALTER TABLE attempts ADD CONSTRAINT attempts_check"
            " CHECK (outcome <> 'published' OR remote_id IS NOT NULL) NOT VALID"
        ),
    ],
)
def test_a_constraint_that_holds_less_is_named(patient: Patient, fault: str) -> None:
    patient.plant(f"ALTER TABLE attempts DROP CONSTRAINT attempts_check; {fault}")
    assert patient.codes("constraints") == ["constraint_changed"]


@pytest.mark.parametrize(
    "fault",
    [
        "CREATE UNIQUE INDEX one_a_day ON jobs (channel_id, run_at)",
        "ALTER TABLE attempts ADD CONSTRAINT short CHECK (length(detail) < 9)",
    ],
)
def test_what_refuses_rows_and_is_none_of_ours_is_named(patient: Patient, fault: str) -> None:
    patient.plant(fault)
    assert patient.ills("foreign") == [(Severity.WARNING, "constraint_foreign")]
    patient.plant("CREATE INDEX of_a_report ON jobs (queue)")
    assert patient.codes("foreign") == ["constraint_foreign"]


@pytest.mark.both_servers
def test_every_trigger_is_missed_and_seen_switched_off(patient: Patient) -> None:
    names = sorted(RECORDED.objects["triggers"])
    places = [name.split(".") for name in names]
    for how in ("DISABLE", "ENABLE REPLICA"):
        for table, trigger in places:
            patient.plant(f"ALTER TABLE {table} {how} TRIGGER {trigger}")
        said = [one.what for one in patient.found("triggers") if one.code == "trigger_disabled"]
        assert len(said) == len(names)
        for table, trigger in places:
            assert f"A trigger of {table} is switched off: {trigger}." in said
    for table, trigger in places:
        patient.plant(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")
    assert patient.codes("triggers") == []
    for table, trigger in places:
        patient.plant(f"DROP TRIGGER {trigger} ON {table}")
    assert named(patient.found("triggers"), "trigger_missing", names) == set(names)


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        # Those that keep references, too.
        ("ALTER TABLE attempts DISABLE TRIGGER ALL", "trigger_disabled"),
        (
            (
                "DROP TRIGGER jobs_moved ON jobs; CREATE TRIGGER jobs_moved AFTER UPDATE ON jobs"
                " FOR EACH ROW WHEN (false) EXECUTE FUNCTION job_moved()"
            ),
            "trigger_changed",
        ),
        (
            (
                "CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$"
                " BEGIN RETURN NULL; END $$;"
                " CREATE TRIGGER later BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION later()"
            ),
            "trigger_foreign",
        ),
        ("CREATE RULE quiet AS ON UPDATE TO attempts DO INSTEAD NOTHING", "trigger_foreign"),
    ],
)
def test_triggers_and_rules(patient: Patient, fault: str, code: str) -> None:
    patient.plant(fault)
    assert set(patient.codes("triggers")) == {code}


@pytest.mark.both_servers
def test_every_function_is_compared(patient: Patient) -> None:
    names = sorted(RECORDED.objects["functions"])
    patient.plant(
        "UPDATE pg_proc SET prosrc = prosrc || ' ' WHERE oid = ANY (%s::regprocedure[])", names
    )
    found = patient.found("functions")
    assert named(found, "function_changed", names) == set(names)
    for name in names:
        patient.plant(f"DROP FUNCTION {name} CASCADE")
    found = patient.found("functions")
    assert named(found, "function_missing", names) == set(names)


def test_a_function_of_somebody_else_is_noted(patient: Patient) -> None:
    patient.plant("CREATE FUNCTION later() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    assert patient.ills("functions") == [(Severity.NOTE, "function_foreign")]


def test_a_definer_with_the_callers_search_path_is_named(patient: Patient) -> None:
    patient.plant("ALTER FUNCTION job_moved() RESET search_path")
    assert patient.codes("functions") == ["function_changed", "search_path_open"]


def test_a_trigger_that_lets_another_move_through_is_named(patient: Patient) -> None:
    """Replaced by one that knows one pair more, as an older or newer release's would."""
    patient.plant(
        "UPDATE pg_proc SET prosrc = replace(prosrc, '''failed>published''',"
        " '''failed>published'', ''published>scheduled''') WHERE proname = 'job_moved'"
    )
    found = patient.found("functions", "transitions")
    assert [one.code for one in found] == ["function_changed", "transitions_differ"]
    assert "published>scheduled" in found[1].what


def test_a_newer_postgresql_may_spell_it_otherwise(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that does not exist yet: only that definitions differ in words proves nothing."""
    monkeypatch.setattr(objects, "NEWEST_COMPARED", 1)
    patient.plant("DROP INDEX posts_ref; CREATE UNIQUE INDEX posts_ref ON posts (ref)")
    patient.plant("DROP INDEX channels_name")
    assert patient.ills("unique-indexes") == [
        (Severity.ERROR, "index_missing"),
        (Severity.NOTE, "index_changed"),
    ]
