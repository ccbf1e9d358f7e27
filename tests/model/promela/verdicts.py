"""What Spin found, written down: so that it is compared also where no Spin is installed.

    python -m tests.model.promela.verdicts

searches everything again, which takes some minutes, and writes ``VERDICTS.json``:

    {"of": "…",
     "configurations": {"drain": [], …},
     "variants": {"fence_by_number": ["never_two", "not_live_is_not_there"], …}}

``of`` is a hash of the sources and of the sizes they were searched at. Each list names the
properties that were violated; each of the others held in every state.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.model.promela import spin

KEPT = spin.HERE / "VERDICTS.json"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Configuration or variant → the properties that it violates."""

    of: str
    configurations: Mapping[str, frozenset[str]]
    variants: Mapping[str, frozenset[str]]


def read(file: Path = KEPT) -> Verdicts:
    """Those that are kept."""
    told = json.loads(file.read_text())
    return Verdicts(
        told["of"],
        {name: frozenset(broken) for name, broken in told["configurations"].items()},
        {name: frozenset(broken) for name, broken in told["variants"].items()},
    )


def searched() -> str:
    """A hash of everything that a verdict depends on: the sources, and the sizes."""
    sizes = {
        "configurations": {name: dict(size) for name, size in spin.CONFIGURATIONS.items()},
        "variants": {name: dict(one.sizes) for name, one in spin.VARIANTS.items()},
    }
    whole = hashlib.sha256(json.dumps(sizes, sort_keys=True).encode())
    for source in spin.SOURCES:
        whole.update(source.read_bytes())
    return whole.hexdigest()


def _search() -> None:
    """What is not kept of these sources; each is written down as soon as it is found."""
    of = searched()
    kept = read() if KEPT.exists() else None
    is_kept = kept is not None and kept.of == of
    configurations = dict(kept.configurations) if kept and is_kept else {}
    variants = dict(kept.variants) if kept and is_kept else {}
    for name in [each for each in spin.CONFIGURATIONS if each not in configurations]:
        with tempfile.TemporaryDirectory() as made:
            ran = spin.search(
                Path(made), spin.defines(spin.CONFIGURATIONS[name]), "promise", optimise=1
            )
        if not (ran.whole or ran.violated):
            message = f"{name}: the search was cut short"
            raise ValueError(message)
        configurations[name] = frozenset({"promise"} if ran.violated else ())
        write(Verdicts(of, configurations, variants), KEPT)
        say(f"{name}: {ran.states:,} states", configurations[name])
    for name in [each for each in spin.VARIANTS if each not in variants]:
        with tempfile.TemporaryDirectory() as made:
            variants[name] = frozenset(spin.broken(Path(made), name))
        write(Verdicts(of, configurations, variants), KEPT)
        say(name, variants[name])


def say(what: str, broken: frozenset[str]) -> None:
    """One line, for who waits."""
    sys.stdout.write(f"{what}: {', '.join(sorted(broken)) or 'nothing broken'}\n")
    sys.stdout.flush()


def write(verdicts: Verdicts, file: Path) -> None:
    """Keep these."""
    told = {
        "of": verdicts.of,
        "configurations": {name: sorted(them) for name, them in verdicts.configurations.items()},
        "variants": {name: sorted(them) for name, them in verdicts.variants.items()},
    }
    file.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    if absent := spin.missing():
        sys.exit(f"Not installed: {', '.join(absent)} (Debian packages of these names).")
    _search()
