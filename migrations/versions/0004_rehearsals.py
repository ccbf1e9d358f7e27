"""What people did with a channel, kept for good, and which channels may be rehearsed on.

Revision ID: 0004
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE channels
    ADD COLUMN rehearsal_allowed_at timestamptz,
    ADD COLUMN rehearsal_allowed_by text,
    ADD CONSTRAINT channels_rehearsal_allowed_by_somebody CHECK (
        (rehearsal_allowed_at IS NULL) = (rehearsal_allowed_by IS NULL));

CREATE TABLE channel_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id integer NOT NULL REFERENCES channels (id),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    who text NOT NULL CHECK (who <> ''),
    event text NOT NULL CHECK (event <> ''),
    detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object')
);
CREATE INDEX channel_events_channel ON channel_events (channel_id, id);
CREATE TRIGGER channel_events_append_only BEFORE UPDATE OR DELETE ON channel_events FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');

GRANT SELECT ON channel_events TO publisher_engine, publisher_app;
GRANT INSERT ON channel_events TO publisher_app;
GRANT UPDATE (rehearsal_allowed_at, rehearsal_allowed_by) ON channels TO publisher_app;
"""


def upgrade() -> None:
    """Add the journal of channels and the consent to rehearse on one."""
    op.get_bind().exec_driver_sql(TABLES)


def downgrade() -> None:
    """A journal is not taken back."""
    message = "the journal of channels is not dropped"
    raise RuntimeError(message)
