"""Each place a witness can be, as this process or another one opens it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from publisher.config import Settings
from publisher.engine.witness import Record, Store, WitnessConflict
from publisher.witness import store
from publisher.witness.address import ConfigMapAt
from publisher.witness.configmap import ConfigMap

RECORD = Record(
    deployment="6f1f8f5c-3f0b-4b5e-9f39-0d5f3d6f6a10",
    system="7361234567890123456",
    timeline=1,
    generation=1,
    tick=60,
    mark="0badc0de",
    at="2026-07-01T09:00:00+00:00",
)


def ticked(tick: int) -> Record:
    return replace(RECORD, tick=tick)


@dataclass(frozen=True)
class Place:
    """``address`` is what PUBLISHER_WITNESS holds; ``environment`` what its client needs."""

    address: str
    environment: dict[str, str] = field(default_factory=dict)
    account: Path | None = None

    def open(self) -> Store:
        os.environ.update(self.environment)
        settings = Settings(witness=self.address)
        if self.account is None:
            return store(settings)
        namespace, _, name = self.address.removeprefix("configmap://").partition("/")
        return ConfigMap(ConfigMapAt(namespace, name), settings, account=self.account)


@dataclass(frozen=True)
class Stand:
    """A place with what a test may do to it."""

    place: Place
    plant: Callable[[bytes], None]
    """Put these bytes there, past the store."""
    kept: Callable[[], list[bytes]]
    """What was kept aside."""
    cut: Callable[[], object]
    """Make it unreachable."""


def raise_often(place: Place, times: int, start: Barrier, overtaken: Queue[int]) -> None:
    """Raise the tick by one, ``times`` times; tells how often another was first."""
    witness = place.open()
    start.wait(60)
    overtaken.put(sum(_raise_once(witness) for _ in range(times)))


def write_for_ever(place: Place) -> None:
    """Write until killed."""
    witness = place.open()
    while True:
        _raise_once(witness)


def _raise_once(witness: Store) -> int:
    overtaken = 0
    while True:
        held = witness.read()
        tick = held.record.tick if held else 0
        time.sleep(0.001)  # long enough for the other to come between, now and then
        try:
            witness.write(ticked(tick + 1), over=held.stamp if held else None)
        except WitnessConflict:
            overtaken += 1
        else:
            return overtaken
