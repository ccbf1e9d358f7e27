"""What the forge can be asked to fork, with everything it needs loaded beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.crash.people import edit, schedule
from tests.crash.settlers import settle
from tests.crash.watched_reconciler import reconcile
from tests.crash.watched_worker import work

KINDS: dict[str, Callable[[str, dict[str, Any], int], int]] = {
    "worker": work,
    "scheduler": schedule,
    "editor": edit,
    "reconciler": reconcile,
    "settler": settle,
}
