"""Who works, who fell silent, and what waits for somebody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from publisher.doctor.finding import Finding, note, warning
from publisher.doctor.ward import Ward
from publisher.engine import queries
from publisher.words import _, many


def running(ward: Ward) -> Iterator[Finding]:
    """Whether anybody sends what is due."""
    with ward.reading() as conn:
        rows = queries.worker_rows(conn)
        waits = queries.backlog(conn, overdue=timedelta(seconds=ward.limits.overdue))
    silence = ward.settings.rescue_after_seconds
    works = any((row.now - row.seen_at).total_seconds() < silence for row in rows)
    if not works and not waits.overdue:
        yield note("no_worker", _("No worker runs."), _("Start one: publisher worker"))
    elif waits.overdue:
        what = many(
            "{n} post is long due and not claimed.",
            "{n} posts are long due and not claimed.",
            waits.overdue,
        )
        if works:
            remedy = _("See whether a worker serves its queue (PUBLISHER_QUEUES), and its log.")
        else:
            remedy = _("Start a worker: publisher worker")
        yield warning("overdue", what, remedy)


def silent(ward: Ward) -> Iterator[Finding]:
    """Worker runs without a sign of life that nothing proves to be over."""
    silence = ward.settings.rescue_after_seconds
    with ward.reading() as conn:
        runs = queries.worker_runs(conn)
    for run in runs:
        row = run.row
        quiet_for = (row.now - row.seen_at).total_seconds()
        if row.ended_at is not None or row.declared_gone_at is not None or quiet_for < silence:
            continue
        yield warning(
            "worker_silent",
            _(
                "Worker run {run} on {host} (process {pid}) has been silent for {n:.0f} s;"
                " {doubts} doubts wait for it."
            ).format(run=row.id, host=row.host, pid=row.pid, n=quiet_for, doubts=run.doubts),
            _(
                "Start a worker or the reconciler on {host}, or: publisher workers declare-gone"
                " {run}"
            ).format(host=row.host, run=row.id),
        )


def ended(ward: Ward) -> Iterator[Finding]:
    """Worker runs that ended out of order and whose last bytes may still be landing."""
    within = timedelta(seconds=ward.settings.horizon)
    with ward.reading() as conn:
        runs = queries.unclean_ends(conn, within=within)
    for run in runs:
        yield note(
            "horizon_open",
            _("Worker run {run} on {host} ended out of order ({why}).").format(
                run=run.id, host=run.host, why=run.end_reason
            ),
            _("Nothing: what it sent is looked for from {when} on.").format(
                when=f"{run.ended_at + within:%H:%M:%S %Z}"
            ),
        )


def doubts(ward: Ward) -> Iterator[Finding]:
    """Posts that may be live: whether anybody looks, and which need a person."""
    with ward.reading() as conn:
        waits = queries.backlog(conn, overdue=timedelta(seconds=ward.limits.overdue))
    if waits.unlooked:
        what = many(
            "{n} post may be live, and its look is overdue.",
            "{n} posts may be live, and their looks are overdue.",
            waits.unlooked,
        )
        yield warning("looks_overdue", what, _("Start the reconciler: reconciler"))
    if waits.asked:
        what = many(
            "{n} post may be live and needs a person.",
            "{n} posts may be live and need a person.",
            waits.asked,
        )
        yield note("doubts_wait", what, _("Run: publisher unknowns list"))


def orphans(ward: Ward) -> Iterator[Finding]:
    """Sends found in a worker's file that the database knows nothing of."""
    with ward.reading() as conn:
        waits = queries.backlog(conn, overdue=timedelta(seconds=ward.limits.overdue))
    if waits.orphans:
        what = many(
            "{n} send was found on a worker's disk and belongs to no job.",
            "{n} sends were found on a worker's disk and belong to no job.",
            waits.orphans,
        )
        yield warning("orphans", what, _("Run: publisher unknowns list"))
