"""What is forked here: workers and reconcilers that may be broken, and a person's commands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from publisher import config
from publisher.config import Settings
from publisher.rehearsal.cast import watched_reconciler, watched_worker
from publisher.rehearsal.plan import variants


def work(name: str, order: dict[str, Any], events: int) -> int:
    """Be a worker until it ends; ``variant``: a broken copy to be."""
    return watched_worker.work(name, _broken(order), events)


def reconcile(name: str, order: dict[str, Any], events: int) -> int:
    """Be a reconciler until it ends; ``variant`` as a worker's."""
    return watched_reconciler.reconcile(name, _broken(order), events)


def command(_name: str, order: dict[str, Any], _events: int) -> int:
    """Be the command ``publisher`` with these ``words``; returns its exit code."""
    settings = Settings(**order["settings"])
    config.load = lambda: settings
    sys.argv = ["publisher", *order["words"]]
    with Path(order["log"]).open("a", buffering=1) as log:
        sys.stdout = sys.stderr = log
        try:
            importlib.import_module("publisher.__main__").main()
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def _broken(order: dict[str, Any]) -> dict[str, Any]:
    if (variant := order.get("variant")) is not None:
        variants.load("restores")[variant].patch()
    return {**order, "variant": None}


KINDS: dict[str, Callable[[str, dict[str, Any], int], int]] = {
    "worker": work,
    "reconciler": reconcile,
    "command": command,
}
