"""Runs Spin on the model: which configurations are proved, which broken variants must be caught.

``python -m tests.model.promela.spin NAME`` shows the trail of a variant, one line for each step in
which something changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from publisher.engine.transitions import trigger_pairs

HERE = Path(__file__).parent
SOURCES = (HERE / "publish.pml", HERE / "table.pml")
PROGRAMS = ("spin", "gcc")
AT_ONCE = (
    "never_two", "published_is_there", "not_live_is_not_there", "in_the_table", "published_wins",
)  # fmt: skip
"""Properties that a single state can break."""
IN_TIME = "comes_to_rest"
"""The one that only a whole run can."""
DEEPEST = 20_000
_NONE = {"CRASHES": 0, "CUTS": 0, "DRAINS": 0, "EDITS": 0, "LOOKS": 0, "WORDS": 0, "RESTORES": 0}


def _sizes(**given: int | str) -> Mapping[str, int | str]:
    return {**_NONE, **given}


CONFIGURATIONS: Mapping[str, Mapping[str, int | str]] = {
    "crash_and_cut": _sizes(CRASHES=1, CUTS=1, LOOKS=1, TOKENS=2),
    "crash_and_three_claims": _sizes(CRASHES=1, LOOKS=1, TOKENS=3),
    "cut_and_verdicts": _sizes(CUTS=1, LOOKS=1, WORDS=1),
    "drain": _sizes(DRAINS=1, WORDS=1),
    "listing_that_hides": _sizes(PLATFORM="PAGED", CRASHES=1, LOOKS=1, WORDS=1, TOKENS=2),
    "two_people": _sizes(PLATFORM="BLIND", WORDS=2, PEOPLE=2, EDITS=1),
    "editors": _sizes(CUTS=1, EDITS=2),
    "key": _sizes(PLATFORM="KEYED", LOOKS=1, WORDS=1, EDITS=2),
    "key_twice": _sizes(PLATFORM="KEYED", LOOKS=2, WORDS=1),
    "key_that_lapses": _sizes(PLATFORM="LAPSING", LOOKS=2, WORDS=1),
    "restore": _sizes(LOOKS=2, RESTORES=1, TOKENS=2),
    "restore_and_person": _sizes(PLATFORM="BLIND", LOOKS=1, WORDS=1, RESTORES=1, TOKENS=2),
    "restore_and_crash": _sizes(PLATFORM="BLIND", CRASHES=1, RESTORES=1, TOKENS=2),
    "restore_and_cut": _sizes(CUTS=1, RESTORES=1),
}
"""What continuous integration proves, every state of it."""

BIGGER: Mapping[str, Mapping[str, int | str]] = {
    "big_crashes": _sizes(CRASHES=2, LOOKS=1),
    "big_people": _sizes(PLATFORM="BLIND", CRASHES=1, WORDS=2, PEOPLE=2),
    "big_key_that_lapses": _sizes(PLATFORM="LAPSING", CRASHES=1, EDITS=1, LOOKS=2, TOKENS=2),
    "big_restore": _sizes(LOOKS=2, RESTORES=1),
    "big_restore_and_crash": _sizes(CRASHES=1, LOOKS=1, RESTORES=1, TOKENS=2),
    "big_restore_and_cut": _sizes(CUTS=1, DRAINS=1, LOOKS=1, RESTORES=1, TOKENS=2),
    "big_restore_and_edits": _sizes(EDITS=2, LOOKS=1, RESTORES=1, TOKENS=2),
    "big_restore_and_hiding": _sizes(PLATFORM="PAGED", LOOKS=2, WORDS=1, RESTORES=1, TOKENS=2),
    "big_restore_and_key": _sizes(PLATFORM="KEYED", LOOKS=2, WORDS=1, RESTORES=1, TOKENS=2),
    "big_restore_and_lapsing": _sizes(PLATFORM="LAPSING", LOOKS=2, RESTORES=1, TOKENS=2),
}
"""What ``make model-spin`` proves besides: some minutes, and up to two gigabytes."""

AT_REST: Mapping[str, int | str] = _sizes(CRASHES=1, LOOKS=1, WORDS=1, TOKENS=2)
"""For what must happen in the end, which takes two searches."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to be wrong: the property that must notice, and the sizes within which it does.

    ``is_wide``: so many states that no other property is asked of it.
    """

    breaks: str
    sizes: Mapping[str, int | str] = field(default_factory=lambda: _sizes(TOKENS=2))
    is_wide: bool = False

    @property
    def asks(self) -> tuple[str, ...]:
        """Properties that are searched, the one it is to be caught by last."""
        if self.is_wide:
            return (self.breaks,)
        return (*(each for each in AT_ONCE if each != self.breaks), self.breaks)


_TWO = "never_two"

VARIANTS: Mapping[str, Variant] = {
    # The model in Python has these as well, or most of them: tests/model/agree.py.
    "rescue_requeues_sending": Variant(_TWO),
    "begin_without_fence": Variant(_TWO),
    "send_before_begin": Variant(_TWO, _sizes(CUTS=1, TOKENS=2)),
    "timeout_read_as_failure": Variant(_TWO),
    "server_error_read_as_failure": Variant(_TWO, _sizes(PLATFORM="BLIND", TOKENS=2)),
    "late_not_sent_unfenced": Variant(_TWO, _sizes(CUTS=1)),
    "absence_trusted": Variant(_TWO, _sizes(PLATFORM="PAGED", LOOKS=1, TOKENS=2)),
    "lost_ack_then_sends": Variant(_TWO, _sizes(CUTS=1, TOKENS=2)),
    "lost_commits_no_witness": Variant(_TWO, _sizes(RESTORES=1, TOKENS=2)),
    "cancel_ignores_sending": Variant("not_live_is_not_there", _sizes(EDITS=1, TOKENS=2)),
    "resend_without_gone": Variant(_TWO, _sizes(WORDS=1, TOKENS=2)),
    "horizon_not_waited": Variant(_TWO, _sizes(WORDS=1, TOKENS=2)),
    "old_look_new_attempt": Variant(_TWO, _sizes(PLATFORM="BLIND", WORDS=2, PEOPLE=2)),
    "late_published_ignored": Variant("published_wins"),
    "fence_by_number": Variant(_TWO, _sizes(CUTS=1)),
    "new_time_for_unknown": Variant(_TWO, _sizes(PLATFORM="BLIND", WORDS=1, TOKENS=2)),
    "quarantine_not_held": Variant(_TWO, _sizes(RESTORES=1, TOKENS=2)),
    "quarantine_not_waited": Variant(_TWO, _sizes(LOOKS=1, RESTORES=1, TOKENS=2)),
    "comes_back_and_not_held": Variant(_TWO, _sizes(EDITS=3, RESTORES=1, TOKENS=2)),
    "freed_and_not_held": Variant(_TWO, _sizes(CUTS=1, RESTORES=1), is_wide=True),
    # This model's own.
    "not_started_unread": Variant(_TWO, _sizes(CRASHES=1, TOKENS=2)),
    "file_read_without_lock": Variant(_TWO),
    "torn_file_trusted": Variant(_TWO, _sizes(CRASHES=1, TOKENS=2)),
    "drained_is_returned": Variant(_TWO, _sizes(DRAINS=1, WORDS=1)),
    "repeat_hides_doubt": Variant(
        "not_live_is_not_there", _sizes(PLATFORM="KEYED", LOOKS=1, EDITS=1, TOKENS=2)
    ),
    "key_may_be_over": Variant(_TWO, _sizes(PLATFORM="LAPSING", LOOKS=1, TOKENS=2)),
    "repeat_at_any_time": Variant(_TWO, _sizes(PLATFORM="LAPSING", LOOKS=1, TOKENS=2)),
    "no_id_believed": Variant("published_is_there"),
    "move_outside_table": Variant("in_the_table", _sizes(EDITS=1, TOKENS=2)),
    "nobody_rescues_a_claim": Variant(IN_TIME, _sizes(CRASHES=1, TOKENS=2)),
    "look_before_unlock": Variant(_TWO, _sizes(PLATFORM="BLIND", WORDS=1, TOKENS=2)),
    # Found with this model.
    "newest_repeat_alone": Variant(
        "not_live_is_not_there", _sizes(PLATFORM="KEYED", LOOKS=1, WORDS=1)
    ),
    "lost_send_judged_by_older": Variant(
        _TWO, _sizes(PLATFORM="BLIND", WORDS=1, RESTORES=1), is_wide=True
    ),
    "unknown_not_quarantined": Variant(_TWO, _sizes(LOOKS=2, RESTORES=1), is_wide=True),
    "quarantine_by_time": Variant(_TWO, _sizes(LOOKS=1, RESTORES=1, TOKENS=2)),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a search came to. ``unreached``: lines of the model that no state stood before."""

    violated: bool
    whole: bool
    states: int
    said: str
    unreached: frozenset[tuple[str, int, str]]


def defines(sizes: Mapping[str, int | str], name: str = "") -> list[str]:
    """The switches of one model."""
    return [f"-D{key}={value}" for key, value in sizes.items()] + ([f"-D{name}"] if name else [])


def search(
    folder: Path, switches: list[str], breaks: str, *, optimise: int = 0, endless: bool = False
) -> Ran:
    """Search every state for a violation of ``breaks``; ``endless``: for a cycle of any kind.

    ``folder`` keeps the trail. Raises ``CalledProcessError`` when Spin or gcc refuses the model.
    """
    in_time = breaks == IN_TIME
    kind = ["-DNP", "-DNOCLAIM"] if endless else [] if in_time else ["-DSAFETY"]
    _make(folder, switches, [f"-O{optimise}", *kind])
    return _searched(
        folder, ["-l", "-E"] if endless else [*(["-a"] if in_time else []), "-N", breaks]
    )


def broken(folder: Path, name: str) -> dict[str, Ran]:
    """Search a variant for each property that it asks, by itself; those that are violated.

    ``folder`` keeps the trail of the last. Raises ``CalledProcessError``, and ``ValueError`` for a
    search that was cut short.
    """
    variant = VARIANTS[name]
    switches = defines(variant.sizes, name.upper())
    found = {}
    _make(folder, switches, ["-O1", "-DSAFETY"])
    for each in variant.asks:
        if each == IN_TIME:
            found[each] = search(folder, switches, each)
        else:
            found[each] = _searched(folder, ["-N", each])
    if cut := [each for each, ran in found.items() if not (ran.violated or ran.whole)]:
        message = f"{name}: the search for {', '.join(cut)} was cut short"
        raise ValueError(message)
    return {each: ran for each, ran in found.items() if ran.violated}


def _make(folder: Path, switches: list[str], kind: list[str]) -> None:
    for part in SOURCES:
        shutil.copy(part, folder)
    _run(["spin", "-a", *switches, "publish.pml"], folder)
    _run(["gcc", "-w", "-DCOLLAPSE", *kind, "-o", "pan", "pan.c"], folder)


def _searched(folder: Path, how: list[str]) -> Ran:
    said = _run(["./pan", f"-m{DEEPEST}", *how], folder)
    found = re.search(r"errors: (\d+)", said)
    states = re.search(r"(\d+) states, stored", said)
    cut_short = ("Search not completed", "max search depth too small", "out of memory")
    return Ran(
        violated=found is not None and int(found[1]) > 0,
        whole=found is not None and not any(words in said for words in cut_short),
        states=int(states[1]) if states else 0,
        said=said,
        unreached=frozenset(_unreached(said)),
    )


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(
            done.returncode, command, f"{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def _unreached(said: str) -> Iterator[tuple[str, int, str]]:
    process = ""
    for line in said.splitlines():
        if named := re.match(r"unreached in (?:(?:proctype|claim) )?(\w+)", line):
            process = named[1]
        elif at := re.match(r'\s+publish\.pml:(\d+), state \d+, "(.*)"', line):
            yield process, int(at[1]), at[2]


def table() -> str:
    """``table.pml``: the moves that the database's trigger lets through."""
    pairs = [f"(a == {was.upper()} && b == {to.upper()})" for was, to in trigger_pairs()]
    head = (
        "/* The moves that the database lets through: made from publisher/engine/transitions.py. */"
    )
    return f"{head}\n#define MAY(a, b) ( \\\n\t" + " || \\\n\t".join(pairs) + ")\n"


_STATES = (
    "scheduled", "claimed", "sending", "published", "failed", "unknown", "missed", "cancelled",
    "dropped",
)  # fmt: skip


def trail(folder: Path, switches: list[str]) -> Iterator[str]:
    """The steps that led to a violation: who, which line of the model, what changed."""
    told = _run(["spin", "-t", "-p", "-g", *switches, "publish.pml"], folder)
    known: dict[str, str] = {}
    who, at, changes = "", "", list[str]()
    for line in told.splitlines():
        if step := re.match(r"\s*\d+:\s*proc\s+(\d+) \((\w+):\d+\) publish\.pml:(\d+)", line):
            if changes and f"{step[2]} {step[1]}" != who:
                yield f"{who:14} {at:>4}  {', '.join(changes)}"
                changes = []
            who, at = f"{step[2]} {step[1]}", step[3]
        elif value := re.match(r"\s+(\w+(?:\[\d+\])?) = (\d+)$", line):
            name, now = value.groups()
            if known.get(name, "0") != now and name not in {"x", "pick", "to", "was"}:
                changes.append(f"{name} = {_STATES[int(now)] if name == 'st' else now}")
            known[name] = now
        elif "trail ends" in line:
            break
    if changes:
        yield f"{who:14} {at:>4}  {', '.join(changes)}"


def missing() -> list[str]:
    """What of Spin and the compiler is not installed."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def install() -> None:
    """Install what is missing by apt, where continuous integration lets us. Raises ``OSError``."""
    if missing() and os.environ.get("CI") == "true" and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-y", "-qq", *missing()]):
            subprocess.run(["apt-get", *command], env=quiet, check=False, capture_output=True)


def _main(name: str) -> None:
    variant = VARIANTS[name]
    switches = defines(variant.sizes, name.upper())
    with tempfile.TemporaryDirectory() as made:
        ran = search(Path(made), switches, variant.breaks)
        sys.stdout.write(f"{name}: {variant.breaks} is {'violated' if ran.violated else 'kept'}\n")
        sys.stdout.writelines(f"{step}\n" for step in trail(Path(made), switches))


if __name__ == "__main__":
    if absent := missing():
        sys.exit(f"Not installed: {', '.join(absent)} (Debian packages of these names).")
    if len(sys.argv) != 2 or sys.argv[1] not in VARIANTS:
        sys.exit(f"Name one of: {', '.join(VARIANTS)}")
    _main(sys.argv[1])
