"""What one row says and others deny: a job, its sends and its content."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.engine.job import Hold
from publisher.engine.outcome import Reason
from publisher.words import _


def _listed(words: type[Hold | Reason]) -> str:
    return ", ".join(f"'{word}'" for word in words)


UNTRUE: Final = (
    Invariant(
        "T01",
        _("a job has a holder exactly while it is prepared or sent"),
        _(
            "Its columns contradict its state, so a worker may pass it over, or trust a lease that"
            " is none. Open it, and believe its attempts."
        ),
        """
SELECT id AS job_id, attempts AS attempt, channel_id,
       state || concat(', token ' || token, ', worker run ' || incarnation,
                       ', claimed at ' || claimed_at, ', hand at ' || hand_at,
                       ', lease until ' || lease_until) AS detail
  FROM {jobs} j
 WHERE (state IN ('claimed', 'sending')) <> (token IS NOT NULL)
    OR (token IS NULL) <> (incarnation IS NULL)
    OR (token IS NULL) <> (claimed_at IS NULL)
    OR (token IS NULL) <> (lease_until IS NULL)
    OR lease_until < claimed_at - interval '1 day'
    OR hand_at IS NOT NULL AND state <> 'claimed'
    OR state NOT IN ('scheduled', 'claimed', 'sending', 'published', 'failed', 'unknown',
                     'missed', 'cancelled', 'dropped')
""",
    ),
    Invariant(
        "T02",
        _("what is live says where, or who saw it, and nothing else does"),
        _("Open it: publisher jobs show. Believe its attempts and verdicts, not its state."),
        """
SELECT id AS job_id, attempts AS attempt, channel_id,
       'it is ' || state || concat(', remote id ' || remote_id, ', attested at ' || attested_at)
           AS detail
  FROM {jobs} j
 WHERE (state = 'published') <> (remote_id IS NOT NULL OR attested_at IS NOT NULL)
    OR remote_id IS NOT NULL AND attested_at IS NOT NULL
""",
    ),
    Invariant(
        "T03",
        _("a job has an end exactly when it has ended"),
        _("Reports and waits go by it. Open the job, and believe its journal."),
        """
SELECT id AS job_id, attempts AS attempt, channel_id,
       'it is ' || state || ', settled at ' || coalesce(settled_at::text, 'no time') AS detail
  FROM {jobs} j
 WHERE (state IN ('scheduled', 'claimed', 'sending')) <> (settled_at IS NULL)
""",
    ),
    Invariant(
        "T04",
        _("a hold has a known reason and keeps only what is scheduled"),
        _("It is neither sent nor shown as held. Release it, or hold it anew."),
        f"""
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'it is ' || j.state || ', hold: ' || j.hold_reason AS detail
  FROM {{jobs}} j
 WHERE j.hold_reason IS NOT NULL
   AND (j.state <> 'scheduled' OR j.hold_reason NOT IN ({_listed(Hold)})
        OR j.hold_reason IN ('{Hold.PERSON}', '{Hold.APPROVAL}')
           AND coalesce((SELECT e.event FROM job_events e
                          WHERE e.job_id = j.id AND e.event IN ('hold', 'release_hold')
                          ORDER BY e.at DESC, e.id DESC LIMIT 1), '') <> 'hold')
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T05",
        _("attempts are numbered from one without a gap, as many as their job counts"),
        _(
            "A send is missing from the record, or one was added. Look at the page for two copies,"
            " and at the worker's own file."
        ),
        """
SELECT j.id AS job_id, a.newest AS attempt, j.channel_id,
       'it counts ' || j.attempts || ', there are ' || coalesce(a.rows, 0) || ' up to number '
           || coalesce(a.newest, 0) AS detail
  FROM {jobs} j
  LEFT JOIN (SELECT job_id, count(*) AS rows, max(number) AS newest, min(number) AS oldest,
                    sum(number) AS together
               FROM {attempts} a GROUP BY job_id) AS a ON a.job_id = j.id
 WHERE j.attempts <> coalesce(a.rows, 0) OR j.attempts <> coalesce(a.newest, 0)
    OR a.oldest <> 1 OR a.together <> a.rows * (a.rows + 1) / 2
    OR j.claims < j.attempts OR j.failures < 0 OR j.deaths < 0
    OR j.failures > j.claims OR j.deaths > j.claims
""",
    ),
    Invariant(
        "T06",
        _("what is being sent has one open attempt, its own, and nothing else has one"),
        _(
            "An answer would find no attempt, or the wrong one. Do not stop the worker; compare"
            " token and run, and look at the page."
        ),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       CASE WHEN a.job_id IS NULL THEN 'it is being sent without an open attempt of its own'
            ELSE 'it is held under another token, run or time than its attempt' END AS detail
  FROM jobs j
  LEFT JOIN attempts a ON a.job_id = j.id AND a.number = j.attempts AND a.settled_at IS NULL
 WHERE j.incarnation IS NOT NULL AND j.state = 'sending'
   AND (a.job_id IS NULL OR a.token <> j.token OR a.incarnation <> j.incarnation
        OR a.claimed_at <> j.claimed_at)
UNION ALL
SELECT a.job_id, a.number, j.channel_id, 'attempt ' || a.number || ' is open, the job is '
           || j.state
  FROM {attempts} a JOIN jobs j ON j.id = a.job_id
 WHERE a.settled_at IS NULL AND (j.state <> 'sending' OR a.number <> j.attempts)
""",
    ),
    Invariant(
        "T07",
        _("an attempt that has ended says how, in words of the list"),
        _("What it came to is not known any more. Take it for a doubt: look at the page."),
        f"""
SELECT job_id, number AS attempt, NULL::integer AS channel_id,
       concat('outcome ' || outcome, ', reason ' || reason, ', remote id ' || remote_id,
              ', settled at ' || settled_at) AS detail
  FROM {{attempts}} a
 WHERE (settled_at IS NULL) <> (outcome IS NULL)
    OR (outcome = 'published') IS DISTINCT FROM (remote_id IS NOT NULL)
       AND (outcome IS NOT NULL OR remote_id IS NOT NULL)
    OR outcome NOT IN ('published', 'rejected', 'deferred', 'unauthorized', 'unknown')
    OR reason NOT IN ({_listed(Reason)})
    OR reason IS NULL AND outcome <> 'published'
    OR reason IS NOT NULL AND outcome = 'published'
       AND NOT EXISTS (SELECT FROM verdicts v WHERE v.job_id = a.job_id AND v.decision = 'live')
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T08",
        _("what is called live has an answer, a look or a person behind it"),
        _("Nothing shows that it is on the page. Look there; if it is not, say so to its editor."),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       CASE WHEN j.remote_id IS NULL THEN 'attested at ' || j.attested_at
            ELSE 'live as ' || j.remote_id END
           || ', settled at ' || coalesce(j.settled_at::text, '?')
           || ', by no answer and no verdict of that time' AS detail
  FROM (SELECT w.*
          FROM {jobs} w
          LEFT JOIN attempts n
            ON n.job_id = w.id AND n.number = w.attempts AND n.outcome = 'published'
               AND n.remote_id = w.remote_id
               AND n.settled_at BETWEEN w.settled_at - interval '10 minutes'
                                    AND w.settled_at + interval '10 minutes'
         WHERE w.state = 'published' AND n.job_id IS NULL
        OFFSET 0) AS j  -- the plain ones first: what follows is asked row by row
 WHERE NOT (
       EXISTS (SELECT FROM attempts a
                WHERE a.job_id = j.id AND a.outcome = 'published' AND a.remote_id = j.remote_id)
       AND (EXISTS (SELECT FROM job_events e
                     WHERE e.job_id = j.id AND e.event IN ('late_answer', 'spool_read')
                       AND abs(extract(epoch FROM e.at - j.settled_at)) < 600)
            OR EXISTS (SELECT FROM attempts m
                        WHERE m.job_id = j.id AND m.number = j.attempts
                          AND abs(extract(epoch FROM m.settled_at - j.settled_at)) < 600)))
   AND NOT EXISTS (SELECT FROM verdicts v
                    WHERE v.job_id = j.id
                      AND (v.decision = 'live' AND v.detail ->> 'remote_id' = j.remote_id
                           OR v.decision = 'attested' AND j.remote_id IS NULL
                              AND abs(extract(epoch FROM v.at - j.attested_at)) < 600)
                      AND abs(extract(epoch FROM v.at - j.settled_at)) < 600)
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = j.id
                      AND (e.event IN ('confirm_published', 'quarantine_found', 'late_publish')
                               AND e.detail ->> 'remote_id' = j.remote_id
                           OR e.event = 'quarantine_found' AND j.remote_id IS NULL
                              AND abs(extract(epoch FROM e.at - j.attested_at)) < 600)
                      AND abs(extract(epoch FROM e.at - j.settled_at)) < 600)
""",
    ),
    Invariant(
        "T09",
        _("what an answer named is bound to the job that was sent"),
        _("A look could take that post for another job's. Open the job, and look at the page."),
        """
SELECT a.job_id, a.number AS attempt, j.channel_id,
       a.remote_id || ' is not bound to this job' AS detail
  FROM {attempts} a JOIN jobs j ON j.id = a.job_id
 WHERE a.remote_id IS NOT NULL AND j.remote_id IS DISTINCT FROM a.remote_id
   AND NOT EXISTS (SELECT FROM remote_posts r
                    WHERE r.channel_id = j.channel_id AND r.remote_id = a.remote_id
                      AND r.job_id = j.id)
UNION ALL
SELECT v.job_id, v.attempt, j.channel_id, (c.copy ->> 'remote_id') || ', a copy, is not bound'
  FROM {verdicts} v
  JOIN jobs j ON j.id = v.job_id
 CROSS JOIN LATERAL jsonb_array_elements(coalesce(v.detail -> 'also', '[]')) AS c(copy)
 WHERE v.decision = 'live'
   AND NOT EXISTS (SELECT FROM remote_posts r
                    WHERE r.channel_id = j.channel_id AND r.remote_id = c.copy ->> 'remote_id'
                      AND r.job_id = j.id)
""",
    ),
    Invariant(
        "T10",
        _("a remote post is bound because an answer or a verdict named it"),
        _("Nothing says why that post is this job's. Look at the page; whose post it is decides."),
        """
SELECT r.job_id, NULL::integer AS attempt, r.channel_id,
       r.remote_id || ', bound at ' || r.bound_at AS detail
  FROM {remote_posts} r
  LEFT JOIN jobs j ON j.id = r.job_id
 WHERE r.bound_at > now() + interval '1 minute'
    OR j.channel_id <> r.channel_id
    OR NOT coalesce(j.remote_id = r.remote_id
                    AND r.bound_at BETWEEN j.settled_at - interval '10 minutes'
                                       AND j.settled_at + interval '10 minutes', false)
   AND NOT EXISTS (SELECT FROM attempts a
                    WHERE a.job_id = r.job_id AND a.remote_id = r.remote_id
                      AND r.bound_at >= a.begun_at)
   AND NOT EXISTS (SELECT FROM verdicts v
                    WHERE v.job_id = r.job_id AND v.decision = 'live'
                      AND (v.detail ->> 'remote_id' = r.remote_id
                           OR v.detail -> 'also' @> jsonb_build_array(
                                  jsonb_build_object('remote_id', r.remote_id)))
                      AND abs(extract(epoch FROM v.at - r.bound_at)) < 600)
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = r.job_id
                      AND e.event IN ('confirm_published', 'quarantine_found', 'late_publish')
                      AND e.detail ->> 'remote_id' = r.remote_id
                      AND abs(extract(epoch FROM e.at - r.bound_at)) < 600)
""",
    ),
    Invariant(
        "T11",
        _("content has the hash that is kept with it"),
        _(
            "It is not what was approved, or not what was sent. Cancel what is not sent yet, and"
            " schedule it from its version."
        ),
        """
SELECT c.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       'the hash of its content is another' AS detail
  FROM {contents} c
 WHERE c.content_sha256 <> sha256(convert_to(c.content, 'UTF8'))
    OR (c.progress IS NULL) <> (c.progress_sha256 IS NULL)
""",
    ),
    Invariant(
        "T12",
        _("what was sent is the content of its job"),
        _("Its content was changed after a send began. Look at the page for what is there."),
        """
SELECT a.job_id, a.number AS attempt, NULL::integer AS channel_id,
       'sent version ' || coalesce(a.version::text, '?') || ', the job has version '
           || coalesce(c.version::text, '?') AS detail
  FROM {attempts} a JOIN job_contents c ON c.job_id = a.job_id
 WHERE a.content_sha256 <> c.content_sha256 OR a.version IS DISTINCT FROM c.version
""",
    ),
    Invariant(
        "T13",
        _("what a job sends is an approved version of its post, byte for byte"),
        _(
            "Nobody approved what would be sent, or was. Hold the job; compare its content with the"
            " versions of its post."
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       CASE WHEN v.id IS NULL THEN 'its version is gone'
            WHEN a.version_id IS NULL THEN 'version ' || v.number || ' is not approved'
            ELSE 'it is not version ' || v.number || ' of post ' || v.post_id END AS detail
  FROM {jobs} j
  JOIN {contents} c ON c.job_id = j.id
  LEFT JOIN (SELECT id, post_id, number, content_sha256,
                    sha256(convert_to(content, 'UTF8')) AS made
               FROM {versions} w OFFSET 0) AS v ON v.id = c.version_id
  LEFT JOIN (SELECT version_id, channel_id, content_sha256,
                    sha256(convert_to(content, 'UTF8')) AS made
               FROM version_variants w OFFSET 0) AS x
         ON x.version_id = v.id AND x.channel_id = j.channel_id
  LEFT JOIN approvals a ON a.version_id = v.id
 WHERE (c.version_id IS NOT NULL OR c.version IS NOT NULL
        OR j.post_id IS NOT NULL AND starts_with(c.key, 'post:'))
   AND (v.id IS NULL OR a.version_id IS NULL
        OR v.post_id IS DISTINCT FROM j.post_id OR v.number IS DISTINCT FROM c.version
        OR coalesce(x.content_sha256, v.content_sha256) IS DISTINCT FROM c.content_sha256
        OR coalesce(x.made, v.made) IS DISTINCT FROM c.content_sha256
        OR a.approved_at IS NULL OR a.approved_at > now() + interval '1 minute'
        OR coalesce(a.approved_by, '') = '')
""",
    ),
    Invariant(
        "T14",
        _("a job is about the post, channel and time that its key names"),
        _(
            "It would go elsewhere, or at another time, than was scheduled. Hold it and open it:"
            " publisher jobs show"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       k.key || ': post ' || coalesce(j.post_id::text, '-') || ', kind ' || j.kind || ', queue '
           || j.queue || ', due at ' || j.due_at AS detail
  FROM {jobs} j
  JOIN {keys} k ON k.job_id = j.id
 WHERE starts_with(k.key, 'post:')
   AND (j.kind <> 'publish' OR j.queue <> 'publish' OR j.useful_until IS NULL
        OR k.key IS DISTINCT FROM 'post:' || j.post_id || '/channel:' || j.channel_id || '/at:'
               || to_char(j.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
           AND (NOT starts_with(k.key, 'post:' || coalesce(j.post_id, 0)
                                       || '/channel:' || j.channel_id || '/at:')
                OR j.due_at IS DISTINCT FROM (
                   SELECT w.at FROM (
                       SELECT e.at AS told_at, (e.detail ->> 'to')::timestamptz AS at
                         FROM job_events e WHERE e.job_id = j.id AND e.event = 'reschedule'
                       UNION ALL
                       SELECT v.at, (v.detail ->> 'at')::timestamptz FROM verdicts v
                        WHERE v.job_id = j.id AND v.detail ->> 'at' IS NOT NULL) AS w
                    ORDER BY w.told_at DESC LIMIT 1)))
    OR starts_with(k.key, 'alert:')
       AND (j.kind <> j.queue OR j.post_id IS NOT NULL
            OR k.key !~ ('/to:' || j.channel_id || '(/|$)'))
""",
    ),
    Invariant(
        "T15",
        _("the times of a job are in their order"),
        _("A time was rewritten. Believe the journal: publisher jobs show"),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       concat('claimed at ' || j.claimed_at, ', hand at ' || j.hand_at,
              ', settled at ' || j.settled_at, ', attested at ' || j.attested_at) AS detail
  FROM {jobs} j
 WHERE greatest(j.claimed_at, j.hand_at, j.settled_at, j.attested_at)
           > now() + interval '1 minute'
    OR j.hand_at < j.claimed_at - interval '1 second'
    OR j.incarnation IS NOT NULL
       AND j.claimed_at < (SELECT i.started_at - interval '1 second' FROM incarnations i
                            WHERE i.id = j.incarnation)
""",
    ),
    Invariant(
        "T16",
        _("the times of an attempt are in their order"),
        _("A time was rewritten, and the horizon counts from it. Send nothing again by it."),
        """
SELECT job_id, number AS attempt, NULL::integer AS channel_id,
       concat('claimed at ' || claimed_at, ', begun at ' || begun_at,
              ', settled at ' || settled_at, ', proved at ' || proved_at) AS detail
  FROM {attempts} a
 WHERE claimed_at > begun_at + interval '1 second'
    OR settled_at < begun_at - interval '1 second'
    OR proved_at < begun_at - interval '1 second'
    OR greatest(claimed_at, begun_at, settled_at, proved_at) > now() + interval '1 minute'
""",
    ),
    Invariant(
        "T17",
        _("a send began when its post was due and still of use"),
        _("It was sent early, or too late to be of use. Tell its editor, who may take it down."),
        """
SELECT j.id AS job_id, a.number AS attempt, j.channel_id,
       'begun at ' || a.begun_at || ', due at ' || j.due_at || ', useful until '
           || coalesce(j.useful_until::text, 'ever') AS detail
  FROM {attempts} a
  JOIN jobs j ON j.id = a.job_id AND j.attempts = a.number
 WHERE (a.begun_at < j.due_at - interval '1 second' OR a.begun_at > j.useful_until)
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = j.id AND e.at >= a.begun_at
                      AND e.event IN ('reschedule', 'requeue'))
   AND NOT EXISTS (SELECT FROM verdicts v
                    WHERE v.job_id = j.id AND v.at >= a.begun_at
                      AND (v.detail ->> 'at' IS NOT NULL
                           OR v.detail ->> 'useful_until' IS NOT NULL))
""",
    ),
)
