"""What could send a post twice, or shows that it was."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.words import _

DUPLICATE: Final = (
    Invariant(
        "D01",
        _("no job has two sends that may both be live"),
        _(
            "The index that holds the promise is gone or was passed by. Pause the channel, look at"
            " the page for two copies, and run: publisher doctor"
        ),
        """
SELECT job_id, max(number) AS attempt, NULL::integer AS channel_id,
       'attempts without a proof: ' || string_agg(number::text, ', ' ORDER BY number) AS detail
  FROM {attempts} a WHERE proof IS NULL GROUP BY job_id HAVING count(*) > 1
""",
    ),
    Invariant(
        "D02",
        _("nothing is ready to be sent, or given up, while a send of it may be live"),
        _(
            "It may be live and would be sent again, or is called not published. Hold the job, look"
            " at the page, and mend the proof before it goes on."
        ),
        """
SELECT j.id AS job_id, a.number AS attempt, j.channel_id,
       'it is ' || j.state || ' and attempt ' || a.number || ' has no proof' AS detail
  FROM {jobs} j JOIN attempts a ON a.job_id = j.id AND a.proof IS NULL
 WHERE j.state IN ('scheduled', 'claimed', 'failed', 'missed', 'cancelled')
       AND a.outcome IS DISTINCT FROM 'published'
    OR j.state = 'sending' AND a.number <> j.attempts
""",
    ),
    Invariant(
        "D03",
        _("nothing that is live is ready to be sent, or called not published"),
        _(
            "One of its sends is recorded as live. Hold the job, look at the page, and record what"
            " you see; it must not be sent."
        ),
        """
SELECT j.id AS job_id, a.number AS attempt, j.channel_id,
       'it is ' || j.state || ' and attempt ' || a.number || ' is live as '
           || coalesce(a.remote_id, '?') AS detail
  FROM {jobs} j JOIN attempts a ON a.job_id = j.id
 WHERE a.outcome = 'published' AND j.state IN ('scheduled', 'claimed', 'failed', 'missed')
""",
    ),
    Invariant(
        "D04",
        _("each remote id is bound to its job, and to no other"),
        _(
            "One of two jobs is not where we say it is, or a look could take its post for"
            " another's. Open them, and look at the page."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       j.remote_id || coalesce((SELECT ' is bound to job ' || o.job_id FROM remote_posts o
                                 WHERE o.channel_id = j.channel_id AND o.remote_id = j.remote_id
                                 LIMIT 1), ' is not bound') AS detail
  FROM {jobs} j
  LEFT JOIN remote_posts r
    ON r.job_id = j.id AND r.remote_id = j.remote_id AND r.channel_id = j.channel_id
 WHERE j.remote_id IS NOT NULL AND r.job_id IS NULL
UNION ALL
SELECT NULL, NULL, channel_id, remote_id || ' is bound ' || count(*) || ' times'
  FROM {remote_posts} r
 WHERE NOT EXISTS (SELECT FROM pg_index i
                    WHERE i.indexrelid = to_regclass('publisher.remote_posts_pkey')
                      AND i.indisunique AND i.indisvalid)
 GROUP BY channel_id, remote_id HAVING count(*) > 1
""",
    ),
    Invariant(
        "D05",
        _("no token was given twice"),
        _(
            "The token is the fence between two holders of a job. Stop the workers, and look at the"
            " page for posts of these jobs."
        ),
        """
SELECT min(job_id) AS job_id, min(number) AS attempt, NULL::integer AS channel_id,
       token || ' was given ' || count(*) || ' times' AS detail
  FROM {attempts} a GROUP BY token HAVING count(*) > 1
UNION ALL
SELECT min(id), NULL, min(channel_id), token || ' is held ' || count(*) || ' times'
  FROM jobs WHERE incarnation IS NOT NULL GROUP BY token HAVING count(*) > 1
UNION ALL
SELECT j.id, a.number, j.channel_id, 'it is held under the token of attempt ' || a.number
  FROM jobs j JOIN attempts a ON a.job_id = j.id AND a.token = j.token
 WHERE j.incarnation IS NOT NULL
   AND NOT (j.state = 'sending' AND a.number = j.attempts)
""",
    ),
    Invariant(
        "D06",
        _("a post has one open job on a channel"),
        _("Both would be sent. Cancel the one that should not be: publisher jobs cancel"),
        """
SELECT max(id) AS job_id, NULL::integer AS attempt, channel_id,
       'post ' || post_id || ' has the open jobs ' || string_agg(id::text, ', ' ORDER BY id)
           AS detail
  FROM {jobs} j
 WHERE post_id IS NOT NULL AND state IN ('scheduled', 'claimed', 'sending', 'unknown')
 GROUP BY post_id, channel_id, kind HAVING count(*) > 1
""",
    ),
    Invariant(
        "D07",
        _("what was looked for and not found, or risked, has its verdict"),
        _(
            "A proof that only a verdict can give has none with that name and time. Hold the job;"
            " look at the page before anything is sent."
        ),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'proof ' || a.proof || ' by ' || coalesce(a.proved_by, '?') || ' has no verdict' AS detail
  FROM {attempts} a
 WHERE a.proof IN ('absent', 'repeat_safe', 'forced')
   AND NOT EXISTS (
       SELECT FROM verdicts v
        WHERE v.job_id = a.job_id AND v.who = a.proved_by
          AND v.decision = CASE a.proof WHEN 'repeat_safe' THEN 'repeat' ELSE 'absent' END
          AND (v.detail ->> 'forced' IS NOT NULL) = (a.proof = 'forced')
          AND abs(extract(epoch FROM v.at - a.proved_at)) < 600)
""",
    ),
    Invariant(
        "D08",
        _("nothing was called absent before its sender was proved gone"),
        _(
            "The sender could still have posted after the look. Look at the page for a second copy,"
            " and at who recorded the verdict."
        ),
        """
SELECT v.job_id, v.attempt, NULL::integer AS channel_id,
       'absent at ' || v.at || ' by ' || v.who || ' while worker run '
           || coalesce(a.incarnation::text, '?') || ' could still write' AS detail
  FROM {verdicts} v
  LEFT JOIN attempts a ON a.job_id = v.job_id AND a.number = v.attempt
  LEFT JOIN incarnations i ON i.id = a.incarnation
 WHERE v.decision = 'absent'
   AND NOT (coalesce(i.ended_at <= v.at, false)
            OR coalesce(i.declared_gone_at + interval '15 minutes' <= v.at, false)
            OR coalesce(a.settled_at <= v.at
                        AND a.reason IS DISTINCT FROM 'worker_died'
                        AND a.reason IS DISTINCT FROM 'drained', false)
            OR EXISTS (SELECT FROM job_events e
                        WHERE e.job_id = v.job_id AND e.attempt = v.attempt AND e.at <= v.at
                          AND e.event IN ('late_answer', 'spool_read')))
""",
    ),
    Invariant(
        "D09",
        _("a refusal has its proof, and a proof of refusal its refusal"),
        _(
            "What frees a send was not what the platform or the worker said. Hold the job; read its"
            " attempt, and look at the page."
        ),
        """
SELECT job_id, number AS attempt, NULL::integer AS channel_id,
       'outcome ' || coalesce(outcome, 'none') || ', proof ' || coalesce(proof, 'none')
           || coalesce(' by ' || proved_by, '') || coalesce(' (' || proof_detail || ')', '')
           AS detail
  FROM {attempts} a
 WHERE outcome IN ('rejected', 'deferred', 'unauthorized')
       AND (proof IS NULL OR proof IN ('absent', 'repeat_safe'))
    OR proof IN ('refused', 'not_sent')
       AND (coalesce(outcome, 'unknown') = 'unknown'
            OR proved_by !~ '^(worker run [0-9]+|reconciler)$')
    OR proof = 'refused' AND proof_detail IS NULL
    OR proof NOT IN ('not_sent', 'refused', 'absent', 'repeat_safe', 'forced')
    OR (proof IS NULL) <> (proved_by IS NULL) OR (proof IS NULL) <> (proved_at IS NULL)
    OR proof IS NULL AND proof_detail IS NOT NULL
    OR proof = 'not_sent' AND answer -> 'status' <> 'null' AND answer -> 'sent' > '0'
""",
    ),
    Invariant(
        "D10",
        _("what is live carries no proof that it is not, unless an answer came late"),
        _(
            "The record contradicts itself: live, and free to be sent. Look at the page for two"
            " copies."
        ),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'live as ' || coalesce(a.remote_id, '?') || ' with the proof ' || a.proof AS detail
  FROM {attempts} a
 WHERE a.outcome = 'published' AND a.proof IS NOT NULL
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = a.job_id AND e.attempt = a.number
                      AND e.event IN ('late_answer', 'spool_read'))
   AND NOT EXISTS (SELECT FROM verdicts v WHERE v.job_id = a.job_id AND v.decision = 'live')
""",
    ),
    Invariant(
        "D11",
        _("after a final refusal nothing was sent until somebody asked for it"),
        _("Look at the page for two copies, and at what claimed the job again."),
        """
SELECT a.job_id, a.number + 1 AS attempt, NULL::integer AS channel_id,
       'attempt ' || a.number || ' was refused for good, and another followed' AS detail
  FROM {attempts} a
 WHERE a.outcome = 'rejected'
   AND EXISTS (SELECT FROM attempts b WHERE b.job_id = a.job_id AND b.number = a.number + 1)
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = a.job_id
                      AND (e.event = 'requeue'
                           OR e.event IN ('late_answer', 'spool_read') AND e.attempt = a.number))
   AND NOT EXISTS (SELECT FROM verdicts v WHERE v.job_id = a.job_id)
""",
    ),
    Invariant(
        "D12",
        _("no send began before the one before it was proved harmless"),
        _("Two sends were under way at once. Look at the page for two copies."),
        """
SELECT b.job_id, b.number AS attempt, NULL::integer AS channel_id,
       'begun at ' || b.begun_at || ', the one before proved ' || a.proof || ' at ' || a.proved_at
           AS detail
  FROM {attempts} b JOIN attempts a ON a.job_id = b.job_id AND a.number = b.number - 1
 WHERE b.number > 1
   AND (a.proof IN ('refused', 'not_sent') AND b.begun_at < a.proved_at - interval '1 second'
        OR a.proof IN ('absent', 'repeat_safe', 'forced')
           AND NOT EXISTS (SELECT FROM verdicts v
                            WHERE v.job_id = a.job_id AND v.decision IN ('absent', 'repeat')
                              AND v.at BETWEEN a.begun_at AND b.begun_at + interval '1 second'))
""",
    ),
    Invariant(
        "D13",
        _("a repeat may begin only until the time its verdict named"),
        _(
            "After that time the platform has forgotten the key, and a repeat would double the"
            " post. Hold the job and look at the page."
        ),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       'repeat until ' || coalesce(j.repeat_until::text, 'for ever') || ', the verdict says '
           || coalesce(v.detail ->> 'until', 'for ever') AS detail
  FROM {jobs} j
  LEFT JOIN LATERAL (
       SELECT v.decision, v.detail FROM verdicts v
        WHERE v.job_id = j.id AND v.decision IN ('absent', 'repeat', 'dropped')
        ORDER BY v.at DESC, v.id DESC LIMIT 1) AS v ON j.attempts > 0 OR j.repeat_until IS NOT NULL
 WHERE j.repeat_until IS DISTINCT FROM
       CASE v.decision WHEN 'repeat' THEN (v.detail ->> 'until')::timestamptz END
   AND (j.repeat_until IS NOT NULL OR j.state IN ('scheduled', 'claimed', 'sending', 'unknown'))
""",
    ),
    Invariant(
        "D14",
        _("no send began after its worker run was over, or before it was there"),
        _(
            "Somebody sent under a run that is proved gone, so nothing else proved by its end"
            " holds. Look at the page for these jobs."
        ),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'begun at ' || a.begun_at || '; worker run ' || i.id || ' lived from ' || i.started_at
           || ' to ' || coalesce(i.ended_at::text, 'now') AS detail
  FROM {attempts} a JOIN incarnations i ON i.id = a.incarnation
 WHERE a.begun_at < i.started_at - interval '1 second'
    OR a.claimed_at < i.started_at - interval '1 second'
    OR a.begun_at > i.ended_at + interval '1 second'
""",
    ),
    Invariant(
        "D15",
        _("what a person held stays held until it is released"),
        _("It would be sent against their word. Hold it again: publisher jobs hold"),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       e.who || ' held it at ' || e.at AS detail
  FROM {jobs} j
 CROSS JOIN LATERAL (
       SELECT e.event, e.who, e.at FROM job_events e
        WHERE e.job_id = j.id
          AND e.event NOT IN ('reschedule', 'replace', 'alert', 'late_answer', 'spool_read')
        ORDER BY e.at DESC, e.id DESC LIMIT 1) AS e
 WHERE e.event = 'hold'
   AND (j.state IN ('claimed', 'sending') OR j.state = 'scheduled' AND j.hold_reason IS NULL)
""",
    ),
    Invariant(
        "D16",
        _("each job sends under a platform key of its own"),
        _(
            "A platform takes two posts under one key for one post, or one under two for two. Hold"
            " both jobs and look at the page."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'the platform key ' || c.platform_key || ' is also that of job ' || o.id AS detail
  FROM jobs j
  JOIN job_contents c ON c.job_id = j.id
  JOIN {contents} d ON d.platform_key = c.platform_key AND d.job_id <> c.job_id
  JOIN jobs o ON o.id = d.job_id AND o.channel_id = j.channel_id
 WHERE j.state IN ('scheduled', 'claimed', 'sending', 'unknown')
""",
    ),
    Invariant(
        "D17",
        _("what is in quarantine is held, and only that"),
        _(
            "It may be live from before the database was restored, and would be sent again; or it"
            " is held and nobody looks. See: publisher quarantine status"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'it is ' || j.state || ', hold: ' || coalesce(j.hold_reason, 'none')
           || CASE WHEN q.job_id IS NULL THEN ', and not among the quarantined'
                   ELSE ', and not released' END AS detail
  FROM jobs j LEFT JOIN quarantined q ON q.job_id = j.id AND q.released_at IS NULL
 WHERE q.job_id IS NOT NULL
       AND (j.state IN ('claimed', 'sending', 'failed', 'missed', 'published', 'unknown')
            OR j.state = 'scheduled' AND j.hold_reason IS DISTINCT FROM 'quarantine')
    OR j.state = 'scheduled' AND j.hold_reason = 'quarantine' AND q.job_id IS NULL
""",
    ),
    Invariant(
        "D18",
        _("a job takes another's place only where that one is certainly not on the page"),
        _(
            "Both may be live, or will be. Hold the newer one: publisher jobs hold; then look at"
            " the page for both, and record what you see."
        ),
        """
SELECT j.id AS job_id, a.number AS attempt, j.channel_id,
       'it takes the place of job ' || o.id || ', which is ' || o.state
           || CASE WHEN a.number IS NULL THEN ''
                   ELSE ', with attempt ' || a.number || ': '
                        || coalesce(nullif(a.outcome, 'published') || ', proof '
                                    || coalesce(a.proof, 'none'), a.outcome, 'no end') END AS detail
  FROM {jobs} j
  JOIN jobs o ON o.id = j.replaces
  LEFT JOIN LATERAL (
       SELECT a.number, a.outcome, a.proof FROM attempts a
        WHERE a.job_id = o.id
          AND (a.outcome = 'published' OR a.proof IS NULL
               OR a.proof NOT IN ('not_sent', 'refused', 'absent'))
        ORDER BY a.number LIMIT 1) AS a ON true
 WHERE j.replaces IS NOT NULL
   -- What was called off before it was begun takes nobody's place.
   AND (j.state IN ('scheduled', 'claimed', 'sending', 'unknown', 'published') OR j.attempts > 0)
   AND (a.number IS NOT NULL OR o.state NOT IN ('failed', 'missed', 'cancelled'))
""",
    ),
)
