"""The tick that the witness is compared with, and jobs that a restored database must look for.

Revision ID: 0003
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
-- Tells which key credentials are sealed with, and nothing about it.
ALTER TABLE deployment ADD COLUMN key_check bytea;

CREATE TABLE tick (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    value bigint NOT NULL DEFAULT 0,
    raised_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    marks text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 10);
INSERT INTO tick DEFAULT VALUES;

CREATE TABLE chores (
    name text PRIMARY KEY,
    done_at timestamptz NOT NULL
);

-- Each time the database was found to lack, or may lack, sends that were made.
CREATE TABLE quarantines (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cause text NOT NULL CHECK (cause <> ''),
    strict boolean NOT NULL,
    since timestamptz NOT NULL,
    absent_after timestamptz NOT NULL,
    who text NOT NULL,
    detail jsonb NOT NULL DEFAULT '{}',
    CHECK (since <= at)
);

-- The jobs that are looked for on their page before they may be sent. A row stays, so that what
-- was looked for once is not looked for again.
CREATE TABLE quarantined (
    job_id bigint PRIMARY KEY REFERENCES jobs (id),
    quarantine_id integer NOT NULL REFERENCES quarantines (id),
    strict boolean NOT NULL,
    held_before text,
    looks integer NOT NULL DEFAULT 0,
    next_look_at timestamptz DEFAULT clock_timestamp(),
    look_token uuid,
    lease_until timestamptz,
    last_look text,
    asked_at timestamptz,
    released_at timestamptz,
    released_by text,
    release_reason text,
    CHECK ((look_token IS NULL) = (lease_until IS NULL)),
    CHECK ((released_at IS NULL) = (released_by IS NULL)),
    CHECK ((released_at IS NULL) = (release_reason IS NULL)),
    CHECK (released_at IS NULL OR next_look_at IS NULL),
    CHECK (released_at IS NOT NULL OR next_look_at IS NOT NULL OR asked_at IS NOT NULL)
) WITH (fillfactor = 70);
CREATE INDEX quarantined_due ON quarantined (next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX quarantined_open ON quarantined (job_id) WHERE released_at IS NULL;

-- What is scheduled for a time in which sends may be missing may be one of them made again.
CREATE FUNCTION job_doubtful() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM quarantines q WHERE NEW.due_at BETWEEN q.since AND q.at) THEN
        NEW.hold_reason := 'quarantine';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_doubtful BEFORE INSERT ON jobs FOR EACH ROW
WHEN (NEW.state = 'scheduled' AND NEW.queue NOT IN ('mail', 'webhook'))
EXECUTE FUNCTION job_doubtful();

CREATE FUNCTION job_quarantined() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    INSERT INTO quarantined (job_id, quarantine_id, strict)
    SELECT NEW.id, q.id, q.strict FROM quarantines q
     WHERE NEW.due_at BETWEEN q.since AND q.at ORDER BY q.strict DESC, q.id DESC LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_quarantined AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.hold_reason = 'quarantine') EXECUTE FUNCTION job_quarantined();

-- Nothing but the end of its quarantine lets such a job go on, and no time does.
CREATE FUNCTION quarantine_kept() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM quarantined q WHERE q.job_id = NEW.id AND q.released_at IS NULL) THEN
        RAISE EXCEPTION 'job % is in quarantine: look for it on its page first', NEW.id
            USING ERRCODE = 'PB030';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER quarantine_kept AFTER UPDATE ON jobs FOR EACH ROW
WHEN (OLD.hold_reason = 'quarantine' AND NEW.hold_reason IS DISTINCT FROM 'quarantine'
      AND NEW.state NOT IN ('published', 'unknown', 'cancelled'))
EXECUTE FUNCTION quarantine_kept();

-- One that is live, or is doubted with an attempt of its own, is no longer for the quarantine.
CREATE FUNCTION quarantine_left() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    UPDATE quarantined
       SET released_at = clock_timestamp(), released_by = 'engine',
           release_reason = 'the job is ' || NEW.state,
           next_look_at = NULL, look_token = NULL, lease_until = NULL
     WHERE job_id = NEW.id AND released_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER quarantine_left AFTER UPDATE ON jobs FOR EACH ROW
WHEN (OLD.hold_reason = 'quarantine' AND NEW.state IN ('published', 'unknown'))
EXECUTE FUNCTION quarantine_left();
REVOKE ALL ON FUNCTION job_doubtful(), job_quarantined(), quarantine_kept(), quarantine_left()
    FROM PUBLIC;

CREATE TRIGGER quarantines_append_only BEFORE UPDATE OR DELETE ON quarantines FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');

GRANT SELECT ON tick, chores, quarantines, quarantined TO publisher_engine, publisher_app;
GRANT INSERT, UPDATE ON chores TO publisher_engine;
GRANT UPDATE ON tick TO publisher_engine, publisher_app;
GRANT INSERT ON quarantines TO publisher_engine, publisher_app;
GRANT INSERT, UPDATE ON quarantined TO publisher_engine, publisher_app;
GRANT UPDATE (generation, key_check) ON deployment TO publisher_engine, publisher_app;
GRANT SELECT, UPDATE ON SEQUENCE jobs_id_seq TO publisher_engine, publisher_app;
"""


def upgrade() -> None:
    """Add the tick, the quarantines and what keeps a job in one."""
    op.get_bind().exec_driver_sql(TABLES)


def downgrade() -> None:
    """A journal is not taken back."""
    message = "quarantines are part of the journal and are not dropped"
    raise RuntimeError(message)
