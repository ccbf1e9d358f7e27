"""History: the same drain and claim beside a million finished jobs, and beside none."""

from __future__ import annotations

import time
from statistics import median

from bench.contestants import Contestant
from bench.drain import drain_prepared
from bench.results import Row
from bench.server import DATABASE, Server

_CLAIMS = 12
_LIMIT = 500
# What a job that was published leaves, row by row, a year back.
_FINISHED = """
SET search_path = publisher;
SET session_replication_role = replica;
INSERT INTO channels (platform, name, remote_id)
SELECT 'noop', 'Channel ' || n, n::text FROM generate_series(1, 500) AS n;
INSERT INTO gates (channel_id) SELECT id FROM channels;
INSERT INTO jobs (id, channel_id, kind, queue, state, due_at, run_at, claims, attempts, remote_id,
                  settled_at)
SELECT nextval('jobs_id_seq'), n %% 500 + 1, 'publish', 'publish', 'published', at, at, 1, 1,
       'old_' || n, at
  FROM generate_series(1, {count}) AS n,
       LATERAL (SELECT now() - make_interval(mins => ({count} - n) / 2) AS at) AS t;
INSERT INTO job_contents (job_id, key, content, content_sha256)
SELECT id, 'old ' || id, content, sha256(convert_to(content, 'UTF8'))
  FROM jobs, LATERAL (SELECT '{{"text":"Post ' || id || '"}}' AS content) AS t;
INSERT INTO job_keys (key, job_id) SELECT 'old ' || id, id FROM jobs;
INSERT INTO attempts (job_id, number, token, incarnation, content_sha256, claimed_at, begun_at,
                      settled_at, outcome, remote_id)
SELECT id, 1, gen_random_uuid(), 1, c.content_sha256, run_at, run_at, run_at, 'published',
       remote_id
  FROM jobs JOIN job_contents c ON c.job_id = id;
INSERT INTO remote_posts (channel_id, remote_id, job_id, bound_at)
SELECT channel_id, remote_id, id, run_at FROM jobs;
RESET session_replication_role;
"""


def prepare(contestant: Contestant, server: Server, finished: int) -> None:
    """Have a new database with so many finished jobs, vacuumed."""
    if finished == 0:
        contestant.fresh(server)
        return

    def fill(_: str) -> None:
        contestant.setup(server, template)
        with server.connect(template) as conn:
            for statement in _FINISHED.format(count=finished).split(";\n"):
                if statement.strip():
                    conn.execute(statement.replace("%%", "%").encode())
            conn.execute("VACUUM (ANALYZE, FREEZE)")

    template = f"{contestant.slug}_{finished}"
    server.fresh(template, fill)


def drained(contestant: Contestant, server: Server, *, finished: int, jobs: int) -> Row:
    """A drain with one process, in such a database."""
    prepare(contestant, server, finished)
    return drain_prepared(contestant, server, processes=1, jobs=jobs)


def claimed(contestant: Contestant, server: Server, *, finished: int) -> Row:
    """The time of one claim of 500 jobs over 500 channels, the median of twelve."""
    prepare(contestant, server, finished)
    contestant.call(server, "enqueue", _CLAIMS * _LIMIT)
    with server.connect(DATABASE) as conn:
        conn.execute(f"UPDATE publisher.gates SET max_in_flight = {_CLAIMS + 1}".encode())
        conn.execute("ANALYZE")
    time.sleep(0.5)
    printed = contestant.call(server, "claims", _CLAIMS, _LIMIT)
    took = printed["milliseconds"]
    return {"milliseconds": median(took), "worst": max(took)}
