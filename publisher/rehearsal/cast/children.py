"""What the forge can be asked to fork, with everything it needs loaded beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from publisher.rehearsal.cast.people import edit, schedule
from publisher.rehearsal.cast.settlers import settle
from publisher.rehearsal.cast.watched_reconciler import reconcile
from publisher.rehearsal.cast.watched_worker import work

KINDS: dict[str, Callable[[str, dict[str, Any], int], int]] = {
    "worker": work,
    "scheduler": schedule,
    "editor": edit,
    "reconciler": reconcile,
    "settler": settle,
}
