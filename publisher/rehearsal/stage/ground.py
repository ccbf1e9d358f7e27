"""The database of one schedule: channels and posts put there, rows looked at, time moved on."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row

from publisher.config import Settings
from publisher.engine.content import Media, Post
from publisher.rehearsal.plan.schedule import PostPlan, Schedule
from publisher.rehearsal.stage import recorder
from publisher.rehearsal.stage.receiver import SECRET
from publisher.rehearsal.stage.server import Server
from publisher.rehearsal.verdict.verdict import Approved
from publisher.vault import Vault

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""
_PICTURE_SHA256 = hashlib.sha256(PICTURE)

ALERTED = "alerts"
"""The channel that is told when a person is needed."""

Row = dict[str, Any]

_OPEN = "state IN ('claimed', 'sending') OR state = 'scheduled' AND hold_reason IS NULL"
_LATER = "clock_timestamp() + interval '12 hours'"
"""What is due after that is in reserve, and no retry."""


@dataclass
class Ground:
    """One schedule's database, through the back door."""

    server: Server
    name: str
    settings: Settings
    approved: list[Approved] = field(default_factory=list)
    jobs: list[Row] = field(default_factory=list)
    _conn: psycopg.Connection[Row] | None = None

    def sql(self, query: str, *values: object) -> list[Row]:
        """Run ``query`` past the product.

        Raises ``psycopg.OperationalError`` while nobody answers.
        """
        if self._conn is None or self._conn.closed:
            conn = self.server.admin(self.name)
            conn.execute("SELECT set_config('search_path', 'publisher', false)")
            conn.execute("SELECT set_config('lock_timeout', '2s', false)")
            self._conn = cast("psycopg.Connection[Row]", conn)
            self._conn.row_factory = dict_row
        try:
            cursor = self._conn.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            self._conn.close()
            raise

    def close(self) -> None:
        """Give the connection up."""
        if self._conn is not None:
            self._conn.close()

    def add_pages(self, schedule: Schedule, pages: list[dict[str, str]], *, alerted: str) -> None:
        """Connect the pages, and write down what is approved for them.

        ``alerted``: address of who is told when a person is needed.
        """
        (deployment,) = self.sql("SELECT id::text FROM deployment")
        receiver = {
            "platform": "webhook", "name": ALERTED, "id": ALERTED, "base_url": alerted,
            "token": SECRET,
        }  # fmt: skip
        vault = Vault.from_settings(self.settings, deployment["id"])
        channels = []
        for page in [*pages, receiver]:
            (row,) = self.sql(
                "INSERT INTO channels (platform, name, remote_id, base_url, trusted)"
                " VALUES (%s, %s, %s, nullif(%s, ''), true) RETURNING id",
                page["platform"],
                page["name"],
                page["id"],
                page["base_url"],
            )
            channels.append(row["id"])
            sealed = vault.seal(page["token"], channel_id=row["id"])
            self.sql("UPDATE channels SET sealed = %s WHERE id = %s", sealed, row["id"])
            self.sql(
                "INSERT INTO gates (channel_id, max_in_flight) VALUES (%s, %s)",
                row["id"],
                schedule.in_flight,
            )
        for statement in recorder.INSTALL:
            self.sql(statement)
        self._add_picture()
        for plan in schedule.posts:
            text = plan.text(schedule.seed)
            mark = text.partition(" ")[0]
            (post,) = self.sql(
                "INSERT INTO posts (ref, created_by) VALUES (%s, 'crash') RETURNING id", mark
            )
            self.jobs.append(
                {
                    "key": mark,
                    "channel_id": channels[plan.page],
                    "post_id": post["id"],
                    "platform": pages[plan.page]["platform"],
                    "content": _content(plan, text).to_json(),
                    "in_reserve": plan.in_reserve,
                    "overdue": plan.overdue,
                    "useful_for": plan.useful_for,
                }
            )
            self.approved.append(Approved(mark, mark, pages[plan.page]["id"]))

    def _add_picture(self) -> None:
        digest = _PICTURE_SHA256.digest()
        self.sql(
            "INSERT INTO media (sha256, type, size) VALUES (%s, 'image/png', %s)",
            digest,
            len(PICTURE),
        )
        self.sql(
            "INSERT INTO media_chunks (sha256, number, bytes) VALUES (%s, 0, %s)", digest, PICTURE
        )
        self.sql(
            "INSERT INTO media_uploads (workspace_id, sha256, original_sha256)"
            " SELECT min(id), %s, %s FROM workspaces",
            digest,
            digest,
        )

    def hasten(self) -> None:
        """Let waits of minutes be over; reconnect and resume what a person would."""
        self.sql(
            "UPDATE jobs SET run_at = clock_timestamp() WHERE id IN (SELECT id FROM jobs"
            " WHERE state = 'scheduled' AND run_at > clock_timestamp()"
            f" AND run_at < {_LATER} FOR UPDATE SKIP LOCKED)"
        )
        self.sql(
            "UPDATE gates SET not_before = NULL, blocked_reason = NULL, blocked_at = NULL,"
            " blocked_detail = NULL, paused_at = NULL, paused_by = NULL"
            " WHERE channel_id IN (SELECT channel_id"
            " FROM gates WHERE not_before IS NOT NULL OR blocked_at IS NOT NULL"
            " OR paused_at IS NOT NULL FOR UPDATE SKIP LOCKED)"
        )

    def release_reserve(self, count: int) -> int:
        """Let so many more jobs be due; returns how many are left."""
        self.sql(
            "UPDATE jobs SET run_at = clock_timestamp(), due_at = clock_timestamp()"
            f" WHERE id IN (SELECT id FROM jobs WHERE state = 'scheduled' AND run_at > {_LATER}"
            " ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)",
            count,
        )
        (left,) = self.sql(
            f"SELECT count(*) AS jobs FROM jobs WHERE state = 'scheduled' AND run_at > {_LATER}"
        )
        return int(left["jobs"])

    def release_holds(self) -> int:
        """Let go on what people hold; returns how much is still held."""
        self.sql(
            "UPDATE jobs SET hold_reason = NULL WHERE id IN (SELECT id FROM jobs"
            " WHERE hold_reason IS NOT NULL FOR UPDATE SKIP LOCKED)"
        )
        (left,) = self.sql("SELECT count(*) AS jobs FROM jobs WHERE hold_reason IS NOT NULL")
        return int(left["jobs"])

    def open_jobs(self) -> int:
        """How many jobs are due or under way."""
        (row,) = self.sql(
            f"SELECT count(*) AS jobs FROM jobs WHERE ({_OPEN}) AND run_at < {_LATER}"
        )
        return int(row["jobs"])

    def moves(self) -> str:
        """A number that changes with every claim, begin and end."""
        (row,) = self.sql(
            "SELECT sum(claims) AS claims, sum(attempts) AS attempts, count(settled_at) AS ended,"
            " (SELECT sum(looks) FROM doubts) AS looks FROM jobs"
        )
        return " ".join(map(str, row.values()))

    def hasten_looks(self, but: list[str], *, since: float) -> int:
        """Let pauses between looks be over, ``but`` on these platforms; how many are to come.

        ``since``: for doubts that are so many seconds old.
        """
        self.sql(
            "UPDATE doubts SET next_look_at = clock_timestamp() WHERE job_id IN (SELECT d.job_id"
            " FROM doubts d JOIN jobs j ON j.id = d.job_id JOIN channels ch ON ch.id = j.channel_id"
            " WHERE d.next_look_at > clock_timestamp() AND ch.platform <> ALL(%s)"
            " AND d.since < clock_timestamp() - make_interval(secs => %s)"
            " FOR UPDATE OF d SKIP LOCKED)",
            but,
            since,
        )
        (left,) = self.sql("SELECT count(*) AS doubts FROM doubts WHERE next_look_at IS NOT NULL")
        return int(left["doubts"])

    def untold(self) -> int:
        """How many doubts that a person is asked about were raised with nobody."""
        (row,) = self.sql(
            "SELECT count(*) AS doubts FROM doubts d JOIN jobs j ON j.id = d.job_id"
            " WHERE d.asked_at IS NOT NULL AND j.kind = 'post' AND NOT EXISTS ("
            "SELECT FROM job_events e WHERE e.job_id = d.job_id AND e.event = 'alert'"
            " AND e.detail ->> 'incident' = 'doubt' AND e.at >= greatest(d.since, d.snoozed_until))"
        )
        return int(row["doubts"])

    def jobs_of(self, pid: int) -> list[int]:
        """The jobs a worker holds."""
        rows = self.sql(
            "SELECT j.id FROM jobs j JOIN incarnations i ON i.id = j.incarnation"
            " WHERE i.pid = %s AND i.ended_at IS NULL",
            pid,
        )
        return [row["id"] for row in rows]

    def still_open(self, jobs: list[int], *, or_in_doubt: bool = False) -> bool:
        """Whether one of these is still due or under way."""
        standing = f"{_OPEN} OR state = 'unknown'" if or_in_doubt else _OPEN
        (row,) = self.sql(
            f"SELECT count(*) AS jobs FROM jobs WHERE id = ANY(%s) AND ({standing})", jobs
        )
        return bool(row["jobs"])

    def unfinished(self) -> list[Row]:
        """The jobs that have not ended, as they stand."""
        return self.sql(
            "SELECT c.key, j.state, j.reason, j.run_at - clock_timestamp() AS due,"
            " j.lease_until - clock_timestamp() AS lease, j.incarnation, j.attempts, j.deaths,"
            " j.hold_reason FROM jobs j JOIN job_contents c ON c.job_id = j.id"
            " WHERE j.state IN ('scheduled', 'claimed', 'sending')"
        )

    def break_guards(self, statements: list[str]) -> None:
        """Take refusals of the database's own away, for a broken variant to show what it does."""
        for statement in statements:
            self.sql(statement)

    def spools(self) -> int:
        """How many files of worker runs there are."""
        with contextlib.suppress(FileNotFoundError):
            return sum(1 for _ in (Path(self.settings.home) / "spool").glob("*.spool"))
        return 0


def _content(plan: PostPlan, text: str) -> Post:
    if plan.kind == "link":
        return Post(text, link="https://example.org/news")
    if plan.kind == "photo":
        picture = Media(
            "image", "image/png", alt="A dot", sha256=_PICTURE_SHA256.hexdigest(),
            size=len(PICTURE), name="dot.png",
        )  # fmt: skip
        return Post(text, media=(picture,))
    return Post(text)
