"""Posts: versions, approval, and one job for each channel."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import IntegrityError

from publisher.db.connect import Database
from publisher.editorial import listing, posts
from publisher.editorial import schema as editorial
from publisher.editorial.posts import Destination, Draft, Version
from publisher.engine.content import Post
from publisher.engine.errors import Conflict, KeyConflict, NotFound
from publisher.engine.job import Channel, State
from publisher.engine.registry import Registry
from tests.editorial.conftest import NOW, Stub

Pages = tuple[Channel, Channel]
DAY = timedelta(days=1)


def draft(pages: tuple[Channel, ...], words: str = "Hello", ref: str | None = None) -> Draft:
    places = tuple(Destination(page.id, NOW, "Asia/Tehran") for page in pages)
    return Draft(Post(words).to_json(), places, ref)


def written(conn: Connection, pages: Pages) -> Version:
    (version,) = posts.create(conn, [draft(pages)], who="writer")
    assert version is not None
    return version


def test_one_job_for_each_channel(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        version = written(conn, pages)
        posts.approve(conn, [version], who="editor")
        jobs = posts.schedule(conn, [version], useful_for=DAY, registry=Registry([Stub()]))
        assert [job.key for job in jobs] == [
            f"post:{version.post_id}/channel:{page.id}/at:2026-11-30T12:00:00.000000Z"
            for page in pages
        ]
        with pytest.raises(KeyConflict):
            posts.schedule(conn, [version], useful_for=DAY, registry=Registry([Stub()]))
        (post,) = listing.newest(conn)
    assert (post.post.text, post.version, post.approved_by) == ("Hello", 1, "editor")
    assert [(p.channel, p.publish_at, p.state) for p in post.placed] == [
        ("Page A", NOW, State.SCHEDULED),
        ("Page B", NOW, State.SCHEDULED),
    ]
    assert [p.job_id for p in post.placed] == [job.job_id for job in jobs]


def test_nothing_is_scheduled_without_approval(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        version = written(conn, pages)
        with pytest.raises(Conflict, match="Version 1 of post 1 is not approved") as caught:
            posts.schedule(conn, [version], useful_for=DAY, registry=Registry([Stub()]))
        assert caught.value.code == "needs-approval"
        assert not conn.execute(text("SELECT 1 FROM jobs")).all()


def test_a_first_approval_stays(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        version = written(conn, pages)
        posts.approve(conn, [version], who="first")
        posts.approve(conn, [version], who="second")
        assert listing.newest(conn)[0].approved_by == "first"


def test_the_next_version_is_not_approved(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        version = written(conn, pages)
        posts.approve(conn, [version], who="editor")
        again = posts.revise(conn, version.post_id, Post("Other").to_json(), who="writer")
        assert (again.number, again.post_id) == (2, version.post_id)
        (post,) = listing.newest(conn)
        assert (post.post.text, post.version, post.approved_at) == ("Other", 2, None)
        with pytest.raises(NotFound, match="There is no post 99"):
            posts.revise(conn, 99, "{}", who="writer")


def test_a_version_is_never_changed(app_database: Database, pages: Pages) -> None:
    with app_database.engine.connect() as conn:
        written(conn, pages)
        with pytest.raises(Exception, match=r"permission denied|never changed"):
            conn.execute(text("UPDATE post_versions SET number = 7"))
        conn.rollback()


def test_a_taken_ref_is_none_in_its_place(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        first = posts.create(conn, [draft(pages, ref="b")], who="writer")
        drafts = [draft(pages, ref=ref) for ref in ("c", "b", None, "a", None)]
        later = posts.create(conn, drafts, who="writer")
        assert first[0] is not None
        assert [version is None for version in later] == [False, True, False, False, False]
        ids = [version.post_id for version in later if version is not None]
        assert ids == sorted(ids)
        assert set(listing.by_ref(conn, ["a", "b", "x"])) == {"a", "b"}
        assert listing.by_ref(conn, ["b"])["b"].id == first[0].post_id
        assert [post.ref for post in listing.newest(conn, limit=2)] == [None, "a"]


def test_hundreds_are_due_in_the_order_given(app_database: Database, pages: Pages) -> None:
    with app_database.engine.begin() as conn:
        drafts = [draft(pages[:1], str(n)) for n in range(300)]
        versions = [v for v in posts.create(conn, drafts, who="w") if v is not None]
        posts.approve(conn, versions, who="w")
        jobs = posts.schedule(conn, versions, useful_for=DAY, registry=Registry([Stub()]))
    assert [job.job_id for job in jobs] == sorted(job.job_id for job in jobs)
    assert len(jobs) == 300


def test_useful_for_ever_is_no_overflow() -> None:
    assert posts.useful_until(NOW, timedelta.max).year == 9999


def test_an_unknown_channel_is_refused(app_database: Database, pages: Pages) -> None:
    nowhere = Draft(Post("x").to_json(), (Destination(77, NOW, "UTC"),))
    with app_database.engine.connect() as conn, pytest.raises(IntegrityError):
        posts.create(conn, [nowhere], who="writer")


def test_tables_are_as_the_migrations_made_them(owner_database: Database) -> None:
    found = inspect(owner_database.engine)
    for table in (
        editorial.posts,
        editorial.post_versions,
        editorial.post_channels,
        editorial.approvals,
        editorial.media,
        editorial.media_chunks,
    ):
        dialect = owner_database.engine.dialect
        columns = {
            column["name"]: (column["type"].compile(dialect), column["nullable"])
            for column in found.get_columns(table.name, schema="publisher")
        }
        assert columns == {
            column.name: (column.type.compile(dialect), column.nullable) for column in table.columns
        }
