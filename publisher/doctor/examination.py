"""Runs the checks: each by itself, so that one that fails hides no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from publisher import bootstrap
from publisher.config import Settings
from publisher.db import migrate
from publisher.db.connect import Database
from publisher.db.errors import DatabaseError
from publisher.db.roles import Role
from publisher.doctor.catalogue import CHECKS, FAILED, Check, Needs
from publisher.doctor.finding import Finding, Severity, error, warning
from publisher.doctor.ward import Ward
from publisher.engine.errors import PublisherError
from publisher.engine.registry import Registry
from publisher.telemetry import scrub
from publisher.words import _

UNREACHABLE = "database_unreachable"
_WAIT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one check found; ``done`` is false where it lacked what it needs."""

    check: Check
    findings: tuple[Finding, ...]
    done: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """Every check's result, in the catalogue's order; ``database``: what opening it found."""

    database: tuple[Finding, ...]
    results: tuple[Result, ...]

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        yield from self.database
        for result in self.results:
            yield from result.findings

    def count(self, severity: Severity) -> int:
        """How many there are of one severity."""
        return sum(found.severity is severity for found in self.findings())

    @property
    def is_well(self) -> bool:
        """Nothing but notes."""
        return all(found.severity is Severity.NOTE for found in self.findings())


def examine(settings: Settings, *, ask_platforms: bool = False) -> Report:
    """Examine the deployment that ``settings`` name. Raises nothing that a check can meet.

    ``ask_platforms``: every open channel's platform is asked whether it takes our access.
    """
    with _ward(settings, ask_platforms=ask_platforms) as (ward, found):
        return Report(found, tuple(run(ward, CHECKS)))


def run(ward: Ward, checks: Iterable[Check]) -> Iterator[Result]:
    """Make ``checks`` on ``ward``, as far as its database goes."""
    reached = _reached(ward)
    for check in checks:
        if check.needs > reached:
            yield Result(check, (), done=False)
        else:
            yield Result(check, _findings(check, ward))


def _findings(check: Check, ward: Ward) -> tuple[Finding, ...]:
    found: list[Finding] = []
    try:
        found.extend(check.examine(ward))
    except Exception as problem:  # noqa: BLE001 - a check that breaks is a finding
        said = scrub(str(getattr(problem, "orig", None) or problem).strip().partition("\n")[0])
        found.append(
            warning(
                FAILED,
                _("The check {name} could not be made: {said}").format(
                    name=check.name, said=f"{type(problem).__name__}: {said}"
                ),
                _("Put right what it says, or report it with this line."),
            )
        )
    return tuple(found)


def _reached(ward: Ward) -> Needs:
    """How much of a database there is to examine."""
    if ward.opened is None:
        return Needs.NOTHING
    try:
        with ward.reading() as conn:
            is_current = migrate.status(conn).is_current
    except Exception:  # noqa: BLE001 - the checks of the server say what is wrong
        return Needs.SERVER
    return Needs.SCHEMA if is_current else Needs.SERVER


@contextmanager
def _ward(settings: Settings, *, ask_platforms: bool) -> Iterator[tuple[Ward, tuple[Finding, ...]]]:
    ward = Ward(
        settings,
        bootstrap.spool_folder(settings),
        bootstrap.describing_registry(settings),
        ask_platforms=ask_platforms,
    )
    try:
        database = Database.open(
            settings,
            Role.ENGINE,
            application_name="publisher doctor",
            wait_seconds=_WAIT_SECONDS,
        )
    except DatabaseError as problem:
        yield ward, (_unreachable(problem),)
        return
    with ExitStack() as stack:
        stack.enter_context(database)
        registry = _asking(settings, database, stack) if ask_platforms else None
        if registry is None:
            yield replace(ward, opened=database, ask_platforms=False), ()
        else:
            yield replace(ward, opened=database, registry=registry), ()


def _unreachable(problem: DatabaseError) -> Finding:
    """Its first line says what and what to do; the rest is what the driver or server said."""
    first, _newline, more = str(problem).strip().partition("\n")
    what, _stop, remedy = first.partition(". ")
    said = f" ({' '.join(more.split())})" if more.strip() else ""
    return error(UNREACHABLE, f"{what.rstrip('.')}{said}.", remedy or _("Put that right first."))


def _asking(settings: Settings, database: Database, stack: ExitStack) -> Registry | None:
    """Adapters that can open credentials; None where there is no key, which a check tells of."""
    if settings.vault_key is None and not settings.key_file.exists():
        return None  # opening it would make one
    try:
        return stack.enter_context(bootstrap.open_app(settings, database)).registry
    except (PublisherError, SQLAlchemyError):
        return None
