"""Runs one seed again, with everything it said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from publisher.rehearsal.conduct import RESTORED
from publisher.rehearsal.plan import variants
from publisher.rehearsal.plan.schedule import Schedule
from publisher.rehearsal.restores import crew as restoring
from publisher.rehearsal.restores.campaign import told
from publisher.rehearsal.restores.plan import planned
from publisher.rehearsal.scenarios import SCENARIOS
from publisher.rehearsal.stage.crew import each
from publisher.rehearsal.stage.lane import Serve
from publisher.rehearsal.stage.result import Result


@dataclass(frozen=True, slots=True)
class Again:
    """``said``: for people, what broke at the end."""

    said: tuple[str, ...]
    is_broken: bool


def replay(
    seed: int, scenario: str, variant: str | None, serve: Serve, programs: Path | None
) -> Again:
    """Run it. ``variant``: a broken variant. Raises ``SetUpError``."""
    if scenario == RESTORED:
        return _restored(seed, variant, programs)
    schedule = SCENARIOS[scenario].draw(seed)
    if variant is not None:
        schedule = variants.named("crashes", variant).aim(variant, seed)
    (result,) = each([schedule], lanes=1, serve=serve)
    return Again((*_crashes(schedule, result),), bool(result.broken))


def _crashes(schedule: Schedule, result: Result) -> list[str]:
    lines = [str(schedule), result.log]
    lines += [f"struck  {hit.place} ({hit.when}) {hit.fault}" for hit in result.fired]
    lines += [f"counts  {dict(result.verdict.counts)}", f"doubts  {dict(result.verdict.doubts)}"]
    for story in result.stories:
        lines += [f"{story.key}: {story.rule}", "  on the page"]
        lines += [f"    {line}" for line in story.page] or ["    nothing"]
        lines += ["  in the journal", *(f"    {line}" for line in story.journal)]
    lines += [f"BROKEN  {rule}" for rule in result.broken] or ["KEPT"]
    return lines


def _restored(seed: int, variant: str | None, programs: Path | None) -> Again:
    plan = planned(seed)
    if variant is not None:
        plan = variants.named("restores", variant).aim(variant, seed)
    (result,) = restoring.each([plan], lanes=1, programs=programs)
    lines = [str(plan), result.log, *([told(result)] if result.broken else ["KEPT"])]
    return Again((*lines,), bool(result.broken))
