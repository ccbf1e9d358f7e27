"""Whether everything that the migrations made is still there, unchanged and at work.

The promise stands on one index, and the journal on triggers and constraints. Each can be dropped,
switched off or put back slightly different by somebody who meant well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from sqlalchemy import Connection, text

from publisher.db.roles import SCHEMA
from publisher.doctor import objects
from publisher.doctor.finding import Finding, Severity, error, note, warning
from publisher.doctor.ward import Ward
from publisher.engine.transitions import trigger_pairs
from publisher.words import _

PROMISE: Final = "attempts_promise"
_UNIQUE: Final = re.compile(r"^CREATE UNIQUE INDEX ")


class Comparison:
    """The database's objects beside the recorded ones."""

    def __init__(self, conn: Connection) -> None:
        self.there = objects.read(conn)
        self.wanted = objects.recorded().objects
        major = int(conn.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
        self._spelled_otherwise = major > objects.NEWEST_COMPARED

    def missing(self, kind: str) -> Iterator[str]:
        """Names of what is not there."""
        yield from sorted(self.wanted[kind].keys() - self.there[kind].keys())

    def changed(self, kind: str) -> Iterator[str]:
        """Names of what is there with another definition."""
        for name, definition in sorted(self.wanted[kind].items()):
            if name in self.there[kind] and self.there[kind][name] != definition:
                yield name

    def foreign(self, kind: str) -> Iterator[str]:
        """Names of what no migration made."""
        yield from sorted(self.there[kind].keys() - self.wanted[kind].keys())

    @property
    def severity(self) -> Severity:
        """A release of PostgreSQL that is newer than this one may only spell it otherwise."""
        return Severity.NOTE if self._spelled_otherwise else Severity.ERROR


_CHILDREN = text("""
SELECT i.inhrelid::regclass::text, i.inhparent::regclass::text
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
 WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind = 'r' ORDER BY 1
""")


def tables(ward: Ward) -> Iterator[Finding]:
    """Tables and columns: there, kept through a crash, of their type, and without offspring."""
    with ward.reading() as conn:
        found = Comparison(conn)
        children = conn.execute(_CHILDREN, {"schema": SCHEMA}).all()
    for child, parent in children:
        what = _("{child} inherits from {parent}: no unique index of ours holds for its rows.")
        remedy = _("Run: ALTER TABLE {child} NO INHERIT {parent}")
        words = {"child": child, "parent": parent}
        yield error("table_inherited", what.format(**words), remedy.format(**words))
    for kind in ("tables", "columns"):
        for name in found.missing(kind):
            yield error("table_missing", _("{name} is missing.").format(name=name), _restore())
        for name in found.changed(kind):
            yield Finding(
                found.severity,
                "table_changed",
                _("{name} is “{there}” instead of “{wanted}”.").format(
                    name=name, there=found.there[kind][name], wanted=found.wanted[kind][name]
                ),
                _restore(),
            )


_INDEX_FLAGS = text("""
SELECT c.relname, i.indisunique, i.indisvalid AND i.indisready AND i.indislive AS works
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE c.relnamespace = to_regnamespace(:schema)
""")


def promise_index(ward: Ward) -> Iterator[Finding]:
    """The one index that forbids a second send while an earlier one may be live."""
    for fault in _index_faults(ward, lambda name: name == PROMISE):
        yield error(
            "promise_broken",
            _("The promise is not kept: {fault}").format(fault=fault.what),
            _("Stop every worker, run publisher audit, then: {definition}").format(
                definition=_safely(objects.recorded().objects["indexes"][PROMISE])
            ),
        )


def unique_indexes(ward: Ward) -> Iterator[Finding]:
    """Every other unique index."""
    wanted = objects.recorded().objects["indexes"]
    yield from _index_faults(
        ward, lambda name: name != PROMISE and _UNIQUE.match(wanted[name]) is not None
    )


def other_indexes(ward: Ward) -> Iterator[Finding]:
    """Indexes without which claims and lists are slow."""
    wanted = objects.recorded().objects["indexes"]
    for fault in _index_faults(ward, lambda name: _UNIQUE.match(wanted[name]) is None):
        yield warning(fault.code, fault.what, fault.remedy)


def _index_faults(ward: Ward, concerns: Callable[[str], bool]) -> Iterator[Finding]:
    with ward.reading() as conn:
        found = Comparison(conn)
        rows = conn.execute(_INDEX_FLAGS, {"schema": SCHEMA}).all()
    flags = {row.relname: row for row in rows}
    for name, definition in sorted(found.wanted["indexes"].items()):
        if not concerns(name):
            continue
        remedy = _("Drop it where it is there, then run as publisher_owner: {definition}").format(
            definition=_safely(definition)
        )
        if name not in flags:
            what = _("index {name} is missing.")
            yield error("index_missing", what.format(name=name), remedy)
        elif _UNIQUE.match(definition) and not flags[name].indisunique:
            what = _("index {name} is there and is not unique.")
            yield error("index_not_unique", what.format(name=name), remedy)
        elif not flags[name].works:
            what = _("index {name} is not valid: the server does not keep to it.")
            yield error("index_invalid", what.format(name=name), remedy)
        elif found.there["indexes"][name] != definition:
            what = _("index {name} is another one: {there}.")
            there = found.there["indexes"][name]
            yield Finding(
                found.severity, "index_changed", what.format(name=name, there=there), remedy
            )


def foreign_unique(ward: Ward) -> Iterator[Finding]:
    """Constraints and unique indexes that no migration made: they refuse what we must record."""
    with ward.reading() as conn:
        found = Comparison(conn)
    strange = list(found.foreign("constraints"))
    strange += [
        name for name in found.foreign("indexes") if _UNIQUE.match(found.there["indexes"][name])
    ]
    for name in strange:
        yield warning(
            "constraint_foreign",
            _("{name} is none of ours and may refuse what has to be recorded.").format(name=name),
            _("Drop it, unless you know that it never refuses a row."),
        )


def constraints(ward: Ward) -> Iterator[Finding]:
    """Every CHECK, key and reference."""
    with ward.reading() as conn:
        found = Comparison(conn)
    for name in found.missing("constraints"):
        what = _("constraint {name} is missing.").format(name=name)
        yield error("constraint_missing", what, _restore())
    for name in found.changed("constraints"):
        what = _("constraint {name} is another one: {there}.").format(
            name=name, there=found.there["constraints"][name]
        )
        yield Finding(found.severity, "constraint_changed", what, _restore())


_DISABLED = text("""
SELECT t.tgrelid::regclass::text AS on_table, t.tgname AS name, t.tgisinternal AS internal
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = to_regnamespace(:schema) AND t.tgenabled NOT IN ('O', 'A')
 ORDER BY 1, 2
""")


def triggers(ward: Ward) -> Iterator[Finding]:
    """Every trigger: there, as it was made, switched on."""
    with ward.reading() as conn:
        found = Comparison(conn)
        disabled = conn.execute(_DISABLED, {"schema": SCHEMA}).all()
    for name in found.missing("triggers"):
        what = _("trigger {name} is missing.").format(name=name)
        yield error("trigger_missing", what, _restore())
    for name in found.changed("triggers"):
        what = _("trigger {name} is another one.").format(name=name)
        yield Finding(found.severity, "trigger_changed", what, _restore())
    for table, name, internal in disabled:
        which = "ALL" if internal else name
        what = _("A trigger of {table} is switched off: {name}.").format(table=table, name=name)
        remedy = _("Run: ALTER TABLE {table} ENABLE TRIGGER {which}").format(
            table=f"{SCHEMA}.{table}", which=which
        )
        yield error("trigger_disabled", what, remedy)
    for kind in ("triggers", "rules"):
        for name in found.foreign(kind):
            what = _("{name} is a trigger or rule that no migration made.").format(name=name)
            remedy = _("Drop it, unless you know that it changes no row of ours.")
            yield warning("trigger_foreign", what, remedy)


_DEFINERS = text("""
SELECT p.oid::regprocedure::text AS name, p.prosrc AS body,
       coalesce(p.proconfig, '{}') @> ARRAY['search_path=' || :schema || ', pg_temp'] AS is_fixed,
       p.prosecdef AS definer
  FROM pg_proc p WHERE p.pronamespace = to_regnamespace(:schema) ORDER BY 1
""")


def functions(ward: Ward) -> Iterator[Finding]:
    """Every function: there, with the body that its migration gave it."""
    with ward.reading() as conn:
        found = Comparison(conn)
        rows = conn.execute(_DEFINERS, {"schema": SCHEMA}).all()
    for name in found.missing("functions"):
        what = _("function {name} is missing.").format(name=name)
        yield error("function_missing", what, _restore())
    for name in found.changed("functions"):
        what = _("function {name} is not the one that its migration made.").format(name=name)
        yield error("function_changed", what, _restore())
    for name in found.foreign("functions"):
        what = _("function {name} is none of ours.").format(name=name)
        yield note("function_foreign", what, _("Move it to a schema of its own."))
    for row in rows:
        if row.definer and not row.is_fixed:
            what = _("function {name} acts as its owner with a search path of the caller's.")
            remedy = _("Run: ALTER FUNCTION {name} SET search_path = {schema}, pg_temp")
            yield error(
                "search_path_open",
                what.format(name=row.name),
                remedy.format(name=f"{SCHEMA}.{row.name}", schema=SCHEMA),
            )


_PAIR: Final = re.compile(r"'([a-z]+)>([a-z]+)'")


def transitions(ward: Ward) -> Iterator[Finding]:
    """Whether the trigger lets through exactly the moves that this release's table has."""
    with ward.reading() as conn:
        rows = conn.execute(_DEFINERS, {"schema": SCHEMA}).all()
    body = next((row.body for row in rows if row.name == "job_moved()"), "")
    there = set(_PAIR.findall(body))
    wanted = {(str(state), str(to)) for state, to in trigger_pairs()}
    if there != wanted:
        apart = ", ".join(sorted(f"{state}>{to}" for state, to in there ^ wanted))
        yield error(
            "transitions_differ",
            _("The database and this release differ about allowed moves: {moves}.").format(
                moves=apart
            ),
            _restore(),
        )


def _restore() -> str:
    return _("Put it back as the migrations have it, or restore a sound database.")


def _safely(definition: str) -> str:
    """The statement that makes an index while others work."""
    return definition.replace(" INDEX ", " INDEX CONCURRENTLY ", 1)
