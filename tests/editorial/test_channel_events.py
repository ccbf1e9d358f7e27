"""The journal of channels: each act leaves its line, and no line is taken back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from publisher.db.connect import Database
from publisher.editorial import channel_events, channels
from publisher.editorial.channel_events import Event
from publisher.engine.job import Channel
from tests.editorial.conftest import Wax

Pages = tuple[Channel, Channel]


def told(database: Database, channel: Channel) -> list[tuple[str, str]]:
    with database.engine.connect() as conn:
        return [(e.event, e.who) for e in channel_events.of_channel(conn, channel.id)]


def test_each_act_of_a_person_leaves_its_line(app_database: Database, pages: Pages) -> None:
    page, other = pages
    acts: list[Callable[[Connection], object]] = [
        lambda conn: channels.pause(conn, page, "ops-1"),
        lambda conn: channels.resume(conn, page, "ops-2"),
        lambda conn: channels.reconnect(conn, Wax(), page, "new", "ops-3"),
    ]
    for act in acts:
        with app_database.engine.begin() as conn:
            act(conn)
    assert told(app_database, page) == [
        ("added", "publisher"),
        ("paused", "ops-1"),
        ("resumed", "ops-2"),
        ("reconnected", "ops-3"),
    ]
    assert told(app_database, other) == [("added", "publisher")]
    with app_database.engine.connect() as conn:
        (newest,) = channel_events.of_channel(conn, page.id, limit=1)
    assert (newest.event, dict(newest.detail)) == ("reconnected", {"generation": 2})


def test_what_is_undone_leaves_none(app_database: Database, pages: Pages) -> None:
    with app_database.engine.connect() as conn, conn.begin() as transaction:
        channels.pause(conn, pages[0], "ops-1")
        transaction.rollback()
    assert told(app_database, pages[0]) == [("added", "publisher")]


@pytest.mark.both_servers
@pytest.mark.parametrize(
    "what", ["UPDATE channel_events SET who = 'x'", "DELETE FROM channel_events"]
)
def test_a_line_stays(
    app_database: Database, database: Database, owner_database: Database, pages: Pages, what: str
) -> None:
    for which in (app_database, database):
        with which.engine.begin() as conn, pytest.raises(DBAPIError, match="permission denied"):
            conn.execute(text(what))
    with owner_database.engine.begin() as conn, pytest.raises(DBAPIError, match="only added to"):
        conn.execute(text(what))
    assert told(app_database, pages[0]) == [("added", "publisher")]


def test_every_kind_has_words(app_database: Database, pages: Pages) -> None:
    from publisher.cli import channel_page  # noqa: PLC0415 - the surface, asked about each kind

    with app_database.engine.begin() as conn:
        for event in Event:
            channel_events.tell(conn, pages[0].id, event, who="ops-1", run="41")
        (standing, _) = channels.listing(conn)
        events = channel_events.of_channel(conn, pages[0].id)
    page = "\n".join(channel_page.lines(standing, events, events[-1].at))
    assert not [event for event in Event if f"{event}: " in page]
    assert page.count("ops-1") == len(Event)
