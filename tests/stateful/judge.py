"""What must hold after every step: the page, which is the truth, against the journal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg.rows import dict_row

from publisher.engine.audit import CATALOGUE, Invariant
from tests.engine.ground import Ground, Row
from tests.stateful.page import Stored
from tests.stateful.platform import World

_JOBS: Final = """
SELECT j.id, c.key, j.state, j.reason, j.hold_reason, j.remote_id, j.attempts, c.content,
       ch.platform, j.channel_id,
       coalesce((SELECT jsonb_agg(jsonb_build_object(
                     'number', a.number, 'token', replace(a.token::text, '-', ''),
                     'outcome', a.outcome, 'reason', a.reason, 'proof', a.proof,
                     'settled', a.settled_at IS NOT NULL) ORDER BY a.number)
                   FROM attempts a WHERE a.job_id = j.id), '[]') AS sends,
       EXISTS (SELECT FROM quarantined q WHERE q.job_id = j.id AND q.released_at IS NULL)
           AS is_quarantined,
       EXISTS (SELECT FROM doubts d WHERE d.job_id = j.id) AS is_doubted,
       EXISTS (SELECT FROM orphans o WHERE o.job_id = j.id) AS has_orphan
  FROM jobs j JOIN job_contents c ON c.job_id = j.id JOIN channels ch ON ch.id = j.channel_id
 ORDER BY j.id
"""
# What only says that nobody came for a while: here nobody comes until the test says so.
NOBODY_CAME: Final = frozenset(
    {"S01", "S04", "S05", "S06", "S07", "S08", "S09", "S10", "L03", "L04"}
)
_NOT_THERE: Final = frozenset({"scheduled", "claimed", "failed", "missed", "cancelled"})


def _together(asked: Sequence[Invariant]) -> bytes:
    """One statement that asks them all, of everything there is."""
    each = [
        f"SELECT '{one.id}' AS id, job_id::bigint, detail::text FROM ({one.statement(full=True)})"
        " AS found"
        for one in asked
    ]
    sql = " UNION ALL ".join(each).replace("%(alerted)s", "false").replace("%%", "%")
    assert "%(" not in sql
    return sql.encode()


_AUDIT: Final = _together(CATALOGUE)


@dataclass(slots=True)
class Excuses:
    """What is not the product's doing, by key.

    ``sworn``: a person's word that was wrong. ``unnoticed``: the database went back, and nobody
    who works has looked at it since. ``lost``: jobs that a backup did not hold.
    """

    sworn: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    unnoticed: bool = False


@dataclass
class Judge:
    """Compares. ``approved``: the keys of all that was scheduled."""

    ground: Ground
    world: World
    approved: list[str] = field(default_factory=list)
    excuses: Excuses = field(default_factory=Excuses)
    counts: Counter[str] = field(default_factory=Counter)

    def rows(self) -> list[Row]:
        return self.ground.sql(_JOBS)

    def check(self, *, at_the_end: bool = False) -> None:
        """Raise ``AssertionError`` with the first thing that is broken, and everything about it."""
        rows = {row["key"]: row for row in self.rows()}
        posts: dict[str, list[Stored]] = defaultdict(list)
        for post in self.world.page.posts:
            posts[post.key].append(post)
        for key, there in posts.items():
            self._once(key, there, rows.get(key))
        for key in self.approved:
            if key not in rows:
                assert key in self.excuses.lost, f"LOST: {key} is not in the journal"
        for row in rows.values():
            self._state(row, posts[row["key"]], at_the_end=at_the_end)

    def _once(self, key: str, there: list[Stored], row: Row | None) -> None:
        again = [text for text, n in Counter(post.text for post in there).items() if n > 1]
        if not again or key in self.excuses.sworn:
            return
        if key in self.world.lied and key not in self.world.despite_a_look:
            self.counts["doubled after a lie that no look could see"] += 1
            return
        self._fail("DUPLICATE", row, there, f"{key} is on the page {len(there)} times")

    def _state(self, row: Row, there: list[Stored], *, at_the_end: bool) -> None:
        key, state = row["key"], row["state"]
        excused = key in self.excuses.sworn or key in self.world.lied
        on_its_way = self.world.page.may_arrive(key)
        if state in _NOT_THERE and (there or on_its_way) and not excused:
            held = row["is_quarantined"]
            repeats = any(send["proof"] == "repeat_safe" for send in row["sends"])
            if (
                not held
                and not self.excuses.unnoticed
                and not (repeats and state in {"scheduled", "claimed"})
            ):
                self._fail("SILENT", row, there, f"{key} is {state}, and may be live")
        if state == "published" and not excused:
            ids = {post.remote_id for post in there}
            if not ids or (row["remote_id"] is not None and row["remote_id"] not in ids):
                self._fail("FALSE SUCCESS", row, there, f"{key} is not there")
        if state == "unknown" and not row["is_doubted"]:
            self._fail("SILENT", row, there, f"{key} is in doubt, and nobody is shown it")
        if at_the_end:
            self._end(row, there)

    def _end(self, row: Row, there: list[Stored]) -> None:
        """After everything healed and had its time."""
        key, state = row["key"], row["state"]
        self.counts[f"ended {state}"] += 1
        if state in {"claimed", "sending"} or (state == "scheduled" and not row["is_quarantined"]):
            self._fail("LOST", row, there, f"{key} is still {state}")
        if state == "unknown" and not row["has_orphan"] and self.world.restored_at is None:
            wrote = [send for send in row["sends"] if send["token"] in self.world.started]
            if not wrote:
                self._fail("GROUNDLESS", row, there, f"nothing of {key} can have left")

    def heard(self) -> None:
        """What workers noted of answers that say published is in the journal in the end."""
        rows = self.ground.sql("SELECT token, outcome, reason FROM attempts")
        known = {row["token"].hex: row for row in rows}
        for token, remote_id in self.world.answered.items():
            row = known.get(token)
            if row is None:
                assert self.world.restored_at is not None, f"UNHEARD: {remote_id} of no attempt"
                continue
            told = row["outcome"] == "published" or row["reason"] == "id_of_another_job"
            assert told, f"UNHEARD: {remote_id} was answered, the journal says {row['outcome']}"

    def audit(self, *, but: Collection[str] = ()) -> None:
        """Ask what the product itself asks of its journal: all in one statement."""
        with self.ground.root.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(_AUDIT, prepare=True).fetchall()
        broken = [row for row in rows if row["id"] not in but]
        if not broken:
            return
        titles = {one.id: one.title for one in CATALOGUE}
        told = [
            f"{row['id']} {titles[row['id']]}: job {row['job_id']}, {row['detail']}"
            for row in broken
        ]
        ids = {row["job_id"] for row in broken}
        about = "\n".join(self.tell(row) for row in self.rows() if row["id"] in ids)
        raise AssertionError("AUDIT: " + "\n".join(told) + f"\n{about}")

    def _fail(self, rule: str, row: Row | None, there: list[Stored], what: str) -> None:
        about = "not in the journal" if row is None else self.tell(row)
        page = ", ".join(f"{post.remote_id} at {post.at:%H:%M:%S}" for post in there) or "nothing"
        flying = [
            request for request in self.world.page.flying if row and request.key == row["key"]
        ]
        message = f"{rule}: {what}\n  on the page: {page}; on its way: {len(flying)}\n{about}"
        raise AssertionError(message)

    def tell(self, row: Row) -> str:
        """All that is known of a job, for whoever reads a failure."""
        lines = self.ground.sql(
            "SELECT at, event, who, attempt, detail FROM ("
            " SELECT at, event, who, attempt, detail FROM job_events WHERE job_id = %(id)s"
            " UNION ALL SELECT at, 'verdict ' || decision, who, attempt,"
            " detail || jsonb_build_object('reason', reason) FROM verdicts WHERE job_id = %(id)s"
            " UNION ALL SELECT begun_at, 'begin', incarnation::text, number, '{}'"
            " FROM attempts WHERE job_id = %(id)s"
            " UNION ALL SELECT ended_at, 'look', by, attempt, evidence"
            " FROM looks WHERE job_id = %(id)s) AS t ORDER BY at".replace("%(id)s", str(row["id"]))
        )  # fmt: skip
        stands = f"{row['state']}, reason {row['reason']}, hold {row['hold_reason']}"
        told = [f"  job {row['id']} on {row['platform']}: {stands}, live as {row['remote_id']}"]
        told += [f"    send {_shown(send)}" for send in row["sends"]]
        told += [
            f"    {line['at']:%H:%M:%S.%f} {line['event']} by {line['who']}"
            f" ({line['attempt']}) {line['detail']}"
            for line in lines
        ]
        return "\n".join(told)


def _shown(send: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in send.items())
