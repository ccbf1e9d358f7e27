"""Rows that nobody answers for: their job, their holder or their evidence is gone."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.engine.outcome import Reason
from publisher.words import _

_REASONS: Final = ", ".join(f"'{reason}'" for reason in Reason)
_OF_A_JOB: Final = {
    "job_contents": "NULL::integer",
    "attempts": "t.number",
    "remote_posts": "NULL",
    "looks": "t.attempt",
    "verdicts": "t.attempt",
    "job_events": "t.attempt",
    "unique_locks": "NULL",
}

CUSTODY: Final = (
    Invariant(
        "C01",
        _("whatever is kept about a job has its job"),
        _(
            "A job was deleted or renumbered, and its evidence is left. Find it in a backup; look"
            " at the page before anything of it is scheduled again."
        ),
        " UNION ALL ".join(
            f"""
SELECT t.job_id, {attempt} AS attempt, NULL::integer AS channel_id,
       'a row of {table} without its job' AS detail
  FROM {table} t WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = t.job_id)
"""  # noqa: S608 - our own words
            for table, attempt in _OF_A_JOB.items()
        ),
    ),
    Invariant(
        "C02",
        _("each send and each claim is of a worker run that is recorded"),
        _(
            "Nobody can be proved to have stopped, so nothing of it may be sent again. Look at the"
            " page for these jobs."
        ),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'sent by worker run ' || a.incarnation || ', which is not recorded' AS detail
  FROM {attempts} a
 WHERE a.incarnation NOT IN (SELECT i.id FROM incarnations i)
UNION ALL
SELECT j.id, NULL, j.channel_id, 'held by worker run ' || j.incarnation || ', which is not recorded'
  FROM jobs j
 WHERE j.incarnation IS NOT NULL AND j.incarnation NOT IN (SELECT i.id FROM incarnations i)
""",
    ),
    Invariant(
        "C03",
        _("a worker run that is over holds nothing"),
        _("What it held is stuck until its lease runs out. See that a worker runs."),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       j.state || ' by worker run ' || i.id || ', over since ' || i.ended_at AS detail
  FROM jobs j JOIN incarnations i ON i.id = j.incarnation
 WHERE j.incarnation IS NOT NULL AND i.ended_at < now()
""",
    ),
    Invariant(
        "C04",
        _("what a job replaces or repeats is there, older, and of the same place"),
        _("It may say again what another one says. Hold it, and look for the other."),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       concat('replaces ' || j.replaces, ' repeats ' || j.repeats) AS detail
  FROM {jobs} j
  LEFT JOIN jobs o ON o.id = coalesce(j.replaces, j.repeats)
 WHERE (j.replaces IS NOT NULL OR j.repeats IS NOT NULL)
   AND (o.id IS NULL OR o.id >= j.id
        OR o.channel_id <> j.channel_id OR o.kind <> j.kind
        OR o.post_id IS DISTINCT FROM j.post_id
        OR j.replaces IS NOT NULL
           AND o.state IN ('scheduled', 'claimed', 'sending', 'unknown', 'published')
           AND j.state NOT IN ('cancelled', 'missed', 'failed', 'dropped')
           AND j.hold_reason IS DISTINCT FROM 'the post stands there already')
""",
    ),
    Invariant(
        "C05",
        _("a lock on unique work is that of its job's content, and goes when it is live"),
        _("The same work may be added twice, or be refused for nothing. Look at its job."),
        """
SELECT u.job_id, NULL::integer AS attempt, j.channel_id,
       'a lock until ' || u.lapses_at || ' of a job that is ' || j.state AS detail
  FROM unique_locks u
  JOIN jobs j ON j.id = u.job_id
  LEFT JOIN job_contents c ON c.job_id = j.id
 WHERE j.unique_until IS NULL OR j.state = 'published'
    OR u.lapses_at < j.unique_until - interval '1 minute'
    OR u.lapses_at > greatest(j.unique_until, now()) + interval '1 minute'
    OR u.digest IS DISTINCT FROM unique_digest(j.kind, j.queue, c.content)
""",
    ),
    Invariant(
        "C06",
        _("no more is in hands on a channel than its gate lets through"),
        _(
            "Posts may appear out of their order. Stop the workers if it grows: something claims"
            " past the gate."
        ),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, g.channel_id,
       h.held || ' held, ' || g.max_in_flight || ' allowed' AS detail
  FROM gates g
  JOIN (SELECT channel_id, count(*) AS held FROM jobs
         WHERE incarnation IS NOT NULL GROUP BY channel_id) AS h USING (channel_id)
 WHERE h.held > g.max_in_flight
""",
    ),
    Invariant(
        "C07",
        _("a gate says who closed it, and why"),
        _("Nobody knows what it waits for. Resume or reconnect the channel: publisher channels"),
        f"""
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, g.channel_id,
       concat('paused at ' || g.paused_at, ' by ' || g.paused_by, ', blocked at ' || g.blocked_at,
              ' for ' || g.blocked_reason) AS detail
  FROM gates g
 WHERE (g.paused_at IS NULL) <> (g.paused_by IS NULL)
    OR (g.blocked_at IS NULL) <> (g.blocked_reason IS NULL)
    OR g.blocked_reason NOT IN ({_REASONS})
    OR greatest(g.paused_at, g.blocked_at) > now() + interval '1 minute'
    OR g.max_in_flight IS NULL OR g.max_in_flight < 1 OR g.spacing < '0'
    OR g.spacing > interval '1 day'
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "C08",
        _("what a worker's file told of was taken into the journal, or stands open"),
        _("Somebody marked it as settled that nobody settled. Look at the page for its job."),
        """
SELECT o.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'found at ' || o.at || CASE WHEN o.adopted THEN ', taken in, and not in the journal'
                                   ELSE ', in the journal, and not taken in' END AS detail
  FROM orphans o
 WHERE o.at > now() + interval '1 minute' OR jsonb_typeof(o.line) <> 'object'
    OR o.adopted <> EXISTS (SELECT FROM job_events e
                             WHERE e.job_id = o.job_id
                               AND (e.event = 'spool_found'
                                        AND abs(extract(epoch FROM e.at - o.at)) < 60
                                        AND o.line @> jsonb_strip_nulls(e.detail)
                                    OR e.event = 'late_publish'
                                       AND e.detail ->> 'remote_id' = o.line ->> 'remote_id'))
    OR EXISTS (SELECT FROM attempts a WHERE a.job_id = o.job_id AND a.token = o.token)
""",
    ),
    Invariant(
        "C09",
        _("each worker run has a file of its own"),
        _(
            "The lock on one file would prove the end of two runs. Send nothing again by either"
            " until both processes are known to be gone."
        ),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'worker runs ' || string_agg(id::text, ', ' ORDER BY id) || ' share ' || file AS detail
  FROM incarnations GROUP BY file HAVING count(*) > 1
""",
    ),
    Invariant(
        "C10",
        _("a machine was stated gone by somebody, and did not come back"),
        _(
            "Sends were called over by that word. If it still runs, stop it now; look at the page"
            " for what it sent."
        ),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'worker run ' || i.id || ' stated gone at ' || i.declared_gone_at || ', last seen '
           || i.seen_at AS detail
  FROM incarnations i
  LEFT JOIN LATERAL (
       SELECT a.job_id, a.number FROM doubts d JOIN attempts a ON a.job_id = d.job_id
        WHERE a.incarnation = i.id AND a.begun_at < i.declared_gone_at
          AND a.proof IS DISTINCT FROM 'not_sent'
          AND d.since < i.declared_gone_at
          AND NOT EXISTS (SELECT FROM job_events e
                           WHERE e.job_id = a.job_id AND e.event = 'declare_gone'
                             AND e.detail ->> 'run' = i.id::text)) AS a ON true
 WHERE i.declared_gone_at IS NOT NULL
   AND (a.job_id IS NOT NULL OR i.seen_at > i.declared_gone_at + interval '1 minute')
""",
    ),
    Invariant(
        "C11",
        _(
            "approvals have their version, jobs their channel and post, channels a place of"
            " their own"
        ),
        _("Whose post or whose page it is, nobody can say. Restore the row from a backup."),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'an approval by ' || a.approved_by || ' of version ' || a.version_id || ' at '
           || a.approved_at AS detail
  FROM approvals a
 WHERE {approved_since}
   AND (a.approved_by = '' OR a.approved_at > now() + interval '1 minute'
        OR num_nulls(a.version_id, a.approved_by, a.approved_at) > 0
        OR NOT EXISTS (SELECT FROM post_versions v WHERE v.id = a.version_id))
UNION ALL
SELECT j.id, NULL, j.channel_id, 'a job of a channel or post that is not there'
  FROM {jobs} j
 WHERE j.channel_id NOT IN (SELECT id FROM channels)
    OR j.post_id IS NOT NULL AND NOT EXISTS (SELECT FROM posts p WHERE p.id = j.post_id)
UNION ALL
SELECT NULL, NULL, min(id), 'channels ' || string_agg(id::text, ', ') || ' are one place'
  FROM channels GROUP BY platform, remote_id, coalesce(base_url, '') HAVING count(*) > 1
""",
    ),
    Invariant(
        "C12",
        _("a post, its channels, its jobs and its media are of one workspace"),
        _(
            "One team's post goes out on another's page, or shows it another's picture. Hold the"
            " job: publisher jobs hold; then schedule the post anew where it belongs."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'post ' || p.id || ' is of workspace ' || p.workspace_id || ', its channel of '
           || ch.workspace_id AS detail
  FROM {jobs} j
  JOIN posts p ON p.id = j.post_id
  JOIN channels ch ON ch.id = j.channel_id
 WHERE p.workspace_id <> ch.workspace_id
UNION ALL
SELECT NULL, NULL, t.channel_id,
       'post ' || p.id || ' of workspace ' || p.workspace_id || ' has a ' || t.what
           || ' for a channel of workspace ' || ch.workspace_id
  FROM (SELECT post_id, channel_id, 'time' AS what FROM post_channels
        UNION ALL SELECT post_id, channel_id, 'place' FROM post_targets
        UNION ALL SELECT v.post_id, x.channel_id, 'form' FROM version_variants x
                    JOIN post_versions v ON v.id = x.version_id) AS t
  JOIN posts p ON p.id = t.post_id
  JOIN channels ch ON ch.id = t.channel_id
 WHERE p.workspace_id <> ch.workspace_id
UNION ALL
SELECT j.id, NULL, j.channel_id,
       'workspace ' || p.workspace_id || ' does not have its file ' || named.sha256
  FROM {jobs} j
  JOIN posts p ON p.id = j.post_id
  JOIN {contents} c ON c.job_id = j.id
 CROSS JOIN LATERAL (
       -- Text that an editor writes has its quotes escaped, and cannot look like this.
       SELECT m[1] AS sha256 FROM regexp_matches(c.content, '"sha256":"([0-9a-f]{64})"', 'g') AS m
      ) AS named
 WHERE c.content LIKE '%%"sha256":"%%'
   AND NOT EXISTS (SELECT FROM media_uploads u
                    WHERE u.workspace_id = p.workspace_id
                      AND u.sha256 = decode(named.sha256, 'hex'))
""",
    ),
    Invariant(
        "C13",
        _("what a deletion removes was live on that channel, and says so once it is gone"),
        _(
            "It deletes something else than was asked for, or a post is called deleted that is"
            " not. Hold it; open both jobs, and look at the page: publisher jobs show"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'it is ' || j.state || ', kind ' || j.kind || ', and removes '
           || coalesce('job ' || j.removes || ', ' || coalesce(o.state, 'which is gone'), 'nothing')
           AS detail
  FROM {jobs} j
  JOIN {contents} c ON c.job_id = j.id
  LEFT JOIN jobs o ON o.id = j.removes
 WHERE (j.kind = 'delete') <> (j.removes IS NOT NULL)
    OR j.removes IS NOT NULL
       AND (o.id IS NULL OR o.id >= j.id OR o.channel_id <> j.channel_id OR o.kind = 'delete'
            OR o.state <> 'published' OR o.remote_id IS NULL OR j.post_id IS NOT NULL
            OR strpos(c.content, '"remote_id": ' || to_json(o.remote_id)::text) = 0
            OR j.state = 'published'
               AND NOT EXISTS (SELECT FROM job_events e
                                WHERE e.job_id = o.id AND e.event = 'withdraw'
                                  AND e.detail ->> 'by' = c.key
                                  AND abs(extract(epoch FROM e.at - j.settled_at)) < 600))
UNION ALL
SELECT e.job_id, NULL, NULL, 'deleted at ' || e.at || ' by ' || (e.detail ->> 'by')
           || ', which did not delete it'
  FROM {events} e
 WHERE e.event = 'withdraw' AND e.detail ? 'by'
   AND NOT EXISTS (SELECT FROM job_keys k JOIN jobs r ON r.id = k.job_id
                    WHERE k.key = e.detail ->> 'by' AND r.removes = e.job_id
                      AND r.state = 'published')
UNION ALL
SELECT max(j.id), NULL, max(j.channel_id), 'job ' || j.removes || ' has ' || count(*)
           || ' open deletions'
  FROM {jobs} j
 WHERE j.removes IS NOT NULL AND j.state IN ('scheduled', 'claimed', 'sending', 'unknown')
 GROUP BY j.removes HAVING count(*) > 1
""",
    ),
)
