"""Names that people type, and what a wait counts as due."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, insert, text

from publisher.db.connect import Database
from publisher.engine import ledger, queries
from publisher.engine.job import JobId, NewJob, State, public_id
from publisher.engine.queries import AmbiguousJob, UnknownJob
from publisher.engine.schema import channels, gates


def channel(conn: Connection) -> int:
    values = {"platform": "none", "name": "Page A", "remote_id": "1"}
    added = conn.execute(insert(channels).values(values).returning(channels.c.id)).scalar_one()
    conn.execute(insert(gates).values(channel_id=added, max_in_flight=1))
    return added


def put(conn: Connection, on: int, name: str, *, minutes: float = -1) -> JobId:
    run_at = queries.clock(conn) + timedelta(minutes=minutes)
    (job,) = ledger.enqueue(conn, [NewJob(name, "publish", "publish", on, "{}", run_at)])
    return job.job_id


def with_ref(conn: Connection, job_id: JobId, ref: str) -> None:
    """As the owner: a post is never taken from one job to another otherwise."""
    post = conn.execute(
        text("INSERT INTO posts (ref, created_by) VALUES (:ref, 'test') RETURNING id"), {"ref": ref}
    ).scalar_one()
    conn.execute(text("ALTER TABLE jobs DISABLE TRIGGER jobs_moved"))
    conn.execute(
        text("UPDATE jobs SET post_id = :post WHERE id = :id"), {"post": post, "id": job_id}
    )
    conn.execute(text("ALTER TABLE jobs ENABLE TRIGGER jobs_moved"))


def test_a_job_is_found_by_every_beginning_that_is_its_own(app_database: Database) -> None:
    with app_database.engine.begin() as conn:
        on = channel(conn)
        ids = [put(conn, on, f"job {number}") for number in range(40)]
        names = {job_id: public_id(job_id) for job_id in ids}
        for job_id, name in names.items():
            for length in range(1, len(name) + 1):
                alike = [one for one in names.values() if one.startswith(name[:length])]
                if len(alike) == 1:
                    assert queries.find_job(conn, name[:length]) == job_id
                    assert queries.find_job(conn, f" {name[:length].upper()} ") == job_id
                else:
                    with pytest.raises(AmbiguousJob) as caught:
                        queries.find_job(conn, name[:length])
                    assert set(caught.value.candidates) <= {
                        one for one, other in names.items() if other in alike
                    }
        assert queries.id_digits(conn) == 4


@pytest.mark.parametrize("name", ["", "zz", "123456789012", "0000000000", "job", "%"])
def test_what_names_no_job_is_refused(app_database: Database, name: str) -> None:
    with app_database.engine.begin() as conn:
        put(conn, channel(conn), "job 1")
        with pytest.raises(UnknownJob):
            queries.find_job(conn, name)


def test_a_ref_beats_a_beginning_no_list_shows_and_is_not_guessed_against_others(
    owner_database: Database,
) -> None:
    with owner_database.engine.begin() as conn:
        on = channel(conn)
        first, second = put(conn, on, "one"), put(conn, on, "two")
        with_ref(conn, second, public_id(first)[:2])
        assert queries.find_job(conn, public_id(first)[:2]) == second
        with_ref(conn, second, public_id(first)[:5])
        with pytest.raises(AmbiguousJob):
            queries.find_job(conn, public_id(first)[:5])
        with_ref(conn, second, public_id(first))
        assert queries.find_job(conn, public_id(first)) == first
        assert queries.find_job(conn, "two") == second


def test_due_is_what_an_editor_asked_for(app_database: Database) -> None:
    with app_database.engine.begin() as conn:
        on = channel(conn)
        due, held, cancelled = (put(conn, on, name) for name in ("due", "held", "cancelled"))
        put(conn, on, "later", minutes=60)
        moved = put(conn, on, "moved")
        ledger.hold(conn, held, who="test")
        ledger.cancel(conn, cancelled, who="test")
        later = queries.clock(conn) + timedelta(hours=1)
        ledger.reschedule(conn, moved, at=later, who="test")
        counts = queries.due_counts(conn)
        assert counts.by_state == {State.SCHEDULED: 2, State.CANCELLED: 1}
        assert (counts.unsettled, counts.held, counts.not_published) == (2, 1, 0)
        # A retry that waits its turn does not make a job less due.
        conn.execute(
            text(
                "UPDATE jobs SET run_at = run_at + interval '1 hour', failures = 1 WHERE id = :id"
            ),
            {"id": due},
        )
        counts = queries.due_counts(conn)
        assert (counts.unsettled, counts.retrying) == (2, 1)
        assert queries.due_counts(conn, only=[moved]).unsettled == 0


def test_rows_come_in_order_and_limits_keep_the_newest(app_database: Database) -> None:
    with app_database.engine.begin() as conn:
        on = channel(conn)
        ids = [put(conn, on, f"job {number}") for number in range(5)]
        ledger.cancel(conn, ids[1], who="test")
        assert [row.id for row in queries.job_rows(conn)] == ids
        assert [row.id for row in queries.job_rows(conn, limit=2)] == ids[-2:]
        cancelled = [State.CANCELLED]
        assert [row.id for row in queries.job_rows(conn, states=cancelled)] == [ids[1]]
        assert queries.job_count(conn, states=cancelled) == 1
        assert [row.id for row in queries.job_rows(conn, channel_id=on + 1)] == []
        assert [row.id for row in queries.job_rows(conn, queue="mail")] == []
        assert [row.id for row in queries.job_rows(conn, only=[ids[0]])] == [ids[0]]
        assert queries.counts_by_state(conn) == {State.SCHEDULED: 4, State.CANCELLED: 1}


def test_a_job_that_is_none_has_no_page(app_database: Database) -> None:
    with app_database.engine.begin() as conn:
        with pytest.raises(UnknownJob):
            queries.job_detail(conn, JobId(7))
        job_id = put(conn, channel(conn), "job 1")
        detail = queries.job_detail(conn, job_id)
        assert (detail.row.key, detail.content, detail.attempts) == ("job 1", "{}", ())
