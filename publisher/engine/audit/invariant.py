"""What an invariant is: a question to the journal whose answer must be no rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """What is at stake, the gravest first. An invariant's id begins with its letter."""

    DUPLICATE = "duplicate"
    """A post may be sent twice, or was."""
    LOST = "lost"
    """Something approved may never be sent, and nothing says so."""
    SILENT = "silent"
    """Something waits for a person or a worker, and nobody comes."""
    UNTRUE = "untrue"
    """A row says what other rows deny."""
    CUSTODY = "custody"
    """Nobody answers for a row: its owner, its holder or its evidence is gone."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """One question. ``sql`` gives ``job_id, attempt, channel_id, detail`` for each row in breach.

    ``meaning``: what it means and what to do next. Names in braces in ``sql`` stand for the tables
    of ``SCOPED``, whole or narrowed to the jobs that are looked at.
    """

    id: str
    title: str
    meaning: str
    sql: str

    @property
    def severity(self) -> Severity:
        """By the letter of its id."""
        return _LETTERS[self.id[0]]

    def statement(self, *, full: bool) -> str:
        """The query, over the whole history or over ``%(ids)s`` alone."""
        sql = self.sql
        for name, (table, column) in SCOPED.items():
            narrowed = f"(SELECT * FROM {table} WHERE {column} = ANY(%(ids)s::bigint[]))"  # noqa: S608 - our own words
            sql = sql.replace("{" + name + "}", table if full else narrowed)
        sql = sql.replace("{versions}", "post_versions" if full else _VERSIONS)
        return sql.replace("{approved_since}", "true" if full else RECENT)


SCOPED: Final = {
    "jobs": ("jobs", "id"),
    "contents": ("job_contents", "job_id"),
    "keys": ("job_keys", "job_id"),
    "attempts": ("attempts", "job_id"),
    "events": ("job_events", "job_id"),
    "verdicts": ("verdicts", "job_id"),
    "looks": ("looks", "job_id"),
    "remote_posts": ("remote_posts", "job_id"),
}
DAYS: Final = 7
RECENT: Final = f"approved_at > now() - interval '{DAYS} days'"
IN_SCOPE: Final = f"""
SELECT id FROM jobs
 WHERE state IN ('scheduled', 'claimed', 'sending', 'unknown') OR settled_at IS NULL
    OR settled_at > now() - interval '{DAYS} days'
"""  # noqa: S608 - our own words
"""The jobs that are looked at by default: those not over, and those that ended lately."""

_VERSIONS: Final = """(SELECT * FROM post_versions WHERE id IN (
    SELECT version_id FROM job_contents WHERE job_id = ANY(%(ids)s::bigint[])))"""
_LETTERS: Final = {severity.value[0].upper(): severity for severity in Severity} | {
    "T": Severity.UNTRUE
}
