"""Media: where bytes lie, what a picture measures, and which workspace has it.

Revision ID: 0008
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLES = """
-- Bytes are the deployment's, kept once under their hash, whoever added them. ``storage`` says
-- where: in ``media_chunks``, or outside in the folder or store that is configured.
ALTER TABLE media
    ADD COLUMN storage text NOT NULL DEFAULT 'database'
        CHECK (storage IN ('database', 'folder', 's3')),
    ADD COLUMN width integer CHECK (width > 0),
    ADD COLUMN height integer CHECK (height > 0),
    ADD COLUMN frames integer CHECK (frames > 0),
    ADD CONSTRAINT media_measured CHECK (num_nulls(width, height, frames) IN (0, 3)),
    ADD CONSTRAINT media_hashed CHECK (length(sha256) = 32);

-- Who has them. The row of the bytes comes after it, in the same transaction: a workspace sees
-- bytes only through its own row here. ``original_sha256`` is of what came, before it was encoded
-- anew; ``created_by`` is null for what was kept before that was written down.
CREATE TABLE media_uploads (
    workspace_id integer NOT NULL DEFAULT own_workspace() REFERENCES workspaces (id),
    sha256 bytea NOT NULL REFERENCES media (sha256) DEFERRABLE INITIALLY DEFERRED,
    original_sha256 bytea NOT NULL CHECK (length(original_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text CHECK (created_by <> ''),
    PRIMARY KEY (workspace_id, sha256)
);
CREATE INDEX media_uploads_bytes ON media_uploads (sha256);
CREATE INDEX media_uploads_newest ON media_uploads (workspace_id, created_at);
INSERT INTO media_uploads (workspace_id, sha256, original_sha256, created_at)
    SELECT (SELECT min(id) FROM workspaces), sha256, sha256, created_at FROM media;

GRANT SELECT ON media_uploads TO publisher_engine, publisher_app;
GRANT INSERT ON media_uploads TO publisher_app;
GRANT UPDATE (storage) ON media TO publisher_app;
"""

WALLS = {
    "media_uploads": "workspace_id = (SELECT workspace())",
    "media": "EXISTS (SELECT FROM media_uploads u WHERE u.sha256 = media.sha256)",
    "media_chunks": "EXISTS (SELECT FROM media m WHERE m.sha256 = media_chunks.sha256)",
}


def walls(table: str, condition: str) -> str:
    """The policies of one table, as 0006 has them."""
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON {table} TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON {table} TO publisher_app USING ((SELECT everywhere()) OR {condition});
"""


def upgrade() -> None:
    """Say where bytes lie and whose they are."""
    bind = op.get_bind()
    bind.exec_driver_sql(TABLES)
    for table, condition in WALLS.items():
        bind.exec_driver_sql(walls(table, condition))


def downgrade() -> None:
    """Bytes outside the database would be lost to it."""
    message = "what is kept outside the database cannot be named without these columns"
    raise RuntimeError(message)
