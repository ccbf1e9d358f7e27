"""When our access to a channel ends, as far as its platform or whoever connected it has said.

Revision ID: 0013
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Null: it was not said, or it ends at no time. A new credential forgets what was said of the old.
COLUMN = """
ALTER TABLE channels ADD COLUMN access_ends_at timestamptz;
GRANT UPDATE (access_ends_at) ON channels TO publisher_engine, publisher_app;
"""


def upgrade() -> None:
    """Add the column."""
    op.get_bind().exec_driver_sql(COLUMN)


def downgrade() -> None:
    """It is asked again."""
    op.get_bind().exec_driver_sql("ALTER TABLE channels DROP COLUMN access_ends_at")
