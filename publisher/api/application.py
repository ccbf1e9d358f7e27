"""The application: its doors, its routes, its errors and its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from publisher.api import channels, deployment, error_pages, jobs, unknowns
from publisher.api.calls import Desk
from publisher.api.doors import PREFIX, Doors
from publisher.api.operations import permission_of
from publisher.api.problems import Refusal, refused
from publisher.bootstrap import App
from publisher.editorial.people.roles import Permission
from publisher.engine.errors import PublisherError

VERSION: Final = "1.0.0"
"""Of the API. What takes something away raises the first number, what adds the second."""
_ROUTERS: Final = (
    jobs.router,
    unknowns.router,
    channels.router,
    deployment.router,
    error_pages.router,
)


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


def describe() -> FastAPI:
    """The same with nothing behind it, for its description."""
    made = FastAPI(
        title="Publisher",
        version=VERSION,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    versioned = APIRouter(prefix=PREFIX)
    for router in _ROUTERS:
        versioned.include_router(router)
    made.include_router(versioned)
    for kind in (Refusal, RequestValidationError, HTTPException, PublisherError):
        made.add_exception_handler(kind, refused)
    made.add_middleware(Doors)
    return made
