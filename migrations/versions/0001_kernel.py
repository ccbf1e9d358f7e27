"""The kernel: jobs, attempts, keys, remote posts, and the refusals that hold the promise.

Revision ID: 0001
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE deployment (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    generation integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO deployment DEFAULT VALUES;

CREATE TABLE pulse (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    rescue_not_before timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10);
INSERT INTO pulse DEFAULT VALUES;

CREATE TABLE channels (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    platform text NOT NULL,
    name text NOT NULL,
    remote_id text NOT NULL,
    base_url text,
    trusted boolean NOT NULL DEFAULT false,
    sealed bytea,
    generation integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX channels_name ON channels (lower(name));
CREATE UNIQUE INDEX channels_place ON channels (platform, remote_id, coalesce(base_url, ''));

CREATE TABLE gates (
    channel_id integer PRIMARY KEY REFERENCES channels (id),
    paused_at timestamptz,
    paused_by text,
    blocked_reason text,
    blocked_detail text,
    blocked_at timestamptz,
    not_before timestamptz,
    max_in_flight integer NOT NULL DEFAULT 1 CHECK (max_in_flight > 0),
    spacing interval NOT NULL DEFAULT '0' CHECK (spacing >= '0'),
    CHECK ((blocked_reason IS NULL) = (blocked_at IS NULL))
) WITH (fillfactor = 50);

CREATE TABLE posts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL
);
CREATE UNIQUE INDEX posts_ref ON posts (ref) WHERE ref IS NOT NULL;

CREATE TABLE post_versions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    post_id bigint NOT NULL REFERENCES posts (id),
    number integer NOT NULL CHECK (number > 0),
    content text NOT NULL,
    content_sha256 bytea NOT NULL
        CHECK (content_sha256 = sha256(convert_to(content, 'UTF8'))),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    UNIQUE (post_id, number)
);

CREATE TABLE post_channels (
    post_id bigint NOT NULL REFERENCES posts (id),
    channel_id integer NOT NULL REFERENCES channels (id),
    publish_at timestamptz NOT NULL,
    zone text NOT NULL,
    PRIMARY KEY (post_id, channel_id)
);

CREATE TABLE approvals (
    version_id bigint PRIMARY KEY REFERENCES post_versions (id),
    approved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    approved_by text NOT NULL
);

CREATE TABLE media (
    sha256 bytea PRIMARY KEY,
    type text NOT NULL,
    size bigint NOT NULL CHECK (size > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE media_chunks (
    sha256 bytea NOT NULL REFERENCES media (sha256),
    number integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (sha256, number)
);
ALTER TABLE media_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE incarnations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text NOT NULL,
    boot_id text NOT NULL,
    pid integer NOT NULL,
    file text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    end_reason text,
    declared_gone_at timestamptz
);

-- Hot: one row per job, small, and nothing on it that a claim does not need.
CREATE SEQUENCE jobs_id_seq AS bigint;
CREATE TABLE jobs (
    id bigint PRIMARY KEY,
    channel_id integer NOT NULL REFERENCES channels (id),
    post_id bigint REFERENCES posts (id),
    kind text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'scheduled' CHECK (state IN (
        'scheduled', 'claimed', 'sending', 'published', 'failed', 'unknown', 'missed',
        'cancelled', 'dropped')),
    due_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    useful_until timestamptz,
    hold_reason text,
    token uuid,
    incarnation bigint,
    claimed_at timestamptz,
    hand_at timestamptz,
    lease_until timestamptz,
    claims integer NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    reason text,
    remote_id text,
    attested_at timestamptz,
    replaces bigint,
    repeats bigint,
    unique_until timestamptz,
    settled_at timestamptz,
    CONSTRAINT jobs_held_exactly_in_claimed_and_sending CHECK (
        (state IN ('claimed', 'sending')) = (token IS NOT NULL)
        AND (token IS NULL) = (incarnation IS NULL)
        AND (token IS NULL) = (claimed_at IS NULL)
        AND (token IS NULL) = (lease_until IS NULL)
        AND (hand_at IS NULL OR token IS NOT NULL)),
    CONSTRAINT jobs_identified_exactly_in_published CHECK (
        (state = 'published') = (remote_id IS NOT NULL OR attested_at IS NOT NULL)),
    CONSTRAINT jobs_held_back_only_while_scheduled CHECK (
        hold_reason IS NULL OR state = 'scheduled'),
    CONSTRAINT jobs_numbers CHECK (
        claims >= attempts AND attempts >= 0 AND failures >= 0 AND deaths >= 0)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);
ALTER SEQUENCE jobs_id_seq OWNED BY jobs.id;
CREATE INDEX jobs_due ON jobs (channel_id, run_at, id) WHERE state = 'scheduled';
CREATE INDEX jobs_expiry ON jobs (useful_until)
    WHERE state = 'scheduled' AND useful_until IS NOT NULL;
CREATE INDEX jobs_suspect ON jobs (run_at) WHERE state = 'scheduled' AND deaths > 0;
-- Held rows are found by "incarnation IS NOT NULL", never by lease or token: begin and settle
-- compare those, and the planner would then walk this index, dead entries and all.
CREATE INDEX jobs_held ON jobs (channel_id) WHERE incarnation IS NOT NULL;
CREATE INDEX jobs_unknown ON jobs (id) WHERE state = 'unknown';
CREATE INDEX jobs_post ON jobs (post_id) WHERE post_id IS NOT NULL;
CREATE UNIQUE INDEX jobs_one_open ON jobs (post_id, channel_id, kind)
    WHERE post_id IS NOT NULL AND state IN ('scheduled', 'claimed', 'sending', 'unknown');

CREATE TABLE job_contents (
    job_id bigint PRIMARY KEY REFERENCES jobs (id),
    key text NOT NULL,
    version_id bigint REFERENCES post_versions (id),
    version integer,
    content text NOT NULL,
    content_sha256 bytea NOT NULL
        CHECK (content_sha256 = sha256(convert_to(content, 'UTF8'))),
    platform_key text,
    progress jsonb,
    progress_sha256 bytea,
    CHECK ((progress IS NULL) = (progress_sha256 IS NULL))
);

-- Plain, never pruned, never partitioned: a key and a remote post are taken for ever.
CREATE TABLE job_keys (
    key text COLLATE "C" PRIMARY KEY CHECK (key <> '' AND length(key) <= 500),
    job_id bigint NOT NULL UNIQUE
);

CREATE TABLE attempts (
    job_id bigint NOT NULL REFERENCES jobs (id),
    number integer NOT NULL CHECK (number > 0),
    token uuid NOT NULL,
    incarnation bigint NOT NULL,
    content_sha256 bytea NOT NULL,
    version integer,
    claimed_at timestamptz NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at timestamptz,
    outcome text CHECK (
        outcome IN ('published', 'rejected', 'deferred', 'unauthorized', 'unknown')),
    reason text,
    detail text,
    remote_id text,
    answer jsonb,
    proof text CHECK (proof IN ('not_sent', 'refused', 'absent', 'repeat_safe', 'forced')),
    proof_detail text,
    proved_by text,
    proved_at timestamptz,
    PRIMARY KEY (job_id, number),
    CHECK (outcome <> 'published' OR remote_id IS NOT NULL),
    CHECK ((proof IS NULL) = (proved_by IS NULL) AND (proof IS NULL) = (proved_at IS NULL))
) WITH (fillfactor = 70);

-- The promise in one index: no second send begins, from any state and by any code, while an
-- earlier one may be live or is.
CREATE UNIQUE INDEX attempts_promise ON attempts (job_id) WHERE proof IS NULL;

CREATE TABLE remote_posts (
    channel_id integer NOT NULL REFERENCES channels (id),
    remote_id text COLLATE "C" NOT NULL CHECK (remote_id <> ''),
    job_id bigint NOT NULL,
    permalink text,
    bound_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (channel_id, remote_id)
);
CREATE INDEX remote_posts_job ON remote_posts (job_id);

CREATE TABLE looks (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    token uuid NOT NULL,
    by text NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    evidence jsonb NOT NULL,
    FOREIGN KEY (job_id, attempt) REFERENCES attempts (job_id, number)
);
CREATE INDEX looks_job ON looks (job_id);

CREATE TABLE unique_locks (
    digest bytea PRIMARY KEY,
    job_id bigint NOT NULL,
    lapses_at timestamptz NOT NULL
);
CREATE INDEX unique_locks_job ON unique_locks (job_id);

CREATE TABLE job_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event text NOT NULL,
    who text NOT NULL,
    attempt integer,
    detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX job_events_job ON job_events (job_id);

CREATE TABLE orphans (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    incarnation text NOT NULL,
    job_id bigint NOT NULL,
    token uuid NOT NULL,
    line jsonb NOT NULL,
    adopted boolean NOT NULL DEFAULT false,
    UNIQUE (token)
);

-- The timeline of a job: what the rows of an attempt say by themselves, and the events that
-- people, rescue, reconciler and spool left.
CREATE VIEW timeline AS
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
    SELECT job_id, at, event, who, attempt, detail FROM job_events;
"""

# From engine/transitions.py at this revision; a test compares the installed function with it.
JOB_MOVED = """
CREATE FUNCTION job_moved() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
DECLARE
    begun attempts;
BEGIN
    -- The two moves of a first send, recognised whole: they break no rule below, and asking every
    -- rule of them costs more than writing the row. Anything else is asked all of them.
    IF NEW.attempts = 1 AND NEW.claims = OLD.claims AND NEW.failures = OLD.failures
       AND NEW.deaths = OLD.deaths AND NEW.id = OLD.id AND NEW.kind = OLD.kind
       AND NEW.channel_id = OLD.channel_id AND NEW.post_id IS NOT DISTINCT FROM OLD.post_id THEN
        IF OLD.state = 'claimed' AND NEW.state = 'sending' AND OLD.attempts = 0
           AND NEW.token = OLD.token THEN
            PERFORM FROM attempts
              WHERE job_id = NEW.id AND number = 1 AND token = NEW.token AND proof IS NULL
                AND settled_at IS NULL;
            IF FOUND THEN
                RETURN NULL;
            END IF;
        ELSIF OLD.state = 'sending' AND NEW.state = 'published' AND OLD.attempts = 1
              AND NEW.token IS NULL AND NEW.unique_until IS NULL THEN
            PERFORM FROM remote_posts
              WHERE channel_id = NEW.channel_id AND remote_id = NEW.remote_id
                AND job_id = NEW.id;
            IF FOUND THEN
                RETURN NULL;
            END IF;
        END IF;
    END IF;
    IF NEW.id <> OLD.id OR NEW.kind <> OLD.kind OR NEW.channel_id <> OLD.channel_id
       OR NEW.post_id IS DISTINCT FROM OLD.post_id THEN
        RAISE EXCEPTION 'job % keeps its id, kind, channel and post', OLD.id
            USING ERRCODE = 'PB010';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) <> ALL (ARRAY[
        {pairs}
    ]) THEN
        RAISE EXCEPTION 'job % may not go from % to %', OLD.id, OLD.state, NEW.state
            USING ERRCODE = 'PB011';
    END IF;
    IF OLD.state = 'published' AND (NEW.remote_id IS DISTINCT FROM OLD.remote_id
                                    OR NEW.attested_at IS DISTINCT FROM OLD.attested_at) THEN
        RAISE EXCEPTION 'job % is published and keeps its remote id', OLD.id
            USING ERRCODE = 'PB012';
    END IF;
    IF NEW.token IS NOT NULL AND NEW.token IS DISTINCT FROM OLD.token THEN
        IF OLD.state <> 'scheduled' THEN
            RAISE EXCEPTION 'the token of job % changes only at a claim', OLD.id
                USING ERRCODE = 'PB013';
        END IF;
        IF OLD.attempts > 0
           AND EXISTS (SELECT FROM attempts WHERE job_id = OLD.id AND token = NEW.token) THEN
            RAISE EXCEPTION 'job % was held under this token before', OLD.id
                USING ERRCODE = 'PB013';
        END IF;
    END IF;
    IF NEW.attempts <> OLD.attempts
                       + (NEW.state = 'sending' AND OLD.state <> 'sending')::integer
       OR NEW.claims <> OLD.claims
                        + (NEW.state = 'claimed' AND OLD.state <> 'claimed')::integer
       OR NEW.deaths < OLD.deaths AND OLD.state NOT IN ('failed', 'missed')
       OR NEW.failures < OLD.failures AND OLD.state NOT IN ('failed', 'missed') THEN
        RAISE EXCEPTION 'the numbers of job % only go up, one at a time', OLD.id
            USING ERRCODE = 'PB014';
    END IF;
    IF NEW.state = OLD.state THEN
        RETURN NULL;
    END IF;

    IF NEW.state = 'sending' OR OLD.state = 'sending' THEN
        SELECT * INTO begun FROM attempts WHERE job_id = NEW.id AND number = NEW.attempts;
        IF begun.token IS NULL THEN
            RAISE EXCEPTION 'job % has no attempt %', NEW.id, NEW.attempts
                USING ERRCODE = 'PB015';
        END IF;
    END IF;
    IF NEW.state = 'sending' AND (begun.token <> NEW.token OR begun.proof IS NOT NULL
                                  OR begun.settled_at IS NOT NULL) THEN
        RAISE EXCEPTION 'attempt % of job % is not the one being begun', NEW.attempts, NEW.id
            USING ERRCODE = 'PB015';
    END IF;
    IF OLD.state = 'sending' AND NEW.state IN ('scheduled', 'failed') AND begun.proof IS NULL THEN
        RAISE EXCEPTION 'attempt % of job % has no proof that a further send is allowed',
            NEW.attempts, NEW.id USING ERRCODE = 'PB016';
    END IF;
    IF OLD.state = 'unknown' AND NEW.state IN ('scheduled', 'failed')
       AND EXISTS (SELECT FROM attempts WHERE job_id = NEW.id AND proof IS NULL) THEN
        RAISE EXCEPTION 'an attempt of job % has no proof that a further send is allowed', NEW.id
            USING ERRCODE = 'PB016';
    END IF;
    IF OLD.state IN ('failed', 'missed') AND NEW.state = 'scheduled'
       AND EXISTS (SELECT FROM attempts WHERE job_id = NEW.id
                    AND (proof IS NULL OR proof = 'repeat_safe')) THEN
        RAISE EXCEPTION 'an attempt of job % may be live', NEW.id USING ERRCODE = 'PB016';
    END IF;
    IF NEW.state IN ('failed', 'missed', 'cancelled') AND NEW.attempts > 0
       AND EXISTS (SELECT FROM attempts WHERE job_id = NEW.id
                    AND (proof IS NULL OR proof = 'repeat_safe')) THEN
        RAISE EXCEPTION 'an attempt of job % may be live; it cannot end as %', NEW.id, NEW.state
            USING ERRCODE = 'PB017';
    END IF;
    IF NEW.state NOT IN ('published', 'unknown', 'dropped')
       AND NEW.attempts > (NEW.state = 'sending')::integer
       AND EXISTS (SELECT FROM attempts WHERE job_id = NEW.id AND outcome = 'published') THEN
        RAISE EXCEPTION 'an attempt of job % is live; it cannot become %', NEW.id, NEW.state
            USING ERRCODE = 'PB017';
    END IF;
    IF OLD.state = 'cancelled' AND NEW.attempts > 0 THEN
        RAISE EXCEPTION 'job % was begun and cannot be restored', NEW.id USING ERRCODE = 'PB018';
    END IF;
    IF NEW.state = 'published' THEN
        IF NEW.remote_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM remote_posts WHERE channel_id = NEW.channel_id
               AND remote_id = NEW.remote_id AND job_id = NEW.id) THEN
            RAISE EXCEPTION 'remote post % is not bound to job %', NEW.remote_id, NEW.id
                USING ERRCODE = 'PB019';
        END IF;
        IF NEW.unique_until IS NOT NULL THEN
            DELETE FROM unique_locks WHERE job_id = NEW.id;
        END IF;
    END IF;
    RETURN NULL;
END $$;
"""

TRIGGERS = """
-- A first claim that does nothing else breaks no rule of the function either, and needs no row
-- but its own to tell: it is not even called.
CREATE TRIGGER jobs_moved AFTER UPDATE ON jobs FOR EACH ROW
WHEN ((OLD.state IS DISTINCT FROM NEW.state OR OLD.token IS DISTINCT FROM NEW.token
       OR OLD.attempts <> NEW.attempts OR OLD.claims <> NEW.claims
       OR OLD.failures > NEW.failures OR OLD.deaths > NEW.deaths
       OR OLD.remote_id IS DISTINCT FROM NEW.remote_id
       OR OLD.attested_at IS DISTINCT FROM NEW.attested_at
       OR OLD.id <> NEW.id OR OLD.kind <> NEW.kind OR OLD.channel_id <> NEW.channel_id
       OR OLD.post_id IS DISTINCT FROM NEW.post_id)
      AND NOT (OLD.state = 'scheduled' AND NEW.state = 'claimed'
               AND OLD.attempts = 0 AND NEW.attempts = 0 AND NEW.claims = OLD.claims + 1
               AND NEW.failures = OLD.failures AND NEW.deaths = OLD.deaths
               AND NEW.id = OLD.id AND NEW.kind = OLD.kind AND NEW.channel_id = OLD.channel_id
               AND NEW.post_id IS NOT DISTINCT FROM OLD.post_id))
EXECUTE FUNCTION job_moved();

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[1] USING ERRCODE = TG_ARGV[0];
END $$;

CREATE TRIGGER jobs_start AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.state <> 'scheduled' OR NEW.attempts <> 0 OR NEW.claims <> 0)
EXECUTE FUNCTION refuse('PB011', 'a job starts as scheduled, never claimed and never begun');

CREATE FUNCTION content_replaced() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF NEW.job_id <> OLD.job_id OR NEW.key <> OLD.key THEN
        RAISE EXCEPTION 'job % keeps its key', OLD.job_id USING ERRCODE = 'PB020';
    END IF;
    -- Under the job's own lock: a begin that is under way is waited for and then seen, and one
    -- that comes meanwhile passes the row over.
    PERFORM FROM jobs WHERE id = OLD.job_id FOR UPDATE;
    IF EXISTS (SELECT FROM attempts WHERE job_id = OLD.job_id) THEN
        RAISE EXCEPTION 'job % has an attempt and never changes content', OLD.job_id
            USING ERRCODE = 'PB020';
    END IF;
    IF NEW.content_sha256 <> OLD.content_sha256 AND NEW.progress IS NOT NULL THEN
        RAISE EXCEPTION 'new content of job % clears its progress', OLD.job_id
            USING ERRCODE = 'PB020';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_contents_replaced BEFORE UPDATE ON job_contents FOR EACH ROW
WHEN (OLD.job_id <> NEW.job_id OR OLD.key <> NEW.key OR OLD.content <> NEW.content
      OR OLD.content_sha256 <> NEW.content_sha256
      OR OLD.version_id IS DISTINCT FROM NEW.version_id
      OR OLD.version IS DISTINCT FROM NEW.version
      OR OLD.platform_key IS DISTINCT FROM NEW.platform_key)
EXECUTE FUNCTION content_replaced();

CREATE TRIGGER attempts_frozen BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (OLD.job_id <> NEW.job_id OR OLD.number <> NEW.number OR OLD.token <> NEW.token
      OR OLD.incarnation <> NEW.incarnation OR OLD.content_sha256 <> NEW.content_sha256
      OR OLD.claimed_at <> NEW.claimed_at OR OLD.begun_at <> NEW.begun_at)
EXECUTE FUNCTION refuse('PB021', 'an attempt keeps what it was begun with');
CREATE TRIGGER attempts_proof_stays BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (OLD.proof IS NOT NULL AND OLD.proof IS DISTINCT FROM NEW.proof
      AND (OLD.proof <> 'repeat_safe' OR NEW.proof IS NULL)
      AND NEW.proof IS DISTINCT FROM 'forced')
EXECUTE FUNCTION refuse('PB021', 'a proof, once given, is not taken back');
CREATE TRIGGER attempts_published_stays BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (OLD.outcome = 'published' AND (NEW.outcome IS DISTINCT FROM 'published'
                                     OR NEW.remote_id IS DISTINCT FROM OLD.remote_id))
EXECUTE FUNCTION refuse('PB021', 'an attempt that was published stays so');

CREATE TRIGGER post_versions_frozen BEFORE UPDATE OR DELETE ON post_versions FOR EACH ROW
EXECUTE FUNCTION refuse('PB022', 'a version is never changed; write a new one');
CREATE TRIGGER job_keys_frozen BEFORE UPDATE OR DELETE ON job_keys FOR EACH ROW
EXECUTE FUNCTION refuse('PB023', 'a key is taken for ever');
CREATE TRIGGER remote_posts_frozen BEFORE DELETE ON remote_posts FOR EACH ROW
EXECUTE FUNCTION refuse('PB023', 'a remote post is bound for ever');
CREATE TRIGGER remote_posts_bound BEFORE UPDATE ON remote_posts FOR EACH ROW
WHEN (OLD.channel_id <> NEW.channel_id OR OLD.remote_id <> NEW.remote_id
      OR OLD.job_id <> NEW.job_id)
EXECUTE FUNCTION refuse('PB023', 'a remote post is bound for ever');
CREATE TRIGGER job_events_append_only BEFORE UPDATE OR DELETE ON job_events FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');
"""

UNIQUE_LOCKS = """
CREATE FUNCTION unique_digest(kind text, queue text, content text) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(convert_to(jsonb_build_array(kind, queue, content)::text, 'UTF8'))
$$;

-- Never lapses while its job is unsettled, whatever the clock says; its own job may renew it.
CREATE FUNCTION take_unique_lock(key text, job bigint, lock bytea, until timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = publisher, pg_temp AS $$
DECLARE
    holder unique_locks;
BEGIN
    INSERT INTO unique_locks AS u (digest, job_id, lapses_at) VALUES (lock, job, until)
    ON CONFLICT (digest) DO UPDATE SET job_id = excluded.job_id, lapses_at = excluded.lapses_at
     WHERE u.job_id = excluded.job_id
        OR (u.lapses_at <= clock_timestamp()
            AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = u.job_id
                             AND j.state IN ('scheduled', 'claimed', 'sending', 'unknown')));
    IF NOT FOUND THEN
        SELECT * INTO holder FROM unique_locks u WHERE u.digest = lock;
        RAISE EXCEPTION 'the same work is job %', holder.job_id
            USING ERRCODE = 'PB002', DETAIL = jsonb_build_object(
                'key', key, 'holder', holder.job_id, 'lapses_at', holder.lapses_at)::text;
    END IF;
END $$;

-- For a job that goes back to scheduled: its content must be unique again, or it is refused.
CREATE FUNCTION retake_unique_lock(job bigint) RETURNS void
LANGUAGE sql SET search_path = publisher, pg_temp AS $$
    SELECT take_unique_lock(c.key, j.id, unique_digest(j.kind, j.queue, c.content),
                            greatest(j.unique_until, clock_timestamp()))
      FROM jobs j JOIN job_contents c ON c.job_id = j.id
     WHERE j.id = job AND j.unique_until IS NOT NULL
$$;
"""

ENQUEUE = """
CREATE FUNCTION enqueue(new_jobs jsonb)
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
                      replaces, repeats, unique_until)
    SELECT DISTINCT ON (n.key) (fresh ->> n.key)::bigint, n.channel_id, n.post_id, n.kind,
           n.queue, n.run_at, n.run_at, n.useful_until, n.replaces, n.repeats,
           clock_timestamp() + make_interval(secs => n.unique_seconds)
      FROM jsonb_to_recordset(new_jobs) AS n(
               key text, channel_id integer, post_id bigint, kind text, queue text,
               run_at timestamptz, useful_until timestamptz, replaces bigint, repeats bigint,
               unique_seconds double precision)
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

GRANTS = """
GRANT SELECT ON ALL TABLES IN SCHEMA publisher TO publisher_engine, publisher_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA publisher TO publisher_engine, publisher_app;

GRANT INSERT ON jobs, job_contents, job_keys, unique_locks, job_events
    TO publisher_engine, publisher_app;
GRANT UPDATE ON jobs, unique_locks TO publisher_engine, publisher_app;
GRANT UPDATE (version_id, version, content, content_sha256, platform_key, progress,
              progress_sha256) ON job_contents TO publisher_engine, publisher_app;
GRANT UPDATE ON gates TO publisher_engine, publisher_app;

GRANT INSERT ON attempts, remote_posts, looks, incarnations, orphans TO publisher_engine;
GRANT UPDATE (settled_at, outcome, reason, detail, remote_id, answer, proof, proof_detail,
              proved_by, proved_at) ON attempts TO publisher_engine;
GRANT UPDATE (permalink) ON remote_posts TO publisher_engine;
GRANT UPDATE (adopted, line) ON orphans TO publisher_engine;
GRANT UPDATE (seen_at, ended_at, end_reason) ON incarnations TO publisher_engine;
GRANT UPDATE (declared_gone_at) ON incarnations TO publisher_app;
GRANT UPDATE ON pulse TO publisher_engine;
GRANT UPDATE (sealed, generation) ON channels TO publisher_engine;

GRANT INSERT ON channels, gates, posts, post_versions, post_channels, approvals, media,
    media_chunks TO publisher_app;
GRANT UPDATE (name, base_url, trusted, sealed, generation) ON channels TO publisher_app;
GRANT UPDATE (publish_at, zone) ON post_channels TO publisher_app;

REVOKE ALL ON FUNCTION job_moved(), content_replaced() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue(jsonb) TO publisher_engine, publisher_app;
"""

PAIRS = """
cancelled>scheduled
claimed>cancelled claimed>failed claimed>missed claimed>published claimed>scheduled
claimed>sending claimed>unknown
dropped>published
failed>published failed>scheduled failed>unknown
missed>published missed>scheduled missed>unknown
scheduled>cancelled scheduled>claimed scheduled>missed scheduled>published scheduled>unknown
sending>failed sending>published sending>scheduled sending>unknown
unknown>dropped unknown>failed unknown>published unknown>scheduled
"""


def upgrade() -> None:
    """Make the kernel's tables and their refusals."""
    pairs = ",\n        ".join(f"'{pair}'" for pair in PAIRS.split())
    bind = op.get_bind()
    for sql in (
        TABLES,
        JOB_MOVED.replace("{pairs}", pairs),
        TRIGGERS,
        UNIQUE_LOCKS,
        ENQUEUE,
        GRANTS,
    ):
        bind.exec_driver_sql(sql)


def downgrade() -> None:
    """There is nothing before this one; keep the journal rather than drop it."""
    message = "the first revision is not taken back: it would drop the journal"
    raise RuntimeError(message)
