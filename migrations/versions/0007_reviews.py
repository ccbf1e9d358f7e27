"""What editors do before a post is sent: drafts, variants, reviews, approvals that are withdrawn.

Revision ID: 0007
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE posts
    ADD COLUMN trashed_at timestamptz,
    ADD COLUMN trashed_by text,
    ADD CONSTRAINT posts_trashed_by_somebody CHECK (
        (trashed_at IS NULL) = (trashed_by IS NULL));

-- Null: the hash of its content is that of the whole version.
ALTER TABLE post_versions
    ADD COLUMN author_id integer REFERENCES users (id),
    ADD COLUMN first_comment text CHECK (first_comment <> ''),
    ADD COLUMN whole_sha256 bytea CHECK (octet_length(whole_sha256) = 32);

-- A post's form for one channel, whole, as it is sent there; own: which parts are not those for all.
CREATE TABLE version_variants (
    version_id bigint NOT NULL REFERENCES post_versions (id),
    channel_id integer NOT NULL REFERENCES channels (id),
    content text NOT NULL,
    content_sha256 bytea NOT NULL
        CHECK (content_sha256 = sha256(convert_to(content, 'UTF8'))),
    first_comment text CHECK (first_comment <> ''),
    own text[] NOT NULL CHECK (cardinality(own) > 0
        AND own <@ ARRAY['text', 'link', 'media', 'first_comment']),
    PRIMARY KEY (version_id, channel_id)
);

-- An approval stays for ever, for something was sent by it; it stands until it is withdrawn.
ALTER TABLE approvals
    ADD COLUMN approver_id integer REFERENCES users (id),
    ADD COLUMN withdrawn_at timestamptz,
    ADD COLUMN withdrawn_by text,
    ADD CONSTRAINT approvals_withdrawn_by_somebody CHECK (
        (withdrawn_at IS NULL) = (withdrawn_by IS NULL));

-- Where a post is meant to go; post_channels has where it was scheduled.
CREATE TABLE post_targets (
    post_id bigint NOT NULL REFERENCES posts (id),
    channel_id integer NOT NULL REFERENCES channels (id),
    PRIMARY KEY (post_id, channel_id)
);

-- The one text that is being written. Every save raises the revision, by which the next is compared.
CREATE TABLE post_drafts (
    post_id bigint PRIMARY KEY REFERENCES posts (id),
    revision bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    document text NOT NULL CHECK (octet_length(document) <= 2000000),
    based_on integer,
    saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    saved_by text NOT NULL CHECK (saved_by <> '')
) WITH (fillfactor = 50);

CREATE TABLE reviews (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    post_id bigint NOT NULL REFERENCES posts (id),
    version_id bigint NOT NULL REFERENCES post_versions (id),
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    submitted_by text NOT NULL CHECK (submitted_by <> ''),
    approver text CHECK (approver <> ''),
    decided_at timestamptz,
    decided_by text,
    decision text CHECK (decision IN ('approved', 'changes_requested', 'superseded', 'trashed')),
    comment text,
    CHECK ((decided_at IS NULL) = (decided_by IS NULL)),
    CHECK ((decided_at IS NULL) = (decision IS NULL)),
    CHECK (decision <> 'changes_requested' OR comment <> '')
);
CREATE UNIQUE INDEX reviews_one_open ON reviews (post_id) WHERE decided_at IS NULL;
CREATE INDEX reviews_post ON reviews (post_id, id);

CREATE TABLE post_labels (
    post_id bigint NOT NULL REFERENCES posts (id),
    label text NOT NULL CHECK (label <> '' AND length(label) <= 50),
    PRIMARY KEY (post_id, label)
);
CREATE INDEX post_labels_label ON post_labels (label, post_id);

CREATE TABLE post_assignees (
    post_id bigint NOT NULL REFERENCES posts (id),
    name text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    user_id integer REFERENCES users (id),
    PRIMARY KEY (post_id, name)
);

CREATE TABLE post_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    post_id bigint NOT NULL REFERENCES posts (id),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    who text NOT NULL CHECK (who <> ''),
    user_id integer REFERENCES users (id),
    event text NOT NULL CHECK (event <> ''),
    version integer,
    detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object')
);
CREATE INDEX post_events_post ON post_events (post_id, id);
"""

# Whatever the code does: what begins is of a version whose approval stands, and its very bytes.
APPROVED = """
-- Why a job of a post may not go, or null. A version that nobody approved never gets this far: its
-- content is refused. Where another job took its place, that one goes. An older version waits for the newer one under the rule "hold", and always
-- once that is approved; but what may be live goes on, for its repeat is of the same post.
CREATE FUNCTION approval_hold(job bigint, post bigint) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
    SELECT CASE
               WHEN p.trashed_at IS NOT NULL OR a.version_id IS NULL
                    OR a.withdrawn_at IS NOT NULL THEN 'approval withdrawn'
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

-- However a job comes back, and whoever releases it: it is free only while its approval stands.
CREATE FUNCTION job_approved() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    NEW.hold_reason := approval_hold(NEW.id, NEW.post_id);
    RETURN NEW;
END $$;
CREATE TRIGGER jobs_approved BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (NEW.post_id IS NOT NULL AND NEW.state = 'scheduled' AND NEW.hold_reason IS NULL
      AND (OLD.state <> 'scheduled' OR OLD.hold_reason IS NOT NULL))
EXECUTE FUNCTION job_approved();

-- At the end of the transaction, so that the journal has it after what brought the job back.
CREATE FUNCTION job_hold_told() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF (SELECT hold_reason FROM jobs WHERE id = NEW.id) = NEW.hold_reason
       AND (SELECT e.event FROM job_events e
             WHERE e.job_id = NEW.id AND e.event IN ('hold', 'release_hold')
             ORDER BY e.at DESC, e.id DESC LIMIT 1) IS DISTINCT FROM 'hold' THEN
        INSERT INTO job_events (job_id, event, who, attempt, detail)
        VALUES (NEW.id, 'hold', 'publisher', nullif(NEW.attempts, 0),
                jsonb_build_object('reason', NEW.hold_reason));
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER jobs_hold_told AFTER UPDATE ON jobs
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.hold_reason IN ('approval withdrawn', 'changed after approval')
      AND NEW.hold_reason IS DISTINCT FROM OLD.hold_reason)
EXECUTE FUNCTION job_hold_told();

CREATE FUNCTION content_approved() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
DECLARE
    j jobs;
    v post_versions;
BEGIN
    SELECT * INTO j FROM jobs WHERE id = NEW.job_id;
    SELECT * INTO v FROM post_versions WHERE id = NEW.version_id;
    IF v.post_id IS DISTINCT FROM j.post_id OR v.number IS DISTINCT FROM NEW.version THEN
        RAISE EXCEPTION 'job % is not of the post of its version', j.id USING ERRCODE = 'PB050';
    END IF;
    IF EXISTS (SELECT FROM posts WHERE id = v.post_id AND trashed_at IS NOT NULL)
       OR NOT EXISTS (SELECT FROM approvals
                       WHERE version_id = v.id AND withdrawn_at IS NULL) THEN
        RAISE EXCEPTION 'version % of post % is not approved', v.number, v.post_id
            USING ERRCODE = 'PB051';
    END IF;
    IF NEW.content_sha256 <> coalesce((SELECT content_sha256 FROM version_variants
                                        WHERE version_id = v.id AND channel_id = j.channel_id),
                                      v.content_sha256) THEN
        RAISE EXCEPTION 'the content of job % is not that of version %', j.id, v.number
            USING ERRCODE = 'PB050';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_contents_approved AFTER INSERT ON job_contents FOR EACH ROW
WHEN (NEW.version_id IS NOT NULL) EXECUTE FUNCTION content_approved();
CREATE TRIGGER job_contents_approved_anew
AFTER UPDATE OF content, content_sha256, version_id, version ON job_contents FOR EACH ROW
WHEN (NEW.version_id IS NOT NULL
      AND (OLD.version_id IS DISTINCT FROM NEW.version_id
           OR OLD.version IS DISTINCT FROM NEW.version
           OR OLD.content_sha256 <> NEW.content_sha256))
EXECUTE FUNCTION content_approved();

-- Names are compared where an account is not known of both.
CREATE FUNCTION approved_by_other() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM post_versions v
                 JOIN posts p ON p.id = v.post_id
                 JOIN workspaces w ON w.id = p.workspace_id
                WHERE v.id = NEW.version_id AND w.approval_by_other
                  AND CASE WHEN v.author_id IS NOT NULL AND NEW.approver_id IS NOT NULL
                           THEN v.author_id = NEW.approver_id
                           ELSE v.created_by = NEW.approved_by END) THEN
        RAISE EXCEPTION 'version % is approved by somebody else than its author', NEW.version_id
            USING ERRCODE = 'PB052';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER approvals_by_other
AFTER INSERT OR UPDATE OF approved_by, approver_id, withdrawn_at ON approvals FOR EACH ROW
WHEN (NEW.withdrawn_at IS NULL) EXECUTE FUNCTION approved_by_other();

-- Nothing that may be claimed, or is, goes by an approval that does not stand any more.
CREATE FUNCTION approval_withdrawn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM post_versions v
                 JOIN jobs j ON j.post_id = v.post_id
                 JOIN job_contents c ON c.job_id = j.id AND c.version_id = v.id
                WHERE v.id = NEW.version_id
                  AND (j.state = 'claimed'
                       OR j.state = 'scheduled' AND j.hold_reason IS NULL)) THEN
        RAISE EXCEPTION 'a job goes by the approval of version %; hold it first', NEW.version_id
            USING ERRCODE = 'PB053';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER approvals_withdrawn AFTER UPDATE OF withdrawn_at ON approvals FOR EACH ROW
WHEN (NEW.withdrawn_at IS NOT NULL) EXECUTE FUNCTION approval_withdrawn();

-- Asked when everything of the transaction is done: the new version may have taken its place.
CREATE FUNCTION version_supersedes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM jobs j
                WHERE j.post_id = NEW.post_id
                  AND (j.state = 'claimed' OR j.state = 'scheduled' AND j.hold_reason IS NULL)
                  AND approval_hold(j.id, j.post_id) IS NOT NULL) THEN
        RAISE EXCEPTION 'a job of post % would go out in an older version; hold it first',
            NEW.post_id USING ERRCODE = 'PB053';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER post_versions_supersede AFTER INSERT ON post_versions
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.number > 1) EXECUTE FUNCTION version_supersedes();
"""

WHOLE = """
-- Everything a version sends anywhere: content and first comment for all, then for each channel.
CREATE FUNCTION version_sha256(version bigint) RETURNS bytea
LANGUAGE sql STABLE SET search_path = publisher, pg_temp AS $$
    SELECT sha256(v.content_sha256 || sha256(convert_to(coalesce(v.first_comment, ''), 'UTF8'))
                  || coalesce((SELECT string_agg(
                         int4send(x.channel_id) || x.content_sha256
                             || sha256(convert_to(coalesce(x.first_comment, ''), 'UTF8')),
                         ''::bytea ORDER BY x.channel_id)
                       FROM version_variants x WHERE x.version_id = v.id), ''::bytea))
      FROM post_versions v WHERE v.id = version
$$;

CREATE FUNCTION version_whole() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
DECLARE
    version bigint := (to_jsonb(NEW) ->> TG_ARGV[0])::bigint;
BEGIN
    IF (SELECT whole_sha256 FROM post_versions WHERE id = version)
       IS DISTINCT FROM version_sha256(version) THEN
        RAISE EXCEPTION 'version % is not what its hash says', version USING ERRCODE = 'PB054';
    END IF;
    IF EXISTS (SELECT FROM version_variants x
                 JOIN post_versions v ON v.id = x.version_id
                 JOIN posts p ON p.id = v.post_id
                 JOIN channels c ON c.id = x.channel_id
                WHERE v.id = version AND c.workspace_id <> p.workspace_id) THEN
        RAISE EXCEPTION 'version % has a variant for a channel of another workspace', version
            USING ERRCODE = 'PB040';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER post_versions_whole AFTER INSERT ON post_versions
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.whole_sha256 IS NOT NULL OR NEW.first_comment IS NOT NULL)
EXECUTE FUNCTION version_whole('id');
-- Later additions change the hash, so they are refused, too.
CREATE CONSTRAINT TRIGGER version_variants_whole AFTER INSERT ON version_variants
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION version_whole('version_id');
"""

REFUSALS = """
CREATE TRIGGER version_variants_frozen BEFORE UPDATE OR DELETE ON version_variants FOR EACH ROW
EXECUTE FUNCTION refuse('PB022', 'a version is never changed; write a new one');
CREATE TRIGGER post_events_append_only BEFORE UPDATE OR DELETE ON post_events FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');
CREATE TRIGGER reviews_decided_once BEFORE UPDATE ON reviews FOR EACH ROW
WHEN (OLD.decided_at IS NOT NULL)
EXECUTE FUNCTION refuse('PB024', 'a review is decided once');
CREATE TRIGGER post_targets_same_workspace AFTER INSERT ON post_targets FOR EACH ROW
EXECUTE FUNCTION same_workspace();
CREATE TRIGGER post_drafts_forward BEFORE UPDATE ON post_drafts FOR EACH ROW
WHEN (NEW.revision <= OLD.revision)
EXECUTE FUNCTION refuse('PB055', 'each save of a draft raises its revision');

CREATE FUNCTION post_trashed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM jobs j
                WHERE j.post_id = NEW.id
                  AND (j.state IN ('scheduled', 'claimed', 'sending', 'unknown', 'dropped')
                       OR j.state <> 'published'
                          AND EXISTS (SELECT FROM attempts a
                                       WHERE a.job_id = j.id
                                         AND (a.proof IS NULL OR a.proof = 'repeat_safe')))) THEN
        RAISE EXCEPTION 'post % has a job that is open or may be live', NEW.id
            USING ERRCODE = 'PB056';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER posts_trashed AFTER UPDATE OF trashed_at ON posts FOR EACH ROW
WHEN (NEW.trashed_at IS NOT NULL AND OLD.trashed_at IS NULL) EXECUTE FUNCTION post_trashed();

REVOKE ALL ON FUNCTION approval_hold(bigint, bigint), job_approved(), job_hold_told(),
    content_approved(),
    approved_by_other(), approval_withdrawn(), version_supersedes(), version_sha256(bigint),
    version_whole(), post_trashed() FROM PUBLIC;

GRANT SELECT ON version_variants, post_targets, post_drafts, reviews, post_labels, post_assignees,
    post_events TO publisher_engine, publisher_app;
GRANT INSERT ON version_variants, post_events TO publisher_app;
GRANT INSERT, DELETE ON post_targets, post_labels, post_assignees TO publisher_app;
GRANT INSERT (post_id, document, based_on, saved_by),
      UPDATE (revision, document, based_on, saved_at, saved_by) ON post_drafts TO publisher_app;
GRANT INSERT (post_id, version_id, submitted_by, approver),
      UPDATE (decided_at, decided_by, decision, comment) ON reviews TO publisher_app;
GRANT UPDATE (approved_at, approved_by, approver_id, withdrawn_at, withdrawn_by) ON approvals
    TO publisher_app;
GRANT UPDATE (trashed_at, trashed_by) ON posts TO publisher_app;
"""

SEEN = {
    "version_variants": "EXISTS (SELECT FROM post_versions v WHERE v.id = version_id)",
    "post_targets": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "post_drafts": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "reviews": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "post_labels": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "post_assignees": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "post_events": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
}


def walls(table: str, condition: str) -> str:
    """The policies of one table, as those of 0006."""
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON {table} TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON {table} TO publisher_app USING ((SELECT everywhere()) OR {condition});
"""


def upgrade() -> None:
    """Add what editors write and decide, and what the database refuses of it."""
    bind = op.get_bind()
    for sql in (TABLES, APPROVED, WHOLE, REFUSALS):
        bind.exec_driver_sql(sql)
    for table, condition in SEEN.items():
        bind.exec_driver_sql(walls(table, condition))


def downgrade() -> None:
    """A journal is not taken back."""
    message = "the journal of posts is not dropped"
    raise RuntimeError(message)
