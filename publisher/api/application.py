"""The application: its doors, its routes, its errors and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from publisher.api import (
    channel_times,
    channels,
    deployment,
    error_pages,
    jobs,
    journal,
    media,
    media_files,
    posts,
    reviews,
    sessions,
    tokens,
    unknowns,
    users,
)
from publisher.api.calls import Desk
from publisher.api.doors import PREFIX, Doors
from publisher.api.operations import permission_of
from publisher.api.problems import ProblemBody, Refusal, refused
from publisher.bootstrap import App
from publisher.editorial.people.roles import Permission
from publisher.engine.errors import PublisherError

VERSION: Final = "0.2.0"
"""Of the API. What takes something away raises the first number; the second while that is 0."""
_ABOUT: Final = (
    "Posts go out at most once: a send whose end is not known is `unknown`, is looked for, and is"
    " never sent again on our own. Every answer about a job says whether it is on the page"
    " (`on_page`) and whether publishing it anew can double it (`safe_to_repeat`).\n\n"
    "What makes something takes an `Idempotency-Key`. Errors are problem+json (RFC 9457).\n\n"
    "Names and values may be added without a new version; a client ignores what it does not know."
)
_ROUTERS: Final = (
    jobs.router,
    unknowns.router,
    channels.router,
    channel_times.router,
    posts.router,
    reviews.router,
    media.router,
    users.router,
    sessions.router,
    tokens.router,
    journal.router,
    deployment.router,
    error_pages.router,
)


class Described(FastAPI):
    """The framework's application, whose description knows our problems as well."""

    def openapi(self) -> dict[str, Any]:
        """OpenAPI 3.1, made once."""
        described = super().openapi()
        problem = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
        parts = problem.pop("$defs", {})
        described["components"]["schemas"].update({**parts, ProblemBody.__name__: problem})
        return described


def app(parts: App) -> FastAPI:
    """The API over what the composition root has put together.

    The caller's database is in the role of pages and API; no call sees more of it than its
    token's workspace.
    """
    made = describe()
    made.state.desk = Desk.of(parts)
    return made


def operations() -> Iterator[tuple[str, str, Permission]]:
    """Method, path and permission of everything there is to call."""
    for router in _ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for method in route.methods or ():
                    yield method, f"{PREFIX}{route.path}", permission_of(route)


def _taken() -> Callable[[str], tuple[str, ...]]:
    """Which methods an address takes; the framework would name those of one operation alone."""
    known = [(compile_path(path)[0], method) for method, path, _permission in operations()]
    return lambda path: tuple(sorted({method for at, method in known if at.fullmatch(path)}))


def describe() -> FastAPI:
    """The same with nothing behind it, for its description."""
    made = Described(
        title="Publisher",
        version=VERSION,
        description=_ABOUT,
        servers=[{"url": "/"}],
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    versioned = APIRouter(prefix=PREFIX)
    for router in _ROUTERS:
        versioned.include_router(router)
    made.include_router(versioned)
    made.include_router(media_files.router)
    for kind in (Refusal, RequestValidationError, HTTPException, PublisherError):
        made.add_exception_handler(kind, refused)
    made.state.taken = _taken()
    made.add_middleware(Doors)
    return made
