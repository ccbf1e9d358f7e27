"""A past whose database defends itself no more: what its owner can do to it, and who notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Rollback

from publisher.engine.audit import CATALOGUE, Invariant, ask
from tests.engine.audit.history import Past
from tests.engine.ground import Driver, Ground

TABLES = (
    "jobs", "job_contents", "job_keys", "attempts", "remote_posts", "looks", "verdicts", "doubts",
    "job_events", "unique_locks", "gates", "incarnations", "orphans", "channels", "posts",
    "post_versions", "approvals", "post_channels", "quarantined", "pulse",
    "version_variants", "post_events", "post_targets",
)  # fmt: skip

_CONSTRAINTS = """
SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint
 WHERE connamespace = 'publisher'::regnamespace AND contype NOT IN ('n', 't') AND conrelid <> 0
 ORDER BY contype = 'p', contype = 'u'
"""
_UNIQUE = """
SELECT quote_ident(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indisunique AND c.relnamespace = 'publisher'::regnamespace
"""
_NOT_NULL = """
SELECT a.attrelid::regclass::text, quote_ident(a.attname), a.attidentity <> '' FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
 WHERE a.attnotnull AND a.attnum > 0 AND c.relkind = 'r'
   AND c.relnamespace = 'publisher'::regnamespace
"""


@dataclass
class Ruin:
    """``past`` without constraints, unique indexes and triggers; ``conn`` is its owner's."""

    past: Past
    conn: Driver

    @property
    def ground(self) -> Ground:
        return self.past.ground

    @classmethod
    def of(cls, past: Past) -> Ruin:
        root = past.ground.root
        for table, name in root.execute(_CONSTRAINTS).fetchall():
            root.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name} CASCADE")
        for (name,) in root.execute(_UNIQUE).fetchall():
            root.execute(f"DROP INDEX {name}")
        for table, column, is_identity in root.execute(_NOT_NULL).fetchall():
            if is_identity:
                root.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP IDENTITY")
            root.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
        for table in TABLES:
            root.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        return cls(past, root)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Take back whatever the block does."""
        with self.conn.transaction():
            yield
            raise Rollback

    def change(self, sql: str) -> int:
        """Run a statement of the owner's; how many rows it changed."""
        return self.conn.execute(sql.encode()).rowcount

    def broken(self, among: Iterable[Invariant] = CATALOGUE) -> Iterator[str]:
        """The ids of invariants that do not hold, as they are found."""
        for one in among:
            if ask(self.conn, one, None, alerted=True) is not None:
                yield one.id
