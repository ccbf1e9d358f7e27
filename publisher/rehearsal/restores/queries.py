"""What is asked of a plan's database, and done to it, past the product."""

from __future__ import annotations

AT_REST = (
    "SELECT count(*) AS jobs FROM jobs WHERE id <> ALL(%s)"
    " AND (state IN ('claimed', 'sending', 'unknown')"
    " OR state = 'scheduled' AND (hold_reason IS NOT NULL"
    " OR run_at < clock_timestamp() + interval '30 minutes'))"
)
TIME_GOES_ON = (
    (
        "UPDATE jobs SET run_at = clock_timestamp() WHERE id IN (SELECT id FROM jobs"
        " WHERE state = 'scheduled' AND hold_reason IS NULL AND due_at <= clock_timestamp()"
        " AND run_at > clock_timestamp() FOR UPDATE SKIP LOCKED)"
    ),
    (
        "UPDATE gates SET not_before = NULL WHERE channel_id IN (SELECT channel_id FROM gates"
        " WHERE not_before IS NOT NULL FOR UPDATE SKIP LOCKED)"
    ),
)
"""Waits of minutes, as after a refusal for the rate, are over."""
SENDS = (
    "SELECT count(*) FROM publisher.attempts a JOIN publisher.jobs j ON j.id = a.job_id"
    " WHERE j.kind = 'post'"
)
