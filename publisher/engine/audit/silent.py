"""What waits for somebody, and nobody comes."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.words import _

SILENT: Final = (
    Invariant(
        "S01",
        _("a lease that ran out is taken away"),
        _(
            "No worker looks after the dead. Start one: publisher worker. What was being sent will"
            " be a doubt then."
        ),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       j.state || ' by worker run ' || j.incarnation || ', lease until ' || j.lease_until AS detail
  FROM jobs j CROSS JOIN pulse p
 WHERE j.incarnation IS NOT NULL AND j.lease_until < now() - interval '10 minutes'
   AND p.rescue_not_before < now() - interval '5 minutes'
""",
    ),
    Invariant(
        "S02",
        _("nothing is put off for longer than anything here waits"),
        _(
            "Nobody would come back to it for that long. Find out who wrote the row, and set the"
            " time to now."
        ),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       'lease until ' || j.lease_until AS detail
  FROM jobs j WHERE j.incarnation IS NOT NULL AND j.lease_until > now() + interval '1 day'
UNION ALL
SELECT d.job_id, NULL, NULL, 'next look at ' || d.next_look_at FROM doubts d
 WHERE d.next_look_at > now() + interval '1 day'
UNION ALL
SELECT d.job_id, NULL, NULL, 'held by a look until ' || d.lease_until FROM doubts d
 WHERE d.lease_until > now() + interval '1 day'
UNION ALL
SELECT d.job_id, NULL, NULL, 'no alert until ' || d.snoozed_until FROM doubts d
 WHERE d.snoozed_until > now() + interval '30 days'
UNION ALL
SELECT NULL, NULL, g.channel_id, 'nothing is sent before ' || g.not_before FROM gates g
 WHERE g.not_before > now() + interval '7 days'
UNION ALL
SELECT NULL, NULL, NULL, 'nobody is rescued before ' || p.rescue_not_before FROM pulse p
 WHERE p.rescue_not_before > now() + interval '1 day'
""",
    ),
    Invariant(
        "S03",
        _("each job that may be live is among the doubts, and nothing else is"),
        _(
            "Nobody looks at it and nobody is asked. Look at the page, and bring the row of doubts"
            " back."
        ),
        """
SELECT coalesce(j.id, d.job_id) AS job_id, j.attempts AS attempt, j.channel_id,
       CASE WHEN d.job_id IS NULL THEN 'unknown, and not among the doubts'
            WHEN j.id IS NULL THEN 'a doubt about no unknown job'
            ELSE 'in doubt since ' || d.since || ', unknown since ' || j.settled_at END AS detail
  FROM (SELECT * FROM jobs WHERE state = 'unknown') AS j
  FULL JOIN doubts d ON d.job_id = j.id
 WHERE d.job_id IS NULL OR j.id IS NULL
    OR coalesce(abs(extract(epoch FROM d.since - j.settled_at)), 601) > 600
""",
    ),
    Invariant(
        "S04",
        _("what needs a person was told to one"),
        _("Nobody knows of it. Look at it: publisher unknowns show; then see why alerts fail."),
        """
SELECT d.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'asked since ' || d.asked_at || ': ' || d.asked_reason AS detail
  FROM doubts d
 WHERE %(alerted)s AND d.asked_at < now() - interval '15 minutes'
   AND (d.snoozed_until IS NULL OR d.snoozed_until < now())
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = d.job_id AND e.event = 'alert' AND e.at >= d.since)
""",
    ),
    Invariant(
        "S05",
        _("somebody has taken what may have been live for a day"),
        _("Decide it, or hand it to somebody: publisher unknowns list"),
        """
SELECT d.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'in doubt since ' || d.since || ' and taken by nobody' AS detail
  FROM doubts d
 WHERE d.since < now() - interval '1 day' AND d.taken_by IS NULL
   AND (d.snoozed_until IS NULL OR d.snoozed_until < now())
""",
    ),
    Invariant(
        "S06",
        _("a look that is due is made"),
        _("No reconciler runs, or it cannot reach the platform. Start it: reconciler"),
        """
SELECT d.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'a look is due since ' || d.next_look_at AS detail
  FROM doubts d
 WHERE d.next_look_at < now() - interval '15 minutes'
   AND (d.lease_until IS NULL OR d.lease_until < now() - interval '15 minutes')
""",
    ),
    Invariant(
        "S07",
        _("a send that the database had no record of was settled by somebody"),
        _(
            "A worker's own file tells of a send that no row knows, as after a restore. Look at the"
            " page, and record what you see."
        ),
        """
SELECT o.job_id, NULL::integer AS attempt, j.channel_id,
       'sent by worker run ' || o.incarnation || ' under ' || o.token || ', found at ' || o.at
           AS detail
  FROM orphans o LEFT JOIN jobs j ON j.id = o.job_id
 WHERE NOT o.adopted
   AND NOT EXISTS (SELECT FROM verdicts v WHERE v.job_id = o.job_id AND v.at > o.at)
""",
    ),
    Invariant(
        "S08",
        _("no silent worker run keeps jobs or doubts locked"),
        _(
            "Stop its process, or state its machine gone: publisher workers declare-gone. Until"
            " then nothing that it sent may be called absent."
        ),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       'worker run ' || i.id || ' on ' || i.host || ' is silent since ' || i.seen_at AS detail
  FROM jobs j
  LEFT JOIN attempts a ON a.job_id = j.id AND a.number = j.attempts
  JOIN incarnations i ON i.id = coalesce(j.incarnation, a.incarnation)
 WHERE (j.incarnation IS NOT NULL OR j.state = 'unknown')
   AND i.ended_at IS NULL AND i.declared_gone_at IS NULL
   AND i.seen_at < now() - interval '1 hour'
""",
    ),
    Invariant(
        "S09",
        _("nothing without a useful time is on hold for a week"),
        _("It never ends by itself. Release it or cancel it: publisher jobs release"),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'on hold since it was due at ' || j.due_at || ': ' || j.hold_reason AS detail
  FROM {jobs} j
 WHERE j.state = 'scheduled' AND j.hold_reason IS NOT NULL AND j.useful_until IS NULL
   AND j.due_at < now() - interval '7 days'
""",
    ),
    Invariant(
        "S10",
        _("what is in quarantine is looked for, and decided within a day"),
        _("It is not sent while nobody decides. See: publisher quarantine status"),
        """
SELECT q.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       concat('a look is due since ' || q.next_look_at, ' a person is asked since ' || q.asked_at)
           AS detail
  FROM quarantined q
 WHERE q.released_at IS NULL
   AND (q.asked_at < now() - interval '1 day'
        OR q.next_look_at < now() - interval '15 minutes'
           AND (q.lease_until IS NULL OR q.lease_until < now() - interval '15 minutes')
        OR q.next_look_at IS NULL AND q.asked_at IS NULL
        OR greatest(q.next_look_at, q.lease_until) > now() + interval '1 day')
   AND EXISTS (SELECT FROM jobs j WHERE j.id = q.job_id AND j.state = 'scheduled')
""",
    ),
)
