"""Every change of state, in order, written down beside the journal by the schedule's database.

The journal says what each attempt came to; this says which way a job went. It is the rehearsal's
own: made in a schedule's database, gone with it.
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
CREATE TABLE rehearsal.moves (
    number bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_id bigint NOT NULL, was text, became text NOT NULL, reason text,
    attempts integer NOT NULL, claims integer NOT NULL
)"""
_FUNCTION: Final = """
CREATE FUNCTION rehearsal.moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = rehearsal, pg_temp AS $$
BEGIN
    INSERT INTO rehearsal.moves (job_id, was, became, reason, attempts, claims) VALUES (
        NEW.id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.state::text END, NEW.state::text,
        NEW.reason, NEW.attempts, NEW.claims);
    RETURN NULL;
END $$"""
_ON_MOVE: Final = """
CREATE TRIGGER rehearsal_moved AFTER UPDATE OF state ON publisher.jobs FOR EACH ROW
WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION rehearsal.moved()"""
_ON_INSERT: Final = """
CREATE TRIGGER rehearsal_made AFTER INSERT ON publisher.jobs FOR EACH ROW
EXECUTE FUNCTION rehearsal.moved()"""
INSTALL: Final = ("CREATE SCHEMA rehearsal", _TABLE, _FUNCTION, _ON_MOVE, _ON_INSERT)

MOVES: Final = (
    "SELECT job_id, at, was, became, reason, attempts, claims FROM rehearsal.moves ORDER BY number"
)
