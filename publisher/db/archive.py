"""A dump of the schema in one file: written whole or not at all, put back in one transaction.

The file is pg_dump's custom format, so that pg_restore alone can put it back, too. Nothing of it
passes through memory: the programs write to and read from files and one pipe.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Final, Self

from publisher.db.connect import Database
from publisher.db.errors import BackupError, RestoreUnclearError
from publisher.db.programs import Programs, installed
from publisher.db.roles import SCHEMA

_ENTRY: Final = re.compile(rf"\d+; \d+ \d+ [A-Z][A-Z ]* {SCHEMA} ")
_MADE: Final = re.compile(r"^;\s+Dumped (from database|by pg_dump) version: (\d+)", re.MULTILINE)
_COPY: Final = re.compile(rf"COPY {SCHEMA}\.(\w+) \(([^)]*)\) FROM stdin;")
_KNOWN_SINCE_17: Final = b"SET transaction_timeout = 0;\n"
_HEAD_LINES: Final = 40
_SAID_LINES: Final = 4
_ROLLED_BACK: Final = (1, 3)
"""Exit codes of psql that are its own trouble or the script's, not the connection's."""
# As the owner of it all. CASCADE reaches what else was made in there by hand.
_EMPTY: Final = f"""
BEGIN;
SET LOCAL lock_timeout = '10s';
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT c.oid AS id, c.oid::regclass AS name, CASE c.relkind WHEN 'v' THEN 'VIEW'
                      WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                      ELSE 'TABLE' END AS kind
                 FROM pg_class c WHERE c.relnamespace = '{SCHEMA}'::regnamespace
                  AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') ORDER BY c.relkind = 'S' LOOP
        IF EXISTS (SELECT FROM pg_class c WHERE c.oid = one.id) THEN
            EXECUTE format('DROP %s %s CASCADE', one.kind, one.name);
        END IF;
    END LOOP;
    FOR one IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                WHERE p.pronamespace = '{SCHEMA}'::regnamespace LOOP
        EXECUTE format('DROP ROUTINE IF EXISTS %s CASCADE', one.name);
    END LOOP;
    FOR one IN SELECT t.oid::regtype AS name FROM pg_type t
                WHERE t.typnamespace = '{SCHEMA}'::regnamespace AND t.typtype IN ('e', 'd', 'r')
                LOOP
        EXECUTE format('DROP TYPE IF EXISTS %s CASCADE', one.name);
    END LOOP;
END $$;
"""  # noqa: S608 - the schema's name is ours


def write(database: Database, file: Path, *, before_it_is_there: Callable[[], None]) -> int:
    """Dump the schema into ``file``, mode 0600; returns its size in bytes.

    ``before_it_is_there`` runs once the dump is whole and on disk, and before it has its name:
    when it raises, there is no file. Raises ``BackupError``, which changes nothing.
    """
    if file.exists() or file.is_symlink():
        message = f"{file} exists. Nothing was written; give another name."
        raise BackupError(message)
    programs = Programs.for_server(_server_major(database))
    words = ("--format=custom", f"--schema={SCHEMA}", "--lock-wait-timeout=10s", "--no-password")
    with _explained(file), _draft_of(file) as draft:
        # By its name: into a pipe or a standard output its table of contents is written twice.
        _run(programs.argv("pg_dump", *words, f"--file={draft.name}"), database)
        os.fsync(draft.fileno())
        size = os.fstat(draft.fileno()).st_size
        before_it_is_there()
        _give_name(Path(draft.name), file)
    return size


@contextmanager
def _draft_of(file: Path) -> Iterator[IO[bytes]]:
    """A private file beside ``file``, gone again at the end."""
    path = file.with_name(f".{file.name}.{secrets.token_hex(6)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(path, "w+b", opener=lambda name, _flags: os.open(name, flags, 0o600)) as draft:
        try:
            yield draft
        finally:
            path.unlink(missing_ok=True)


def _give_name(draft: Path, file: Path) -> None:
    """Link, for a rename would write over a file that somebody made meanwhile."""
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        message = f"{file} exists. Nothing was written over; give another name."
        raise BackupError(message) from None
    except OSError:  # a file system without links
        draft.rename(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class Archive:
    """A dump of ours, as its own table of contents and a few rows have it.

    ``server``: major version of the server it was made from. ``beat_at``: when a worker had last
    been heard of then.
    """

    file: Path
    size: int
    server: int
    programs: Programs
    entries: tuple[str, ...]
    deployment: str
    generation: int
    revision: str
    beat_at: datetime

    @classmethod
    def read(cls, file: Path) -> Self:
        """Look into ``file``. Raises ``BackupError`` for one that is no dump of ours."""
        newest = Programs.for_server(0) if not installed() else installed()[-1]
        with _explained(file):
            size = file.stat().st_size
        listed = _said(newest, "--list", str(file))
        made = {of: int(major) for of, major in _MADE.findall(listed)}
        entries = tuple(line for line in listed.splitlines() if _ENTRY.match(line))
        rows = _rows(newest, file) if entries else {}
        try:
            deployment, pulse = rows["deployment"], rows["pulse"]
            return cls(
                file=file,
                size=size,
                server=made["from database"],
                programs=Programs.for_server(made["by pg_dump"]),
                entries=entries,
                deployment=deployment["id"],
                generation=int(deployment["generation"]),
                revision=rows["alembic_version"]["version_num"],
                beat_at=datetime.fromisoformat(pulse["beat_at"]),
            )
        except (KeyError, ValueError):
            message = f"{file} is a dump, and holds no Publisher database. Name another file."
            raise BackupError(message) from None

    def require_fit(self, database: Database) -> int:
        """The server's major version. Raises ``BackupError`` where it is too old for the dump."""
        major = _server_major(database)
        if major < self.server:
            message = (
                f"The dump is of PostgreSQL {self.server}, and this server is PostgreSQL {major}."
                " Nothing was changed. Restore into one that is not older."
            )
            raise BackupError(message)
        Programs.for_server(max(major, self.programs.major))
        return major

    def put_into(self, database: Database) -> None:
        """Put the schema in the place of what ``database`` holds, in one transaction.

        ``database`` is opened as owner, which made roles and schema. Raises ``BackupError``; then
        everything is as it was, except where it is a ``RestoreUnclearError``.
        """
        major = self.require_fit(database)
        programs = Programs.for_server(max(major, self.programs.major))
        with tempfile.TemporaryDirectory(prefix="publisher-restore-") as folder:
            entries, before = Path(folder) / "entries", Path(folder) / "before.sql"
            entries.write_text("\n".join(self.entries) + "\n")
            before.write_text(_EMPTY)
            self._stream(programs, database, entries, before, knows_timeout=major >= 17)  # noqa: PLR2004

    def _stream(
        self,
        programs: Programs,
        database: Database,
        entries: Path,
        before: Path,
        *,
        knows_timeout: bool,
    ) -> None:
        source = programs.argv(
            "pg_restore", "--no-owner", f"--use-list={entries}", "--file=-", str(self.file)
        )
        target = programs.argv(
            *("psql", "--no-psqlrc", "--quiet", "--no-password"),
            *("--set=ON_ERROR_STOP=1", "--output=/dev/null", f"--file={before}", "--file=-"),
        )
        pipe, environment = subprocess.PIPE, database.environment()
        with (
            tempfile.TemporaryFile() as said_there,
            tempfile.TemporaryFile() as said_here,
            subprocess.Popen(source, stdout=pipe, stderr=said_there) as reading,  # noqa: S603 - ours
            subprocess.Popen(target, stdin=pipe, stderr=said_here, env=environment) as writing,  # noqa: S603
        ):
            assert reading.stdout is not None  # noqa: S101 - a pipe, as asked
            assert writing.stdin is not None  # noqa: S101
            ends = False
            try:
                _pump(reading.stdout, writing.stdin, knows_timeout=knows_timeout)
                is_whole = reading.wait() == 0
                if is_whole:
                    # Said here and nowhere else: a script that ends early, because one of us was
                    # killed, commits nothing.
                    ends = True
                    writing.stdin.write(b"\nCOMMIT;\n")
                    writing.stdin.flush()
            except BrokenPipeError:
                is_whole = True  # psql has ended, and says why
            except BaseException:
                writing.kill()
                reading.kill()
                raise
            if not is_whole:
                writing.kill()
            reading.stdout.close()
            with suppress(BrokenPipeError):
                writing.stdin.close()
            code = writing.wait()
            if ends and code not in (0, *_ROLLED_BACK):
                raise RestoreUnclearError
            if code != 0:
                said = said_here if is_whole else said_there
                said.seek(0)
                message = f"The dump cannot be put back; nothing was changed. {_last(said.read())}"
                raise BackupError(message)


def _pump(source: IO[bytes], target: IO[bytes], *, knows_timeout: bool) -> None:
    """Copy the script; a server that lacks a setting of newer ones is not told of it."""
    for _ in range(_HEAD_LINES):
        line = source.readline()
        if knows_timeout or line != _KNOWN_SINCE_17:
            target.write(line)
    copyfileobj(source, target, 1 << 20)
    target.flush()


def _rows(programs: Programs, file: Path) -> dict[str, dict[str, str]]:
    """The one row of each table that tells what a dump is of, by the names of its columns."""
    tables = ("deployment", "pulse", "alembic_version")
    words = [f"--table={name}" for name in tables]
    script = _said(
        programs, "--data-only", f"--schema={SCHEMA}", *words, "--file=-", str(file)
    ).splitlines()
    found = {}
    for number, line in enumerate(script[:-1]):
        copied = _COPY.match(line)
        if copied is not None:
            names = [name.strip() for name in copied[2].split(",")]
            found[copied[1]] = dict(zip(names, script[number + 1].split("\t"), strict=False))
    return found


def _said(programs: Programs, *words: str) -> str:
    """What pg_restore says of a file. Raises ``BackupError``."""
    ran = subprocess.run(  # noqa: S603 - ours
        programs.argv("pg_restore", *words), capture_output=True, check=False
    )
    if ran.returncode != 0:
        message = f"The file cannot be read as a dump. {_last(ran.stderr)}"
        raise BackupError(message)
    return ran.stdout.decode(errors="replace")


def _run(argv: list[str], database: Database) -> None:
    ran = subprocess.run(  # noqa: S603 - ours
        argv, env=database.environment(), capture_output=True, check=False
    )
    if ran.returncode != 0:
        message = f"The database cannot be dumped; nothing was written. {_last(ran.stderr)}"
        raise BackupError(message)


def _last(said: bytes) -> str:
    """The end of what a program said, where it names its trouble; never more than a few lines."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[:_SAID_LINES])


def _server_major(database: Database) -> int:
    with database.engine.connect() as conn:
        number: int = conn.exec_driver_sql(
            "SELECT current_setting('server_version_num')::int"
        ).scalar_one()
    return number // 10_000


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{file} cannot be read or written: {error.strerror}. Nothing was changed."
        raise BackupError(message) from error
