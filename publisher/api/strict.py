"""What bodies and parameters are made of: nothing beyond what is named, and nothing turned."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from publisher.api.problems import Problem, Refusal
from publisher.words import _

INTEGER: Final = 2**31 - 1
_HIGHEST: Final = 2**62
_LONGEST_TIME: Final = 40


class Body(BaseModel):
    """A request's body: a name that is not known is refused, and no value is turned to fit."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Told(BaseModel):
    """An answer's part."""

    model_config = ConfigDict(frozen=True)


def iso(at: datetime) -> str:
    """ISO 8601 in UTC with a Z, microseconds and all, as the commands' JSON has it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


Instant = Annotated[datetime, PlainSerializer(iso, return_type=str, when_used="always")]
"""A time in an answer."""


def _aware(value: Any) -> Any:  # noqa: ANN401 - whatever a query holds
    if not isinstance(value, str) or len(value) > _LONGEST_TIME or "T" not in value.upper():
        message = _("give a time with a date and an offset, such as 2026-12-07T09:00:00Z")
        raise ValueError(message)
    return value


def _with_offset(value: datetime) -> datetime:
    if value.tzinfo is None:
        message = _("a time without an offset is no instant; add Z or one such as +07:00")
        raise ValueError(message)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        message = _("that time is too far away")
        raise ValueError(message) from None


When = Annotated[datetime, BeforeValidator(_aware), AfterValidator(_with_offset)]
"""A time in a query."""


def _read(value: Any) -> datetime:  # noqa: ANN401 - whatever JSON holds
    return datetime.fromisoformat(_aware(value))


At = Annotated[datetime, BeforeValidator(_read), AfterValidator(_with_offset)]
"""A time in a body, where nothing else is turned to fit."""

JobName = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{10}$",
        description="The job's id: ten hex digits.",
        examples=["8f3a01bc24"],
    ),
]
Number = Annotated[int, Path(ge=1, le=INTEGER, description="Its number.", examples=[7])]
LongNumber = Annotated[int, Path(ge=1, le=_HIGHEST, description="Its number.", examples=[7])]
Limit = Annotated[int, Query(ge=1, le=200, description="So many at most.")]
Cursor = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9a-z]{1,40}$",
        description="Where the page before ended: its `next_cursor`.",
    ),
]


def numbered(cursor: str | None) -> int | None:
    """The number that a cursor is. Raises ``Refusal`` for one that is none."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or int(cursor) > _HIGHEST:
        detail = _("This cursor is none of ours. Take next_cursor of the page before.")
        raise Refusal(Problem.of("request-invalid", detail, field="cursor"))
    return int(cursor)


Reason = Annotated[
    str, Field(max_length=2_000, description="Why; the journal keeps it.", examples=["seen there"])
]
Zone = Annotated[
    str,
    Field(
        max_length=100,
        description="IANA name of the zone of local times.",
        examples=["Asia/Ho_Chi_Minh"],
    ),
]
Time = Annotated[
    str,
    Field(
        max_length=100,
        description="`now`, a time with an offset, or a local time together with `zone`.",
        examples=["2026-12-07T09:00:00+07:00"],
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]
