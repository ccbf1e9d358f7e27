"""A worker as the product runs it, in a forked process, with a probe that strikes."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
from pathlib import Path
from types import FrameType
from typing import Any

from publisher import bootstrap, telemetry
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role
from publisher.engine import spool as spool_module
from publisher.rehearsal.cast.people import act
from publisher.rehearsal.cast.watch import Watch, install
from publisher.rehearsal.plan import variants
from publisher.rehearsal.plan.places import Fault, Strike


def work(name: str, order: dict[str, Any], events: int) -> int:
    """Be a worker until it ends; returns its exit code.

    ``settings``: fields of ``Settings``. ``strikes``: ``[place, fault, nth]`` each. ``log``: file
    for its log lines. ``listen``: as the product does, or polling alone. ``compact_bytes``: when
    the spool is compacted. ``variant``: a broken copy to be, see ``broken``.
    """
    settings = Settings(**order["settings"])
    strikes = [Strike(place, Fault(fault), nth) for place, fault, nth in order.get("strikes", ())]
    watch = Watch(name, events, strikes)
    people = Settings(**order["people"]) if "people" in order else settings
    chance = random.Random(order.get("chance", name))
    variant = order.get("variant")
    watch.edit = lambda: watch.say(**act(people, chance, variant=variant))
    if variant is not None:
        variants.load("crashes")[variant].patch()
    install(watch)
    if "compact_bytes" in order:
        spool_module._COMPACT_BYTES = order["compact_bytes"]
    with Path(order["log"]).open("a", buffering=1) as log:
        telemetry.configure(settings, stream=log)
        faulthandler.register(signal.SIGUSR1, log)  # for one that does not end when told to
        return _run(settings, watch, order, f"crash:{name}:{os.getpid()}")


def _run(settings: Settings, watch: Watch, order: dict[str, Any], application: str) -> int:
    with (
        Database.open(settings, Role.ENGINE, application_name=application, pool_size=1) as database,
        bootstrap.open_app(settings, database) as app,
    ):
        worker = bootstrap.worker(app)
        worker.probe = watch.probe
        if not order.get("listen", True):
            worker.listen = None
        watch.worker = worker

        def drain(_number: int, _frame: FrameType | None) -> None:
            worker.drain()
            watch.say(draining=True)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drain)
        watch.say(ready=True)
        return worker.run()
