"""The shortcuts of the trigger on jobs are no way round its rules."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from publisher.engine.job import State
from tests.engine.by_hand import (
    BEGIN,
    BEGUN,
    CLAIM,
    LIVE,
    allows,
    bound,
    refuses,
    unguarded,
    values,
)
from tests.engine.ground import Driver, Lane

S = State

# What goes with no move at all.
NEVER = [
    (", claims = claims + 1", "PB014"),
    (", failures = failures - 1", "PB014"),
    (", deaths = deaths - 1", "PB014"),
    (", kind = 'mail'", "PB010"),
    (", channel_id = %(channel)s", "PB010"),
    (", post_id = %(post)s", "PB010"),
]


# A first begin


@pytest.mark.parametrize(("change", "code"), NEVER)
def test_a_first_begin_changes_nothing_else(
    lane: Lane, root: Driver, change: str, code: str
) -> None:
    at = values(lane, lane.claimed().id)
    refuses(root, code, BEGIN.format(change), at)
    allows(root, BEGIN.format(""), at)


def test_a_first_begin_is_under_the_claims_token_and_of_the_job(lane: Lane, root: Driver) -> None:
    at, other = values(lane, lane.claimed().id), lane.claimed()
    token = uuid4()
    refuses(root, "PB013", BEGIN.format(", token = %(under)s"), at | {"under": token})
    refuses(root, "PB015", BEGIN.format(""), at | {"under": token})
    refuses(root, "PB015", BEGIN.format(""), at | {"of": other.id})
    refuses(root, "PB015", BEGIN.format(""), at | {"number": 2})


def test_an_attempt_is_counted_when_it_is_begun_and_by_one(lane: Lane, root: Driver) -> None:
    job = lane.claimed()
    at = values(lane, job.id)
    unguarded(root, "UPDATE jobs SET claims = 9 WHERE id = %s", job.id)
    counted = f"{BEGUN} UPDATE jobs SET attempts = 1 WHERE id = %(id)s"
    refuses(root, "PB014", counted, at)
    refuses(root, "PB014", BEGIN.replace("attempts = 1", "attempts = 2").format(""), at)
    refuses(root, "PB014", BEGIN.replace("attempts = 1", "attempts = 0").format(""), at)


def bare(conn: Driver, lane: Lane) -> dict[str, Any]:
    """A claimed job without a content, so that nothing but the trigger minds its number."""
    token = uuid4()
    conn.execute(
        "INSERT INTO jobs (id, channel_id, kind, queue, due_at, run_at)"
        " VALUES (777777, %s, 'post', 'q', now(), now())",
        [lane.channel_id],
    )
    return {"id": 777777, "token": token, "under": token, "of": 888888, "number": 1}


def test_a_job_keeps_its_number(lane: Lane, root: Driver) -> None:
    at = bare(root, lane)
    renumbered = ", id = 888888"
    refuses(root, "PB010", "UPDATE jobs SET id = 888888 WHERE id = %(id)s", at)
    refuses(root, "PB010", CLAIM.format(renumbered), at)
    root.execute(CLAIM.format("").encode(), at)
    refuses(root, "PB010", BEGIN.format(renumbered), at)


# A first claim


@pytest.mark.parametrize(
    ("change", "code"),
    [each for each in NEVER if "claims" not in each[0]] + [(", attempts = 1", "PB014")],
)
def test_a_first_claim_changes_nothing_else(
    lane: Lane, root: Driver, change: str, code: str
) -> None:
    at = values(lane, lane.add())
    refuses(root, code, CLAIM.format(change), at)
    allows(root, CLAIM.format(""), at)


def test_a_second_claim_does_not_forget_the_first_attempt(lane: Lane, root: Driver) -> None:
    at = {"id": lane.put(S.SCHEDULED, begun=True).id, "token": uuid4()}
    refuses(root, "PB014", CLAIM.format(", attempts = 0"), at)


def test_only_a_claim_counts_one(lane: Lane, root: Driver) -> None:
    end = "UPDATE jobs SET state = 'failed', claims = claims + 1 WHERE id = %s"
    refuses(root, "PB011", end, [lane.add()])


def test_another_jobs_token_may_be_met_by_chance(lane: Lane, root: Driver) -> None:
    job, other = (lane.put(S.SCHEDULED, begun=True) for _ in range(2))
    allows(root, CLAIM.format(""), {"id": job.id, "token": other.token})
    refuses(root, "PB013", CLAIM.format(""), {"id": job.id, "token": job.token})


# Published


@pytest.mark.parametrize("state", [S.SENDING, S.UNKNOWN])
def test_a_remote_post_is_bound_on_the_channel_by_its_id_and_to_the_job(
    lane: Lane, root: Driver, state: State
) -> None:
    job, other, elsewhere = lane.put(state), lane.put(state), lane.ground.lane().channel_id
    bound(root, elsewhere, "a", job.id)
    bound(root, lane.channel_id, "b", job.id)
    bound(root, lane.channel_id, "c", other.id)
    for remote, code in (("a", "PB019"), ("c", "PB019"), ("d", "PB019")):
        refuses(root, code, LIVE.format(""), {"id": job.id, "remote": remote})
    allows(root, LIVE.format(""), {"id": job.id, "remote": "b"})


def test_the_shortcut_to_published_is_for_what_is_being_sent(lane: Lane, root: Driver) -> None:
    called_off, again = lane.put(S.SCHEDULED, begun=True), lane.put(S.SENDING, begun=True)
    root.execute("UPDATE jobs SET state = 'cancelled' WHERE id = %s", [called_off.id])
    for job in (called_off, again):
        bound(root, lane.channel_id, f"of {job.id}", job.id)
    at = {"id": called_off.id, "remote": f"of {called_off.id}"}
    refuses(root, "PB011", LIVE.format(""), at)
    at = {"id": again.id, "remote": f"of {again.id}"}
    refuses(root, "PB014", LIVE.format(", attempts = 1"), at)
    allows(root, LIVE.format(""), at)


@pytest.mark.parametrize(("change", "code"), NEVER)
def test_a_first_publish_changes_nothing_else(
    lane: Lane, root: Driver, change: str, code: str
) -> None:
    at = values(lane, lane.sending().id) | {"remote": "a"}
    for channel_id in (lane.channel_id, at["channel"]):
        bound(root, channel_id, "a", at["id"])
    refuses(root, code, LIVE.format(change), at)
    allows(root, LIVE.format(""), at)


def test_what_is_published_keeps_its_numbers(lane: Lane, root: Driver) -> None:
    job = lane.sending()
    lane.ground.sql("UPDATE jobs SET failures = 1 WHERE id = %s", job.id)
    bound(root, lane.channel_id, "x", job.id)
    root.execute(LIVE.format("").encode(), {"id": job.id, "remote": "x"})
    fewer = "UPDATE jobs SET failures = 0 WHERE id = %s"
    refuses(root, "PB014", fewer, [job.id])


def test_what_is_being_sent_counts_no_further_attempt(lane: Lane, root: Driver) -> None:
    job = lane.sending()
    unguarded(root, "UPDATE jobs SET claims = 9 WHERE id = %s", job.id)
    refuses(root, "PB014", "UPDATE jobs SET attempts = attempts + 1 WHERE id = %s", [job.id])
