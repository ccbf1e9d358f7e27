"""Fairness: ten thousand wait on one channel; how long does one wait that comes on another."""

from __future__ import annotations

import time

from bench.contestants import Contestant, Workers
from bench.machine import Meter
from bench.results import Row
from bench.server import DATABASE, Server

_PROBES = 5
# The crowd stands on the first channel, and one more channel is made for each probe.
_CHANNEL = """
WITH added AS (
    INSERT INTO publisher.channels (platform, name, remote_id)
    VALUES ('noop', 'Probe ' || %(n)s, 'probe ' || %(n)s) RETURNING id)
INSERT INTO publisher.gates (channel_id) SELECT id FROM added RETURNING channel_id
"""
_ENQUEUE = """
SELECT job_id FROM publisher.enqueue(jsonb_build_array(jsonb_build_object(
    'key', 'probe ' || %(n)s, 'kind', 'publish', 'queue', 'publish', 'content', %(content)s::text,
    'channel_id', %(channel)s::integer, 'run_at', clock_timestamp())))
"""
_CONTENT = '{"text":"A probe"}'
_WAITED = """
SELECT extract(epoch FROM settled_at - due_at) * 1000 FROM publisher.jobs
 WHERE id = %s AND state = 'published'
"""
_CROWD = "SELECT count(*) FROM publisher.jobs WHERE state = 'scheduled'"


def fairness(contestant: Contestant, server: Server, *, crowd: int) -> Row:
    """Five probes, each on a channel of its own, one after the other; the worst counts."""
    contestant.fresh(server)
    contestant.call(server, "enqueue", crowd, BENCH_CHANNELS="1")
    waited = []
    with (
        Workers(contestant, server, 1) as workers,
        server.connect(DATABASE) as conn,
    ):
        meter = Meter.start(workers.pids, server.pid)
        workers.go()
        time.sleep(1)
        for n in range(_PROBES):
            channel = conn.execute(_CHANNEL, {"n": n}).fetchone()
            job = conn.execute(
                _ENQUEUE, {"n": n, "content": _CONTENT, "channel": channel and channel[0]}
            ).fetchone()
            until = time.monotonic() + 30
            row = None
            while row is None and time.monotonic() < until:
                time.sleep(0.01)
                row = conn.execute(_WAITED, [job and job[0]]).fetchone()
            if row is None:
                message = f"the probe was not published within 30 s. {workers.said()}"
                raise RuntimeError(message)
            waited.append(float(row[0]))
        crowd_left = conn.execute(_CROWD).fetchone()
        used = meter.read()
    return {
        "crowd": crowd,
        "left": 0 if crowd_left is None else int(crowd_left[0]),
        "best": min(waited),
        "worst": max(waited),
        "foreign": used.foreign,
    }
