"""One clock that goes only when a test says so: the database's, the machine's and Python's.

In the database a function of the same name stands before the server's own in every search path.
Each reading is a microsecond later than the one before, so that times tell what came first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from publisher.db.connect import Database
from publisher.engine.audit import run as audit
from tests.engine.ground import Driver, Ground

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
PATH = "clockwork, publisher, pg_catalog, pg_temp"
_BOOTED = 1_000.0

_INSTALL = """
CREATE SCHEMA clockwork;
CREATE SEQUENCE clockwork.ticks;
CREATE FUNCTION clockwork.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT timestamptz 'epoch' + nextval('clockwork.ticks') * interval '1 microsecond' $$;
CREATE FUNCTION clockwork.now() RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT timestamptz 'epoch' +
                 pg_sequence_last_value('clockwork.ticks'::regclass) * interval '1 microsecond'
       $$;
GRANT USAGE ON SCHEMA clockwork TO PUBLIC;
GRANT ALL ON SEQUENCE clockwork.ticks TO PUBLIC;
"""
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
 WHERE p.pronamespace = 'publisher'::regnamespace AND p.prosrc LIKE '%clock_timestamp%'
"""
_DEFAULTS = """
SELECT format('ALTER TABLE publisher.%I ALTER %I SET DEFAULT clockwork.clock_timestamp()',
              table_name, column_name)
  FROM information_schema.columns
 WHERE table_schema = 'publisher' AND column_default LIKE '%clock_timestamp()%'
"""


class Clock:
    """``ahead``: seconds that went by since the beginning."""

    def __init__(self, root: Driver) -> None:
        self._root = root
        self.ahead = 0.0

    @classmethod
    def install(cls, ground: Ground) -> Clock:
        """Put it into a migrated database."""
        root = ground.root
        root.execute(_INSTALL)
        for (function,) in root.execute(_FUNCTIONS).fetchall():
            root.execute(f"ALTER FUNCTION {function} SET search_path = {PATH}".encode())
        for (statement,) in root.execute(_DEFAULTS).fetchall():
            root.execute(statement)
        root.execute(f"SET search_path = {PATH}".encode())
        clock = cls(root)
        clock.begin()
        return clock

    def begin(self) -> None:
        """Go back to the beginning."""
        self.ahead = 0.0
        self._set(EPOCH)

    def pass_by(self, seconds: float) -> None:
        """Let so much time go by, everywhere at once."""
        self.ahead += seconds
        self._root.execute(
            "SELECT setval('clockwork.ticks', last_value + %s) FROM clockwork.ticks",
            [int(seconds * 1_000_000)],
        )

    def now(self) -> datetime:
        """What time it is; somewhat behind the database, whose every reading takes its own."""
        return EPOCH + timedelta(seconds=self.ahead)

    def after(self, seconds: float) -> datetime:
        """So long from now."""
        return self.now() + timedelta(seconds=seconds)

    def _set(self, at: datetime) -> None:
        ticks = int((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
        self._root.execute("SELECT setval('clockwork.ticks', %s)", [ticks])

    @contextmanager
    def kept_everywhere(self) -> Iterator[None]:
        """Let everything of this process go by it, and every connection of the product's."""
        clock = self
        gettime = time.clock_gettime
        connection = Database._connection

        def boottime(which: int) -> float:
            return _BOOTED + clock.ahead if which == time.CLOCK_BOOTTIME else gettime(which)

        def connect(self: Database, *arguments: Any, **named: Any) -> Driver:  # noqa: ANN401 - as the real one
            conn = connection(self, *arguments, **named)
            conn.execute(f"SET search_path = {PATH}".encode())
            return conn

        class Virtual(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # noqa: ANN401, ARG003 - as the real one
                return clock.now()

        settings = [
            f"SET LOCAL search_path = {PATH}" if "search_path" in one else one
            for one in audit._SETTINGS
        ]
        with (
            mock.patch.object(audit, "_SETTINGS", settings),
            mock.patch.object(time, "clock_gettime", boottime),
            mock.patch.object(Database, "_connection", connect),
            mock.patch("publisher.engine.spool.datetime", Virtual),
            mock.patch("publisher.engine.witness.datetime", Virtual),
            mock.patch("publisher.engine.worker.chores.datetime", Virtual),
        ):
            yield
