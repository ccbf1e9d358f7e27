"""Walls between workspaces: whose channels and posts, and what the pages' role may see of them.

Revision ID: 0006
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Inside a transaction the setting names the workspace: its #number, its slug, or * for the commands
# of whoever runs the deployment. Without it nothing is seen. A definer's function, for it is read
# by the very policies that hide the table.
WHERE_WE_ARE = """
CREATE FUNCTION everywhere() RETURNS boolean STABLE PARALLEL SAFE LANGUAGE sql
SET search_path = publisher, pg_temp AS $$
    SELECT coalesce(current_setting('publisher.workspace', true), '') = '*'
$$;

CREATE FUNCTION workspace() RETURNS integer STABLE PARALLEL SAFE SECURITY DEFINER LANGUAGE sql
SET search_path = publisher, pg_temp AS $$
    SELECT CASE WHEN given = '*' THEN NULL
                WHEN given LIKE '#%' THEN
                    (SELECT id FROM workspaces WHERE '#' || id = given)
                ELSE (SELECT id FROM workspaces WHERE slug = given) END
      FROM (SELECT coalesce(current_setting('publisher.workspace', true), '')) AS named (given)
$$;

-- Whose a new row is: where there is one workspace, nobody has to name it.
CREATE FUNCTION own_workspace() RETURNS integer STABLE PARALLEL SAFE SECURITY DEFINER LANGUAGE sql
SET search_path = publisher, pg_temp AS $$
    SELECT coalesce(workspace(), (SELECT min(id) FROM workspaces HAVING count(*) = 1))
$$;
REVOKE ALL ON FUNCTION everywhere(), workspace(), own_workspace() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION everywhere(), workspace(), own_workspace()
    TO publisher_engine, publisher_app;
"""

# Names and refs are a workspace's own; a page is connected once, for two that post on it could not
# tell their posts apart.
WHOSE = """
ALTER TABLE channels ADD COLUMN workspace_id integer REFERENCES workspaces (id);
ALTER TABLE posts ADD COLUMN workspace_id integer REFERENCES workspaces (id);
UPDATE channels SET workspace_id = (SELECT min(id) FROM workspaces);
UPDATE posts SET workspace_id = (SELECT min(id) FROM workspaces);
ALTER TABLE channels ALTER COLUMN workspace_id SET NOT NULL,
    ALTER COLUMN workspace_id SET DEFAULT own_workspace();
ALTER TABLE posts ALTER COLUMN workspace_id SET NOT NULL,
    ALTER COLUMN workspace_id SET DEFAULT own_workspace();
DROP INDEX channels_name;
CREATE UNIQUE INDEX channels_name ON channels (workspace_id, lower(name));
DROP INDEX posts_ref;
CREATE UNIQUE INDEX posts_ref ON posts (workspace_id, ref) WHERE ref IS NOT NULL;
CREATE INDEX posts_workspace ON posts (workspace_id, id);

CREATE FUNCTION same_workspace() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
BEGIN
    IF (SELECT workspace_id FROM posts WHERE id = NEW.post_id)
       <> (SELECT workspace_id FROM channels WHERE id = NEW.channel_id) THEN
        RAISE EXCEPTION 'post % and channel % are of different workspaces',
                        NEW.post_id, NEW.channel_id USING ERRCODE = 'PB040';
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION same_workspace() FROM PUBLIC;
CREATE TRIGGER post_channels_same_workspace AFTER INSERT OR UPDATE ON post_channels FOR EACH ROW
EXECUTE FUNCTION same_workspace();
CREATE TRIGGER jobs_same_workspace AFTER INSERT ON jobs FOR EACH ROW
WHEN (NEW.post_id IS NOT NULL) EXECUTE FUNCTION same_workspace();
CREATE TRIGGER channels_stay BEFORE UPDATE OF workspace_id ON channels FOR EACH ROW
WHEN (NEW.workspace_id <> OLD.workspace_id)
EXECUTE FUNCTION refuse('PB041', 'a channel stays in its workspace');
CREATE TRIGGER posts_stay BEFORE UPDATE OF workspace_id ON posts FOR EACH ROW
WHEN (NEW.workspace_id <> OLD.workspace_id)
EXECUTE FUNCTION refuse('PB041', 'a post stays in its workspace');

-- A view shows what its owner may see unless it is told not to.
ALTER VIEW timeline SET (security_invoker = true);
"""

# Workers and the reconciler serve every workspace. Accounts are the deployment's: a person may be
# in several, and signs in before any is known.
SEEN = {
    "workspaces": "id = (SELECT workspace())",
    "memberships": "workspace_id = (SELECT workspace())",
    "api_tokens": "workspace_id = (SELECT workspace())",
    "people_events": "workspace_id = (SELECT workspace())",
    "channels": "workspace_id = (SELECT workspace())",
    "posts": "workspace_id = (SELECT workspace())",
    "gates": "channel_id IN (SELECT c.id FROM channels c)",
    "channel_events": "channel_id IN (SELECT c.id FROM channels c)",
    "remote_posts": "channel_id IN (SELECT c.id FROM channels c)",
    "jobs": "channel_id IN (SELECT c.id FROM channels c)",
    "post_versions": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)",
    "post_channels": "EXISTS (SELECT FROM posts p WHERE p.id = post_id)"
    " AND channel_id IN (SELECT c.id FROM channels c)",
    "approvals": "EXISTS (SELECT FROM post_versions v WHERE v.id = version_id)",
    "job_contents": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "attempts": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "looks": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "verdicts": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "doubts": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "job_events": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "quarantined": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
    "orphans": "EXISTS (SELECT FROM jobs j WHERE j.id = job_id)",
}


def walls(table: str, condition: str) -> str:
    """The policies of one table."""
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON {table} TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON {table} TO publisher_app USING ((SELECT everywhere()) OR {condition});
"""


def upgrade() -> None:
    """Give channels and posts to workspaces, and put up the walls."""
    bind = op.get_bind()
    bind.exec_driver_sql(WHERE_WE_ARE)
    bind.exec_driver_sql(WHOSE)
    for table, condition in SEEN.items():
        bind.exec_driver_sql(walls(table, condition))


def downgrade() -> None:
    """Walls are not taken down under people who rely on them."""
    message = "what several workspaces own cannot be put into one"
    raise RuntimeError(message)
