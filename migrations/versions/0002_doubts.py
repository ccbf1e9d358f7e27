"""Doubts and verdicts: what is known of a job that may be live, and who decided what of it.

Revision ID: 0002
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
-- After it no repeat of a send may begin: the platform has forgotten its key by then.
ALTER TABLE jobs ADD COLUMN repeat_until timestamptz;

-- Exactly the jobs that are unknown: a trigger makes and removes the rows, so that no way into
-- a doubt can forget to have it looked at.
CREATE TABLE doubts (
    job_id bigint PRIMARY KEY REFERENCES jobs (id),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    looks integer NOT NULL DEFAULT 0,
    next_look_at timestamptz DEFAULT clock_timestamp(),
    look_token uuid,
    lease_until timestamptz,
    last_look text,
    asked_at timestamptz,
    asked_reason text,
    taken_by text,
    taken_at timestamptz,
    snoozed_until timestamptz,
    CHECK ((look_token IS NULL) = (lease_until IS NULL)),
    CHECK ((asked_at IS NULL) = (asked_reason IS NULL)),
    CHECK ((taken_by IS NULL) = (taken_at IS NULL)),
    CHECK (next_look_at IS NOT NULL OR asked_at IS NOT NULL)
) WITH (fillfactor = 70);
CREATE INDEX doubts_due ON doubts (next_look_at) WHERE next_look_at IS NOT NULL;

CREATE TABLE verdicts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL REFERENCES jobs (id),
    attempt integer NOT NULL,
    token uuid,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    who text NOT NULL,
    decision text NOT NULL CHECK (decision IN (
        'live', 'attested', 'absent', 'repeat', 'dropped')),
    reason text NOT NULL CHECK (reason <> ''),
    detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX verdicts_job ON verdicts (job_id);

CREATE FUNCTION job_doubted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF NEW.state = 'unknown' THEN
        INSERT INTO doubts (job_id) VALUES (NEW.id);
        PERFORM pg_notify('publisher_doubt', '');
    ELSE
        DELETE FROM doubts WHERE job_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION job_doubted() FROM PUBLIC;
CREATE TRIGGER jobs_doubted AFTER UPDATE OF state ON jobs FOR EACH ROW
WHEN (OLD.state <> NEW.state AND (OLD.state = 'unknown' OR NEW.state = 'unknown'))
EXECUTE FUNCTION job_doubted();
INSERT INTO doubts (job_id, since)
    SELECT id, coalesce(settled_at, clock_timestamp()) FROM jobs WHERE state = 'unknown';

CREATE TRIGGER verdicts_append_only BEFORE UPDATE OR DELETE ON verdicts FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');

GRANT SELECT ON doubts, verdicts TO publisher_engine, publisher_app;
GRANT UPDATE ON doubts TO publisher_engine, publisher_app;
GRANT INSERT ON verdicts TO publisher_engine, publisher_app;
-- A person's verdict is recorded through the pages' role: it may bind, prove and say why.
GRANT UPDATE (settled_at, outcome, reason, detail, remote_id, proof, proof_detail, proved_by,
              proved_at) ON attempts TO publisher_app;
GRANT INSERT ON remote_posts TO publisher_app;
GRANT INSERT ON looks TO publisher_app;

CREATE OR REPLACE VIEW timeline AS
    SELECT job_id, claimed_at AS at, 'claim' AS event, 'worker run ' || incarnation AS who,
           number AS attempt, '{}'::jsonb AS detail
      FROM attempts
    UNION ALL
    SELECT job_id, begun_at, 'begin_send', 'worker run ' || incarnation, number, '{}'
      FROM attempts
    UNION ALL
    SELECT job_id, settled_at, 'settle', 'worker run ' || incarnation, number,
           jsonb_build_object('outcome', outcome, 'reason', reason, 'detail', detail)
      FROM attempts WHERE settled_at IS NOT NULL
    UNION ALL
    SELECT job_id, ended_at, 'look', by, attempt, evidence FROM looks
    UNION ALL
    SELECT job_id, at, 'verdict', who, attempt,
           detail || jsonb_build_object('decision', decision, 'reason', reason)
      FROM verdicts
    UNION ALL
    SELECT job_id, at, event, who, attempt, detail FROM job_events;
"""


def upgrade() -> None:
    """Add doubts, verdicts and the trigger that keeps the first."""
    op.get_bind().exec_driver_sql(TABLES)


def downgrade() -> None:
    """A journal is not taken back."""
    message = "verdicts are part of the journal and are not dropped"
    raise RuntimeError(message)
