"""When our access to a channel ends: told or asked, kept, and forgotten with the credential."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from publisher.db.connect import Database
from publisher.editorial import channel_access, channels
from publisher.editorial.documents import Document
from publisher.editorial.examination import examine
from publisher.engine.adapter import ChannelHealth
from publisher.engine.content import Post
from publisher.engine.job import Channel
from publisher.engine.registry import Registry
from tests.editorial.conftest import Wax

Pages = tuple[Channel, Channel]
ENDS = datetime(2027, 1, 31, 9, tzinfo=UTC)


def health(ends_at: datetime | None = ENDS, *, usable: bool = True) -> ChannelHealth:
    return ChannelHealth(usable=usable, detail="read", expires_at=ends_at)


def test_what_the_platform_says_is_kept_and_silence_changes_nothing(
    app_database: Database, pages: Pages
) -> None:
    first, second = pages
    with app_database.engine.begin() as conn:
        assert channel_access.note(conn, first, health())
        assert not channel_access.note(conn, first, health(None))
        assert not channel_access.note(conn, first, health(ENDS + timedelta(1), usable=False))
        assert channel_access.ends(conn, [first.id, second.id]) == {first.id: ENDS}
        listed = {at.channel.id: at.access_ends_at for at in channels.listing(conn)}
    assert listed == {first.id: ENDS, second.id: None}


def test_an_answer_about_a_credential_that_was_replaced_is_dropped(
    app_database: Database, pages: Pages
) -> None:
    asked, _ = pages
    with app_database.engine.begin() as conn:
        channel_access.note(conn, asked, health())
        channels.reconnect(conn, Wax(), asked, "new", "ann")
        assert channel_access.ends(conn, [asked.id]) == {}
        assert not channel_access.note(conn, asked, health())
        assert channel_access.ends(conn, [asked.id]) == {}
        channels.reconnect(conn, Wax(), asked, "newer", "ann", access_ends_at=ENDS)
        assert channel_access.ends(conn, [asked.id]) == {asked.id: ENDS}


def test_whoever_connects_it_may_say(app_database: Database, registry: Registry) -> None:
    with app_database.engine.begin() as conn:
        added = channels.add(
            conn, Wax(), registry, platform="stub", name="C", remote_id="103", base_url=None,
            token="secret", access_ends_at=ENDS,
        )  # fmt: skip
        assert channel_access.ends(conn, [added.id]) == {added.id: ENDS}


def test_a_post_that_is_due_after_it_is_told_so(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    first, second = pages
    document = Document(Post("hello"))
    with app_database.engine.begin() as conn:
        channel_access.note(conn, first, health())
        due = {first.id: ENDS, second.id: ENDS}
        late = examine(conn, registry, document, [*due], due=due)
        early = examine(
            conn, registry, document, [*due], due=dict.fromkeys(due, ENDS - timedelta(seconds=1))
        )
        undated = examine(conn, registry, document, [*due])
    assert [(one.channel_id, one.problem.code) for one in late] == [(first.id, "token-ends-before")]
    assert not late[0].stands_in_the_way
    assert "31 Jan 2027" in late[0].problem.message
    assert early == undated == ()
