"""Every read of the engine that people ask for. Nothing here writes or locks."""

from publisher.engine.queries.detail import (
    AttemptDetail,
    JobDetail,
    LookDetail,
    Moment,
    Sender,
    job_detail,
)
from publisher.engine.queries.due import DueCounts, clock, due_counts
from publisher.engine.queries.fleet import (
    WorkerRow,
    counts_by_state,
    deployment_id,
    worker_rows,
)
from publisher.engine.queries.listing import JobRow, job_count, job_rows
from publisher.engine.queries.names import (
    AmbiguousJob,
    UnknownJob,
    find_job,
    id_digits,
)

__all__ = [
    "AmbiguousJob",
    "AttemptDetail",
    "DueCounts",
    "JobDetail",
    "JobRow",
    "LookDetail",
    "Moment",
    "Sender",
    "UnknownJob",
    "WorkerRow",
    "clock",
    "counts_by_state",
    "deployment_id",
    "due_counts",
    "find_job",
    "id_digits",
    "job_count",
    "job_detail",
    "job_rows",
    "worker_rows",
]
