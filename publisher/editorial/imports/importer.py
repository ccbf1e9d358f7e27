"""Import a file of approved posts: read it, judge each row, then store all of it or nothing.

Judging opens no long transaction; storing is one, from the first picture to the last job, so that
a crash leaves nothing behind and the same file may be imported again. Two imports of the same refs
meet at the unique ref: the later one waits, then finds what the earlier one stored.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from sqlalchemy import Connection, Engine

from publisher.config import Settings
from publisher.editorial import channel_rules, listing, media, posts
from publisher.editorial.channels import Directory
from publisher.editorial.imports import file, likeness, lines, table
from publisher.editorial.imports.attachments import Attachments
from publisher.editorial.imports.candidate import Candidate, Desk
from publisher.editorial.imports.fault import FileRefused
from publisher.editorial.imports.pile import Pile
from publisher.editorial.imports.report import Report
from publisher.editorial.imports.row import ROWS, Row
from publisher.editorial.media import Library, MediaFile, files
from publisher.editorial.posts import Destination, Draft
from publisher.editorial.rows import batches
from publisher.engine import queries
from publisher.engine.registry import Registry

OnRow = Callable[[int, int], None]
_log = structlog.get_logger(__name__)


def import_posts(  # noqa: PLR0913 - the options of one command, named at its one call
    engine: Engine,
    registry: Registry,
    settings: Settings,
    path: Path | str,
    *,
    who: str,
    dry_run: bool = False,
    skip_bad: bool = False,
    draft: bool = False,
    now: datetime | None = None,
    on_row: OnRow | None = None,
) -> Report:
    """Import the posts of a CSV or JSON Lines file, approved by ``who`` unless ``draft``.

    Nothing is stored when a row is bad, unless ``skip_bad``; nothing at all in a ``dry_run``.
    ``now`` stands in for the database's clock. ``on_row`` is told (rows done, rows in all); a row
    is half done when it is judged.

    Raises ``FileRefused`` for a file that cannot be read as rows, ``MediaRefused`` for a picture
    that changed meanwhile, ``MediaUnreachable``, and what ``ledger.enqueue`` raises; nothing is
    stored then.
    """
    source = file.read(Path(path))
    rows = _rows(source)
    progress = _Progress(len(rows), on_row)
    with engine.connect() as conn:
        directory = Directory.read(conn)
        now = now or queries.clock(conn)
        ids = [channel.id for channel in directory.channels]
        own = channel_rules.useful_for(conn, ids)
        described = channel_rules.wanting_alt_texts(conn, ids)
    useful_for = timedelta(seconds=settings.useful_for_seconds)
    desk = Desk(
        directory,
        registry,
        Attachments(source.folder),
        now=now,
        useful_for=useful_for,
        useful_on=own,
        described=described,
    )
    pile = Pile()
    for row in rows:
        pile.add(desk.judge(row))
        progress.add(1)
    with engine.connect() as conn:
        pile.compare(listing.by_ref(conn, [*pile.fresh]))
        likeness.note(conn, pile)
    if not dry_run and (skip_bad or not pile.bad):
        library = media.Library(engine, media.storage(settings))
        for found in _files(pile):
            files.upload(library, found)
        with engine.connect() as conn, conn.begin() as transaction:
            jobs = _store(
                conn,
                pile,
                library,
                registry,
                useful_for,
                who=who,
                draft=draft,
                progress=progress,
            )
            if pile.bad and not skip_bad:
                # Another import stored one of the refs meanwhile, with other content.
                transaction.rollback()
                jobs = {}
        pile.stored(jobs)
    progress.end()
    report = Report.of(
        pile.reports("would_add" if dry_run else "skipped"), is_dry_run=dry_run, skips_bad=skip_bad
    )
    counts = {"added": report.added, "unchanged": report.unchanged, "bad": report.bad}
    _log.info("posts.imported", who=who, dry_run=dry_run, **counts)
    return report


def _rows(source: file.Source) -> list[Row]:
    read = lines.rows if source.format == "jsonl" else table.rows
    rows: list[Row] = []
    for row in read(source.text):
        rows.append(row)
        if len(rows) > ROWS:
            what, fix = f"The file has more than {ROWS:,} rows.", "Split it into several files."
            raise FileRefused(what, fix, code="file-too-long")
    return rows


def _store(  # noqa: PLR0913 - the parts of one import, named at its one call
    conn: Connection,
    pile: Pile,
    library: Library,
    registry: Registry,
    useful_for: timedelta,
    *,
    who: str,
    draft: bool,
    progress: _Progress,
) -> dict[str, int | None]:
    """Store what is fresh within the transaction of ``conn``; return the job of each ref, if any.

    Every import takes its locks in one order, media by hash, then posts by ref, so that none waits
    for another in a circle.
    """
    candidates = [*pile.fresh.values()]
    for found in _files(pile):
        files.record(conn, library, found, who=who)
    written = posts.create(conn, [_draft(row) for row in candidates], who=who)
    taken = [row.ref for row, version in zip(candidates, written, strict=True) if version is None]
    pile.compare(listing.by_ref(conn, taken))
    fresh = [
        (row.ref, version)
        for row, version in zip(candidates, written, strict=True)
        if version is not None
    ]
    jobs: dict[str, int | None] = {ref: None for ref, _ in fresh}
    if draft:
        return jobs
    for batch in batches(fresh):
        versions = [version for _, version in batch]
        posts.approve(conn, versions, who=who)
        # Each has one channel, so one job, in the same order.
        enqueued = posts.schedule(conn, versions, useful_for=useful_for, registry=registry)
        jobs |= {ref: job.job_id for (ref, _), job in zip(batch, enqueued, strict=True)}
        progress.add(len(batch))
    return jobs


def _files(pile: Pile) -> list[MediaFile]:
    """What the fresh rows attach, each once, by hash."""
    found = {one.sha256: one for row in pile.fresh.values() for one in row.files}
    return [found[sha256] for sha256 in sorted(found)]


def _draft(row: Candidate) -> Draft:
    place = Destination(row.channel.id, row.moment.at, row.moment.zone)
    return Draft(row.content, (place,), row.ref)


class _Progress:
    """Tells how many rows are done: half a row when it is judged, the whole when it is stored."""

    def __init__(self, rows: int, on_row: OnRow | None) -> None:
        self._rows = rows
        self._on_row = on_row
        self._halves = 0

    def add(self, rows: int) -> None:
        """Half of so many rows more is done."""
        self._halves += rows
        if self._on_row is not None:
            self._on_row(self._halves // 2, self._rows)

    def end(self) -> None:
        """Everything is done, rows that were not to be stored included."""
        self.add(2 * self._rows - self._halves)
