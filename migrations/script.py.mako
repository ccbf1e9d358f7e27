"""${message}."""

from __future__ import annotations

from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}

SQL = """
"""


def upgrade() -> None:
    """Run it: plain SQL, where % and : mean nothing special."""
    op.get_bind().exec_driver_sql(SQL)


def downgrade() -> None:
    """Nothing goes back: what was published cannot be unpublished by dropping its journal."""
    raise NotImplementedError
