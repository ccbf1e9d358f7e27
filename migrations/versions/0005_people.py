"""Workspaces, the people in them, how they sign in, and the journal of what they did.

Revision ID: 0005
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE workspaces (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug text COLLATE "C" NOT NULL CONSTRAINT workspaces_slug UNIQUE
        CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$'),
    name text NOT NULL CHECK (name <> ''),
    zone text NOT NULL CHECK (zone <> ''),
    approval_by_other boolean NOT NULL DEFAULT false,
    edit_rule text NOT NULL DEFAULT 'hold' CHECK (edit_rule IN ('hold', 'keep')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Everything that is there already belongs to it.
INSERT INTO workspaces (slug, name, zone) VALUES ('main', 'Main', 'UTC');

CREATE TABLE users (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL CHECK (length(email) <= 254 AND email ~ '^[^@[:space:]]+@[^@[:space:]]+$'),
    name text NOT NULL CHECK (name <> ''),
    password_hash text,
    password_changed_at timestamptz,
    totp_sealed bytea,
    totp_confirmed_at timestamptz,
    totp_step bigint,
    zone text CHECK (zone <> ''),
    calendar text CHECK (calendar IN ('gregory', 'persian')),
    locale text CHECK (locale <> ''),
    disabled_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((password_hash IS NULL) = (password_changed_at IS NULL)),
    CHECK (totp_confirmed_at IS NULL OR totp_sealed IS NOT NULL),
    CHECK (totp_step IS NULL OR totp_sealed IS NOT NULL)
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

CREATE TABLE memberships (
    workspace_id integer NOT NULL REFERENCES workspaces (id),
    user_id integer NOT NULL REFERENCES users (id),
    role text NOT NULL CHECK (role IN ('viewer', 'editor', 'approver', 'operator', 'admin')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

-- Of what opens a door only the hash is kept: a copy of the database signs nobody in.
CREATE TABLE user_links (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    user_id integer NOT NULL REFERENCES users (id),
    purpose text NOT NULL CHECK (purpose IN ('invite', 'reset')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at timestamptz
);
CREATE INDEX user_links_user ON user_links (user_id);

CREATE TABLE recovery_codes (
    user_id integer NOT NULL REFERENCES users (id),
    code_sha256 bytea NOT NULL CHECK (octet_length(code_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    used_at timestamptz,
    PRIMARY KEY (user_id, code_sha256)
);

-- One that awaits its code opens nothing but the question for it.
CREATE TABLE sessions (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    user_id integer NOT NULL REFERENCES users (id),
    method text NOT NULL CHECK (method IN ('password', 'link', 'oidc')),
    awaits_code boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    ended_at timestamptz,
    end_reason text,
    reauthenticated_at timestamptz,
    address text,
    agent text,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
CREATE INDEX sessions_user ON sessions (user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_over ON sessions (expires_at);

CREATE TABLE api_tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id integer NOT NULL REFERENCES workspaces (id),
    user_id integer NOT NULL REFERENCES users (id),
    name text NOT NULL CHECK (name <> ''),
    token_sha256 bytea NOT NULL CONSTRAINT api_tokens_token UNIQUE
        CHECK (octet_length(token_sha256) = 32),
    hint text NOT NULL CHECK (length(hint) <= 8),
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL CHECK (created_by <> ''),
    expires_at timestamptz CHECK (expires_at > created_at),
    last_used_at timestamptz,
    revoked_at timestamptz,
    revoked_by text,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX api_tokens_workspace ON api_tokens (workspace_id, id);
CREATE INDEX api_tokens_user ON api_tokens (user_id);

CREATE TABLE identities (
    issuer text NOT NULL CHECK (issuer <> ''),
    subject text NOT NULL CHECK (subject <> ''),
    user_id integer NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);

-- A sign-in that went to another party and has not come back; its secrets are the browser's.
CREATE TABLE oidc_departures (
    token_sha256 bytea PRIMARY KEY CHECK (octet_length(token_sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    used_at timestamptz
);
CREATE INDEX oidc_departures_over ON oidc_departures (expires_at);

-- Keys are hashes of what was typed: somebody may type a password where the address goes.
CREATE TABLE login_failures (
    key text COLLATE "C" PRIMARY KEY CHECK (key <> '' AND length(key) <= 100),
    count integer NOT NULL CHECK (count >= 0),
    last_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    locked_until timestamptz
) WITH (fillfactor = 70);
CREATE INDEX login_failures_last ON login_failures (last_at);

CREATE TABLE people_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id integer REFERENCES workspaces (id),
    user_id integer REFERENCES users (id),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    who text NOT NULL CHECK (who <> ''),
    event text NOT NULL CHECK (event <> ''),
    subject text NOT NULL DEFAULT '',
    detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object')
);
CREATE INDEX people_events_workspace ON people_events (workspace_id, id);
CREATE INDEX people_events_user ON people_events (user_id, id);
"""

REFUSALS = """
CREATE TRIGGER people_events_append_only BEFORE UPDATE OR DELETE ON people_events FOR EACH ROW
EXECUTE FUNCTION refuse('PB024', 'the journal is only added to');

CREATE TRIGGER user_links_once BEFORE UPDATE ON user_links FOR EACH ROW
WHEN (OLD.used_at IS NOT NULL AND OLD.used_at IS DISTINCT FROM NEW.used_at)
EXECUTE FUNCTION refuse('PB025', 'a link works once');
CREATE TRIGGER recovery_codes_once BEFORE UPDATE ON recovery_codes FOR EACH ROW
WHEN (OLD.used_at IS NOT NULL AND OLD.used_at IS DISTINCT FROM NEW.used_at)
EXECUTE FUNCTION refuse('PB025', 'a recovery code works once');
CREATE TRIGGER oidc_departures_once BEFORE UPDATE ON oidc_departures FOR EACH ROW
WHEN (OLD.used_at IS NOT NULL AND OLD.used_at IS DISTINCT FROM NEW.used_at)
EXECUTE FUNCTION refuse('PB025', 'a sign-in comes back once');
CREATE TRIGGER sessions_ended_stay BEFORE UPDATE ON sessions FOR EACH ROW
WHEN (OLD.ended_at IS NOT NULL AND OLD.ended_at IS DISTINCT FROM NEW.ended_at)
EXECUTE FUNCTION refuse('PB025', 'a session that ended stays ended');
CREATE TRIGGER api_tokens_revoked_stay BEFORE UPDATE ON api_tokens FOR EACH ROW
WHEN (OLD.revoked_at IS NOT NULL AND OLD.revoked_at IS DISTINCT FROM NEW.revoked_at)
EXECUTE FUNCTION refuse('PB025', 'a token that was revoked stays so');
-- A code that was taken once is never taken again, whichever process asks.
CREATE TRIGGER users_totp_forward BEFORE UPDATE ON users FOR EACH ROW
WHEN (OLD.totp_confirmed_at IS NOT NULL AND NEW.totp_confirmed_at = OLD.totp_confirmed_at
      AND OLD.totp_step IS NOT NULL
      AND (NEW.totp_step IS NULL OR NEW.totp_step < OLD.totp_step))
EXECUTE FUNCTION refuse('PB026', 'a code that was used stays used');
"""

# Workers and the reconciler know nobody: publisher_engine is granted nothing here.
GRANTS = """
GRANT SELECT ON workspaces, users, memberships, user_links, recovery_codes, sessions, api_tokens,
    identities, oidc_departures, login_failures, people_events TO publisher_app;
GRANT INSERT ON people_events TO publisher_app;

GRANT INSERT (slug, name, zone, approval_by_other, edit_rule) ON workspaces TO publisher_app;
GRANT UPDATE (name, zone, approval_by_other, edit_rule) ON workspaces TO publisher_app;

GRANT INSERT (email, name, zone, calendar, locale) ON users TO publisher_app;
GRANT UPDATE (email, name, password_hash, password_changed_at, totp_sealed, totp_confirmed_at,
              totp_step, zone, calendar, locale, disabled_at) ON users TO publisher_app;

GRANT INSERT (workspace_id, user_id, role), UPDATE (role), DELETE ON memberships
    TO publisher_app;

GRANT INSERT (token_sha256, user_id, purpose, expires_at), UPDATE (used_at), DELETE
    ON user_links TO publisher_app;
GRANT INSERT (user_id, code_sha256), UPDATE (used_at), DELETE ON recovery_codes TO publisher_app;

GRANT INSERT (token_sha256, user_id, method, awaits_code, expires_at, reauthenticated_at, address,
              agent),
      UPDATE (seen_at, ended_at, end_reason, reauthenticated_at), DELETE
    ON sessions TO publisher_app;

GRANT INSERT (workspace_id, user_id, name, token_sha256, hint, scopes, created_by, expires_at),
      UPDATE (last_used_at, revoked_at, revoked_by)
    ON api_tokens TO publisher_app;

GRANT INSERT (issuer, subject, user_id), DELETE ON identities TO publisher_app;
GRANT INSERT (token_sha256, expires_at), UPDATE (used_at), DELETE
    ON oidc_departures TO publisher_app;
GRANT INSERT, UPDATE, DELETE ON login_failures TO publisher_app;
"""


def upgrade() -> None:
    """Add people and the workspace that everything there is belongs to."""
    for sql in (TABLES, REFUSALS, GRANTS):
        op.get_bind().exec_driver_sql(sql)


def downgrade() -> None:
    """A journal is not taken back."""
    message = "the journal of people is not dropped"
    raise RuntimeError(message)
