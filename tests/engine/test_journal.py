"""What is written once stays as it is: keys, bindings, content, attempts, versions, events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from publisher.engine import ledger
from publisher.engine.job import State
from tests.engine.conftest import Connect
from tests.engine.ground import Ground, Lane
from tests.engine.test_refusals import BEGIN, CHECK, NO_GRANT, PROVE, UNIQUE, Session

S = State


@pytest.fixture(params=["engine", "app", "owner"])
def session(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Session]:
    """Both roles of processes, and one that is stopped by no grant."""
    connect = {
        "engine": ground.engine.connect_driver,
        "app": ground.app.connect_driver,
        "owner": ground.owner,
    }[request.param]
    with connect() as conn, conn.transaction(force_rollback=True):
        yield Session(conn, request.param)


def refused(session: Session, sqlstate: str) -> str:
    """What processes have no grant for, the owner's triggers refuse."""
    return sqlstate if session.role == "owner" else NO_GRANT


def test_a_key_is_taken_for_ever(session: Session, lane: Lane) -> None:
    new = lane.new()
    lane.add(key=new.key)
    session.refuses(
        "INSERT INTO job_keys (key, job_id) VALUES (%(key)s, -1)",
        key=new.key, sqlstate=UNIQUE, name="job_keys_pkey",
    )  # fmt: skip
    for change in (
        "DELETE FROM job_keys", "UPDATE job_keys SET job_id = -1", "UPDATE job_keys SET key = 'x'",
    ):  # fmt: skip
        session.refuses(
            f"{change} WHERE key = %(key)s", key=new.key, sqlstate=refused(session, "PB023")
        )


@pytest.mark.parametrize("key", ["", "k" * 501])
def test_a_key_has_a_length(session: Session, key: str) -> None:
    session.refuses(
        "INSERT INTO job_keys (key, job_id) VALUES (%(key)s, -1)",
        key=key, sqlstate=CHECK, name="job_keys_key_check",
    )  # fmt: skip


def test_a_remote_post_is_bound_once_and_for_ever(session: Session, lane: Lane) -> None:
    job = lane.put(S.PUBLISHED)
    at: dict[str, Any] = {"channel": lane.channel_id, "remote": f"id of {job.id}"}
    bind = "INSERT INTO remote_posts (channel_id, remote_id, job_id) VALUES "
    session.refuses(
        bind + "(%(channel)s, %(remote)s, -1)",
        **at, sqlstate=UNIQUE, name="remote_posts_pkey",
    )  # fmt: skip
    session.refuses(
        bind + "(%(channel)s, '', -1)",
        **at, sqlstate=CHECK, name="remote_posts_remote_id_check",
    )  # fmt: skip
    where = "WHERE channel_id = %(channel)s AND remote_id = %(remote)s"
    session.refuses(f"DELETE FROM remote_posts {where}", **at, sqlstate=refused(session, "PB023"))
    for change in ("job_id = -1", "remote_id = 'other'", "channel_id = -1"):
        session.refuses(
            f"UPDATE remote_posts SET {change} {where}", **at, sqlstate=refused(session, "PB023")
        )


def test_a_permalink_may_still_be_learnt(ground: Ground, lane: Lane) -> None:
    job = lane.put(S.PUBLISHED)
    learnt = "UPDATE remote_posts SET permalink = 'https://example.org/1' WHERE job_id = %s"
    assert ground.conn.execute(learnt, [job.id]).rowcount == 1


CONTENT = "content = 'other', content_sha256 = sha256('other')"


def test_content_never_changes_after_a_begin(session: Session, lane: Lane) -> None:
    for job in (lane.put(S.SENDING), lane.put(S.SCHEDULED, begun=True), lane.put(S.PUBLISHED)):
        for change in (CONTENT, "version = 2", "platform_key = 'x'"):
            session.refuses(
                f"UPDATE job_contents SET {change} WHERE job_id = %(id)s",
                id=job.id, sqlstate="PB020",
            )  # fmt: skip


def test_new_content_before_a_begin_clears_the_progress(session: Session, lane: Lane) -> None:
    job = lane.put(S.CLAIMED)
    session.allows(
        "UPDATE job_contents SET progress = '{}', progress_sha256 = content_sha256"
        " WHERE job_id = %(id)s",
        id=job.id,
    )
    where = "WHERE job_id = %(id)s"
    session.refuses(f"UPDATE job_contents SET {CONTENT} {where}", id=job.id, sqlstate="PB020")
    session.allows(
        f"UPDATE job_contents SET {CONTENT}, progress = NULL, progress_sha256 = NULL {where}",
        id=job.id,
    )


def test_content_agrees_with_its_hash_and_keeps_its_key(session: Session, lane: Lane) -> None:
    job = lane.put(S.SCHEDULED)
    where = "WHERE job_id = %(id)s"
    session.refuses(
        f"UPDATE job_contents SET content = 'other' {where}",
        id=job.id, sqlstate=CHECK, name="job_contents_check",
    )  # fmt: skip
    session.refuses(
        f"UPDATE job_contents SET progress = '{{}}' {where}",
        id=job.id, sqlstate=CHECK, name="job_contents_check1",
    )  # fmt: skip
    session.refuses(
        f"UPDATE job_contents SET key = 'other' {where}",
        id=job.id, sqlstate=refused(session, "PB020"),
    )  # fmt: skip
    session.refuses(
        f"UPDATE job_contents SET job_id = -1 {where}",
        id=job.id, sqlstate=refused(session, "PB020"),
    )  # fmt: skip


def test_a_change_of_content_and_a_begin_do_not_pass_one_another(
    connect: Connect, connect_app: Connect, lane: Lane
) -> None:
    """While a change is under way the row is passed over, and begun with what it became."""
    job = lane.claimed()
    page, worker = connect_app(), connect()
    key = [(job.id, job.token)]
    with page.transaction():
        page.execute(f"UPDATE job_contents SET {CONTENT} WHERE job_id = %s".encode(), [job.id])
        assert ledger.begin_send(worker, key, lease=60, window=50, budget=50) == {}
    permits = ledger.begin_send(worker, key, lease=60, window=50, budget=50)
    kept = lane.ground.one("SELECT content_sha256 FROM job_contents WHERE job_id = %s", job.id)
    assert permits[job.id].content_sha256 == kept != job.content_sha256


def test_a_change_of_content_waits_for_a_begin_and_is_refused(
    connect: Connect, connect_app: Connect, lane: Lane
) -> None:
    job = lane.claimed()
    page, worker = connect_app(), connect()
    page.execute("SET lock_timeout = 0")
    refusals: list[str | None] = []

    def change() -> None:
        with pytest.raises(psycopg.DatabaseError) as refusal:
            page.execute(f"UPDATE job_contents SET {CONTENT} WHERE job_id = %s".encode(), [job.id])
        refusals.append(refusal.value.sqlstate)

    changing = threading.Thread(target=change)
    with worker.transaction():
        worker.execute(BEGIN.encode(), {"id": job.id, "under": None})
        changing.start()
        lane.ground.await_waiting(page)
    changing.join()
    assert refusals == ["PB020"]


@pytest.mark.parametrize(
    "change",
    [
        "number = 9", "token = gen_random_uuid()", "incarnation = 9", "content_sha256 = 'x'",
        "claimed_at = now()", "begun_at = now()", "job_id = %(other)s",
    ],
)  # fmt: skip
def test_an_attempt_keeps_what_it_was_begun_with(session: Session, lane: Lane, change: str) -> None:
    job, other = lane.put(S.SENDING), lane.put(S.CLAIMED)
    session.refuses(
        f"UPDATE attempts SET {change} WHERE job_id = %(id)s",
        id=job.id, other=other.id, sqlstate=refused(session, "PB021"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    ["proof = NULL, proved_by = NULL, proved_at = NULL", "proof = 'absent'", "proof = 'not_sent'"],
)
def test_a_proof_is_not_taken_back(session: Session, lane: Lane, change: str) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    session.refuses(
        f"UPDATE attempts SET {change} WHERE job_id = %(id)s", id=job.id, sqlstate="PB021"
    )


def test_that_a_repeat_is_safe_may_become_a_better_proof(ground: Ground, lane: Lane) -> None:
    job = lane.put(S.SENDING)
    repeat = PROVE.replace("refused", "repeat_safe")
    with ground.conn.transaction(force_rollback=True):
        session = Session(ground.conn, "engine")
        session.allows(f"UPDATE attempts SET {repeat} WHERE job_id = %(id)s", id=job.id)
        back = "UPDATE attempts SET proof = NULL, proved_by = NULL, proved_at = NULL"
        session.refuses(f"{back} WHERE job_id = %(id)s", id=job.id, sqlstate="PB021")
        session.allows("UPDATE attempts SET proof = 'absent' WHERE job_id = %(id)s", id=job.id)


@pytest.mark.parametrize("change", ["outcome = 'unknown'", "remote_id = 'other'", "outcome = NULL"])
def test_a_published_attempt_stays_so(ground: Ground, lane: Lane, change: str) -> None:
    job = lane.put(S.PUBLISHED)
    with ground.conn.transaction(force_rollback=True):
        Session(ground.conn, "engine").refuses(
            f"UPDATE attempts SET {change} WHERE job_id = %(id)s", id=job.id, sqlstate="PB021"
        )


@pytest.mark.parametrize(
    "change", ["event = 'other'", "who = 'nobody'", "at = now()", "detail = '{}'"]
)
def test_the_journal_is_only_added_to(session: Session, lane: Lane, change: str) -> None:
    job = lane.put(S.FAILED)
    assert lane.ground.events(job.id)
    where = "WHERE job_id = %(id)s"
    sqlstate = refused(session, "PB024")
    session.refuses(f"UPDATE job_events SET {change} {where}", id=job.id, sqlstate=sqlstate)
    session.refuses(f"DELETE FROM job_events {where}", id=job.id, sqlstate=sqlstate)


def test_a_version_is_never_changed(session: Session, ground: Ground) -> None:
    post = ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    version = ground.one(
        "INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)"
        " VALUES (%s, 1, 'a', sha256('a'), 'me') RETURNING id",
        post,
    )
    sqlstate = refused(session, "PB022")
    where = "WHERE id = %(id)s"
    session.refuses(f"UPDATE post_versions SET number = 2 {where}", id=version, sqlstate=sqlstate)
    session.refuses(f"DELETE FROM post_versions {where}", id=version, sqlstate=sqlstate)
