"""A reconciler as the product runs it, in a forked process, with a probe that strikes."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

from publisher import config, telemetry
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.engine.evidence import Found
from publisher.rehearsal.cast.watch import Watch
from publisher.rehearsal.plan import variants
from publisher.rehearsal.plan.places import Fault, Place, Strike
from publisher.transport import Transport
from reconciler import __main__ as command
from reconciler import loop
from reconciler.loop import Reconciler

_SWEEP_EVERY = 0.5


def reconcile(name: str, order: dict[str, Any], events: int) -> int:
    """Be a reconciler until it ends; returns its exit code.

    ``settings``, ``strikes``, ``log``, ``variant``: as a worker's. ``lease``: seconds a doubt is
    held for one look.
    """
    settings = Settings(**order["settings"])
    strikes = [Strike(place, Fault(fault), nth) for place, fault, nth in order.get("strikes", ())]
    watch = Watch(name, events, strikes, layer="reconciler")
    loop._LEASE = order["lease"]
    loop._SWEEP_EVERY = _SWEEP_EVERY
    if (variant := order.get("variant")) is not None:
        variants.load("crashes")[variant].patch()
    install(watch)
    with Path(order["log"]).open("a", buffering=1) as log:
        _settle_in(settings, log, f"crash:{name}:{os.getpid()}")
        faulthandler.register(signal.SIGUSR1, log)
        return _run(watch)


def _settle_in(settings: Settings, log: TextIO, application: str) -> None:
    """Let what the product reads from outside come from here, and the relay know who connects."""
    configure, opening = telemetry.configure, Database.open

    def opened(*arguments: Any, **_: Any) -> Database:
        return opening(*arguments, application_name=application, pool_size=1)

    sys.stderr = log  # where it says why it may not start
    config.load = lambda: settings
    vars(telemetry)["configure"] = lambda _: configure(settings, stream=log)
    Database.open = opened  # type: ignore[method-assign]


def install(watch: Watch) -> None:
    """Put steps between the points of this process."""
    read, look = Transport.read, vars(loop)["look"]

    def reading(self: Transport, *arguments: Any, **named: Any) -> Any:
        reply = read(self, *arguments, **named)
        watch.at(Place.PAGE_READ)
        return reply

    def looking(*arguments: Any) -> Any:
        found = look(*arguments)
        if isinstance(found[0], Found):
            watch.at(Place.MATCHED)
        return found

    Transport.read = reading  # type: ignore[method-assign]
    vars(loop)["look"] = looking


def _run(watch: Watch) -> int:
    """Be the command itself, with a probe."""
    made, hear = Reconciler, command._stop_on_signals

    def watched(**parts: Any) -> Reconciler:
        return made(**parts, at=watch.probe)

    def heard(run: Reconciler) -> None:
        hear(run)
        watch.say(ready=True)

    vars(command).update(Reconciler=watched, _stop_on_signals=heard)
    try:
        command.main()
    except SystemExit as end:
        return int(end.code or 0)
