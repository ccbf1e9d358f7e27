"""A channel may want alt texts; pictures and videos that nothing names any more are taken away.

Revision ID: 0016
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

WANTED = """
ALTER TABLE channels ADD COLUMN alt_text_wanted boolean NOT NULL DEFAULT false;
GRANT UPDATE (alt_text_wanted) ON channels TO publisher_app;
"""


def upgrade() -> None:
    """Add the column."""
    op.get_bind().exec_driver_sql(WANTED)


def downgrade() -> None:
    """Which channels want them would be forgotten, and what is approved since does not need it."""
    op.get_bind().exec_driver_sql("ALTER TABLE channels DROP COLUMN alt_text_wanted")
