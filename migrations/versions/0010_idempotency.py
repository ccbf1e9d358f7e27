"""What the API did under which Idempotency-Key, with the answer it gave.

Revision ID: 0010
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Written in the transaction of what it tells of: there is no effect without its key and no key
# without its effect. Kept for ever, so that a repeat after a year is still one.
TABLES = """
CREATE TABLE idempotency_keys (
    workspace_id integer NOT NULL REFERENCES workspaces (id),
    user_id integer NOT NULL REFERENCES users (id),
    key text COLLATE "C" NOT NULL CHECK (key ~ '^[!-~]{1,255}$'),
    request_hmac bytea NOT NULL CHECK (octet_length(request_hmac) = 32),
    operation text NOT NULL CHECK (operation <> ''),
    status smallint NOT NULL CHECK (status BETWEEN 200 AND 299),
    headers jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(headers) = 'object'),
    body text NOT NULL,
    used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, user_id, key)
);
CREATE TRIGGER idempotency_keys_append_only BEFORE UPDATE OR DELETE ON idempotency_keys
FOR EACH ROW EXECUTE FUNCTION refuse('PB060', 'an answer that was given stays as it was');

ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON idempotency_keys TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON idempotency_keys TO publisher_app
    USING ((SELECT everywhere()) OR workspace_id = (SELECT workspace()));

GRANT SELECT ON idempotency_keys TO publisher_app;
GRANT INSERT (workspace_id, user_id, key, request_hmac, operation, status, headers, body)
    ON idempotency_keys TO publisher_app;
"""


def upgrade() -> None:
    """Add the table."""
    op.get_bind().exec_driver_sql(TABLES)


def downgrade() -> None:
    """Without it a repeat would be done a second time."""
    message = "what was done under a key is not forgotten"
    raise RuntimeError(message)
