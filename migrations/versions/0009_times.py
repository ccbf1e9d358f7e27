"""Posting times, minimum spacing, useful-until by channel, and what is done with a backlog.

Revision ID: 0009
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

RULES = """
ALTER TABLE gates
    ADD COLUMN useful_for interval
        CONSTRAINT gates_useful_for_a_while CHECK (useful_for > '0' AND useful_for <= '366 days'),
    -- What was due long before a standstill ended: sent as it comes, let go one by one behind
    -- what is fresh, or ended as missed.
    ADD COLUMN backlog text COLLATE "C" NOT NULL DEFAULT 'send'
        CONSTRAINT gates_backlog_is_a_rule CHECK (backlog IN ('send', 'release', 'miss')),
    ADD COLUMN overdue_after interval NOT NULL DEFAULT '30 minutes'
        CONSTRAINT gates_overdue_after_minutes
        CHECK (overdue_after >= '5 minutes' AND overdue_after <= '7 days'),
    ADD COLUMN release_every interval NOT NULL DEFAULT '10 minutes'
        CONSTRAINT gates_release_every_while
        CHECK (release_every > '0' AND release_every <= '1 day'),
    -- What should have run before this instant is a backlog that is not sorted out yet.
    ADD COLUMN backlog_before timestamptz,
    -- When the next of a sorted backlog may go; null without one.
    ADD COLUMN backlog_turn_at timestamptz,
    -- A gate is closed for its spacing while its one send is still unsettled; with several in
    -- flight there would be a moment between.
    ADD CONSTRAINT gates_spaced_one_at_a_time CHECK (spacing = '0' OR max_in_flight = 1),
    ADD CONSTRAINT gates_spaced_for_a_day_at_most CHECK (spacing <= '1 day');

ALTER TABLE post_channels ADD COLUMN useful_until timestamptz
    CONSTRAINT post_channels_useful_after_its_time CHECK (useful_until > publish_at);
"""

POSTING_TIMES = """
CREATE TABLE posting_times (
    channel_id integer NOT NULL REFERENCES channels (id),
    weekday smallint NOT NULL CONSTRAINT posting_times_weekday CHECK (weekday BETWEEN 1 AND 7),
    at time NOT NULL CONSTRAINT posting_times_minute
        CHECK (at < '24:00' AND date_trunc('minute', at::interval) = at::interval),
    added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    added_by text NOT NULL CONSTRAINT posting_times_by_somebody CHECK (added_by <> ''),
    PRIMARY KEY (channel_id, weekday, at)
);

-- Whoever asks for the next free time takes it, for a while or until it is given back: two who ask
-- at once would else be told the same. A key on the instant would not do, for two times closer
-- than the channel's spacing are in each other's way as well; hence ranges. The channel is one of
-- its own number, because equality of integers is not among the operators GiST comes with.
CREATE TABLE taken_times (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id integer NOT NULL REFERENCES channels (id),
    during tstzrange NOT NULL CONSTRAINT taken_times_begin
        CHECK (NOT isempty(during) AND NOT lower_inf(during) AND NOT upper_inf(during)),
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    taken_by text NOT NULL CONSTRAINT taken_times_by_somebody CHECK (taken_by <> ''),
    lapses_at timestamptz NOT NULL,
    CONSTRAINT taken_times_once EXCLUDE USING gist (
        int4range(channel_id, channel_id, '[]') WITH &&, during WITH &&)
);

-- What is planned on a channel around some time.
CREATE INDEX post_channels_planned ON post_channels (channel_id, publish_at);
"""

GRANTS = """
GRANT SELECT ON posting_times, taken_times TO publisher_engine, publisher_app;
GRANT INSERT (channel_id, weekday, at, added_by), DELETE ON posting_times TO publisher_app;
GRANT INSERT (channel_id, during, taken_by, lapses_at), DELETE ON taken_times TO publisher_app;
GRANT UPDATE (useful_until) ON post_channels TO publisher_app;
"""

# As 0006 has them: whoever may see a channel.
WALLS = """
ALTER TABLE posting_times ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON posting_times TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON posting_times TO publisher_app
    USING ((SELECT everywhere()) OR channel_id IN (SELECT c.id FROM channels c));
ALTER TABLE taken_times ENABLE ROW LEVEL SECURITY;
CREATE POLICY engine ON taken_times TO publisher_engine USING (true) WITH CHECK (true);
CREATE POLICY app ON taken_times TO publisher_app
    USING ((SELECT everywhere()) OR channel_id IN (SELECT c.id FROM channels c));
"""


def upgrade() -> None:
    """Add the rules of a channel's times, its posting times, and those that are taken."""
    bind = op.get_bind()
    for sql in (RULES, POSTING_TIMES, GRANTS, WALLS):
        bind.exec_driver_sql(sql)


def downgrade() -> None:
    """A worker of before would send a backlog that this one holds back."""
    message = "what waits its turn behind fresh posts would be stranded"
    raise RuntimeError(message)
