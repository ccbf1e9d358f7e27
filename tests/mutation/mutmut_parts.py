"""mutmut on the Python of the engine and the reconciler, a part at a time.

``python -m tests.mutation.mutmut_parts``, which ``make mutmut`` is. Each part is a private copy of
what is committed, with the tests that are about it: mutmut asks every test that comes through a
function, and through the engine's come nearly all of them. What it found stays in the copy
(``.publisher-mutmut/``) and is gone on with the next time; ``mutmut.json`` has the score.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.catalogue import ROOT
from tests.postgres import running

HOME = ROOT / ".publisher-mutmut"
_MUTMUT = str(Path(sys.executable).with_name("mutmut"))
SCORES = Path(__file__).parent / "mutmut.json"
RESULTS: Mapping[int | None, str] = {
    None: "untried",
    0: "survived",
    1: "killed",
    3: "killed",
    5: "untested",
    24: "timeout",
    33: "untested",
    34: "skipped",
    35: "suspicious",
    36: "timeout",
    152: "timeout",
    255: "timeout",
    -24: "timeout",
    -9: "timeout",
}
"""What mutmut's numbers say; any other one is ``suspicious``."""
ALIVE = frozenset({"survived", "untested", "suspicious"})


@dataclass(frozen=True, slots=True)
class Part:
    """Modules that are tried together, and the tests that are asked about them."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


_E, _L, _R = "publisher/engine", "tests/engine/ledger", "tests/reconciler"
PARTS = (
    Part(
        "rules",
        (
            "reconciler/judge.py",
            *(f"{_E}/{name}.py" for name in ("transitions", "retry", "outcome", "evidence")),
            *(f"{_E}/{name}.py" for name in ("matching", "recognition", "content", "job")),
            *(f"{_E}/{name}.py" for name in ("errors", "sender", "adapter", "alert", "tally")),
            f"{_E}/registry.py",
        ),
        (
            *("tests/engine/test_transitions.py", "tests/engine/test_transition_rows.py"),
            *("tests/engine/test_retry.py", "tests/engine/test_retry_more.py"),
            *("tests/engine/test_matching.py", "tests/engine/test_job.py"),
            *("tests/engine/test_adapter.py", "tests/engine/test_alert.py"),
            "tests/engine/test_alert_words.py",
            *(f"{_R}/test_judge.py", f"{_R}/test_judge_edges.py", f"{_R}/test_sender.py"),
            "tests/test_telemetry.py",
            *("tests/engine/test_rules.py", "tests/engine/test_recognition.py"),
            "tests/engine/test_frozen_words.py",
        ),
    ),
    Part(
        "sending",
        tuple(
            f"{_E}/ledger/{name}.py"
            for name in (
                *("begin", "claim", "settle", "late", "leases", "journal", "arrays", "driver"),
                *("incarnations", "enqueue", "suspects", "gates", "of_post"),
            )
        ),
        tuple(
            f"{_L}/test_{name}.py"
            for name in (
                *("begin", "claim", "settle", "late", "leases", "guards", "bystanders", "unique"),
                *("runs", "senders", "enqueue", "held_back", "turns"),
            )
        ),
    ),
    Part(
        "ledger",
        tuple(
            f"{_E}/ledger/{name}.py"
            for name in (
                *("verdicts", "doubts", "quarantine", "people", "alerts", "backlog", "tick"),
                *("deployment", "chores", "__init__"),
            )
        ),
        (
            *(_L, "tests/engine/test_orphans.py", "tests/engine/test_record.py"),
            *("tests/engine/test_alerts.py", f"{_R}/test_verdicts.py", f"{_R}/test_doubts.py"),
            f"{_R}/test_quarantine.py",
        ),
    ),
    Part(
        "reconciler",
        ("reconciler/reconcile.py", "reconciler/quarantine.py", "reconciler/loop.py"),
        (_R,),
    ),
    Part(
        "witnesses",
        tuple(f"{_E}/{name}.py" for name in ("spool", "witness", "rescue", "guard", "bell")),
        tuple(
            f"tests/engine/test_{name}.py"
            for name in (
                *("spool", "witness", "rescue", "guard_race", "guard_reconnects", "bell"),
                "orphans",
            )
        ),
    ),
    Part("worker", (f"{_E}/worker/*", f"{_E}/alerts.py"), ("tests/engine/worker",)),
    Part(
        "queries",
        (f"{_E}/queries/*", f"{_E}/schema.py"),
        ("tests/engine/test_queries.py", "tests/engine/test_orphans.py", "tests/doctor"),
    ),
    Part("audit", (f"{_E}/audit/*",), ("tests/engine/audit",)),
)


def main() -> int:
    """Go on with the parts that are asked for, then write the score down."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.mutmut_parts")
    parser.add_argument("parts", nargs="*", help=", ".join(part.name for part in PARTS))
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="begin nothing after them")
    parser.add_argument("--again", action="store_true", help="ask survivors again, after new tests")
    parser.add_argument("--only", metavar="begin,settle", help="these modules' untried mutants")
    parser.add_argument("--report", action="store_true", help="only read what was found")
    parser.add_argument("--survivors", action="store_true", help="show each survivor's change")
    asked = parser.parse_args()
    # mutmut stops at this signal; where a shell has it ignored, mutmut would be born deaf to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parts = [part for part in PARTS if not asked.parts or part.name in asked.parts]
    until = time.monotonic() + 60 * asked.budget if asked.budget else float("inf")
    if asked.survivors:
        for part in parts:
            _show(part)
        return 0
    for part in parts:
        if not asked.report and time.monotonic() < until:
            if asked.again:
                _forget_survivors(part)
            _try(part, until, asked.only.split(",") if asked.only else [])
    _write()
    return 0


def _forget_survivors(part: Part) -> None:
    """mutmut asks again only what it never asked."""
    for meta in (HOME / part.name / "mutants").rglob("*.meta"):
        facts = json.loads(meta.read_text())
        codes = facts["exit_code_by_key"]
        facts["exit_code_by_key"] = {
            mutant: None if RESULTS.get(code, "suspicious") in ALIVE else code
            for mutant, code in codes.items()
        }
        meta.write_text(json.dumps(facts, indent=4))


def _try(part: Part, until: float, only: Sequence[str]) -> None:
    home = HOME / part.name
    _renew(home, part)
    with running("embedded") as server:
        env = {
            **{name: value for name, value in os.environ.items() if name[:10] != "PUBLISHER_"},
            "PYTHONPATH": str(home / "mutants"),
            "PUBLISHER_TEST_POSTGRES": "embedded",
            "MUTATION_SERVER": str(server.host),
            "MUTATION_TEMPLATE": "template_mutmut",
        }
        # Where nothing is at its start, Python looks for no plugin later.
        (home / "mutants").mkdir(exist_ok=True)
        command = [_MUTMUT, "run", "--max-children", "1"]
        if only:
            left = [each for each in _found(part) if each[2] == "untried"]
            command += [mutant for module, mutant, _ in left if Path(module).stem in only]
        mutmut = subprocess.Popen(command, cwd=home, env=env)
        while mutmut.poll() is None:
            time.sleep(1)
            if time.monotonic() > until:
                mutmut.send_signal(signal.SIGINT)  # it writes each result down as it comes
                mutmut.wait()


def _renew(home: Path, part: Part) -> None:
    """The newest commit there, with what mutmut is to do of it; what it found stays."""
    home.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    # Files that did not change keep their time, by which mutmut knows them.
    before = {path: (path.read_bytes(), path.stat()) for path in _python(home)}
    subprocess.run(["tar", "-x", "-C", home], input=archive.stdout, check=True)
    for path, (text, stat) in before.items():
        if path.exists() and path.read_bytes() == text:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tests = [each for each in part.tests if (home / each).exists()]
    settings = home / "pyproject.toml"
    given = {"only_mutate": part.modules, "pytest_add_cli_args_test_selection": tests}
    lines = settings.read_text().splitlines()
    own = {name: f"{name} = {json.dumps(value)}" for name, value in given.items()}
    settings.write_text("\n".join(own.get(line.split(" = ")[0], line) for line in lines) + "\n")


def _python(home: Path) -> Iterator[Path]:
    for folder in ("publisher", "reconciler"):
        yield from (home / folder).rglob("*.py")


def _found(part: Part) -> Iterator[tuple[str, str, str]]:
    """Module, mutant and result, of all that mutmut made of a part."""
    mutated = HOME / part.name / "mutants"
    for meta in sorted(mutated.rglob("*.meta")):
        module = meta.relative_to(mutated).as_posix().removesuffix(".meta")
        codes: dict[str, Any] = json.loads(meta.read_text())["exit_code_by_key"]
        for mutant, code in codes.items():
            yield module, mutant, RESULTS.get(code, "suspicious")


def _write() -> None:
    """Keep what is known of other parts: their copies may be on another machine."""
    scores = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    for part in PARTS:
        counts: dict[str, Counter[str]] = {}
        alive: dict[str, list[str]] = {}
        for module, mutant, result in _found(part):
            counts.setdefault(module, Counter())[result] += 1
            if result in ALIVE:
                alive.setdefault(module, []).append(mutant)
        for module, count in counts.items():
            if set(count) == {"untried"}:
                continue
            scores[module] = {**_score(count), "alive": sorted(alive.get(module, []))}
    SCORES.write_text(json.dumps(scores, indent=1, sort_keys=True) + "\n")
    for module, score in sorted(scores.items()):
        told = " ".join(f"{count} {name}" for name, count in score.items() if name != "alive")
        sys.stdout.write(f"{module}: {told}\n")


def _score(count: Counter[str]) -> dict[str, int | float]:
    """How many of those tried were noticed; a hang is noticed, too."""
    tried = sum(count.values()) - count["untried"] - count["skipped"]
    noticed = count["killed"] + count["timeout"]
    return {
        **{name: count[name] for name in sorted(set(RESULTS.values())) if count[name]},
        "score": round(100 * noticed / tried, 1) if tried else 0.0,
    }


def _show(part: Part) -> None:
    home = HOME / part.name
    for _, mutant, result in _found(part):
        if result in ALIVE:
            subprocess.run([_MUTMUT, "show", mutant], cwd=home, check=False)


if __name__ == "__main__":
    sys.exit(main())
