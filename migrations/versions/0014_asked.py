"""What the audit asks the database about approvals, in its own words.

Revision ID: 0014
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# The audit asks the very functions that the triggers go by, not a copy of them: it runs in the
# engine's role, which may call what only reads.
ASKED = """
GRANT EXECUTE ON FUNCTION approval_hold(bigint, bigint), version_sha256(bigint) TO publisher_engine;

-- Since when a post's workspace has its present rule for edits; null: since it was made. A change
-- of the rule is for edits from then on. A definer's, for the engine knows nobody's journal.
CREATE FUNCTION edit_rule_since(post bigint) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = publisher, pg_temp AS $$
    SELECT max(e.at) FROM posts p
      JOIN people_events e ON e.workspace_id = p.workspace_id
     WHERE p.id = post AND e.event = 'workspace_changed'
       AND e.detail -> 'after' ->> 'edit_rule' IS NOT NULL
$$;
REVOKE ALL ON FUNCTION edit_rule_since(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION edit_rule_since(bigint) TO publisher_engine;
"""


def upgrade() -> None:
    """Let the engine's role ask."""
    op.get_bind().exec_driver_sql(ASKED)


def downgrade() -> None:
    """The migrations before this one are not taken back, either."""
    message = "what may be asked of approvals goes on to be asked"
    raise RuntimeError(message)
