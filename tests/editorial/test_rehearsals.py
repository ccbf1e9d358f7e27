"""Consent to rehearse: given by somebody, not beside real posts, and taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Event as Signal
from threading import Thread

import pytest
from sqlalchemy import text

from publisher.db.connect import Database
from publisher.editorial import channel_events, rehearsals
from publisher.editorial.rehearsals import RealPostsDue
from publisher.engine import ledger, queries
from publisher.engine.content import Post
from publisher.engine.errors import Conflict
from publisher.engine.job import (
    REHEARSAL,
    Channel,
    NewJob,
    State,
    public_id,
    rehearsal_key,
    rehearsed,
)
from publisher.engine.registry import Registry

Pages = tuple[Channel, Channel]


def now(database: Database) -> datetime:
    with database.engine.connect() as conn:
        return queries.clock(conn)


def job(channel: Channel, at: datetime, key: str = "post:1/…", queue: str = "publish") -> NewJob:
    return NewJob(
        key=key,
        kind="publish",
        queue=queue,
        channel_id=channel.id,
        content=Post(text=key).to_json(),
        run_at=at,
    )


def add(database: Database, *new: NewJob) -> list[int]:
    with database.engine.begin() as conn:
        return [enqueued.job_id for enqueued in ledger.enqueue(conn, list(new))]


def test_keys_name_their_run(app_database: Database) -> None:
    at = now(app_database)
    assert rehearsed(rehearsal_key("41-b", 217, 7, at)) == ("41-b", 217)
    for other in ("post:1/channel:7/at:x", "rehearsals:1:2/x", "rehearsal:1/x", "rehearsal::1/x"):
        assert rehearsed(other) is None


def test_consent_is_given_once_and_taken_back(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    page, other = pages
    with app_database.engine.begin() as conn:
        with pytest.raises(Conflict, match="Nobody has allowed rehearsals on Page A") as refused:
            rehearsals.admit(conn, page)
        given = rehearsals.allow(conn, registry, page, who="admin-1")
        assert rehearsals.allow(conn, registry, page, who="admin-2") == given
        assert rehearsals.admit(conn, page) == given
        assert given.who == "admin-1"
        with pytest.raises(Conflict, match=rf"allow-rehearsal {other.id}"):
            rehearsals.admit(conn, other)
        assert rehearsals.forbid(conn, page, who="admin-3")
        assert not rehearsals.forbid(conn, page, who="admin-3")
        with pytest.raises(Conflict):
            rehearsals.admit(conn, page)
        lines = channel_events.of_channel(conn, page.id)
    assert refused.value.code == "rehearsal-not-allowed"
    assert [(line.event, line.who) for line in lines[1:]] == [
        ("rehearsal_allowed", "admin-1"),
        ("rehearsal_forbidden", "admin-3"),
    ]


def test_a_real_post_due_within_the_hour_keeps_rehearsals_away(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    page, other = pages
    at = now(app_database)
    soon = at + timedelta(minutes=50)
    add(
        app_database,
        job(page, at + timedelta(hours=2), "later"),
        job(other, soon, "elsewhere"),
        job(page, at, rehearsal_key("41", 1, page.id, at), REHEARSAL),
    )
    with app_database.engine.begin() as conn:
        rehearsals.allow(conn, registry, page, who="admin-1")
    (due,) = add(app_database, job(page, soon, "soon"))
    for act in (
        lambda conn: rehearsals.allow(conn, registry, page, who="admin-1"),
        lambda conn: rehearsals.admit(conn, page),
    ):
        with app_database.engine.begin() as conn, pytest.raises(RealPostsDue) as refused:
            act(conn)
        assert [one.id for one in refused.value.jobs] == [due]
        assert f"reschedule {public_id(due)} --at" in str(refused.value)
        assert refused.value.exit_code == 4


@pytest.mark.parametrize("state", [State.CLAIMED, State.SENDING, State.UNKNOWN])
def test_a_real_post_whose_end_is_open_keeps_rehearsals_away(
    app_database: Database,
    owner_database: Database,
    registry: Registry,
    pages: Pages,
    state: State,
) -> None:
    at = now(app_database) + timedelta(days=1)
    (job_id,) = add(app_database, job(pages[0], at))
    with owner_database.engine.begin() as conn:
        conn.execute(text("ALTER TABLE jobs DISABLE TRIGGER USER"))
        held = state in (State.CLAIMED, State.SENDING)
        conn.execute(
            text(
                "UPDATE jobs SET state = :state, settled_at = :settled, claims = 1, attempts = 1,"
                " token = :token, incarnation = :run, claimed_at = :at, lease_until = :at"
                " WHERE id = :id"
            ),
            {
                "state": state,
                "id": job_id,
                "settled": None if held else at,
                "token": "00000000-0000-4000-8000-000000000001" if held else None,
                "run": 1 if held else None,
                "at": at if held else None,
            },
        )
    with app_database.engine.begin() as conn, pytest.raises(RealPostsDue, match=state):
        rehearsals.allow(conn, registry, pages[0], who="admin-1")


def test_many_are_counted(app_database: Database, registry: Registry, pages: Pages) -> None:
    at = now(app_database)
    add(app_database, *(job(pages[0], at, f"k{n}") for n in range(5)))
    with app_database.engine.begin() as conn, pytest.raises(RealPostsDue, match="and 2 more"):
        rehearsals.allow(conn, registry, pages[0], who="admin-1")


def test_a_post_that_is_being_added_is_waited_for_and_seen(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    """Admission and enqueue meet at the channel's row, so neither slips past the other."""
    page = pages[0]
    with app_database.engine.begin() as conn:
        rehearsals.allow(conn, registry, page, who="admin-1")
    at = now(app_database)
    added, refused = Signal(), Signal()

    def adds() -> None:
        with app_database.engine.begin() as conn:
            ledger.enqueue(conn, [job(page, at)])
            added.set()
            # Until the other has asked for the row.
            while not _somebody_waits(app_database):
                pass

    def admits() -> None:
        added.wait(10)
        with app_database.engine.begin() as conn:
            try:
                rehearsals.admit(conn, page)
            except RealPostsDue:
                refused.set()

    threads = [Thread(target=adds), Thread(target=admits)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert refused.is_set()


def test_who_adds_posts_for_long_is_not_waited_for_without_end(
    app_database: Database, registry: Registry, pages: Pages
) -> None:
    at = now(app_database)
    with app_database.engine.begin() as adding:
        ledger.enqueue(adding, [job(pages[0], at)])
        with (
            app_database.engine.begin() as conn,
            pytest.raises(Conflict, match="being added to Page A just now") as refused,
        ):
            rehearsals.allow(conn, registry, pages[0], who="admin-1")
    assert refused.value.code == "busy"


def _somebody_waits(database: Database) -> bool:
    with database.engine.connect() as conn:
        waiting = conn.scalar(
            text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype <> 'relation'")
        )
    return bool(waiting)
