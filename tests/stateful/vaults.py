"""Snapshots of a database's rows, put back under whoever is connected.

As ``pg_restore --clean`` in one transaction would: rows and sequences as they were, connections
left alone. Copies of whole databases would do the same twenty times slower, and hang everybody up.
"""

from __future__ import annotations

from typing import Final

from tests.engine.ground import Driver

EMPTY: Final = "vault_empty"
BACKUP: Final = "vault_backup"

_INSTALL: Final = """
CREATE TABLE clockwork.kept AS
SELECT c.relname::text AS name,
       (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND a.attgenerated = '') AS columns
  FROM pg_class c
 WHERE c.relnamespace = 'publisher'::regnamespace AND c.relkind = 'r'
   AND c.relname <> 'alembic_version';
CREATE TABLE clockwork.counted AS
SELECT c.relname::text AS name FROM pg_class c
 WHERE c.relnamespace = 'publisher'::regnamespace AND c.relkind = 'S';
CREATE TABLE clockwork.stood (vault text, name text, value bigint, called boolean);

CREATE FUNCTION clockwork.open_vault(vault text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t clockwork.kept;
BEGIN
    EXECUTE format('CREATE SCHEMA %I', vault);
    FOR t IN SELECT * FROM clockwork.kept LOOP
        EXECUTE format('CREATE TABLE %I.%I AS SELECT %s FROM publisher.%I WITH NO DATA',
                       vault, t.name, t.columns, t.name);
    END LOOP;
END $$;
CREATE FUNCTION clockwork.save(into_vault text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t clockwork.kept; s text;
BEGIN
    FOR t IN SELECT * FROM clockwork.kept LOOP
        EXECUTE format('DELETE FROM %I.%I', into_vault, t.name);
        EXECUTE format('INSERT INTO %I.%I SELECT %s FROM publisher.%I',
                       into_vault, t.name, t.columns, t.name);
    END LOOP;
    DELETE FROM clockwork.stood WHERE vault = into_vault;
    FOR s IN SELECT name FROM clockwork.counted LOOP
        EXECUTE format('INSERT INTO clockwork.stood SELECT %L, %L, last_value, is_called'
                       ' FROM publisher.%I', into_vault, s, s);
    END LOOP;
END $$;
CREATE FUNCTION clockwork.put_back(from_vault text) RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica SET lock_timeout = '10s' AS $$
DECLARE t clockwork.kept;
BEGIN
    FOR t IN SELECT * FROM clockwork.kept LOOP
        EXECUTE format('DELETE FROM publisher.%I', t.name);
        EXECUTE format('INSERT INTO publisher.%I (%s) OVERRIDING SYSTEM VALUE'
                       ' SELECT %s FROM %I.%I',
                       t.name, t.columns, t.columns, from_vault, t.name);
    END LOOP;
    PERFORM setval(format('publisher.%I', name), value, called)
       FROM clockwork.stood WHERE vault = from_vault;
END $$;
"""


class Vaults:
    """Takes snapshots and puts them back, with a superuser's connection."""

    def __init__(self, root: Driver) -> None:
        self._root = root
        self._resets = 0
        root.execute(_INSTALL.encode())
        for vault in (EMPTY, BACKUP):
            root.execute("SELECT clockwork.open_vault(%s)", [vault])

    def take(self, vault: str) -> None:
        """Keep how the database stands now, in place of what was kept there."""
        self._root.execute("SELECT clockwork.save(%s)", [vault])

    def put_back(self, vault: str) -> None:
        """Let it stand as it did then."""
        self._root.execute("SELECT clockwork.put_back(%s)", [vault])
        self._resets += 1
        if self._resets % 40 == 0:
            self._root.execute("VACUUM")
