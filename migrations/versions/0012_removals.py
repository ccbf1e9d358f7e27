"""A post is deleted from its page by a job of its own, which names the job whose post that is.

Revision ID: 0012
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# A removal belongs to a published job, not to its post's approvals: an edit must not hold it.
# What is open is one at a time; those that are over may be many, for each asks for the same end.
REMOVES = """
ALTER TABLE jobs ADD COLUMN removes bigint REFERENCES jobs (id);
ALTER TABLE jobs ADD CONSTRAINT jobs_removes_exactly_in_delete CHECK (
    (kind = 'delete') = (removes IS NOT NULL) AND (removes IS NULL OR post_id IS NULL));
CREATE UNIQUE INDEX jobs_one_removal ON jobs (removes)
    WHERE removes IS NOT NULL AND state IN ('scheduled', 'claimed', 'sending', 'unknown');
CREATE INDEX jobs_removal ON jobs (removes) WHERE removes IS NOT NULL;

-- After the row, so that whoever waited for another removal's end sees how that ended.
CREATE FUNCTION removal_asked() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM jobs t
                    WHERE t.id = NEW.removes AND t.channel_id = NEW.channel_id
                      AND t.kind <> 'delete' AND t.state = 'published'
                      AND t.remote_id IS NOT NULL) THEN
        RAISE EXCEPTION 'job % is not live on that channel under an id', NEW.removes
            USING ERRCODE = 'PB070';
    END IF;
    IF EXISTS (SELECT FROM jobs r WHERE r.removes = NEW.removes AND r.state = 'published') THEN
        RAISE EXCEPTION 'the post of job % is deleted already', NEW.removes
            USING ERRCODE = 'PB071';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_removal_asked AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.removes IS NOT NULL) EXECUTE FUNCTION removal_asked();
CREATE TRIGGER jobs_removal_stays BEFORE UPDATE OF removes ON jobs FOR EACH ROW
WHEN (OLD.removes IS DISTINCT FROM NEW.removes)
EXECUTE FUNCTION refuse('PB010', 'a removal keeps the job whose post it takes down');

-- In the transaction that ends the removal, whoever ends it: worker, reconciler or a person.
CREATE FUNCTION removal_done() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    INSERT INTO job_events (job_id, event, who, detail)
    SELECT NEW.removes, 'withdraw', coalesce(c.content::jsonb -> 'removes' ->> 'asked_by', '?'),
           jsonb_build_object('how', 'deleted', 'by', c.key)
      FROM job_contents c WHERE c.job_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER jobs_removal_done AFTER UPDATE ON jobs FOR EACH ROW
WHEN (NEW.removes IS NOT NULL AND NEW.state = 'published' AND OLD.state <> 'published')
EXECUTE FUNCTION removal_done();
REVOKE ALL ON FUNCTION removal_asked(), removal_done() FROM PUBLIC;
"""

# As it was, with what a job removes.
ENQUEUE = """
CREATE OR REPLACE FUNCTION enqueue(new_jobs jsonb)
RETURNS TABLE (key text, job_id bigint, state text, added boolean)
LANGUAGE plpgsql SET search_path = publisher, pg_temp AS $$
#variable_conflict use_column
DECLARE
    fresh jsonb := '{}';
    gained jsonb;
    missing text;
    r record;
BEGIN
    -- Keys first and sorted, so that two callers with the same keys wait for one another in one
    -- order; numbered as they were given, so that posts due together keep their order. Whoever holds a key is read in a statement of its own: the one that met it cannot
    -- see it yet.
    FOR try IN 1..3 LOOP
        WITH taken AS (
            INSERT INTO job_keys (key, job_id)
            SELECT n.key, n.job_id
              FROM (SELECT e.key, nextval('jobs_id_seq') AS job_id
                      FROM (SELECT e.job ->> 'key' AS key
                              FROM jsonb_array_elements(new_jobs) WITH ORDINALITY AS e(job, at)
                             WHERE NOT fresh ? (e.job ->> 'key')
                               AND NOT EXISTS (SELECT FROM job_keys k
                                                WHERE k.key = e.job ->> 'key')
                             ORDER BY e.at) AS e) AS n
             ORDER BY n.key, n.job_id
            ON CONFLICT DO NOTHING
            RETURNING job_keys.key, job_keys.job_id)
        SELECT coalesce(jsonb_object_agg(t.key, t.job_id), '{}') INTO gained FROM taken t;
        fresh := fresh || gained;
        SELECT n.key INTO missing FROM jsonb_to_recordset(new_jobs) AS n(key text)
         WHERE NOT EXISTS (SELECT FROM job_keys k WHERE k.key = n.key) LIMIT 1;
        EXIT WHEN missing IS NULL;
    END LOOP;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'the key % is being added by someone else', missing
            USING ERRCODE = 'PB001', DETAIL = missing;
    END IF;

    INSERT INTO jobs (id, channel_id, post_id, kind, queue, due_at, run_at, useful_until,
                      replaces, repeats, removes, unique_until)
    SELECT DISTINCT ON (n.key) (fresh ->> n.key)::bigint, n.channel_id, n.post_id, n.kind,
           n.queue, n.run_at, n.run_at, n.useful_until, n.replaces, n.repeats, n.removes,
           clock_timestamp() + make_interval(secs => n.unique_seconds)
      FROM jsonb_to_recordset(new_jobs) AS n(
               key text, channel_id integer, post_id bigint, kind text, queue text,
               run_at timestamptz, useful_until timestamptz, replaces bigint, repeats bigint,
               removes bigint, unique_seconds double precision)
     WHERE fresh ? n.key
     ORDER BY n.key;
    INSERT INTO job_contents (job_id, key, version_id, version, content, content_sha256,
                              platform_key)
    SELECT DISTINCT ON (n.key) (fresh ->> n.key)::bigint, n.key, n.version_id, n.version,
           n.content, sha256(convert_to(n.content, 'UTF8')), n.platform_key
      FROM jsonb_to_recordset(new_jobs) AS n(
               key text, version_id bigint, version integer, content text, platform_key text)
     WHERE fresh ? n.key
     ORDER BY n.key;

    -- By digest: calls with other keys and the same work wait for one another in one order, too.
    FOR r IN
        SELECT u.* FROM (
            SELECT DISTINCT ON (n.key) n.key, (fresh ->> n.key)::bigint AS id,
                   unique_digest(n.kind, n.queue, n.content) AS digest,
                   clock_timestamp() + make_interval(secs => n.unique_seconds) AS lapses_at
              FROM jsonb_to_recordset(new_jobs) AS n(
                       key text, kind text, queue text, content text,
                       unique_seconds double precision)
             WHERE n.unique_seconds IS NOT NULL AND fresh ? n.key
             ORDER BY n.key) AS u
         ORDER BY u.digest, u.key
    LOOP
        PERFORM take_unique_lock(r.key, r.id, r.digest, r.lapses_at);
    END LOOP;

    -- A hint only: workers poll anyway.
    IF EXISTS (SELECT FROM jsonb_to_recordset(new_jobs) AS n(run_at timestamptz)
                WHERE n.run_at <= clock_timestamp()) THEN
        PERFORM pg_notify('publisher_due', '');
    END IF;

    RETURN QUERY
        SELECT n.key, k.job_id, coalesce(j.state, 'pruned'),
               fresh ? n.key AND row_number() OVER (PARTITION BY n.key ORDER BY n.at) = 1
          FROM jsonb_array_elements(new_jobs) WITH ORDINALITY AS e(job, at)
         CROSS JOIN LATERAL (SELECT e.job ->> 'key' AS key, e.at AS at) AS n
          JOIN job_keys k ON k.key = n.key
          LEFT JOIN jobs j ON j.id = k.job_id
         ORDER BY n.at;
END $$;
"""


def upgrade() -> None:
    """Add what a job removes, and its refusals."""
    bind = op.get_bind()
    bind.exec_driver_sql(REMOVES)
    bind.exec_driver_sql(ENQUEUE)


def downgrade() -> None:
    """A removal that was asked for is not forgotten."""
    message = "what was deleted from a page would be called live again"
    raise RuntimeError(message)
