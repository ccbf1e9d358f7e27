"""A job that was called off while it was looked for is not freed by bringing it back.

Revision ID: 0011
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The end of its quarantine lets such a job go on, and nothing else does: also where it was
# cancelled in between, for its row in the quarantine is open still.
KEPT = """
DROP TRIGGER quarantine_kept ON jobs;
CREATE TRIGGER quarantine_kept AFTER UPDATE ON jobs FOR EACH ROW
WHEN ((OLD.hold_reason = 'quarantine' OR OLD.state = 'cancelled')
      AND NEW.hold_reason IS DISTINCT FROM 'quarantine'
      AND NEW.state NOT IN ('published', 'unknown', 'cancelled'))
EXECUTE FUNCTION quarantine_kept();
"""

# What stands near a post on its channel is read by when it was bound.
NEAR = """
CREATE INDEX remote_posts_near ON remote_posts (channel_id, bound_at);
"""


def upgrade() -> None:
    """Ask the trigger of one more way, and add the index."""
    bind = op.get_bind()
    bind.exec_driver_sql(KEPT)
    bind.exec_driver_sql(NEAR)


def downgrade() -> None:
    """A refusal is not taken back."""
    message = "what the database refuses it goes on to refuse"
    raise RuntimeError(message)
