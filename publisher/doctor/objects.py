"""What a schema is made of, in words that can be compared: by kind and name, how each is defined.

``recorded`` is what the migrations make, written down beside this module. A test makes it anew on
a migrated database; ``python -m tests.doctor.record`` writes it after a migration was added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text

from publisher.db.roles import SCHEMA

FILE: Final = Path(__file__).with_name("objects.json")
NEWEST_COMPARED: Final = 18
"""The newest PostgreSQL whose spelling of definitions is known to be the recorded one."""

Objects = Mapping[str, Mapping[str, str]]
"""By kind, then by name: the definition."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The objects that the migrations up to ``revision`` make."""

    revision: str
    objects: Objects


@cache
def recorded() -> Recorded:
    """Read the record."""
    given = json.loads(FILE.read_text(encoding="utf-8"))
    return Recorded(given["revision"], given["objects"])


def read(conn: Connection) -> dict[str, dict[str, str]]:
    """Read what the database has. Its search path is ours alone, so names come out short."""
    return {
        kind: {
            str(name): str(definition)
            for name, definition in conn.execute(text(question), {"schema": SCHEMA})
        }
        for kind, question in _QUESTIONS.items()
    }


_QUESTIONS: Final = {
    # A table that is not logged is empty after a crash.
    "tables": """
        SELECT c.relname,
               CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence'
                              ELSE c.relkind::text END
               || CASE c.relpersistence WHEN 'p' THEN '' ELSE ', not logged' END
               || CASE WHEN c.relrowsecurity THEN ', row security' ELSE '' END
          FROM pg_class c
         WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind NOT IN ('i', 'I', 't', 'c')
    """,
    "columns": """
        SELECT c.relname || '.' || a.attname,
               format_type(a.atttypid, a.atttypmod)
               || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
               || CASE WHEN l.collname = 'C' THEN ' collate C' ELSE '' END
               || CASE WHEN a.attidentity <> '' THEN ' identity' ELSE '' END
               || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
          FROM pg_attribute a
          JOIN pg_class c ON c.oid = a.attrelid
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
          LEFT JOIN pg_collation l ON l.oid = a.attcollation
         WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind IN ('r', 'p')
           AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "indexes": """
        SELECT c.relname, pg_get_indexdef(i.indexrelid)
          FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         WHERE c.relnamespace = to_regnamespace(:schema)
    """,
    "constraints": """
        SELECT r.conrelid::regclass || '.' || r.conname,
               pg_get_constraintdef(r.oid) || CASE WHEN r.convalidated THEN '' ELSE ' unchecked' END
          FROM pg_constraint r
         WHERE r.connamespace = to_regnamespace(:schema) AND r.conrelid <> 0
           AND r.contype IN ('c', 'f', 'p', 'u', 'x')
    """,
    "triggers": """
        SELECT t.tgrelid::regclass || '.' || t.tgname, pg_get_triggerdef(t.oid)
          FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
         WHERE c.relnamespace = to_regnamespace(:schema) AND NOT t.tgisinternal
    """,
    "rules": """
        SELECT r.ev_class::regclass || '.' || r.rulename,
               CASE WHEN c.relkind = 'v' THEN 'view' ELSE pg_get_ruledef(r.oid) END
          FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
         WHERE c.relnamespace = to_regnamespace(:schema)
    """,
    "functions": """
        SELECT p.oid::regprocedure::text,
               l.lanname || ' '
               || CASE WHEN p.prosecdef THEN 'definer' ELSE 'invoker' END
               || ' ' || p.provolatile::text
               || ' ' || coalesce(array_to_string(p.proconfig, ' '), '-')
               || ' ' || encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex')
          FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
         WHERE p.pronamespace = to_regnamespace(:schema)
    """,
    # What each of our roles, and everybody, may do; the owner may do all of it anyway.
    "grants": """
        WITH acl (name, kind, entries) AS (
            SELECT c.relname::text, c.relkind::text, c.relacl FROM pg_class c
             WHERE c.relnamespace = to_regnamespace(:schema)
            UNION ALL
            SELECT c.relname || '.' || a.attname, 'column', a.attacl
              FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
             WHERE c.relnamespace = to_regnamespace(:schema) AND a.attnum > 0
            UNION ALL
            SELECT p.oid::regprocedure::text, 'f',
                   coalesce(p.proacl, acldefault('f', p.proowner))
              FROM pg_proc p WHERE p.pronamespace = to_regnamespace(:schema)
            UNION ALL
            SELECT 'schema ' || nspname, 'n', nspacl FROM pg_namespace WHERE nspname = :schema)
        SELECT acl.name || ' to ' || coalesce(r.rolname, 'everybody'),
               string_agg(e.privilege_type || CASE WHEN e.is_grantable THEN ' with grant option'
                                                   ELSE '' END, ', ' ORDER BY e.privilege_type)
          FROM acl CROSS JOIN LATERAL aclexplode(acl.entries) AS e
          LEFT JOIN pg_roles r ON r.oid = e.grantee
         WHERE e.grantee = 0 OR r.rolname IN ('publisher_engine', 'publisher_app')
         GROUP BY acl.name, r.rolname
    """,
}
