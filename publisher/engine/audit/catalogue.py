"""Every invariant, the gravest first."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.approved import APPROVED
from publisher.engine.audit.custody import CUSTODY
from publisher.engine.audit.duplicate import DUPLICATE
from publisher.engine.audit.invariant import Invariant
from publisher.engine.audit.journal import JOURNAL
from publisher.engine.audit.lost import LOST
from publisher.engine.audit.missing import MISSING
from publisher.engine.audit.silent import SILENT
from publisher.engine.audit.untrue import UNTRUE

CATALOGUE: Final[tuple[Invariant, ...]] = (
    *DUPLICATE,
    *LOST,
    *SILENT,
    *UNTRUE,
    *MISSING,
    *JOURNAL,
    *APPROVED,
    *CUSTODY,
)
