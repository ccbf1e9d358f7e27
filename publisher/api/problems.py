"""Every error as RFC 9457 has it, with whether it may be on the page, or be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import structlog
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from publisher.api.catalogue import ENTRIES, entry
from publisher.api.catalogue_entry import Entry
from publisher.editorial.idempotency import StillRunning
from publisher.engine.errors import Conflict, EnqueueError, NotFound, PublisherError
from publisher.engine.job import State, public_id
from publisher.standing import OnPage
from publisher.telemetry import scrub
from publisher.vault import VaultError
from publisher.words import _

ERRORS: Final = "/api/v1/errors"
MEDIA_TYPE: Final = "application/problem+json"
_MOST: Final = 20
_log = structlog.get_logger(__name__)

OnPageWord = Literal["no", "yes", "maybe"]
_ON_PAGE: Final[dict[str, OnPageWord]] = {
    State.PUBLISHED: "yes",
    State.SENDING: "maybe",
    State.UNKNOWN: "maybe",
    State.DROPPED: "maybe",
}
_UNDER_WAY: Final = frozenset(
    {State.SCHEDULED, State.CLAIMED, State.SENDING, State.UNKNOWN, State.PUBLISHED, State.DROPPED}
)


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    field: str | None = Field(description="Where, such as `channels.0.publish_at`.")
    code: str
    detail: str


class ProblemBody(BaseModel):
    """An error: what, where it stands, what to do."""

    type: str = Field(description="A page about this kind of error.", examples=[f"{ERRORS}/taken"])
    title: str
    status: int
    code: str = Field(description="Stable: switch on it.", examples=["sending-now"])
    detail: str = Field(description="A sentence for a person.")
    field: str | None = Field(description="The part of the request that is wrong, if one is.")
    on_page: OnPageWord = Field(
        description="Is the post that this is about on its page? `no` where it is about none."
    )
    safe_to_repeat: bool = Field(
        description="The same request, with the same Idempotency-Key where it has one, can be sent"
        " again and puts nothing on a page twice. False: the post is or may be there, or is on its"
        " way; look before anything else."
    )
    next: str = Field(description="What to do, the safe action first.")
    errors: list[Fault] = Field(description="Everything that is wrong, where it is several.")
    job: str | None = Field(description="The job that stands in the way, where one does.")
    current: dict[str, Any] | None = Field(
        description="What is stored now, where yours was not saved because of it."
    )
    yours: dict[str, Any] | None = Field(
        description="What you sent and was not saved then, in the same form."
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """An error on its way out."""

    status: int
    code: str
    detail: str
    field: str | None = None
    on_page: OnPageWord = "no"
    safe_to_repeat: bool = True
    next: str | None = None
    errors: tuple[Fault, ...] = ()
    job: str | None = None
    current: dict[str, Any] | None = None
    yours: dict[str, Any] | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, code: str, detail: str, **more: Any) -> Problem:  # noqa: ANN401 - its fields
        """One of the catalogue's."""
        return cls(ENTRIES[code].status, code, detail, **more)

    def about(self, on_page: OnPage, *, safe: bool, next_step: str, job: str) -> Problem:
        """The same, with where the job stands that it is about."""
        word: OnPageWord = on_page.value
        return replace(self, on_page=word, safe_to_repeat=safe, next=next_step, job=job)

    def response(self) -> Response:
        """As it is sent."""
        known = entry(self.code) or Entry(self.status, _("It was refused"), _("Read detail."))
        body = ProblemBody(
            type=f"{ERRORS}/{self.code}",
            title=_(known.title),
            status=self.status,
            code=self.code,
            detail=self.detail,
            field=self.field,
            on_page=self.on_page,
            safe_to_repeat=self.safe_to_repeat,
            next=self.next if self.next is not None else _(known.next),
            errors=list(self.errors),
            job=self.job,
            current=self.current,
            yours=self.yours,
        )
        return Response(
            body.model_dump_json(),
            status_code=self.status,
            media_type=MEDIA_TYPE,
            headers=dict(self.headers),
        )


class Refusal(Exception):
    """Raised where an answer is a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def of_refusal(error: PublisherError) -> Problem:
    """What a use case refused, as a problem."""
    code = error.code
    state = getattr(error, "state", None)
    field = getattr(error, "field", None)
    known = entry(code)
    return Problem(
        status=known.status if known else _status(error, field),
        code=code,
        detail=str(error),
        field=None if field is None else str(field),
        on_page=_ON_PAGE.get(str(state), "no"),
        safe_to_repeat=state not in _UNDER_WAY,
        errors=_faults(error),
        job=_job(error),
        headers=(("Retry-After", "1"),) if isinstance(error, StillRunning) else (),
    )


def _status(error: PublisherError, field: object) -> int:
    match error:
        case NotFound():
            return 404
        case VaultError():
            return 503
        case _ if field is not None:
            return 422
        case Conflict() | EnqueueError():
            return 409
        case _:
            return 422


def _job(error: PublisherError) -> str | None:
    """The job that stands in the way, where the refusal names one."""
    number = getattr(error, "holder", None) or getattr(error, "job_id", None)
    return public_id(number) if isinstance(number, int) else None


def _faults(error: PublisherError) -> tuple[Fault, ...]:
    """What a post's checks found, where that is what was refused."""
    found = getattr(error, "problems", ())
    return tuple(
        Fault(
            field=getattr(one, "field", None),
            code=str(getattr(getattr(one, "problem", one), "code", error.code)),
            detail=str(getattr(getattr(one, "problem", one), "message", one)),
        )
        for one in found
    )[:_MOST]


def of_http(error: HTTPException, taken: Sequence[str] = ()) -> Problem:
    """The framework's own: no such address, no such method, no body it can read.

    ``taken``: the methods that the address takes.
    """
    headers = tuple((error.headers or {}).items())
    match error.status_code:
        case 404:
            return Problem.of("not-found", _("There is nothing at this address."))
        case 405:
            detail = _("This address does not take that method.")
            allow = (("Allow", ", ".join(taken)),) if taken else headers
            return Problem.of("method-not-allowed", detail, headers=allow)
        case 413:
            return Problem.of("body-too-large", _("The body is too large."))
        case status if status >= 500:  # noqa: PLR2004 - servers' own
            return fault()
        case status:
            return Problem(status, "request-invalid", str(error.detail), headers=headers)


def of_validation(error: RequestValidationError) -> Problem:
    """A request that is not as the OpenAPI document has it."""
    given = error.errors()
    faults = tuple(_fault(one) for one in given[:_MOST])
    first = given[0] if given else {"loc": (), "msg": "", "type": ""}
    where = tuple(first["loc"])
    if where[:1] == ("header",) and first["type"] == "missing":
        if str(where[1]).casefold() == "idempotency-key":
            detail = _("This makes something, so it needs the header Idempotency-Key.")
            return Problem.of("idempotency-key-missing", detail, field="Idempotency-Key")
        if str(where[1]).casefold() == "if-match":
            detail = _("An edit needs the header If-Match, so that nobody's text is lost.")
            return Problem.of("precondition-missing", detail, field="If-Match")
    detail = _("{field}: {what}").format(field=faults[0].field, what=faults[0].detail)
    return Problem.of("request-invalid", detail, field=faults[0].field, errors=faults)


def _fault(one: dict[str, Any]) -> Fault:
    place = [str(part) for part in one["loc"]]
    where = place[1:] if place[:1] in (["body"], ["query"], ["path"], ["header"]) else place
    said = str(one["msg"]).removeprefix("Value error, ")
    return Fault(
        field=".".join(where) or "body", code=str(one["type"]).replace("_", "-"), detail=said
    )


def fault(*, safe: bool = False) -> Problem:
    """Something of ours broke. Whether it was done before that is not known, so nothing is said.

    ``safe``: the request changes nothing, or has an Idempotency-Key.
    """
    detail = _("Something of ours broke. What became of the request is not certain.")
    return Problem.of("fault", detail, on_page="maybe", safe_to_repeat=safe)


def unexpected(error: Exception, *, request_id: str, path: str, safe: bool) -> Problem:
    """An exception that nothing here expects: it is logged, and nothing of it is told."""
    _log.error(
        "api.fault", request=request_id, path=scrub(path), kind=type(error).__name__, exc_info=error
    )
    return fault(safe=safe)


def away(*, safe: bool) -> Problem:
    """The database broke off, or let nobody in: what was asked of it may have been done."""
    detail = _("The database does not answer. What became of the request is not certain.")
    return Problem.of(
        "database-away",
        detail,
        on_page="maybe",
        safe_to_repeat=safe,
        headers=(("Retry-After", "1"),),
    )


async def refused(request: Request, error: Exception) -> Response:
    """Answer what was raised on the way."""
    match error:
        case Refusal():
            return error.problem.response()
        case RequestValidationError():
            return of_validation(error).response()
        case HTTPException():
            return of_http(error, request.app.state.taken(request.scope["path"])).response()
        case PublisherError():
            return of_refusal(error).response()
        case _:  # pragma: no cover - nothing else is registered
            raise error


def documented(codes: Sequence[int]) -> dict[int | str, dict[str, Any]]:
    """The answers of an operation that are problems, for the OpenAPI document."""
    titles = {
        400: "The request cannot be read.",
        401: "No API token, or none that works.",
        403: "The token may not do that.",
        404: "Nothing there, in this workspace.",
        405: "The address does not take that method.",
        409: "The state does not allow that.",
        412: "Somebody saved since.",
        413: "The body is too large.",
        415: "The body is of another type.",
        422: "A part of the request is not as it should be.",
        428: "If-Match is missing.",
        500: "A fault of ours.",
        503: "The database, or the key, is not there.",
    }
    schema = {"$ref": "#/components/schemas/ProblemBody"}
    return {
        code: {"description": titles[code], "content": {MEDIA_TYPE: {"schema": schema}}}
        for code in codes
    }
