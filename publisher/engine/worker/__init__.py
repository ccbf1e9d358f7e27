"""A worker process: one coordinator that owns the database, many hands that own the network."""

from publisher.engine.worker.coordinator import Worker
from publisher.engine.worker.timing import Timing

__all__ = ["Timing", "Worker"]
