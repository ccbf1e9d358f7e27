"""Whether the journal keeps its promises: invariants as SQL, and who asks them."""

from publisher.engine.audit.catalogue import CATALOGUE
from publisher.engine.audit.invariant import DAYS, Invariant, Severity
from publisher.engine.audit.run import AuditImpossible, Broken, Report, Row, ask, audit

__all__ = [
    "CATALOGUE",
    "DAYS",
    "AuditImpossible",
    "Broken",
    "Invariant",
    "Report",
    "Row",
    "Severity",
    "ask",
    "audit",
]
