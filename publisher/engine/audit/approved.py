"""What was approved is what is sent, and nothing else: posts, their versions and their jobs."""

from __future__ import annotations

from typing import Final

from publisher.engine.audit.invariant import Invariant
from publisher.words import _

# The approval's row tells of the last time it was given; the journal of the post tells of those
# before, which were withdrawn and given anew.
_STOOD: Final = """coalesce(o.approved_at <= a.begun_at
                AND (o.withdrawn_at IS NULL OR o.withdrawn_at >= a.begun_at), false)
       OR 'approved' IS NOT DISTINCT FROM (
              SELECT e.event FROM post_events e
               WHERE e.post_id = v.post_id AND e.version = v.number
                 AND e.event IN ('approved', 'approval_withdrawn') AND e.at <= a.begun_at
               ORDER BY e.at DESC, e.id DESC LIMIT 1)"""

APPROVED: Final = (
    Invariant(
        "T31",
        _("what may be claimed, or is, has an approval that stands, and no newer form"),
        _(
            "It would go out although nobody approves it as it is now. Hold it: publisher jobs"
            " hold; then look at its post: publisher posts show"
        ),
        """
SELECT j.id AS job_id, NULL::integer AS attempt, j.channel_id,
       'it is ' || j.state || ' and free, and should be on hold: ' || h.hold AS detail
  FROM {jobs} j
 CROSS JOIN LATERAL (SELECT approval_hold(j.id, j.post_id) AS hold) AS h
 WHERE j.post_id IS NOT NULL
   AND (j.state = 'claimed' OR j.state = 'scheduled' AND j.hold_reason IS NULL)
   AND h.hold IS NOT NULL
   -- Under the rule "keep" it was let be, and a new rule is for edits from then on.
   AND (h.hold <> 'changed after approval'
        OR EXISTS (SELECT FROM jobs s
                    WHERE s.post_id = j.post_id AND s.channel_id = j.channel_id
                      AND s.kind = j.kind AND s.id > j.id AND s.state <> 'cancelled')
        OR EXISTS (SELECT FROM job_contents c
                     JOIN post_versions n ON n.post_id = j.post_id AND n.number > c.version
                     LEFT JOIN approvals o ON o.version_id = n.id AND o.withdrawn_at IS NULL
                    WHERE c.job_id = j.id
                      AND (o.version_id IS NOT NULL
                           OR n.created_at >= coalesce(edit_rule_since(j.post_id),
                                                       '-infinity'))))
""",
    ),
    Invariant(
        "T32",
        _("each send was of a version whose approval stood when it began, byte for byte"),
        _(
            "Something went out that nobody had approved. Look at the page, tell its editor, and"
            " compare: publisher posts show; publisher jobs show"
        ),
        f"""
SELECT a.job_id, a.number AS attempt, j.channel_id,
       CASE WHEN v.id IS NULL THEN 'it was of version ' || a.version || ' of post ' || j.post_id
                || ', which is gone'
            WHEN coalesce(x.content_sha256, v.content_sha256)
                     IS DISTINCT FROM a.content_sha256
            THEN 'what was sent is not version ' || v.number || ' of post ' || j.post_id
            WHEN p.trashed_at < a.begun_at
            THEN 'post ' || j.post_id || ' was in the trash when it began'
            ELSE 'version ' || v.number || ' of post ' || j.post_id
                     || ' was not approved at ' || a.begun_at END AS detail
  FROM {{attempts}} a
  JOIN jobs j ON j.id = a.job_id AND j.post_id IS NOT NULL
  LEFT JOIN posts p ON p.id = j.post_id
  LEFT JOIN post_versions v ON v.post_id = j.post_id AND v.number = a.version
  LEFT JOIN version_variants x ON x.version_id = v.id AND x.channel_id = j.channel_id
  LEFT JOIN approvals o ON o.version_id = v.id
 WHERE a.version IS NOT NULL
   AND (coalesce(x.content_sha256, v.content_sha256) IS DISTINCT FROM a.content_sha256
        OR p.trashed_at < a.begun_at
        OR NOT ({_STOOD}))
""",  # noqa: S608 - our own words
    ),
    Invariant(
        "T33",
        _("a version is what its hash says, in all its forms"),
        _(
            "It is not what its approver read. Hold the jobs of its post, and save and approve it"
            " anew: publisher posts edit"
        ),
        """
SELECT (SELECT min(c.job_id) FROM job_contents c WHERE c.version_id = v.id) AS job_id,
       NULL::integer AS attempt, NULL::integer AS channel_id,
       'version ' || v.number || ' of post ' || v.post_id AS detail
  FROM {versions} v
 WHERE v.content_sha256 IS DISTINCT FROM sha256(convert_to(v.content, 'UTF8'))
    OR CASE WHEN v.whole_sha256 IS NOT NULL
            THEN v.whole_sha256 IS DISTINCT FROM version_sha256(v.id)
            ELSE v.first_comment IS NOT NULL
                 OR EXISTS (SELECT FROM version_variants x WHERE x.version_id = v.id) END
UNION ALL
SELECT NULL, NULL, x.channel_id, 'version ' || v.number || ' of post ' || v.post_id
  FROM {versions} v JOIN version_variants x ON x.version_id = v.id
 WHERE x.content_sha256 IS DISTINCT FROM sha256(convert_to(x.content, 'UTF8'))
""",
    ),
)
