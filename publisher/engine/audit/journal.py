"""What one row says and others deny: the journal, its verdicts, doubts and worker runs."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.engine.transitions import Event, sources, trigger_pairs
from publisher.words import _

_OPEN: Final = "scheduled claimed sending"
# What a journal line says of the job's state after it; several where the line leaves it open.
_WORDS: Final = {
    "cancel": "cancelled",
    "expire": "missed",
    "reject": "failed",
    "repeat_ended": "unknown",
    "look_unclear": "unknown",
    "spool_found": "unknown",
    "confirm_published": "published unknown",  # unknown where the id was another job's
    "defer": f"{_OPEN} failed unknown",
    "unauthorized": f"{_OPEN} failed unknown",
    "late_publish": "published",
    "quarantine": _OPEN,
    "quarantine_found": "published",
    "quarantine_released": _OPEN,
    "restore": _OPEN,
    "requeue": _OPEN,
    "hold": _OPEN,
    "release_hold": _OPEN,
    "reschedule": _OPEN,
    "replace": _OPEN,
}
# What each kind of line holds; ``alert`` and those of a doubt's desk say nothing of the state.
_SHAPES: Final = {
    "lease_expired": "from to worker_run deaths why",
    "late_answer": "from to",
    "spool_read": "from to",
    "reschedule": "from to",
    "reject": "reason",
    "defer": "reason",
    "unauthorized": "reason",
    "look_unclear": "reason",
    "confirm_published": "remote_id",
    "late_publish": "from remote_id",
    "quarantine": "cause since",
    "quarantine_found": "reason",
    "quarantine_look": "kind",
    "quarantine_released": "reason",
    "alert": "incident at alert",
    "hand_over": "to",
    "withdraw": "how",
    "snooze": "until",
    "declare_gone": "run declared_gone_at",
}
_OTHERS: Final = ("spool_found", "take", "look_now")
_NAMES_AN_ATTEMPT: Final = "'late_answer', 'spool_read', 'spool_found', 'confirm_published'"


def _array(words: str) -> str:
    return "ARRAY[" + ", ".join(f"'{word}'" for word in words.split()) + "]"


def _cases(of: dict[str, str], column: str) -> str:
    return "CASE " + column + " " + " ".join(
        f"WHEN '{name}' THEN {_array(words)}" for name, words in of.items()
    )  # fmt: skip


_PAIRS: Final = ", ".join(f"'{was}>{to}'" for was, to in trigger_pairs())
# A person's or the clock's act names the state it is possible from by its kind.
_FROM: Final = {
    event.value: " ".join(sorted(sources(event)))
    for event in (Event.CANCEL, Event.RESTORE, Event.REQUEUE, Event.EXPIRE, Event.HOLD,
                  Event.RELEASE_HOLD, Event.RESCHEDULE)
}  # fmt: skip
_KNOWN: Final = ", ".join(f"'{name}'" for name in sorted({*_WORDS, *_SHAPES, *_OTHERS}))

# From scheduled a job goes on, and back, without a line of its own.
_TO: Final = f"""CASE WHEN e.detail ->> 'to' = ANY ({_array(_OPEN)}) THEN {_array(_OPEN)}
                ELSE ARRAY[e.detail ->> 'to'] END"""
# Every line that says a state, with when: journal, verdicts, and how attempts ended. An attempt
# that was answered late ended differently from what it said at the time.
_LINES: Final = f"""
SELECT e.job_id, e.at, e.event AS line,
       {_cases(_WORDS, "e.event")}
           WHEN 'lease_expired' THEN {_TO} WHEN 'late_answer' THEN {_TO}
           WHEN 'spool_read' THEN {_TO} END AS says
  FROM {{events}} e
UNION ALL
SELECT v.job_id, v.at, 'verdict',
       CASE v.decision
           WHEN 'dropped' THEN ARRAY['dropped']
           WHEN 'repeat' THEN {_array(_OPEN)}
           WHEN 'absent' THEN CASE v.detail ->> 'send' WHEN 'true' THEN {_array(_OPEN)}
                                                       ELSE ARRAY['failed'] END
           ELSE ARRAY['published'] END
  FROM {{verdicts}} v
UNION ALL
SELECT a.job_id, a.settled_at, 'settle',
       CASE a.outcome
           WHEN 'unknown' THEN ARRAY['unknown']
           WHEN 'published' THEN ARRAY['published', 'unknown']  -- a verdict came after it
           WHEN 'rejected' THEN CASE WHEN EXISTS (
                   SELECT FROM verdicts r WHERE r.job_id = a.job_id AND r.decision = 'repeat')
               THEN ARRAY['failed', 'unknown'] ELSE ARRAY['failed'] END
           ELSE {_array(_OPEN + " failed unknown")} END
  FROM {{attempts}} a
  JOIN jobs o ON o.id = a.job_id AND (o.state <> 'published' OR o.attempts > 1
       OR EXISTS (SELECT FROM verdicts d WHERE d.job_id = a.job_id)
       OR EXISTS (SELECT FROM job_events r WHERE r.job_id = a.job_id AND r.event = 'requeue'))
 WHERE a.settled_at IS NOT NULL
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = a.job_id AND e.attempt = a.number
                      AND e.event IN ('late_answer', 'spool_read'))
"""  # noqa: S608 - our own words

JOURNAL: Final = (
    Invariant(
        "T19",
        _("a job stands where the last line of its journal left it"),
        _(
            "Its state was written past the journal. Hold it; open it, and believe the journal:"
            " publisher jobs show"
        ),
        f"""
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       'it is ' || j.state || ', its last line is '
           || coalesce(w.line || ' at ' || w.at, 'none') AS detail
  FROM {{jobs}} j
  LEFT JOIN (SELECT DISTINCT ON (l.job_id) l.* FROM ({_LINES}) AS l
              WHERE l.says IS NOT NULL ORDER BY l.job_id, l.at DESC) AS w ON w.job_id = j.id
 WHERE j.state <> 'published' AND NOT j.state = ANY (coalesce(w.says, {_array(_OPEN)}))
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T20",
        _("a job ended when its journal says that it did"),
        _("Its end was written past the journal. Believe the journal: publisher jobs show"),
        """
SELECT j.id AS job_id, j.attempts AS attempt, j.channel_id,
       'settled at ' || j.settled_at || ', and nothing in its journal is of that time' AS detail
  FROM {jobs} j
  LEFT JOIN attempts n
    ON n.job_id = j.id AND n.number = j.attempts
       AND n.settled_at BETWEEN j.settled_at - interval '10 minutes'
                            AND j.settled_at + interval '10 minutes'
 WHERE j.settled_at IS NOT NULL AND j.state <> 'published' AND n.job_id IS NULL
   AND NOT EXISTS (SELECT FROM job_events e
                    WHERE e.job_id = j.id AND abs(extract(epoch FROM e.at - j.settled_at)) < 600)
   AND NOT EXISTS (SELECT FROM verdicts v
                    WHERE v.job_id = j.id AND abs(extract(epoch FROM v.at - j.settled_at)) < 600)
""",
    ),
    Invariant(
        "T21",
        _("the journal holds no move that the table of transitions does not allow"),
        _("Something moved it past the rules, or the journal was changed. Hold it and look."),
        f"""
SELECT e.job_id, e.attempt, NULL::integer AS channel_id,
       e.event || ' from ' || (e.detail ->> 'from') || ' to ' || (e.detail ->> 'to') AS detail
  FROM {{events}} e
 WHERE e.event IN ('lease_expired', 'late_answer', 'spool_read')
   AND e.detail ->> 'from' <> e.detail ->> 'to'
   AND (e.detail ->> 'from') || '>' || (e.detail ->> 'to') NOT IN ({_PAIRS})
UNION ALL
SELECT c.job_id, NULL, NULL,
       c.line || ' at ' || c.at || ' while it was '
           || coalesce(array_to_string(c.was, ' or '), 'never ended')
  FROM (SELECT l.job_id, l.at, l.line,
               lag(l.says) OVER (PARTITION BY l.job_id ORDER BY l.at) AS was,
               CASE WHEN l.line = 'verdict' THEN ARRAY['unknown']
                    ELSE {_cases(_FROM, "l.line")} END END AS possible
          FROM ({_LINES}) AS l WHERE l.says IS NOT NULL) AS c
 WHERE NOT c.was && c.possible OR c.was IS NULL AND c.line IN ('restore', 'requeue')
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T22",
        _("each line of the journal is of a known kind and holds what that kind says"),
        _("The journal was changed. Compare it with the logs of that time."),
        f"""
SELECT e.job_id, e.attempt, NULL::integer AS channel_id,
       'line ' || e.id || ', ' || e.event || ' by ' || e.who || ' at ' || e.at AS detail
  FROM {{events}} e
  LEFT JOIN jobs j ON j.id = e.job_id
 WHERE e.event NOT IN ({_KNOWN}) OR e.who = ''
    OR jsonb_typeof(e.detail) <> 'object'
    OR NOT e.detail ?& coalesce({_cases(_SHAPES, "e.event")} END, '{{}}'::text[])
    OR e.at > now() + interval '1 minute'
    OR e.at < (SELECT d.created_at FROM deployment d) - interval '1 hour'
    OR e.attempt IS NULL AND e.event IN ({_NAMES_AN_ATTEMPT})
    OR e.attempt IS NULL AND e.event = 'lease_expired' AND e.detail ->> 'from' = 'sending'
    OR (e.attempt < 1 OR e.attempt > j.attempts)
       AND e.event NOT IN ('spool_found', 'declare_gone')
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T23",
        _("a look is of its attempt, after it, and says what it saw"),
        _("A verdict may rest on it. Have it looked at again: publisher unknowns look"),
        """
SELECT l.job_id, l.attempt, NULL::integer AS channel_id,
       'look ' || l.id || ' by ' || l.by || ' from ' || l.begun_at || ' to ' || l.ended_at AS detail
  FROM {looks} l
  LEFT JOIN attempts a ON a.job_id = l.job_id AND a.number = l.attempt
 WHERE a.token IS DISTINCT FROM l.token OR l.by = ''
    OR l.begun_at > l.ended_at + interval '1 second'
    OR l.begun_at < a.begun_at - interval '1 minute'
    OR l.ended_at > now() + interval '1 minute'
    OR coalesce(l.evidence ->> 'kind', '') NOT IN ('Found', 'Absent', 'Inconclusive')
""",
    ),
    Invariant(
        "T24",
        _("a verdict is of its attempt, signed, and its proof is on it"),
        _(
            "What was decided is not what stands. Hold the job; ask whoever signed it, and look at"
            " the page."
        ),
        """
SELECT v.job_id, v.attempt, NULL::integer AS channel_id,
       'verdict ' || v.id || ', ' || v.decision || ' by ' || v.who || ' at ' || v.at AS detail
  FROM {verdicts} v
  LEFT JOIN attempts a ON a.job_id = v.job_id AND a.number = v.attempt
 WHERE v.who = '' OR v.reason = ''
    OR v.decision NOT IN ('live', 'attested', 'absent', 'repeat', 'dropped')
    OR a.token IS DISTINCT FROM v.token
    OR v.attempt <> 0 AND a.job_id IS NULL
    OR v.at > now() + interval '1 minute' OR v.at < a.begun_at - interval '1 second'
    OR v.decision IN ('absent', 'repeat') AND v.attempt <> 0 AND a.proof IS NULL
    OR (v.decision = 'live') <> (v.detail ? 'remote_id')
    OR (v.decision = 'absent') <> (v.detail ? 'send')
    OR v.detail ? 'until' AND v.decision <> 'repeat'
    OR v.decision = 'live' AND v.attempt <> 0 AND a.outcome IS DISTINCT FROM 'published'
    OR v.who = 'reconciler' AND v.decision IN ('live', 'absent')
       AND NOT EXISTS (SELECT FROM looks l
                        WHERE l.job_id = v.job_id AND l.attempt = v.attempt
                          AND l.ended_at <= v.at + interval '1 second'
                          AND (v.decision = 'live' AND l.evidence ->> 'kind' = 'Found'
                                   AND l.evidence ->> 'remote_id' = v.detail ->> 'remote_id'
                               OR v.decision = 'absent' AND l.evidence ->> 'kind' = 'Absent'))
""",
    ),
    Invariant(
        "T25",
        _("a doubt's columns agree with one another"),
        _(
            "It may be looked at by nobody, or asked of nobody. Have it looked at: publisher"
            " unknowns look"
        ),
        """
SELECT d.job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       concat('since ' || d.since, ', next look ' || d.next_look_at, ', asked ' || d.asked_at,
              ', taken by ' || d.taken_by || ' ' || d.taken_at) AS detail
  FROM doubts d
 WHERE (d.look_token IS NULL) <> (d.lease_until IS NULL)
    OR (d.asked_at IS NULL) <> (d.asked_reason IS NULL)
    OR (d.taken_by IS NULL) <> (d.taken_at IS NULL)
    OR d.next_look_at IS NULL AND d.asked_at IS NULL
    OR d.looks < 0
    OR greatest(d.since, d.asked_at, d.taken_at) > now() + interval '1 minute'
    OR least(d.asked_at, d.taken_at) < d.since - interval '1 second'
    OR d.next_look_at < d.since - interval '1 minute'
    OR d.lease_until < d.since - interval '1 minute'
    OR d.snoozed_until < d.since - interval '1 minute'
""",
    ),
    Invariant(
        "T26",
        _("a worker run lived from its start to its last sign of life, and ended once"),
        _(
            "Its end proves that nothing of it can still be sent. Send nothing again by it until"
            " its process is known to be gone."
        ),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, NULL::integer AS channel_id,
       concat('worker run ' || i.id, ': started ' || i.started_at, ', seen ' || i.seen_at,
              ', ended ' || i.ended_at, ' (' || i.end_reason || ')',
              ', stated gone ' || i.declared_gone_at) AS detail
  FROM incarnations i
 WHERE i.seen_at < i.started_at - interval '1 second'
    OR i.ended_at < i.started_at - interval '1 second'
    OR i.declared_gone_at < i.started_at - interval '1 second'
    OR i.seen_at > i.ended_at + interval '1 minute'
    OR (i.ended_at IS NULL) <> (i.end_reason IS NULL)
    OR i.started_at < (SELECT d.created_at FROM deployment d) - interval '1 hour'
    OR greatest(i.started_at, i.seen_at, i.ended_at, i.declared_gone_at)
           > now() + interval '1 minute'
""",
    ),
    Invariant(
        "T27",
        _("a worker that died over a send is what its attempt gives as the reason"),
        _(
            "Otherwise its hand would count as returned, and the wait for it as over. Send nothing"
            " again by it."
        ),
        """
SELECT e.job_id, e.attempt, NULL::integer AS channel_id,
       'rescued from worker run ' || (e.detail ->> 'worker_run') || ', the attempt is of run '
           || coalesce(a.incarnation::text, '?') || ' with the reason '
           || coalesce(a.reason, 'none') AS detail
  FROM {events} e
  LEFT JOIN attempts a ON a.job_id = e.job_id AND a.number = e.attempt
 WHERE e.event = 'lease_expired' AND e.detail ->> 'from' = 'sending'
   AND (a.incarnation::text IS DISTINCT FROM e.detail ->> 'worker_run'
        OR a.reason IS DISTINCT FROM 'worker_died' AND a.outcome <> 'published'
           AND NOT EXISTS (SELECT FROM job_events l
                            WHERE l.job_id = e.job_id AND l.attempt = e.attempt
                              AND l.event IN ('late_answer', 'spool_read')))
""",
    ),
    Invariant(
        "T28",
        _("a post that an answer named late is bound to the job it came to"),
        _("The journal tells of another job's send. Look at the page; believe the attempts."),
        """
SELECT e.job_id, e.attempt, j.channel_id,
       e.event || ' names ' || (e.detail ->> 'remote_id') || ', which is bound to '
           || coalesce('job ' || r.job_id, 'no job') AS detail
  FROM {events} e
  JOIN jobs j ON j.id = e.job_id
  LEFT JOIN remote_posts r
    ON r.channel_id = j.channel_id AND r.remote_id = e.detail ->> 'remote_id'
 WHERE e.event IN ('late_answer', 'spool_read', 'late_publish', 'quarantine_found')
   AND coalesce(e.detail ->> 'outcome', 'published') = 'published'
   AND e.detail ->> 'remote_id' IS NOT NULL
   AND r.job_id IS DISTINCT FROM e.job_id
""",
    ),
    Invariant(
        "T29",
        _("a cancelled job says who called it off"),
        _("Nobody signed for it. Ask its editors whether it was to be sent."),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'cancelled, and no line of the journal says so' AS detail
  FROM {jobs} j
 WHERE j.state = 'cancelled'
   AND NOT EXISTS (SELECT FROM job_events e WHERE e.job_id = j.id AND e.event = 'cancel')
""",
    ),
    Invariant(
        "T30",
        _("rehearsals may publish on a channel exactly while somebody's word stands for it"),
        _(
            "A rehearsal could publish where nobody allowed it. Take it back: publisher channels"
            " forbid-rehearsal"
        ),
        """
SELECT NULL::bigint AS job_id, NULL::integer AS attempt, c.id AS channel_id,
       'allowed by ' || coalesce(c.rehearsal_allowed_by, 'nobody') || ', its journal says '
           || coalesce(e.event || ' by ' || e.who, 'nothing') AS detail
  FROM channels c
  LEFT JOIN LATERAL (
       SELECT event, who, at FROM channel_events
        WHERE channel_id = c.id AND event IN ('rehearsal_allowed', 'rehearsal_forbidden')
        ORDER BY id DESC LIMIT 1) AS e ON true
 WHERE (c.rehearsal_allowed_at IS NOT NULL)
           <> (coalesce(e.event, 'rehearsal_forbidden') = 'rehearsal_allowed')
    OR (c.rehearsal_allowed_at IS NULL) <> (c.rehearsal_allowed_by IS NULL)
    OR c.rehearsal_allowed_at IS NOT NULL
       AND (e.who <> c.rehearsal_allowed_by
            OR e.at NOT BETWEEN c.rehearsal_allowed_at - interval '1 minute'
                            AND c.rehearsal_allowed_at + interval '1 minute')
""",
    ),
)
