"""Keeps a rehearsal away from the deployment whose environment it is started in."""

from __future__ import annotations

import os
from typing import Final

_KEPT: Final = frozenset({"PUBLISHER_PREPARE", "PUBLISHER_EMBEDDED_BINARIES"})
"""What says how to reach a server, and nothing about whose data are there."""


def isolate() -> list[str]:
    """Take every setting of the product's out of the environment; returns their names.

    A rehearsal's workers must never meet the witness, the vault key, the channels or the database
    of the deployment they are rehearsed for. Processes that are started from now on inherit it.
    """
    taken = sorted(
        name for name in os.environ if name.startswith("PUBLISHER_") and name not in _KEPT
    )
    for name in taken:
        del os.environ[name]
    return taken
