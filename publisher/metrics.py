"""Prometheus metrics: what this process counted, and how the whole deployment stands.

What is read from the database is read when somebody scrapes, on a connection of its own, and is
the same from every process of a deployment; take ``max`` over them, not ``sum``. What is counted
is each process's own; there take ``sum``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

import sqlalchemy
import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from sqlalchemy.exc import DBAPIError

from publisher.engine import queries
from publisher.engine.errors import PublisherError
from publisher.engine.tally import LATENESS_BOUNDS, Count, Tally

log = structlog.get_logger(__name__)

_COUNTERS: Mapping[Count, tuple[str, str, tuple[str, ...]]] = {
    Count.OUTCOMES: (
        "publisher_outcomes",
        "Ends of sends and of preparations",
        ("outcome", "reason", "platform"),
    ),
    Count.LOOKS: ("publisher_looks", "Looks at a platform, by what they found", ("found",)),
    Count.RESCUES: (
        "publisher_rescues",
        "Jobs taken from worker runs that were gone",
        ("to",),
    ),
    Count.LATE_ANSWERS: (
        "publisher_late_answers",
        "Answers that came after their job was taken away",
        ("became",),
    ),
    Count.BROKEN: (
        "publisher_audit_broken",
        "Invariants found broken by hourly audits, once for each audit",
        ("invariant", "severity"),
    ),
}


class MetricsRefused(PublisherError):
    """The port for metrics cannot be had."""

    code = "metrics-port"


@dataclass(frozen=True, slots=True, eq=False)  # registries tell collectors apart by identity
class Metrics(Collector):
    """``engine``: where the deployment's state is read; ``tally``: what this process counted."""

    tally: Tally
    engine: sqlalchemy.Engine
    silent_for: timedelta

    @contextmanager
    def serving(self, host: str, port: int) -> Iterator[int]:
        """Answer scrapes while the block lasts; gives the port. Raises ``MetricsRefused``."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as error:
            message = (
                f"Metrics cannot be served on {host}:{port}: {error.strerror}. Give this process a "
                "PUBLISHER_METRICS_PORT of its own."
            )
            raise MetricsRefused(message) from error
        log.info("metrics.serving", host=host, port=server.server_port)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join(timeout=5)

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not ask the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """See ``prometheus_client``. A database that does not answer costs its own part alone."""
        yield from self._counted()
        up = GaugeMetricFamily("publisher_database_up", "Whether the database answered this scrape")
        try:
            with self.engine.begin() as conn:
                stands = queries.measures(conn, silent_for=self.silent_for)
        except DBAPIError as error:
            log.warning("metrics.unread", error=str(error.orig).partition("\n")[0])
            up.add_metric([], 0)
        else:
            up.add_metric([], 1)
            yield from _stands(stands)
        yield up

    def _counted(self) -> Iterator[Metric]:
        for what, (name, text, labels) in _COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=labels)
            for values, number in self.tally.counts(what).items():
                family.add_metric(values, number)
            yield family
        late = HistogramMetricFamily(
            "publisher_lateness_seconds",
            "From the due time to the platform's yes",
            labels=("platform",),
        )
        bounds = [*(f"{bound:g}" for bound in LATENESS_BOUNDS), "+Inf"]
        for platform, lateness in self.tally.lateness().items():
            buckets = list(zip(bounds, accumulate(lateness.buckets), strict=True))
            late.add_metric([platform], buckets, sum_value=lateness.seconds)
        yield late


def _stands(stands: queries.Measures) -> Iterator[Metric]:
    due = GaugeMetricFamily("publisher_jobs_due", "Jobs whose time has come", labels=("queue",))
    oldest = GaugeMetricFamily(
        "publisher_oldest_due_seconds",
        "How long the oldest of them has been due",
        labels=("queue",),
    )
    for queue, on in stands.due.items():
        due.add_metric([queue], on.jobs)
        oldest.add_metric([queue], on.oldest)
    yield due
    yield oldest
    yield _by("publisher_jobs_held", "Jobs in workers' hands", "state", stands.held)
    unknowns = GaugeMetricFamily(
        "publisher_unknowns",
        "Posts that may be live, by age in seconds (at most) and whether they need a person",
        labels=("age", "needs_a_person"),
    )
    ages = [*map(float, queries.AGES), float("inf")]
    for age in ages:
        for asks in (False, True):
            label = "+Inf" if age == float("inf") else f"{age:g}"
            values = [label, str(asks).lower()]
            unknowns.add_metric(values, stands.doubts.get((age, asks), 0))
    yield unknowns
    yield _one("publisher_oldest_unknown_seconds", "Age of the oldest", stands.oldest_doubt)
    yield _by("channels_blocked", "Channels that take nothing", "reason", stands.blocked)
    yield _one("publisher_workers", "Worker runs with a sign of life", stands.workers)
    yield _one("publisher_workers_silent", "Worker runs without, not proved over", stands.silent)
    yield _by(
        "publisher_quarantined",
        "Posts that are looked for before they are sent, by whether they need a person",
        "needs_a_person",
        stands.quarantined,
    )
    yield _one("publisher_orphans", "Sends that the database has no record of", stands.orphans)


def _by(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _one(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family
