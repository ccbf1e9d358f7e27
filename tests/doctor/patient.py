"""A deployment that a test makes ill, and what the doctor says of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from publisher import bootstrap
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.doctor.catalogue import CHECKS, FAILED
from publisher.doctor.examination import run
from publisher.doctor.finding import Finding, Severity
from publisher.doctor.ward import Limits, Ward
from publisher.engine.registry import Registry
from tests.engine.ground import Ground, Lane


@dataclass
class Patient:
    """A migrated database of its own and an empty home."""

    ground: Ground
    settings: Settings
    limits: Limits = field(default_factory=Limits)
    wall: Callable[[], float] = time.time
    registry: Registry | None = None

    def has(self, **changes: Any) -> Patient:  # noqa: ANN401 - of the settings
        """The same with other settings."""
        return replace(self, settings=self.settings.model_copy(update=changes))

    def found(self, *checks: str) -> list[Finding]:
        """What these checks find, or all of them, on fresh connections."""
        wanted = [check for check in CHECKS if not checks or check.name in checks]
        assert {check.name for check in wanted} >= set(checks)
        with Database.open(
            self.settings, Role.ENGINE, application_name="doctor", wait_seconds=1
        ) as opened:
            ward = Ward(
                self.settings,
                bootstrap.spool_folder(self.settings),
                self.registry or bootstrap.describing_registry(self.settings),
                opened,
                self.limits,
                self.wall,
                ask_platforms=self.registry is not None,
            )
            results = list(run(ward, wanted))
        assert all(result.done for result in results), "the database could not be examined"
        for result in results:
            assert {one.code for one in result.findings} <= {*result.check.codes, FAILED}
        return [one for result in results for one in result.findings]

    def codes(self, *checks: str) -> list[str]:
        return [one.code for one in self.found(*checks)]

    def ills(self, *checks: str) -> list[tuple[Severity, str]]:
        return [(one.severity, one.code) for one in self.found(*checks)]

    def plant(self, query: str, *values: object) -> None:
        """Run ``query`` as superuser, whom nothing stops."""
        self.ground.sql(query, *values)

    def lane(self, platform: str = "webhook") -> Lane:
        return self.ground.lane(platform=platform)
