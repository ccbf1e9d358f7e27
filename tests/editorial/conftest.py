"""A platform that judges and never sends, two channels on it, and an import into them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from publisher import limits
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.editorial import channels
from publisher.editorial.imports import Report, import_posts
from publisher.engine.adapter import (
    Capabilities,
    ChannelHealth,
    LivePost,
    LookQuery,
    Problem,
    Promise,
    Ready,
    SendPermit,
    Step,
    Task,
)
from publisher.engine.content import Post
from publisher.engine.evidence import Candidate, Evidence, NotThisPost
from publisher.engine.job import Channel
from publisher.engine.outcome import Outcome, Withdrawal
from publisher.engine.registry import Registry

TEXT_LIMIT = 2000
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Stub:
    """Takes texts of up to 2,000 characters."""

    platform = "stub"

    def capabilities(self, content: str, progress: object = None) -> Capabilities:  # noqa: ARG002 - as the port has it
        return Capabilities(
            "text",
            "page",
            Promise.AT_MOST_ONCE_WITH_EVIDENCE,
            can_look=True,
            listing_is_exhaustive=False,
            text_limit=TEXT_LIMIT,
            name="Stub",
            media_kinds=("image", "video"),
            mixes_media=True,
            fetches_media=True,
            media_limit=4,
            media_types=("image/jpeg", "image/png", "video/mp4"),
            media_bytes=50_000_000,
            alt_limit=100,
        )

    def problems(self, content: str) -> tuple[Problem, ...]:
        return limits.of_content(content, self.capabilities)

    def platform_key(self, key: str, at: datetime) -> str | None:
        return f"stub {key} {at:%H:%M}"

    def prepared(self, task: Task) -> Ready | None:
        raise NotImplementedError

    def step(self, task: Task) -> Step:
        raise NotImplementedError

    def publish(self, task: Task, ready: Ready, permit: SendPermit) -> Outcome:
        raise NotImplementedError

    def look(self, query: LookQuery) -> Evidence:
        raise NotImplementedError

    def identify(self, query: LookQuery, given: str) -> Candidate | NotThisPost:
        raise NotImplementedError

    def withdraw(self, channel: Channel, post: LivePost) -> Withdrawal:
        raise NotImplementedError

    def check(self, channel: Channel) -> ChannelHealth:
        return ChannelHealth(usable=True, detail=f"{channel.remote_id} answers")


class Wax:
    """Seals nothing; says what it was given."""

    def seal(self, secret: str, *, channel_id: int) -> bytes:
        return f"{channel_id}:{secret}".encode()


@pytest.fixture
def registry() -> Registry:
    return Registry([Stub()])


@pytest.fixture
def pages(app_database: Database, registry: Registry) -> tuple[Channel, Channel]:
    """Page A and Page B."""

    def add(conn: Connection, name: str, remote_id: str) -> Channel:
        return channels.add(
            conn,
            Wax(),
            registry,
            platform="stub",
            name=name,
            remote_id=remote_id,
            base_url=None,
            token="t",
        )

    with app_database.engine.begin() as conn:
        return add(conn, "Page A", "101"), add(conn, "Page B", "102")


class Importing:
    """Writes files and imports them."""

    def __init__(
        self, database: Database, registry: Registry, settings: Settings, folder: Path
    ) -> None:
        self.database = database
        self.registry = registry
        self.settings = settings
        self.folder = folder
        self.progress: list[tuple[int, int]] = []

    def file(self, data: bytes | str, name: str = "posts.csv", **options: Any) -> Report:  # noqa: ANN401 - those of import_posts
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return self.path(path, **options)

    def rows(self, *rows: Mapping[str, object], **options: Any) -> Report:  # noqa: ANN401 - those of import_posts
        """Import objects as JSON Lines, what they leave out filled in."""
        usual = {"channel": "Page A", "text": "Hello", "publish_at": "now"}
        lines = [json.dumps({"ref": f"r{n}", **usual, **row}) for n, row in enumerate(rows, 1)]
        return self.file("\n".join(lines), "posts.jsonl", **options)

    def path(self, path: Path, **options: Any) -> Report:  # noqa: ANN401 - those of import_posts
        options = dict[str, Any](who="tester", now=NOW, on_row=self._on_row) | options
        return import_posts(self.database.engine, self.registry, self.settings, path, **options)

    def all(self, query: str) -> Sequence[Any]:
        with self.database.engine.connect() as conn:
            return conn.execute(text(query)).all()

    def texts(self) -> list[str]:
        """The texts that wait to be sent, in the order they would be."""
        rows = self.all(
            "SELECT content FROM jobs JOIN job_contents ON job_id = id ORDER BY run_at, id"
        )
        return [Post.from_json(row.content).text for row in rows]

    def is_empty(self) -> bool:
        tables = ("posts", "post_versions", "post_channels", "approvals", "media",
                  "media_chunks", "jobs", "job_keys")  # fmt: skip
        return not any(self.all(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)

    def _on_row(self, done: int, rows: int) -> None:
        self.progress.append((done, rows))


@pytest.fixture
def importing(
    app_database: Database,
    registry: Registry,
    settings: Settings,
    tmp_path: Path,
    pages: tuple[Channel, Channel],
) -> Importing:
    """Imports into a database with two pages."""
    return Importing(app_database, registry, settings, tmp_path)


@pytest.fixture
def faults() -> Callable[[Report], list[tuple[int, str, str]]]:
    """Line, column and code of everything a report finds wrong."""

    def listed(report: Report) -> list[tuple[int, str, str]]:
        return [(row.line, f.column, f.code) for row in report.rows for f in row.faults]

    return listed
