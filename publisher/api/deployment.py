"""``/me``, ``/workers`` and ``/deployment``: who asks, who works, and what this is."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from publisher.api.calls import Answer, Caller, Here, RequiredKey, answered, once
from publisher.api.operations import operation
from publisher.api.strict import Body, Instant, Name, Number, Reason, Told
from publisher.editorial import workers
from publisher.editorial.deployment import Standing
from publisher.editorial.people.roles import Permission
from publisher.editorial.unknowns import Signed
from publisher.engine import queries
from publisher.engine.job import State
from publisher.engine.queries import WorkerRun

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["deployment"])


class Me(Told):
    """By whose token a program acts, and what it may do."""

    name: str
    role: str
    workspace: str
    permissions: list[str] = Field(description="What the role and the token's scopes both allow.")
    zone: str | None
    calendar: str | None
    locale: str | None
    token: int | None = Field(description="The token's number.")


class Worker(Told):
    """One run of a worker process. Workers serve every workspace."""

    run: int
    host: str
    pid: int
    started_at: Instant
    seen_at: Instant
    silent: bool = Field(description="Not seen for so long that its leases are taken away.")
    ended_at: Instant | None
    end_reason: str | None
    declared_gone_at: Instant | None
    holds: int = Field(description="Jobs of this workspace that it holds.")
    doubts: int = Field(description="Doubts of this workspace that its sends left.")


class WorkerPage(Told):
    """Worker runs, the newest first."""

    workers: list[Worker]


class WorkerQuery(BaseModel):
    """Which runs."""

    model_config = ConfigDict(extra="forbid")

    over: bool = Field(default=False, description="Those that are over, too.")


class Gone(Body):
    """A signed word that a machine is switched off or lost for good."""

    confirm: Name = Field(description="The machine's name, as `host` has it.")
    reason: Reason


class GoneTold(Told):
    """Since when a run is stated gone, and when what it sent may be decided as not live."""

    run: int
    host: str
    declared_at: Instant
    unlocks_at: Instant


class Deployment(Told):
    """What this is, and whether anything is sent."""

    id: str
    generation: int
    key: str = Field(description="How the sealing key stands: matches, unused, missing, another.")
    sends: bool = Field(description="False: a copy without its key; nothing is sent from here.")
    workers: int = Field(description="Worker runs that were seen a moment ago.")
    jobs: dict[str, int] = Field(description="Jobs of this workspace by state.")


@operation(router, "GET", "/me", Permission.POSTS_READ, Me)
def show_me(here: Here) -> Response:
    """Say by whose token this is asked, in which workspace, and what it may do."""
    person = here.person
    return answered(
        Me(
            name=person.name,
            role=person.role.value,
            workspace=person.workspace,
            permissions=sorted(person.permissions),
            zone=person.zone,
            calendar=person.calendar,
            locale=person.locale,
            token=person.token_id,
        )
    )


@operation(router, "GET", "/deployment", Permission.JOBS_READ, Deployment)
def show_deployment(here: Here) -> Response:
    """Say which deployment this is, how its key stands, and what is under way."""
    with here.transaction() as conn:
        standing = Standing.read(conn, here.desk.settings)
        counts = queries.counts_by_state(conn)
        runs = queries.worker_rows(conn)
    alive = [run for run in runs if run.now - run.seen_at < _silent_after(here)]
    return answered(
        Deployment(
            id=standing.identity.id,
            generation=standing.identity.generation,
            key=standing.key.value,
            sends=not standing.key.is_a_copy,
            workers=len(alive),
            jobs={state.value: counts[state] for state in State},
        )
    )


@operation(router, "GET", "/workers", Permission.JOBS_READ, WorkerPage)
def list_workers(query: Annotated[WorkerQuery, Query()], here: Here) -> Response:
    """List worker runs that are not over, or that left doubts."""
    with here.transaction() as conn:
        runs = workers.listing(conn, every=query.over)
    return answered(WorkerPage(workers=[_worker(at, _silent_after(here)) for at in runs]))


@operation(
    router,
    "POST",
    "/workers/{run}/declare-gone",
    Permission.UNKNOWNS_FORCE,
    GoneTold,
    example={"confirm": "host-a", "reason": "its disk is gone; it was switched off at 02:10"},
)
def declare_worker_gone(
    run: Number, here: Here, request: Request, body: Gone, key: RequiredKey
) -> Response:
    """State that the machine of a worker run is switched off or lost for good.

    Its doubts may be decided fifteen minutes and the horizon later. If it comes back and sends,
    there are two.
    """

    def declare(conn: Connection) -> Answer:
        gone = workers.declare_gone(
            conn,
            run,
            Signed(here.who, body.reason),
            confirm=body.confirm,
            silent_after=_silent_after(here),
            horizon=here.desk.horizon,
        )
        return Answer(
            GoneTold(
                run=run,
                host=gone.run.row.host,
                declared_at=gone.declared_at,
                unlocks_at=gone.unlocks_at,
            )
        )

    return once(here, request, key, declare)


def _silent_after(here: Caller) -> timedelta:
    return timedelta(seconds=here.desk.settings.rescue_after_seconds)


def _worker(at: WorkerRun, silent_after: timedelta) -> Worker:
    row = at.row
    return Worker(
        run=row.id,
        host=row.host,
        pid=row.pid,
        started_at=row.started_at,
        seen_at=row.seen_at,
        silent=row.ended_at is None and row.now - row.seen_at >= silent_after,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        declared_gone_at=row.declared_gone_at,
        holds=at.holds,
        doubts=at.doubts,
    )
