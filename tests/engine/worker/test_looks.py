"""Before every second send the page is looked at, unless nothing of the first can be there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from publisher.engine.evidence import Absent, Evidence, Found, Inconclusive
from publisher.engine.job import State
from publisher.engine.outcome import Reason
from publisher.engine.retry import Policy
from tests.engine import platform
from tests.engine.crew import Crew
from tests.engine.ground import await_that

S = State


def test_what_a_lying_refusal_stored_is_found_and_not_sent_again(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.lie)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.page.on_it == {job.key: 1}
    row = crew.row(job)
    assert row["remote_id"] == crew.fake.page.ids[job.key]
    assert row["attempts"] == 1
    (look,) = crew.ground.sql("SELECT * FROM looks WHERE job_id = %s", crew.id(job))
    attempt = crew.ground.attempt(crew.id(job))
    assert (look["attempt"], look["token"]) == (1, attempt["token"])
    assert look["evidence"]["kind"] == "Found"


@pytest.mark.parametrize("evidence", [Absent(3), Inconclusive("not seen", searched=9, clean=True)])
def test_a_clean_look_goes_on(crew: Crew, evidence: Evidence) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.busy)
    crew.fake.evidence.append(evidence)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.row(job)["attempts"] == 2
    assert len(crew.fake.looks) == 1


@pytest.mark.parametrize(
    "evidence", [Inconclusive("two alike"), RuntimeError("broke"), Found("", None)]
)
def test_a_look_that_is_not_clean_is_a_doubt(crew: Crew, evidence: Evidence | Exception) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.busy)
    crew.fake.evidence.append(evidence)
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[job])
    assert crew.row(job)["reason"] == Reason.LOOK_UNCLEAR
    assert crew.fake.page.calls[job.key] == 1
    assert crew.row(job)["attempts"] == 1


def test_what_was_found_may_be_another_jobs(crew: Crew) -> None:
    other, job = crew.add(2)
    crew.ground.sql("UPDATE jobs SET run_at = now() + interval '1 hour' WHERE id = %s",
                    crew.id(job))  # fmt: skip
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[other])
        crew.fake.acts[job.key].append(platform.busy)
        crew.fake.evidence.append(Found(crew.fake.page.ids[other.key]))
        crew.ground.sql("UPDATE jobs SET run_at = now() WHERE id = %s", crew.id(job))
        crew.await_state(S.UNKNOWN, jobs=[job])
    assert crew.row(job)["reason"] == Reason.ID_OF_ANOTHER_JOB
    assert crew.fake.looks[0].bound == {crew.fake.page.ids[other.key]}


def test_nothing_is_looked_for_that_was_never_written(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.unreachable)
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.looks == []
    assert crew.row(job)["attempts"] == 2


def test_a_look_waits_until_the_page_can_show_the_first_send(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.busy)
    settling = Policy(first=0.01, longest=0.02, settling=600.0)
    # The first send's own wait is cut short by hand, as if a person had moved the job.
    now = "UPDATE jobs SET run_at = now() WHERE id = %s AND state = 'scheduled' AND claims = 1"
    with crew.working(policy=settling):
        await_that(lambda: crew.row(job)["attempts"] == 1 and crew.state(job) is S.SCHEDULED)
        crew.ground.sql(now, crew.id(job))
        await_that(lambda: crew.row(job)["claims"] == 2 and crew.state(job) is S.SCHEDULED)
    row = crew.row(job)
    assert "may not show" in row["reason"]
    assert crew.ground.one("SELECT run_at > now() + interval '9 min' FROM jobs WHERE id = %s",
                           row["id"])  # fmt: skip
    assert crew.fake.looks == []


def force(crew: Crew, job_id: int, proof: str) -> None:
    crew.ground.sql("SET session_replication_role = replica")
    crew.ground.sql("UPDATE attempts SET proof = %s WHERE job_id = %s", proof, job_id)
    crew.ground.sql("RESET session_replication_role")


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (lambda _: Inconclusive("two alike"), S.PUBLISHED),
        (Found, S.PUBLISHED),
    ],
)
def test_after_a_person_forced_it_only_a_find_stops_the_send(
    crew: Crew, evidence: Callable[[str], Evidence], state: State
) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.busy)
    paused = Policy(first=600.0, longest=600.0, settling=0.0)
    with crew.working(policy=paused):
        await_that(lambda: crew.row(job)["attempts"] == 1 and crew.state(job) is S.SCHEDULED)
    force(crew, crew.id(job), "forced")
    crew.ground.sql("UPDATE jobs SET run_at = now() WHERE id = %s", crew.id(job))
    seen = evidence(f"seen {job.key}")
    crew.fake.evidence.append(seen)
    with crew.working():
        crew.await_state(state, jobs=[job])
    assert crew.fake.page.on_it[job.key] == (0 if isinstance(seen, Found) else 1)


def test_a_platform_that_cannot_be_looked_at_turns_refusals_into_doubts(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.can_look = False
    crew.fake.acts[job.key].append(platform.busy)
    with crew.working():
        crew.await_state(S.UNKNOWN, jobs=[job])
    assert crew.fake.page.calls[job.key] == 1


def test_a_safe_repeat_needs_no_look(crew: Crew) -> None:
    (job,) = crew.add()
    crew.fake.acts[job.key].append(platform.busy)
    paused = Policy(first=600.0, longest=600.0, settling=0.0)
    with crew.working(policy=paused):
        await_that(lambda: crew.row(job)["attempts"] == 1 and crew.state(job) is S.SCHEDULED)
    force(crew, crew.id(job), "repeat_safe")
    crew.ground.sql("UPDATE jobs SET run_at = now() WHERE id = %s", crew.id(job))
    with crew.working():
        crew.await_state(S.PUBLISHED, jobs=[job])
    assert crew.fake.looks == []
