"""What a command works with: the settings, a database in the right role, and who is asking."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from publisher import config, telemetry
from publisher.cli import screen
from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.db.walls import EVERY, within
from publisher.editorial import walls
from publisher.editorial.deployment import CloneRefused, Standing
from publisher.engine.errors import PublisherError
from publisher.vault import VaultError
from publisher.words import _

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class SchemaNotReady(PublisherError):
    """The database has no tables, or not this release's."""

    code = "schema-not-ready"


@cache
def settings() -> Settings:
    """The settings, read once. Logs are set up with them, from warning up unless a level is set.

    A person's command says what it did itself. Raises ``pydantic.ValidationError``; ``main``
    names the variable.
    """
    loaded = config.load()
    is_set = "log_level" in loaded.model_fields_set
    quiet = loaded if is_set else loaded.model_copy(update={"log_level": "warning"})
    telemetry.configure(quiet)
    return loaded


def service_settings() -> Settings:
    """The settings for a process that stays: its log is what it says."""
    loaded = settings()
    telemetry.configure(loaded)
    return loaded


def horizon() -> timedelta:
    """After it, what an ended process wrote has landed or never will."""
    return timedelta(seconds=settings().horizon)


def who() -> str:
    """The name under which the journal keeps what this command's user did."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in /etc/passwd
        return f"uid {os.getuid()}"


@contextmanager
def database(role: Role = Role.APP) -> Iterator[Database]:
    """Open the database for a person's command (or in another ``role``), tables and all.

    Raises ``SchemaNotReady`` with what to run; a ``DatabaseError`` where there is none.
    """
    name = f"publisher {role.name.lower()}"
    workspace = settings().workspace
    with Database.open(
        settings(), role, application_name=name, workspace=workspace or EVERY
    ) as opened:
        _require_schema(migrate.check(opened))
        if workspace:
            with opened.engine.connect() as conn:
                walls.require(conn, workspace)
        yield opened


@contextmanager
def transaction(*, everywhere: bool = False) -> Iterator[Connection]:
    """One transaction as a person's command; committed when the block ends well.

    ``everywhere``: it sees every workspace, whichever is set, for accounts are the deployment's.
    On a copy without its key it is said that nothing is sent; what is read there is true all the
    same.
    """
    with database() as opened, _engine(opened, everywhere=everywhere).begin() as conn:
        try:
            Standing.read(conn, settings()).require_own()
        except CloneRefused as copy:
            screen.note(str(copy))
        except VaultError:
            pass  # a key that cannot be read keeps nobody from reading the journal
        yield conn


def _engine(opened: Database, *, everywhere: bool) -> Engine:
    return within(opened.engine, EVERY) if everywhere else opened.engine


def _require_schema(status: migrate.SchemaStatus) -> None:
    if status.is_current:
        return
    if status.is_newer:
        message = _(
            "The database is at revision {current}, which this release (newest: {head}) does not"
            " know. Run the newer release."
        ).format(current=status.current, head=status.head)
    elif status.current is None:
        message = _("The database has no tables yet. Run: publisher db upgrade")
    else:
        message = _(
            "The database is at revision {current}; this release needs {head}."
            " Run: publisher db upgrade"
        ).format(current=status.current, head=status.head)
    raise SchemaNotReady(message)
