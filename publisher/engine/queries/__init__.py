"""Every read of the engine that people ask for. Nothing here writes or locks."""

from publisher.engine.queries.deployment import Identity, identity, sealed_credentials
from publisher.engine.queries.detail import (
    AttemptDetail,
    JobDetail,
    LookDetail,
    Moment,
    Sender,
    job_detail,
)
from publisher.engine.queries.doubts import DoubtRow, doubt_rows
from publisher.engine.queries.due import DueCounts, clock, due_counts
from publisher.engine.queries.fleet import (
    WorkerRow,
    WorkerRun,
    counts_by_state,
    deployment_id,
    worker_rows,
    worker_runs,
)
from publisher.engine.queries.health import (
    Backlog,
    ChannelHealth,
    EndedRun,
    backlog,
    channel_health,
    quarantine_backlog,
    tokens_unknown,
    unclean_ends,
)
from publisher.engine.queries.listing import (
    JobFilter,
    JobRow,
    job_count,
    job_page,
    job_rows,
)
from publisher.engine.queries.measures import AGES, DueOn, Measures, measures
from publisher.engine.queries.names import (
    AmbiguousJob,
    UnknownJob,
    find_job,
    id_digits,
)
from publisher.engine.queries.neighbours import AROUND, Neighbour, neighbours
from publisher.engine.queries.occupied import under_way
from publisher.engine.queries.of_post import PostJob, jobs_of_post, platform_of
from publisher.engine.queries.orphans import OrphanRow, orphan_rows
from publisher.engine.queries.quarantine import (
    QuarantineRow,
    SuspectRow,
    quarantine_rows,
    suspect_rows,
)
from publisher.engine.queries.rehearsals import (
    WITHDRAWN,
    RehearsalJob,
    jobs_in_the_way,
    rehearsal_jobs,
)
from publisher.engine.queries.removals import (
    LiveJob,
    RemovalRow,
    live_job,
    removals_of_post,
)

__all__ = [
    "AGES",
    "AROUND",
    "WITHDRAWN",
    "AmbiguousJob",
    "AttemptDetail",
    "Backlog",
    "ChannelHealth",
    "DoubtRow",
    "DueCounts",
    "DueOn",
    "EndedRun",
    "Identity",
    "JobDetail",
    "JobFilter",
    "JobRow",
    "LiveJob",
    "LookDetail",
    "Measures",
    "Moment",
    "Neighbour",
    "OrphanRow",
    "PostJob",
    "QuarantineRow",
    "RehearsalJob",
    "RemovalRow",
    "Sender",
    "SuspectRow",
    "UnknownJob",
    "WorkerRow",
    "WorkerRun",
    "backlog",
    "channel_health",
    "clock",
    "counts_by_state",
    "deployment_id",
    "doubt_rows",
    "due_counts",
    "find_job",
    "id_digits",
    "identity",
    "job_count",
    "job_detail",
    "job_page",
    "job_rows",
    "jobs_in_the_way",
    "jobs_of_post",
    "live_job",
    "measures",
    "neighbours",
    "orphan_rows",
    "platform_of",
    "quarantine_backlog",
    "quarantine_rows",
    "rehearsal_jobs",
    "removals_of_post",
    "sealed_credentials",
    "suspect_rows",
    "tokens_unknown",
    "unclean_ends",
    "under_way",
    "worker_rows",
    "worker_runs",
]
