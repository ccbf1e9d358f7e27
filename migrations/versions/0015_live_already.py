"""What would put a post on a page where another job of it is live is held.

Revision ID: 0015
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# A job that took another's place says nothing of a repeat; the one whose place it took may.
STANDS = """
CREATE FUNCTION stands_already(job bigint) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
    WITH RECURSIVE line AS (
        SELECT id, replaces, repeats FROM jobs WHERE id = job
        UNION
        SELECT p.id, p.replaces, p.repeats FROM line l JOIN jobs p ON p.id = l.replaces)
    SELECT EXISTS (
        SELECT FROM jobs j
          JOIN jobs o ON o.post_id = j.post_id AND o.channel_id = j.channel_id
                     AND o.kind = j.kind AND o.id <> j.id
         WHERE j.id = job
           AND o.id > coalesce((SELECT max(l.repeats) FROM line l), 0)
           AND (o.state IN ('published', 'dropped')
                OR EXISTS (SELECT FROM attempts a
                            WHERE a.job_id = o.id
                              AND (a.proof IS NULL OR a.outcome = 'published'
                                   OR a.proof NOT IN ('not_sent', 'refused', 'absent')))))
$$;
REVOKE ALL ON FUNCTION stands_already(bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION approval_hold(job bigint, post bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
    SELECT CASE
               WHEN p.trashed_at IS NOT NULL OR a.version_id IS NULL
                    OR a.withdrawn_at IS NOT NULL THEN 'approval withdrawn'
               WHEN stands_already(job) THEN 'the post stands there already'
               WHEN EXISTS (SELECT FROM jobs j
                              JOIN jobs s ON s.post_id = j.post_id AND s.channel_id = j.channel_id
                                         AND s.kind = j.kind AND s.id > j.id
                             WHERE j.id = job AND s.state <> 'cancelled')
                   THEN 'changed after approval'
               WHEN EXISTS (SELECT FROM post_versions n
                              LEFT JOIN approvals o
                                ON o.version_id = n.id AND o.withdrawn_at IS NULL
                             WHERE n.post_id = post AND n.number > c.version
                               AND (w.edit_rule = 'hold' OR o.version_id IS NOT NULL))
                    AND NOT EXISTS (SELECT FROM attempts t
                                     WHERE t.job_id = job
                                       AND t.proof IN ('repeat_safe', 'forced'))
                   THEN 'changed after approval'
           END
      FROM job_contents c
      JOIN posts p ON p.id = post
      JOIN workspaces w ON w.id = p.workspace_id
      LEFT JOIN approvals a ON a.version_id = c.version_id
     WHERE c.job_id = job AND c.version_id IS NOT NULL
$$;

DROP TRIGGER jobs_hold_told ON jobs;
CREATE CONSTRAINT TRIGGER jobs_hold_told AFTER UPDATE ON jobs
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.hold_reason IN ('approval withdrawn', 'changed after approval',
                          'the post stands there already')
      AND NEW.hold_reason IS DISTINCT FROM OLD.hold_reason)
EXECUTE FUNCTION job_hold_told();
"""

# A job whose end was known is on the page after all, by a late answer: what took its place waits,
# out of its worker's hand where it was in one. An answer that comes in time has nothing behind it.
FOUND = """
CREATE FUNCTION job_found_live() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    UPDATE jobs j
       SET state = 'scheduled', hold_reason = 'the post stands there already', token = NULL,
           incarnation = NULL, claimed_at = NULL, hand_at = NULL, lease_until = NULL
      FROM jobs f
     WHERE f.id = (to_jsonb(NEW) ->> TG_ARGV[0])::bigint
       AND j.post_id = f.post_id AND j.channel_id = f.channel_id AND j.kind = f.kind
       AND j.id <> f.id
       AND (j.state = 'claimed' OR j.state = 'scheduled' AND j.hold_reason IS NULL)
       AND stands_already(j.id)
       AND EXISTS (SELECT FROM job_contents c
                    WHERE c.job_id = j.id AND c.version_id IS NOT NULL);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION job_found_live() FROM PUBLIC;
CREATE TRIGGER attempts_found_live AFTER UPDATE OF outcome ON attempts FOR EACH ROW
WHEN (NEW.outcome = 'published' AND OLD.settled_at IS NOT NULL AND OLD.outcome <> 'published')
EXECUTE FUNCTION job_found_live('job_id');
-- Of a send that the database does not hold there is no attempt.
CREATE TRIGGER jobs_found_live AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (NEW.post_id IS NOT NULL AND NEW.state = 'published'
      AND OLD.state IN ('failed', 'missed', 'dropped'))
EXECUTE FUNCTION job_found_live('id');
"""


def upgrade() -> None:
    """Add the reason, and hold what is found to have it."""
    bind = op.get_bind()
    bind.exec_driver_sql(STANDS)
    bind.exec_driver_sql(FOUND)


def downgrade() -> None:
    """A refusal is not taken back."""
    message = "what the database refuses it goes on to refuse"
    raise RuntimeError(message)
