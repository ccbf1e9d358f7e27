"""What the triggers refuse of rows that may be live, of contents, of attempts; and what beside."""

from __future__ import annotations

from uuid import uuid4

import pytest

from publisher.engine.job import JobId, State
from tests.engine.by_hand import CLAIM, LET_GO, LIVE, PROVE, allows, bound, refuses, unguarded
from tests.engine.conftest import Connect
from tests.engine.ground import Driver, Ground, Lane, Placed, not_sent

S = State


# What may be live


@pytest.mark.parametrize("proof", ["NULL", "'repeat_safe'"])
@pytest.mark.parametrize(
    ("was", "to", "code"),
    [
        (S.FAILED, S.SCHEDULED, "PB016"),
        (S.MISSED, S.SCHEDULED, "PB016"),
        (S.CLAIMED, S.FAILED, "PB017"),
        (S.CLAIMED, S.MISSED, "PB017"),
        (S.SCHEDULED, S.CANCELLED, "PB017"),
    ],
)
def test_an_attempt_that_may_be_live_keeps_its_job(
    lane: Lane, root: Driver, was: State, to: State, code: str, proof: str
) -> None:
    job = lane.put(was, begun=True)
    by = "NULL" if proof == "NULL" else "now()"
    unguarded(
        root,
        f"UPDATE attempts SET proof = {proof}, proved_at = {by}, proved_by = {by}"
        " WHERE job_id = %s",
        job.id,
    )
    refuses(root, code, f"UPDATE jobs SET state = '{to}', {LET_GO} WHERE id = %s", [job.id])


@pytest.mark.parametrize("was", [S.FAILED, S.MISSED])
def test_what_may_be_live_and_ended_may_turn_out_so(lane: Lane, root: Driver, was: State) -> None:
    job = lane.put(was, begun=True)
    unguarded(root, "UPDATE attempts SET proof = 'repeat_safe' WHERE job_id = %s", job.id)
    bound(root, lane.channel_id, "x", job.id)
    allows(root, LIVE.format(""), {"id": job.id, "remote": "x"})


@pytest.mark.parametrize(
    ("was", "move"),
    [
        (S.SCHEDULED, CLAIM.format("")),
        (S.SCHEDULED, "UPDATE jobs SET state = 'cancelled' WHERE id = %(id)s"),
        (S.CLAIMED, f"UPDATE jobs SET state = 'scheduled', {LET_GO} WHERE id = %(id)s"),
        (S.FAILED, "UPDATE jobs SET state = 'scheduled' WHERE id = %(id)s"),
    ],
)
def test_an_attempt_that_is_live_leaves_its_job_one_way(
    lane: Lane, root: Driver, was: State, move: str
) -> None:
    job = lane.put(was, begun=True)
    at = {"id": job.id, "token": uuid4(), "remote": "x"}
    unguarded(
        root,
        "UPDATE attempts SET outcome = 'published', remote_id = 'x', proof = 'refused'"
        " WHERE job_id = %s",
        job.id,
    )
    refuses(root, "PB017", move, at)
    bound(root, lane.channel_id, "x", job.id)
    allows(root, LIVE.format(""), at)


# Content


@pytest.fixture
def app(ground: Ground, connect_app: Connect) -> Driver:
    """A page's connection."""
    del ground
    return connect_app()


@pytest.mark.parametrize(
    "change",
    [
        "content = 'b', content_sha256 = sha256('b')",
        "version = 2",
        "platform_key = 'k'",
    ],
)
def test_what_was_begun_keeps_its_content_and_what_goes_with_it(
    lane: Lane, root: Driver, change: str
) -> None:
    begun, waits = lane.put(S.SCHEDULED, begun=True), lane.add()
    query = f"UPDATE job_contents SET {change} WHERE job_id = %s"
    refuses(root, "PB020", query, [begun.id])
    allows(root, query, [waits])


def test_what_was_begun_keeps_its_version(lane: Lane, root: Driver) -> None:
    own, other = (approved(lane) for _ in range(2))
    begun = lane.put(S.SCHEDULED, begun=True, post_id=own[0])
    waits = lane.add(post_id=other[0])
    query = (
        "UPDATE job_contents SET version_id = %s, version = 1, content = 'a',"
        " content_sha256 = sha256('a') WHERE job_id = %s"
    )
    refuses(root, "PB020", query, [own[1], begun.id])
    allows(root, query, [other[1], waits])


def approved(lane: Lane) -> tuple[int, int]:
    """A post, and its version that somebody approved."""
    post = lane.ground.one("INSERT INTO posts (created_by) VALUES ('me') RETURNING id")
    version = lane.ground.one(
        "INSERT INTO post_versions (post_id, number, content, content_sha256, created_by)"
        " VALUES (%s, 1, 'a', sha256('a'), 'me') RETURNING id",
        post,
    )
    lane.ground.sql("INSERT INTO approvals (version_id, approved_by) VALUES (%s, 'me')", version)
    return post, version


def test_a_content_keeps_its_key_and_its_job(lane: Lane, root: Driver) -> None:
    job = lane.add()
    refuses(root, "PB020", "UPDATE job_contents SET key = 'x' WHERE job_id = %s", [job])
    root.execute(
        "INSERT INTO jobs (id, channel_id, kind, queue, due_at, run_at)"
        " VALUES (777777, %s, 'post', 'q', now(), now())",
        [lane.channel_id],
    )
    moved = "UPDATE job_contents SET job_id = 777777 WHERE job_id = %s"
    refuses(root, "PB020", moved, [job])


def test_progress_goes_with_the_content_it_was_made_of(lane: Lane, root: Driver) -> None:
    job = lane.add()
    change = "UPDATE job_contents SET {} WHERE job_id = %s"
    root.execute(change.format("progress = '1', progress_sha256 = 'x'").encode(), [job])
    other = "content = 'b', content_sha256 = sha256('b')"
    refuses(root, "PB020", change.format(other), [job])
    allows(root, change.format(f"{other}, progress = NULL, progress_sha256 = NULL"), [job])
    allows(root, change.format("platform_key = 'k'"), [job])


def test_a_content_waits_for_nobody_who_holds_another_job(
    lane: Lane, root: Driver, app: Driver
) -> None:
    job, other = lane.add(), lane.add()
    root.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [other])
    with app.transaction(force_rollback=True):
        app.execute("SET LOCAL lock_timeout = '1s'")
        allows(app, "UPDATE job_contents SET platform_key = 'k' WHERE job_id = %s", [job])


# Attempts and what they are bound to


ATTEMPT = "UPDATE attempts SET {} WHERE job_id = %s AND number = 1"


@pytest.mark.parametrize(
    "change",
    [
        "job_id = (SELECT max(id) FROM jobs)", "number = 2", "token = gen_random_uuid()",
        "incarnation = 8", "content_sha256 = 'other'", "claimed_at = now() - interval '1 h'",
        "begun_at = now() - interval '1 h'",
    ],
)  # fmt: skip
def test_an_attempt_keeps_what_it_was_begun_with(lane: Lane, root: Driver, change: str) -> None:
    job = lane.sending()
    lane.add()
    refuses(root, "PB021", ATTEMPT.format(change), [job.id])


PROOFS: list[tuple[str, str, bool]] = [
    ("refused", "absent", False), ("refused", "forced", True), ("refused", "repeat_safe", False),
    ("repeat_safe", "absent", True), ("repeat_safe", "forced", True), ("absent", "forced", True),
    ("forced", "absent", False),
]  # fmt: skip


@pytest.mark.parametrize(("was", "to", "may"), PROOFS)
def test_a_proof_gives_way_to_a_persons_word_and_a_safe_repeat_to_any(
    lane: Lane, root: Driver, was: str, to: str, *, may: bool
) -> None:
    job = lane.put(S.SCHEDULED, begun=True)
    unguarded(root, ATTEMPT.format(f"proof = '{was}'"), job.id)
    change = ATTEMPT.format(f"proof = '{to}'")
    if may:
        allows(root, change, [job.id])
    else:
        refuses(root, "PB021", change, [job.id])
    none = ATTEMPT.format("proof = NULL, proved_by = NULL, proved_at = NULL")
    refuses(root, "PB021", none, [job.id])
    allows(root, ATTEMPT.format("detail = 'more is known'"), [job.id])


def test_a_first_proof_is_anybodys(lane: Lane, root: Driver) -> None:
    job = lane.sending()
    allows(root, ATTEMPT.format(PROVE), [job.id])


def test_an_attempt_that_is_live_stays_so(lane: Lane, root: Driver) -> None:
    live, other = lane.put(S.PUBLISHED), lane.put(S.UNKNOWN)
    for change in ("outcome = 'unknown'", "outcome = NULL", "remote_id = 'other'"):
        refuses(root, "PB021", ATTEMPT.format(change), [live.id])
    allows(root, ATTEMPT.format("detail = 'more is known'"), [live.id])
    allows(root, ATTEMPT.format("outcome = 'rejected', remote_id = 'x'"), [other.id])


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM remote_posts WHERE job_id = %(id)s",
        "UPDATE remote_posts SET channel_id = %(channel)s WHERE job_id = %(id)s",
        "UPDATE remote_posts SET remote_id = 'other' WHERE job_id = %(id)s",
        "UPDATE remote_posts SET job_id = -1 WHERE job_id = %(id)s",
    ],
)
def test_a_remote_post_is_bound_for_ever(lane: Lane, root: Driver, change: str) -> None:
    job, channel = lane.put(S.PUBLISHED), lane.ground.lane().channel_id
    refuses(root, "PB023", change, {"id": job.id, "channel": channel})
    allows(root, "UPDATE remote_posts SET permalink = 'x' WHERE job_id = %s", [job.id])


# Doubts


def doubted(conn: Driver, job_id: JobId) -> bool:
    return conn.execute("SELECT FROM doubts WHERE job_id = %s", [job_id]).rowcount == 1


def test_a_doubt_is_there_while_its_job_is_unknown(lane: Lane, root: Driver) -> None:
    job, other = lane.put(S.UNKNOWN), lane.put(S.UNKNOWN)
    root.execute("UPDATE doubts SET looks = 3 WHERE job_id = %s", [job.id])
    root.execute("UPDATE jobs SET state = 'unknown' WHERE id = %s", [job.id])
    looks = root.execute("SELECT looks FROM doubts WHERE job_id = %s", [job.id]).fetchone()
    assert looks == (3,)
    root.execute("UPDATE jobs SET state = 'dropped' WHERE id = %s", [job.id])
    assert [doubted(root, each.id) for each in (job, other)] == [False, True]


def test_a_timeline_ends_what_has_ended(lane: Lane, root: Driver) -> None:
    job, ended = lane.sending(), lane.sending()
    assert lane.end(ended, not_sent()).done

    def settled(each: Placed) -> int:
        query = "SELECT FROM timeline WHERE job_id = %s AND event = 'settle'"
        return root.execute(query, [each.id]).rowcount

    assert [settled(each) for each in (job, ended)] == [0, 1]


# Locks on what is unique for a while


def test_what_is_published_gives_back_its_own_lock(lane: Lane, root: Driver) -> None:
    first, second = lane.sending(), lane.sending()
    for job in (first, second):
        until = "UPDATE jobs SET unique_until = now() + interval '1 h' WHERE id = %s"
        root.execute(until, [job.id])
        lock = "INSERT INTO unique_locks (digest, job_id, lapses_at) VALUES (%s, %s, now())"
        root.execute(lock, [str(job.id).encode(), job.id])
    bound(root, lane.channel_id, "x", first.id)
    root.execute(LIVE.format("").encode(), {"id": first.id, "remote": "x"})
    left = root.execute("SELECT job_id FROM unique_locks WHERE job_id IN (%s, %s)",
                        [first.id, second.id]).fetchall()  # fmt: skip
    assert left == [(second.id,)]
