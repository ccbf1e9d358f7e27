"""The engine's picture of its tables against a migrated database."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from publisher.engine import schema
from tests.engine.ground import Ground


@pytest.fixture(scope="module")
def in_database(ground: Ground) -> dict[str, dict[str, dict[str, Any]]]:
    found = inspect(ground.engine.engine)
    return {
        name: {str(column["name"]): dict(column) for column in found.get_columns(name, "publisher")}
        for name in found.get_table_names("publisher")
    }


def kind(column_type: TypeEngine[object]) -> str:
    """Its name in SQL; how text is collated stands in the migration alone."""
    compiled = column_type.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
    return compiled.partition(" COLLATE")[0]


@pytest.mark.both_servers
@pytest.mark.parametrize("name", [table.name for table in schema.metadata.sorted_tables])
def test_columns_are_those_of_the_migrated_database(
    in_database: dict[str, dict[str, dict[str, Any]]], name: str
) -> None:
    table = schema.metadata.tables[f"publisher.{name}"]
    columns = in_database[name]
    assert set(table.columns.keys()) == set(columns)
    for column in table.columns:
        there = columns[column.name]
        assert kind(column.type) == kind(there["type"]), column.name
        assert column.nullable is there["nullable"], column.name


def test_every_table_of_the_engine_is_here(ground: Ground) -> None:
    """What the engine's role may write to, it knows."""
    written = ground.sql(
        "SELECT DISTINCT table_name FROM information_schema.column_privileges"
        " WHERE grantee = 'publisher_engine' AND table_schema = 'publisher'"
        " AND privilege_type IN ('INSERT', 'UPDATE')"
    )
    assert {row["table_name"] for row in written} <= {
        table.name for table in schema.metadata.sorted_tables
    }


def test_what_the_promise_stands_on_is_there_unique_and_valid(ground: Ground) -> None:
    indexes = ground.sql(
        "SELECT c.relname AS name, i.indisunique AND i.indisvalid AND i.indisready AS holds,"
        " pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE c.relname IN ('attempts_promise', 'jobs_one_open', 'job_keys_pkey',"
        " 'remote_posts_pkey', 'unique_locks_pkey')"
    )
    assert len(indexes) == 5
    assert all(row["holds"] for row in indexes)
    promise = next(row for row in indexes if row["name"] == "attempts_promise")
    assert promise["definition"].endswith("(job_id) WHERE (proof IS NULL)")
