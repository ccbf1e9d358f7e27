"""What could lose something approved without a word."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.words import _

LOST: Final = (
    Invariant(
        "L01",
        _("behind each key there is its job"),
        _(
            "Nothing removes jobs in this release: a row was deleted or renumbered. Find what the"
            " key names in a backup, and look at the page before scheduling it again."
        ),
        """
SELECT k.job_id, NULL::integer AS attempt, NULL::integer AS channel_id, k.key AS detail
  FROM job_keys k WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = k.job_id)
""",
    ),
    Invariant(
        "L02",
        _("each job has its content and its key"),
        _(
            "It can be neither sent nor told from a repeat. Bring the row back from a backup, or"
            " cancel the job and schedule its post anew."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       CASE WHEN c.job_id IS NULL THEN 'its content is gone'
            ELSE 'its key ' || c.key || ' is not the one that is taken for it' END AS detail
  FROM {jobs} j
  LEFT JOIN {contents} c ON c.job_id = j.id
  LEFT JOIN {keys} k ON k.job_id = j.id
 WHERE c.job_id IS NULL OR k.key IS DISTINCT FROM c.key
""",
    ),
    Invariant(
        "L03",
        _("what is due is taken by a worker"),
        _(
            "It has been due for 15 minutes on an open channel on which nothing moves. See that a"
            " worker serves its queue: publisher workers list"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'due since ' || j.run_at || ' on queue ' || j.queue AS detail
  FROM {jobs} j JOIN gates g ON g.channel_id = j.channel_id
 WHERE j.state = 'scheduled' AND j.hold_reason IS NULL
   AND j.run_at < now() - interval '15 minutes'
   AND (j.useful_until IS NULL OR j.useful_until > now())
   AND g.paused_at IS NULL AND g.blocked_at IS NULL
   AND (g.not_before IS NULL OR g.not_before < now() - interval '15 minutes')
   AND (j.channel_id, j.queue) NOT IN (
       SELECT m.channel_id, m.queue FROM jobs m
        WHERE m.incarnation IS NOT NULL OR m.settled_at > now() - interval '15 minutes')
""",
    ),
    Invariant(
        "L04",
        _("what is past its useful time is said to be missed"),
        _(
            "No worker ends what is over. See that one runs: publisher workers list. It was not"
            " sent; requeue it with a new useful time if it should be."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'useful until ' || j.useful_until || coalesce(', on hold: ' || j.hold_reason, '') AS detail
  FROM {jobs} j
 WHERE j.state = 'scheduled' AND j.useful_until < now() - interval '15 minutes'
   AND j.hold_reason IS DISTINCT FROM 'quarantine'
""",
    ),
    Invariant(
        "L05",
        _("nothing waits for a time that comes too late, or goes out before its time"),
        _(
            "It would be missed in silence, or sent early. Move it to its time: publisher jobs"
            " reschedule"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'runs at ' || j.run_at || ', due at ' || j.due_at || ', useful until '
           || coalesce(j.useful_until::text, 'a day later') AS detail
  FROM {jobs} j
 WHERE j.state = 'scheduled' AND j.run_at > now()
   AND j.run_at > interval '1 hour' + coalesce(
           j.useful_until, greatest(j.due_at, now()) + interval '1 day')
    OR j.state IN ('scheduled', 'claimed') AND j.run_at < j.due_at
    OR j.useful_until <= j.due_at AND j.state IN ('scheduled', 'claimed')
""",
    ),
    Invariant(
        "L06",
        _("what is approved for a channel has a job there"),
        _(
            "An editor approved it and nothing will send it. Import it again: that adds only what"
            " is missing."
        ),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, p.channel_id,
       'post ' || p.post_id || ', version ' || v.number || ', approved by ' || a.approved_by
           AS detail
  FROM approvals a
  JOIN post_versions v ON v.id = a.version_id
  JOIN post_channels p ON p.post_id = v.post_id
 WHERE {approved_since}
   AND NOT EXISTS (SELECT FROM jobs j
                    WHERE j.post_id = p.post_id AND j.channel_id = p.channel_id)
""",
    ),
    Invariant(
        "L07",
        _("each channel has its gate, and each gate its channel"),
        _("Without a gate nothing of the channel is ever claimed. Restore the row of gates."),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, coalesce(c.id, g.channel_id) AS channel_id,
       CASE WHEN g.channel_id IS NULL THEN c.platform || ' ' || c.name || ' has no gate'
            ELSE 'a gate without a channel' END AS detail
  FROM channels c FULL JOIN gates g ON g.channel_id = c.id
 WHERE c.id IS NULL OR g.channel_id IS NULL
""",
    ),
    Invariant(
        "L08",
        _("a job that is to be unique holds its lock while it is open"),
        _("The same work may be added a second time. Look for one: publisher jobs list"),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'unique until ' || j.unique_until || ' and without its lock' AS detail
  FROM {jobs} j
 WHERE j.unique_until IS NOT NULL AND j.state IN ('scheduled', 'claimed', 'sending', 'unknown')
   AND NOT EXISTS (SELECT FROM unique_locks u
                    WHERE u.job_id = j.id
                      AND u.lapses_at >= j.unique_until - interval '1 minute')
""",
    ),
)
