"""Who may call what: made of the router and the table of roles, so that nothing is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from publisher.api import application
from publisher.api.operations import permission_of
from publisher.editorial.people.roles import PERMISSIONS, Permission, Role
from tests.api import things
from tests.api.conftest import House
from tests.api.test_doors import HEADERS

OPERATIONS = sorted(application.operations())
NAMES = [f"{method} {path}" for method, path, _ in OPERATIONS]
operations = pytest.mark.parametrize(("method", "path", "permission"), OPERATIONS, ids=NAMES)


def filled(path: str) -> str:
    """A path with something in its places that is not there."""
    return things.filled(path, things.ABSENT)


def test_the_table_names_every_operation() -> None:
    described = application.describe().openapi()["paths"]
    assert sorted(NAMES) == sorted(
        f"{method.upper()} {path}" for path, listed in described.items() for method in listed
    )
    assert {permission for _, _, permission in OPERATIONS} <= {*Permission}


@operations
def test_a_stranger_is_asked_for_a_token(
    house: House, method: str, path: str, permission: Permission
) -> None:
    answer = house.call(method, filled(path), role=None)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="publisher"'
    assert answer.json()["code"] == "unauthenticated"
    wrong = {"Authorization": f"Bearer pbl_main_{'0' * 64}"}
    answer = house.call(method, filled(path), role=None, headers=wrong)
    if answer.status_code != 401:
        # What is wrong with the request itself may be said first; never anything else.
        assert answer.status_code in (400, 413, 415, 422)
    assert "0" * 64 not in answer.text


@operations
def test_each_role_may_do_what_the_table_says(
    house: House, method: str, path: str, permission: Permission
) -> None:
    for role in Role:
        answer = house.call(method, filled(path), role=role)
        has_headers(answer)
        if permission in PERMISSIONS[role]:
            assert answer.status_code not in (401, 403), (role, answer.text)
            assert answer.status_code < 500, answer.text
        else:
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (403, "not-allowed"), role
            assert permission.value in problem["detail"]


@operations
def test_a_token_without_the_scope_may_not_whatever_the_role(
    house: House, method: str, path: str, permission: Permission
) -> None:
    other = next(one for one in Permission if one is not permission)
    secret = house.token(Role.ADMIN, scopes=[other.value])
    bearer = {"Authorization": f"Bearer {secret}"}
    house.refused(403, "not-allowed", method, filled(path), role=None, headers=bearer)


@operations
def test_no_browser_is_made_to_do_it(
    house: House, method: str, path: str, permission: Permission
) -> None:
    """A page of somebody else's has a browser's cookies, and never a token: it gets nothing."""
    foreign = {"Origin": "https://evil.example", "Cookie": "session=x; publisher=y"}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {**foreign, "Content-Type": kind}
        content = None if method == "GET" else b"{}"
        answer = house.call(method, filled(path), role=None, headers=headers, content=content)
        assert answer.status_code == 401, answer.text
        has_headers(answer)
    asked = {**foreign, "Access-Control-Request-Method": method}
    preflight = house.call("OPTIONS", filled(path), role=None, headers=asked, key=None)
    assert preflight.status_code in (401, 405)
    has_headers(preflight)


def test_nothing_is_reached_past_the_table() -> None:
    """Whatever the application routes is an operation with a permission, or one of these."""
    routed = {*walked(application.describe().routes)}
    open_to_all = {
        ("GET", "/api/v1/openapi.json"), ("HEAD", "/api/v1/openapi.json"),
        ("GET", "/api/v1/errors"), ("GET", "/api/v1/errors/{code}"),
        ("GET", "/media/{workspace}/{sha256}"), ("HEAD", "/media/{workspace}/{sha256}"),
    }  # fmt: skip
    assert routed - {(method, path) for method, path, _ in OPERATIONS} == open_to_all


def test_an_operation_without_a_permission_cannot_be_declared() -> None:
    router = APIRouter()

    @router.get("/rogue")
    def rogue() -> None: ...

    (route,) = router.routes
    assert isinstance(route, APIRoute)
    with pytest.raises(KeyError):
        permission_of(route)


def walked(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Method and path of every route, also of those that were included; of no other kind."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from walked(included.routes, prefix + route.include_context.prefix)
            continue
        for method in getattr(route, "methods", None) or ("?",):
            yield method, prefix + getattr(route, "path", "?")


def has_headers(answer: httpx.Response) -> None:
    """Those of every answer, and none that lets another page read it."""
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers


def test_a_revoked_token_works_no_more(house: House) -> None:
    secret = house.token(Role.VIEWER)
    bearer = {"Authorization": f"Bearer {secret}"}
    assert house.call("GET", "/me", role=None, headers=bearer).status_code == 200
    house.ground.sql(
        "UPDATE api_tokens SET revoked_at = clock_timestamp(), revoked_by = 'test'"
        " WHERE id = (SELECT max(id) FROM api_tokens)"
    )
    house.refused(401, "unauthenticated", "GET", "/me", role=None, headers=bearer)


def test_who_asks_is_told(house: House) -> None:
    me = house.done("GET", "/me", role=Role.OPERATOR)
    assert (me["name"], me["role"], me["workspace"]) == ("operator of main", "operator", "main")
    assert {*me["permissions"]} == {one.value for one in PERMISSIONS[Role.OPERATOR]}
