"""How an operation is declared: its permission, its answers and its problems, in one place.

Nothing is routed past it, so that an operation without a permission cannot be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from publisher.api.calls import permitted
from publisher.api.problems import documented
from publisher.editorial.people.roles import MEANING, Permission

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])
_READS: Final = (401, 403, 404, 422, 500, 503)
_WRITES: Final = (400, 401, 403, 404, 409, 413, 415, 422, 500, 503)
PERMISSION: Final = "x-permission"


def operation(  # noqa: PLR0913 - what an operation is; each is named at its one call
    router: APIRouter,
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
    path: str,
    permission: Permission,
    answers: type[BaseModel],
    *,
    status: int = 200,
    more: tuple[int, ...] = (),
    headers: Mapping[str, str] | None = None,
    example: Mapping[str, Any] | None = None,
    file: Mapping[str, Any] | None = None,
) -> Callable[[_Endpoint], _Endpoint]:
    """Declare one; its name is the function's, its summary the first line of its docstring.

    ``more``: statuses of problems beyond the usual ones. ``example``: a body that works.
    ``file``: the media type object of a body that is bytes.
    """
    usual = _READS if method == "GET" else _WRITES
    replies: dict[int | str, dict[str, Any]] = documented(sorted({*usual, *more}))
    told = {name: _header(text) for name, text in (headers or {}).items()}
    if told:
        replies[status] = {"headers": told}

    def declare(endpoint: _Endpoint) -> _Endpoint:
        summary, _newline, rest = (endpoint.__doc__ or "").strip().partition("\n")
        extra: dict[str, Any] = {PERMISSION: permission.value}
        if example is not None:
            extra["requestBody"] = {"content": {"application/json": {"example": dict(example)}}}
        if file is not None:
            body = {"required": True, "content": {"application/octet-stream": dict(file)}}
            extra["requestBody"] = body
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            response_model=answers,
            status_code=status,
            dependencies=[permitted(permission)],
            responses=replies,
            operation_id=endpoint.__name__,
            summary=summary.rstrip("."),
            description=_described(rest, permission),
            openapi_extra=extra,
        )
        return endpoint

    return declare


def permission_of(route: APIRoute) -> Permission:
    """What a declared operation asks for."""
    return Permission((route.openapi_extra or {})[PERMISSION])


def _described(rest: str, permission: Permission) -> str:
    lines = " ".join(line.strip() for line in rest.strip().splitlines())
    needed = f"Needs `{permission.value}`: {MEANING[permission]}."
    return f"{lines}\n\n{needed}".strip()


def _header(text: str) -> dict[str, Any]:
    return {"description": text, "schema": {"type": "string"}}
