"""Conducts a rehearsal: runs what is wanted, tries again what was missed, adds up a report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from publisher.rehearsal.plan import variants
from publisher.rehearsal.plan.schedule import Schedule
from publisher.rehearsal.report import cumulative, proof, reached
from publisher.rehearsal.report.report import WORDS, Bound, Check, Failure, Ran, Report, Told
from publisher.rehearsal.report.report import Settled as SettledThere
from publisher.rehearsal.report.tally import Tally
from publisher.rehearsal.restores import campaign
from publisher.rehearsal.restores import crew as restoring
from publisher.rehearsal.restores.campaign import Tally as RestoreTally
from publisher.rehearsal.restores.plan import planned
from publisher.rehearsal.restores.result import Result as Restored
from publisher.rehearsal.scenarios import ALONE, SCENARIOS
from publisher.rehearsal.stage.crew import LANES, each
from publisher.rehearsal.stage.lane import Serve
from publisher.rehearsal.stage.own_server import OwnServer
from publisher.rehearsal.stage.result import Result
from publisher.rehearsal.verdict import checklist, doubts
from publisher.words import N_, _

RESTORED: Final = "restored"
"""The scenario in which the journal itself goes back; see ``restores``."""
PART: Final = 50
"""Schedules after which the ledger is written: a run that is stopped has kept the rest."""
_AGAIN: Final = 5
"""So often what was missed is tried again."""
_OFTEN: Final = 3
"""To so many workers it comes then."""

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be rehearsed. ``runs``: scenario → seeds.

    ``is_whole``: everything in the catalogue must be met, not only what was drawn. ``seconds``:
    after so many no new schedule begins; 0: all of them.
    """

    runs: Mapping[str, range]
    is_whole: bool = False
    proves: bool = False
    seconds: float = 0.0
    lanes: int = LANES
    serve: Serve = OwnServer.running
    programs: Path | None = None
    variant: str | None = None
    """A broken variant to run instead of the product: it must fail. No ledger counts it."""
    notes: tuple[str, ...] = ()
    ledger: Path = Path("rehearsals/ledger.jsonl")


@dataclass(slots=True)
class Progress:
    """How far a run has come, for who waits for it."""

    done: int = 0
    of: int = 0
    began: float = field(default_factory=time.monotonic)
    scenario: str = ""
    last: str = ""
    """What struck last."""

    @property
    def seconds_left(self) -> float:
        """As long as those before took."""
        passed = time.monotonic() - self.began
        return passed / self.done * (self.of - self.done) if self.done else 0.0


Watching = Callable[[Progress], object]


class Conductor:
    """One rehearsal. ``say``: a line that stays; ``watch``: is shown how far it has come."""

    def __init__(self, wanted: Wanted, run: int, say: Say, watch: Watching) -> None:
        self._wanted, self._say, self._watch = wanted, say, watch
        self._tally, self._restored = Tally(), RestoreTally()
        self._drawn: list[Schedule] = []
        self._progress = Progress(of=sum(map(len, wanted.runs.values())))
        self._until = float("inf")
        self.report = Report(
            run,
            version("publisher"),
            cumulative.commit(),
            "",
            datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def conduct(self) -> Report:
        """Run it all. Raises ``SetUpError``; what was run by then is in the ledger."""
        began = time.monotonic()
        if self._wanted.proves:
            self._prove()
        if self._wanted.seconds:
            self._until = time.monotonic() + self._wanted.seconds
        for name, seeds in self._wanted.runs.items():
            self._progress.scenario = name
            self._watch(self._progress)
            if name == RESTORED:
                self._restore(seeds)
            else:
                self._run(name, seeds)
        if self._wanted.variant is None:
            self._try_again()
        self._add_up()
        self.report.notes += self._wanted.notes
        if self._wanted.variant is not None:
            note = _("Not the product: its broken variant {name!r} ran, and must fail.")
            self.report.notes.append(note.format(name=self._wanted.variant))
        self.report.seconds = time.monotonic() - began
        return self.report

    def _prove(self) -> None:
        lanes, restores = self._wanted.lanes, RESTORED in self._wanted.runs
        self._progress.scenario = "can it fail?"
        self._watch(self._progress)
        self.report.proof = proof.prove(lanes, said=self._say)
        if restores:
            self.report.proof |= campaign.prove(lanes=lanes, say=self._say)
        self._progress.began = time.monotonic()

    def _goes_on(self) -> bool:
        return time.monotonic() < self._until

    # Schedules

    def _run(self, name: str, seeds: Sequence[int]) -> None:
        """Run a scenario, in parts that the ledger keeps."""
        began, ran, faults, broken = time.monotonic(), 0, 0, 0
        for start in range(0, len(seeds), PART):
            if not self._goes_on():
                break
            of_part = self._run_part(name, seeds[start : start + PART])
            ran += of_part.schedules
            faults += of_part.faults
            broken += len(of_part.failed)
        if ran:
            seconds = time.monotonic() - began
            last = seeds[0] + ran - 1
            self.report.ran.append(Ran(name, seeds[0], last, ran, faults, broken, seconds))

    def _run_part(self, name: str, seeds: Sequence[int]) -> Tally:
        schedules = self._draw(name, seeds)
        self._drawn += schedules
        part, tally = cumulative.new_part(seeds[0], seeds[-1], scenario=name), Tally()
        for result in each(
            schedules, lanes=self._wanted.lanes, serve=self._wanted.serve, goes_on=self._goes_on
        ):
            tally.add(result)
            self._take(result)
        if tally.schedules == len(seeds) and self._wanted.variant is None:
            part.schedules, part.faults = tally.schedules, tally.faults
            part.approved = tally.counts["approved"]
            part.outcomes = _outcomes(tally)
            cumulative.add(part, self._wanted.ledger)
        return tally

    def _draw(self, name: str, seeds: Sequence[int]) -> list[Schedule]:
        if self._wanted.variant is None:
            return [SCENARIOS[name].draw(seed) for seed in seeds]
        variant = variants.named("crashes", self._wanted.variant)
        return [variant.aim(self._wanted.variant, seed) for seed in seeds]

    def _take(self, result: Result) -> None:
        self._tally.add(result)
        self.report.server = self.report.server or result.server
        if result.broken:
            self.report.failures.append(_failure(result))
            self._say(f"  seed {result.seed} ({result.scenario}) broke a rule: {result.broken[0]}")
        struck = result.fired[-1] if result.fired else None
        self._step("" if struck is None else f"{struck.place} × {struck.fault}")

    def _step(self, last: str) -> None:
        self._progress.done += 1
        self._progress.last = last
        self._watch(self._progress)

    def _try_again(self) -> None:
        """Whatever was drawn and did not strike, for chance has a part in it, is tried again."""
        for _again in range(_AGAIN):
            again = [*self._missed(self._drawn)]
            if not again or not self._goes_on():
                return
            self._progress.of += len(again)
            for result in each(
                again, lanes=self._wanted.lanes, serve=self._wanted.serve, goes_on=self._goes_on
            ):
                self._take(result)

    def _missed(self, drawn: Iterable[Schedule]) -> Iterator[Schedule]:
        """Those in which something is still to strike, with it alone, and several times."""
        met = {hit.point for hit in self._tally.hits}
        lacks = self._lacks_moves()
        died = checklist.died_at(self._tally.hits) if self._wanted.is_whole else met
        for schedule in drawn:
            missing = tuple(
                hit
                for hit in schedule.hits
                if hit.point not in met or (checklist.is_death(hit) and hit.point not in died)
            )
            if missing:
                yield replace(schedule, hits=missing * _OFTEN)
            elif lacks and schedule.scenario in ALONE:
                yield schedule

    def _lacks_moves(self) -> bool:
        """Whether something is missing that the scenarios beside ``random`` are there for."""
        return self._wanted.is_whole and any(
            one.missing
            for one in reached.reached(self._all(), self._drawn, is_whole=True)
            if one.what in {reached.MOVES, reached.ACTS_OF_PEOPLE}
        )

    def _all(self) -> Tally:
        """What schedules came to, with the changes of state that restores brought about."""
        return replace(self._tally, moves=self._tally.moves + self._restored.moves)

    # Restores

    def _restore(self, seeds: Sequence[int]) -> None:
        began, broken = time.monotonic(), 0
        part = cumulative.new_part(seeds[0], seeds[-1], scenario=RESTORED)
        plans, lanes = map(planned, seeds), self._wanted.lanes
        before = self._restored.plans
        for result in restoring.each(
            plans, lanes=lanes, programs=self._wanted.programs, goes_on=self._goes_on
        ):
            self._restored.add(result)
            self.report.server = self.report.server or result.server
            if result.broken:
                broken += 1
                self.report.failures.append(_restore_failure(result))
                self._say(f"  plan {result.plan.seed} broke a rule: {result.broken[0]}")
            self._step(f"{result.plan.way}, {result.plan.end}")
        ran = self._restored.plans - before
        if ran == len(seeds):
            part.schedules = part.faults = ran
            part.approved = self._restored.counts["approved"]
            part.outcomes = {word: self._restored.rules[word] for word in cumulative.WORDS}
            cumulative.add(part, self._wanted.ledger)
        if ran:
            seconds = time.monotonic() - began
            self.report.ran.append(
                Ran(RESTORED, seeds[0], seeds[0] + ran - 1, ran, ran, broken, seconds)
            )

    # Adding up

    def _add_up(self) -> None:
        report, tally = self.report, self._tally
        counts = Counter(tally.counts)
        for name, posts in self._restored.counts.items():
            counts[reached.IN_THE_TABLE.get(name, name)] += posts
        report.counts = dict(counts)
        rules = tally.rules + self._restored.rules
        report.rules = {
            word: rules[word] for word in (*WORDS, "other") if word in WORDS or rules[word]
        }
        report.lied = tally.lied
        report.settled = [
            SettledThere(share.platform, share.settled, share.of, share.is_enough)
            for share in tally.settled.shares()
        ]
        report.unsettled = {
            f"{what} ({platform})": n
            for (platform, what), n in sorted(tally.settled.rest().items())
        }
        if self._drawn:
            report.checklist = self._checklist(counts)
            report.reached = reached.reached(
                self._all(), self._drawn, is_whole=self._wanted.is_whole
            )
        if self._restored.plans:
            report.reached.append(reached.losses(self._restored.ways, self._restored.plans))
        parts = cumulative.read(self._wanted.ledger)
        report.bound = Bound(
            sum(part.schedules for part in parts),
            sum(part.faults for part in parts),
            sum(part.failures for part in parts),
        )

    def _checklist(self, counts: Mapping[str, int]) -> list[Check]:
        tally = self._tally
        jobs, rules = counts[checklist.JOBS], tally.rules
        kept = jobs - rules["duplicates"] - rules["lost"]
        raced, cut = tally.races, tally.cut_after_sending
        checks = [
            Check(N_("one id through every try"), kept, jobs),
            Check(N_("one job, two workers: the second lets go"), _less(raced, rules), raced),
            Check(
                N_("a timeout never reads as not posted"),
                counts.get(checklist.SILENT_KEPT, 0),
                counts.get(checklist.SILENT, 0),
            ),
            Check(N_("cut after sending"), _less(cut, rules), cut),
            Check(N_("server stopped midway"), *checklist.midway(tally.hits)),
        ]
        if self._wanted.is_whole:
            return checks
        # Of a part of the catalogue, only what it has cases of can be asked.
        return [check for check in checks[:-1] if check.of]


def _less(cases: int, rules: Mapping[str, int]) -> int:
    """Of these, how many can have ended well, where something was sent twice."""
    return max(cases - rules["duplicates"], 0)


def _outcomes(tally: Tally) -> dict[str, int]:
    return {
        **{word: tally.rules[word] for word in cumulative.WORDS},
        "doubts": tally.counts["in doubt"],
        "platform lied": tally.lied,
        "live": tally.counts["live in the journal"],
        "doubts on the page": sum(tally.settled.counts.values()),
        "settled by themselves": tally.settled.sum(*doubts.BY_ITSELF),
    }


def _failure(result: Result) -> Failure:
    return Failure(
        result.scenario,
        result.seed,
        tuple(result.broken),
        tuple(f"{hit.place} ({hit.when}) {hit.fault}" for hit in result.fired),
        tuple(Told(s.key, s.rule, s.page, s.journal) for s in result.stories),
        replay(result.seed, result.scenario, variant=result.variant),
        result.log,
    )


def _restore_failure(result: Restored) -> Failure:
    plan = result.plan
    return Failure(
        RESTORED,
        plan.seed,
        tuple(result.broken),
        (f"{plan.way}, {plan.end}",),
        (),
        replay(plan.seed, RESTORED, variant=plan.variant),
        result.log,
    )


def replay(seed: int, scenario: str = "random", *, variant: str | None = None) -> str:
    """The command that runs a seed again, exactly."""
    words = ["publisher rehearse replay", str(seed)]
    words += [] if scenario == "random" else ["--scenario", scenario]
    words += [] if variant is None else ["--variant", f"'{variant}'"]
    return " ".join(words)
