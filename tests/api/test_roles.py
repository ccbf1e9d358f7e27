"""Who may call what: made of the router and the table of roles, so that nothing is left out."""

from __future__ import annotations

import re

import pytest

from publisher.api import application
from publisher.editorial.people.roles import PERMISSIONS, Permission, Role
from publisher.engine.job import State, public_id
from tests.api.conftest import OTHERS, House

OPERATIONS = sorted(application.operations())
NAMES = [f"{method} {path}" for method, path, _ in OPERATIONS]
operations = pytest.mark.parametrize(("method", "path", "permission"), OPERATIONS, ids=NAMES)


def filled(path: str, job: str = "8f3a01bc24", number: int = 2**31 - 1) -> str:
    """A path with something in its places that is not there."""
    path = re.sub(r"\{(job)\}", job, path)
    return re.sub(r"\{[a-z_]+\}", str(number), path)


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
def test_what_is_another_workspaces_is_not_there(
    house: House, method: str, path: str, permission: Permission
) -> None:
    """With ids of ours, asked by an admin of the other: as if there were none."""
    if "{" not in path:
        return
    job = house.ours.put(State.SCHEDULED)
    number = house.ours.channel_id if "channel" in path else 2**31 - 1
    before = house.ground.everything(job.id)
    ours = filled(path, job=public_id(job.id), number=number)
    theirs = house.call(method, ours, workspace=OTHERS)
    none = house.call(method, filled(path, job="fffffffff7"), workspace=OTHERS)
    assert theirs.status_code == none.status_code
    assert theirs.status_code in (404, 400, 422, 428)
    assert theirs.json()["code"] == none.json()["code"]
    assert house.ground.everything(job.id) == before


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
