"""``/channels/{channel}/rules``, ``…/posting-times``: when a channel posts, and how far apart."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from publisher.api.calls import Answer, Here, OptionalKey, RequiredKey, answered, once
from publisher.api.channels import find
from publisher.api.operations import operation
from publisher.api.problems import Problem, Refusal
from publisher.api.strict import At, Body, Instant, Number, Told
from publisher.editorial import channel_rules, posting_times
from publisher.editorial.channel_rules import Change, RuleRefused, Rules
from publisher.editorial.people.roles import Permission
from publisher.editorial.posting_times import PostingTime, PostingTimeRefused
from publisher.engine.job import Backlog

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["channels"])
_FREE: Final = 5
_LONGEST: Final = 10 * 366 * 86_400
_NAMES: Final = {
    "spacing": "spacing_seconds",
    "useful_for": "useful_for_seconds",
    "overdue_after": "late_after_seconds",
    "release_every": "release_every_seconds",
}
BacklogWord = Literal["send", "release", "miss"]
Seconds = Annotated[int, Field(ge=0, le=_LONGEST)]
Written = Annotated[str, Field(max_length=100, examples=["mon 09:00", "weekdays 12:30"])]


class RulesTold(Told):
    """How a channel goes about time."""

    spacing_seconds: float = Field(description="At least so long between two posts.")
    useful_for_seconds: float | None = Field(
        description="A post is not sent later than so long after its time, unless it says"
        " otherwise itself; null: as the deployment has it."
    )
    backlog: BacklogWord = Field(
        description="Posts that a standstill made late: sent by their times, released one by one"
        " after fresh ones, or missed."
    )
    late_after_seconds: float = Field(description="How late makes a post one of these.")
    release_every_seconds: float


class RulesChange(Body):
    """What is to be otherwise; what is left out, or null, stays as it is."""

    spacing_seconds: Seconds | None = None
    useful_for_seconds: Seconds | None = Field(
        default=None, description="0: as the deployment has it."
    )
    backlog: BacklogWord | None = None
    late_after_seconds: Seconds | None = None
    release_every_seconds: Seconds | None = None


class PostingTimeTold(Told):
    """A weekday and what a clock in the workspace's zone shows then."""

    weekday: int = Field(description="1 is Monday.")
    at: str = Field(examples=["09:00"])


class PostingTimes(Told):
    """When a channel posts, and the next times that are free."""

    zone: str
    times: list[PostingTimeTold]
    free: list[Instant] = Field(description="None of them is taken by asking.")


class PostingTimesChange(Body):
    """What to add, and what to take away."""

    add: list[Written] = Field(default=[], max_length=100)
    remove: list[Written] = Field(default=[], max_length=100)


class After(Body):
    """From when on."""

    after: At | None = Field(default=None, description="Later than that, and later than now.")


class TakenTime(Told):
    """A posting time that is yours for a while; a job that is scheduled there outlasts that."""

    at: Instant
    lapses_at: Instant


class TimeOf(Body):
    """A time that was taken."""

    at: At


class GivenBack(Told):
    """Whether it was taken."""

    given_back: bool


@operation(router, "GET", "/channels/{channel}/rules", Permission.CHANNELS_READ, RulesTold)
def show_rules(channel: Number, here: Here) -> Response:
    """Show how far apart a channel posts, how long posts are useful, and its backlog's rule."""
    with here.transaction() as conn:
        return answered(_rules(channel_rules.of_channel(conn, find(conn, channel).id)))


@operation(
    router,
    "PATCH",
    "/channels/{channel}/rules",
    Permission.WORKSPACE_MANAGE,
    RulesTold,
    example={"spacing_seconds": 1800, "backlog": "release"},
)
def change_rules(
    channel: Number, here: Here, request: Request, body: RulesChange, key: OptionalKey = None
) -> Response:
    """Change a channel's rules. What is scheduled keeps its useful-until."""
    to = Change(
        spacing=_span(body.spacing_seconds),
        useful_for=_span(body.useful_for_seconds),
        backlog=None if body.backlog is None else Backlog(body.backlog),
        overdue_after=_span(body.late_after_seconds),
        release_every=_span(body.release_every_seconds),
    )

    def change(conn: Connection) -> Answer:
        try:
            rules = channel_rules.change(conn, find(conn, channel), to, who=here.who)
        except RuleRefused as error:
            field = _NAMES.get(error.field, error.field)
            raise Refusal(Problem.of(error.code, str(error), field=field)) from None
        return Answer(_rules(rules))

    return once(here, request, key, change)


@operation(
    router, "GET", "/channels/{channel}/posting-times", Permission.CHANNELS_READ, PostingTimes
)
def show_posting_times(channel: Number, here: Here) -> Response:
    """Show when a channel posts, and the next times that are free."""
    with here.transaction() as conn:
        return answered(_times(conn, find(conn, channel).id))


@operation(
    router,
    "POST",
    "/channels/{channel}/posting-times",
    Permission.WORKSPACE_MANAGE,
    PostingTimes,
    example={"add": ["weekdays 09:00"], "remove": ["fri 17:00"]},
)
def change_posting_times(
    channel: Number, here: Here, request: Request, body: PostingTimesChange, key: OptionalKey = None
) -> Response:
    """Add posting times to a channel and take others away. What is scheduled stays."""
    added, removed = _read(body.add, "add"), _read(body.remove, "remove")

    def change(conn: Connection) -> Answer:
        at = find(conn, channel)
        posting_times.remove(conn, at.id, removed, who=here.who)
        posting_times.add(conn, at.id, added, who=here.who)
        return Answer(_times(conn, at.id))

    return once(here, request, key, change)


@operation(
    router,
    "POST",
    "/channels/{channel}/posting-times/take",
    Permission.POSTS_SCHEDULE,
    TakenTime,
    status=201,
    example={"after": "2026-12-07T00:00:00+07:00"},
)
def take_posting_time(
    channel: Number, here: Here, request: Request, body: After, key: RequiredKey
) -> Response:
    """Take the next free posting time for an hour: nobody else is given it meanwhile."""

    def take(conn: Connection) -> Answer:
        at = find(conn, channel)
        taken = posting_times.take(conn, at.id, who=here.who, after=body.after)
        return Answer(TakenTime(at=taken.at, lapses_at=taken.lapses_at), status=201)

    return once(here, request, key, take)


@operation(
    router,
    "POST",
    "/channels/{channel}/posting-times/give-back",
    Permission.POSTS_SCHEDULE,
    GivenBack,
    example={"at": "2026-12-07T09:00:00+07:00"},
)
def give_posting_time_back(
    channel: Number, here: Here, request: Request, body: TimeOf, key: OptionalKey = None
) -> Response:
    """Let go of a posting time that was taken and is not needed."""

    def give(conn: Connection) -> Answer:
        return Answer(
            GivenBack(given_back=posting_times.give_back(conn, find(conn, channel).id, body.at))
        )

    return once(here, request, key, give)


def _read(written: list[str], field: str) -> list[PostingTime]:
    found: list[PostingTime] = []
    for number, one in enumerate(written):
        try:
            found += posting_times.read(one)
        except PostingTimeRefused as error:
            problem = Problem.of(error.code, str(error), field=f"{field}.{number}")
            raise Refusal(problem) from None
    return found


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _rules(rules: Rules) -> RulesTold:
    useful = rules.useful_for
    return RulesTold(
        spacing_seconds=rules.spacing.total_seconds(),
        useful_for_seconds=None if useful is None else useful.total_seconds(),
        backlog=rules.backlog.value,
        late_after_seconds=rules.overdue_after.total_seconds(),
        release_every_seconds=rules.release_every.total_seconds(),
    )


def _times(conn: Connection, channel_id: int) -> PostingTimes:
    listed = posting_times.of_channel(conn, channel_id)
    return PostingTimes(
        zone=posting_times.zone_of(conn, channel_id).key,
        times=[PostingTimeTold(weekday=one.weekday, at=f"{one.at:%H:%M}") for one in listed],
        free=list(posting_times.free(conn, channel_id, at_most=_FREE)),
    )
