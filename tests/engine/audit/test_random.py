"""A thousand changes of single rows, drawn by chance: each is found by some invariant."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from psycopg.rows import dict_row

from publisher.engine.audit import CATALOGUE, Invariant
from publisher.engine.audit.invariant import SCOPED
from tests.engine.audit.ruin import Ruin
from tests.engine.ground import Row

CHANGES: Final = 1000
SEED: Final = 20261130

# How a value is made another one, by the type of its column.
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "timestamp with time zone": ("null", "past", "future"),
    "bigint": ("null", "more", "other"),
    "integer": ("null", "more", "other"),
    "text": ("null", "word", "other"),
    "uuid": ("null", "random", "other"),
    "bytea": ("null", "flip", "other"),
    "jsonb": ("null", "empty", "other"),
    "boolean": ("null", "not"),
    "interval": ("null", "month"),
}
_EXPRESSIONS: Final = {
    "null": "NULL",
    "past": "{c} - interval '400 days'",
    "future": "{c} + interval '400 days'",
    "more": "{c} + 1000",
    "word": "{c} || ' x'",
    "flip": "set_byte({c}, 0, 255 - get_byte({c}, 0))",
    "empty": "'{{}}'::jsonb",
    "not": "NOT {c}",
    "month": "{c} + interval '1 month'",
    "random": "%(value)s",
    "other": "%(value)s::{t}",
}

# Changes that break no promise, or that no row but the worker's own file could tell of.
_WORDS: Final = "words for people, or for the log; nothing is decided by them"
_ONCE: Final = "it stands nowhere else; what follows is seen, and is no second send"
_WIRE: Final = "as it was received; only the worker's own file holds it a second time"
_ORDER: Final = "lines are told apart by it, and ordered by their time"
_PLACE: Final = "what a channel is lies between us and its platform: `channels check`, `doctor`"
_LESS: Final = "it locks more, or opens less, than the truth would"
_PAST: Final = "nothing is under way that goes by it"
_DESK: Final = frozenset({"take", "snooze", "hand_over", "look_now", "declare_gone", "alert"})

_PASSING: Final = frozenset({
    "lease_expired", "replace", "reschedule", "hold", "release_hold", "quarantine",
    "quarantine_released",
})  # fmt: skip
_OVER: Final = frozenset({"published", "failed", "missed", "cancelled", "dropped"})


def _both_refused(before: Row, after: Row) -> bool:
    return {before["outcome"], after["outcome"]} <= {"rejected", "deferred", "unauthorized"}


def _is_no_post(before: Row, _: Row) -> bool:
    return before["post_id"] is None


def _ended_unsent(before: Row, _: Row) -> bool:
    """Of a job without a post that ended before it was sent, no time is asked any more."""
    return before["post_id"] is None and before["state"] in _OVER and before["attempts"] == 0


# What is let be: changes that break no promise, or that nothing in the database could tell of.
# With a rule, only where it holds of the row before and after.
FREE: Final[Mapping[str, tuple[str, Callable[[Row, Row], bool] | None]]] = {
    "approvals.approved_at past": (_ONCE, None),
    "approvals.approved_by word": (_ONCE, None),
    "approvals.withdrawn_by other": (_ONCE, None),
    "approvals.withdrawn_by word": (_ONCE, None),
    "attempts.answer null": (_WIRE, None),
    "attempts.answer empty": (_WIRE, None),
    "attempts.answer other": (_WIRE, None),
    "attempts.detail null": (_WORDS, None),
    "attempts.detail word": (_WORDS, None),
    "attempts.detail other": (_WORDS, None),
    "attempts.incarnation other": ("another run of the very same second", None),
    "attempts.outcome other": ("refused is refused, in which words ever", _both_refused),
    "attempts.proof other": (
        "an answer of the wire would tell the one from the other",
        lambda row, after: (
            {row["proof"], after["proof"]} == {"refused", "not_sent"} and row["answer"] is None
        ),
    ),
    "attempts.proof_detail null": (_WORDS, lambda row, _: row["proof"] != "refused"),
    "attempts.proof_detail word": (_WORDS, None),
    "attempts.proof_detail other": (_WORDS, lambda row, _: row["proof"] is not None),
    "attempts.proved_by other": (
        "which run read the answer, the sender or who came after it",
        lambda row, _: row["proof"] in {"refused", "not_sent"},
    ),
    "attempts.reason other": (_WORDS, lambda row, _: row["reason"] != "worker_died"),
    "attempts.reason null": (_WORDS, lambda row, _: row["outcome"] == "published"),
    "attempts.token random": (
        "only the worker's own file knows it, too, once the job is held no more",
        lambda row, _: row["settled_at"] is not None,
    ),
    **dict.fromkeys(
        (
            f"channels.{column} {kind}"
            for column in (
                "base_url",
                "generation",
                "name",
                "platform",
                "remote_id",
                "sealed",
                "trusted",
                "created_at",
                "access_ends_at",
            )
            for kind in ("word", "other", "more", "not", "past", "future", "flip")
        ),
        (_PLACE, None),
    ),
    "channels.alt_text_wanted not": (
        "what a check asks of the next version; nothing that is approved goes by it",
        None,
    ),
    "channels.workspace_id more": ("no other row says whose it is, and nobody may change it", None),
    "channels.workspace_id other": (
        "no other row says whose it is, and nobody may change it",
        None,
    ),
    "doubts.asked_reason word": (_WORDS, None),
    "doubts.last_look null": (_WORDS, None),
    "doubts.last_look word": (_WORDS, None),
    "doubts.last_look other": (_WORDS, None),
    "doubts.look_token random": ("its look records nothing then, and is made again", None),
    "doubts.looks more": (_LESS, None),
    "doubts.looks other": (_LESS, None),
    "doubts.next_look_at null": (
        "a person was asked already",
        lambda row, _: row["asked_at"] is not None,
    ),
    "doubts.snoozed_until null": (_LESS, None),
    "doubts.taken_by word": (_WORDS, None),
    "gates.blocked_at past": (_ONCE, None),
    "gates.blocked_detail null": (_WORDS, None),
    "gates.blocked_detail word": (_WORDS, None),
    "gates.blocked_detail other": (_WORDS, None),
    "gates.max_in_flight more": ("a setting", None),
    **dict.fromkeys(
        (
            f"gates.{column} {kind}"
            for column in ("useful_for", "backlog", "overdue_after", "release_every")
            for kind in ("null", "word", "other", "month")
        ),
        ("a setting", None),
    ),
    **dict.fromkeys(
        (
            f"gates.{column} {kind}"
            for column in ("backlog_before", "backlog_turn_at")
            for kind in ("null", "past", "future", "other")
        ),
        ("what was never begun waits for longer, or less long", None),
    ),
    "gates.not_before null": ("a platform asked for more says no in words of the list", None),
    "gates.not_before past": ("a platform asked for more says no in words of the list", None),
    "gates.paused_at past": (_ONCE, None),
    "gates.paused_by word": (_WORDS, None),
    **dict.fromkeys(
        (
            f"incarnations.{column} {kind}"
            for column in ("boot_id", "host", "pid", "end_reason")
            for kind in ("word", "other", "more")
        ),
        ("no file is believed to be this run's then, so its end stays unproved", None),
    ),
    "incarnations.file word": ("its end stays unproved then", None),
    "incarnations.declared_gone_at null": (_LESS, None),
    "job_contents.platform_key null": ("made by its adapter from key and time; nowhere else", None),
    "job_contents.platform_key word": ("made by its adapter from key and time; nowhere else", None),
    "job_contents.progress empty": ("a hand asks the platform for what it names", None),
    "job_contents.progress_sha256 flip": ("a hand discards what is of other content", None),
    "job_events.attempt null": (
        _WORDS,
        lambda row, _: row["event"] not in {"late_answer", "spool_read", "lease_expired"},
    ),
    "job_events.attempt more": (
        _WORDS,
        lambda row, _: row["event"] in {"spool_found", "declare_gone"},
    ),
    "job_events.attempt other": (_WORDS, None),
    "job_events.detail empty": (_WORDS, None),
    "job_events.detail other": (_WORDS, None),
    "job_events.event other": (_WORDS, None),
    "job_events.id more": (_ORDER, None),
    "job_events.id other": (_ORDER, None),
    "job_events.job_id other": (
        _WORDS,
        lambda row, _: row["event"] in _DESK | _PASSING,
    ),
    "job_events.who word": (_ONCE, None),
    "job_events.who other": (_ONCE, None),
    "jobs.claims more": ("counted for people", None),
    "jobs.claims other": ("counted for people", None),
    "jobs.channel_id other": (
        _PAST,
        lambda row, _: _is_no_post(row, row) and row["state"] in _OVER,
    ),
    "jobs.deaths other": ("more tries or fewer; each of them proved harmless first", None),
    "jobs.due_at past": (_ONCE, _is_no_post),
    "jobs.due_at future": (_PAST, _ended_unsent),
    "jobs.failures other": ("more tries or fewer; each of them proved harmless first", None),
    "jobs.hand_at null": (_LESS, None),
    "jobs.queue other": (_ONCE, _is_no_post),
    "jobs.kind other": (_ONCE, _is_no_post),
    "jobs.kind word": (_ONCE, _is_no_post),
    "jobs.queue word": (_ONCE, _is_no_post),
    "jobs.reason null": (_WORDS, None),
    "jobs.reason word": (_WORDS, None),
    "jobs.reason other": (_WORDS, None),
    "jobs.run_at future": (_PAST, lambda row, _: row["state"] != "scheduled"),
    "jobs.run_at past": (_PAST, lambda row, _: row["state"] not in {"scheduled", "claimed"}),
    "jobs.token random": (
        "nothing was begun under it; its lease runs out",
        lambda row, _: row["state"] == "claimed",
    ),
    "jobs.unique_until past": (_LESS, None),
    "jobs.unique_until null": ("its lock is gone", lambda row, _: row["state"] == "published"),
    "jobs.unique_until future": ("its lock is not renewed", lambda row, _: row["state"] in _OVER),
    "jobs.repeat_until null": (_PAST, lambda row, _: row["state"] in _OVER),
    "jobs.useful_until future": (_ONCE, None),
    "jobs.useful_until past": (
        _PAST,
        lambda row, _: row["state"] in _OVER and row["attempts"] == 0,
    ),
    "looks.by word": (_WORDS, None),
    "looks.by other": (_WORDS, None),
    "looks.evidence other": (_WIRE, lambda row, _: row["evidence"]["kind"] == "Inconclusive"),
    "looks.id more": (_ORDER, None),
    "looks.id other": (_ORDER, None),
    "post_versions.created_at past": (_WORDS, None),
    "post_versions.created_at future": (_WORDS, None),
    "post_versions.created_at null": (_WORDS, None),
    "post_versions.created_by word": (_WORDS, None),
    "post_versions.created_by null": (_WORDS, None),
    "remote_posts.permalink null": ("read back from the platform", None),
    "remote_posts.permalink word": ("read back from the platform", None),
    "remote_posts.permalink other": ("read back from the platform", None),
    "verdicts.detail other": (
        _WORDS,
        lambda row, after: set(row["detail"]) ^ set(after["detail"]) <= {"at"},
    ),
    "verdicts.detail empty": (_PAST, lambda row, _: row["decision"] == "repeat"),
    "verdicts.id more": (_ORDER, None),
    "verdicts.id other": (_ORDER, None),
    "verdicts.reason word": (_WORDS, None),
    "verdicts.reason other": (_WORDS, None),
    "verdicts.who word": (_ONCE, lambda row, _: row["decision"] != "absent"),
    "verdicts.who other": (_ONCE, lambda row, _: row["decision"] != "absent"),
}
_USED: Final = {
    "post_versions": "id IN (SELECT version_id FROM job_contents)",
    "approvals": "version_id IN (SELECT version_id FROM job_contents)",
}
CHANGED: Final = (
    "jobs", "job_contents", "job_keys", "attempts", "remote_posts", "looks", "verdicts", "doubts",
    "job_events", "unique_locks", "gates", "incarnations", "channels", "post_versions",
    "approvals",
)  # fmt: skip
GONE: Final = (
    "jobs", "job_contents", "job_keys", "attempts", "remote_posts", "doubts", "gates", "verdicts",
    "post_versions", "approvals", "channels",
)  # fmt: skip
"""Tables of which a row that is deleted is missed."""


@dataclass(frozen=True)
class Change:
    """One row's: ``kind`` is done to ``column``, or with ``gone`` the row is deleted."""

    table: str
    row: str
    column: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column} {self.kind}"


@dataclass
class Chance:
    """Draws changes, and makes them."""

    ruin: Ruin
    by: random.Random
    columns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = self.ruin.conn.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'publisher' ORDER BY 1, 2"
        ).fetchall()
        for table in CHANGED:
            self.columns[table] = [(name, kind) for at, name, kind in found if at == table]
            used = _USED.get(table, "true")
            ids = self.ruin.conn.execute(f"SELECT ctid::text FROM {table} WHERE {used} ORDER BY 1")
            self.rows[table] = [row[0] for row in ids.fetchall()]

    def draw(self) -> Change:
        table = self.by.choice(CHANGED)
        row = self.by.choice(self.rows[table])
        if table in GONE and self.by.random() < 0.05:
            return Change(table, row, "row", "gone")
        column, type_of = self.by.choice(self.columns[table])
        return Change(table, row, column, self.by.choice(_KINDS[type_of]))

    def make(self, change: Change) -> Row | None:
        """The row as it is now; None where nothing came of it."""
        table, column, conn = change.table, change.column, self.ruin.conn
        if change.kind == "gone":
            conn.execute(f"DELETE FROM {table} WHERE ctid = %s::tid", [change.row])
            return {}
        value: object = None
        if change.kind == "random":
            value = UUID(int=self.by.getrandbits(128))
        elif change.kind == "other":
            others = conn.execute(
                f"SELECT {column}::text FROM {table} WHERE {column} IS DISTINCT FROM"
                f" (SELECT {column} FROM {table} WHERE ctid = %s::tid)"
                f" AND {column} IS NOT NULL GROUP BY 1 ORDER BY 1",
                [change.row],
            ).fetchall()
            if not others:
                return None
            value = self.by.choice(others)[0]
        type_of = dict(self.columns[table])[column]
        new = _EXPRESSIONS[change.kind].format(c=column, t=type_of)
        with conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                f"UPDATE {table} SET {column} = {new} WHERE ctid = %(row)s::tid"
                f" AND {column} IS DISTINCT FROM {new} RETURNING *",
                {"row": change.row, "value": value},
            ).fetchone()

    def shown(self, change: Change) -> Row:
        return self.ruin.ground.sql(
            f"SELECT * FROM {change.table} WHERE ctid = %s::tid", change.row
        )[0]


def about(table: str) -> Sequence[Invariant]:
    """The invariants that read a table, those that read the fewest others first."""
    names = {table, *("{" + name + "}" for name, (of, _) in SCOPED.items() if of == table)}
    names |= {"{versions}"} if table == "post_versions" else set()
    asked = [one for one in CATALOGUE if any(name in one.sql for name in names)]
    return sorted(asked, key=lambda one: len(one.sql))


def is_free(change: Change, before: Row, after: Row) -> bool:
    _, rule = FREE.get(change.name, ("", None))
    return change.name in FREE and (rule is None or rule(before, after))


def test_each_of_a_thousand_changes_is_found(ruin: Ruin) -> None:
    chance = Chance(ruin, random.Random(SEED))
    asked = {table: about(table) for table in CHANGED}
    missed: list[tuple[str, Row]] = []
    made = 0
    while made < CHANGES:
        change = chance.draw()
        before = chance.shown(change)
        with ruin.undone():
            after = chance.make(change)
            if after is None or is_free(change, before, after):
                continue
            made += 1
            if next(ruin.broken(asked[change.table]), None) is None:
                missed.append((change.name, before))
    assert not missed


def test_what_is_left_out_is_there() -> None:
    kinds = {kind for kinds in _KINDS.values() for kind in kinds}
    assert all(name.split()[1] in kinds and why for name, (why, _) in FREE.items())
