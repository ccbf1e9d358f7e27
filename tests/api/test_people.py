"""People over HTTP: invited, given roles, shut out; their tokens, sessions and journal."""

from __future__ import annotations

from typing import Any

import pytest

from publisher.editorial.people import links
from publisher.editorial.people.roles import PERMISSIONS, Permission, Role
from tests.api import things
from tests.api.conftest import CANARY, OTHERS, House


def person(house: House, role: str = "editor", **more: str) -> dict[str, Any]:
    name = house.key()
    body = {"email": f"{name}@main.example", "name": name, "role": role, **more}
    told: dict[str, Any] = house.done("POST", "/users", body)
    return told


def acting(house: House, *scopes: str, role: Role = Role.ADMIN) -> dict[str, Any]:
    """As a token of that role with these scopes alone."""
    secret = house.token(role, scopes=list(scopes))
    return {"role": None, "headers": {"Authorization": f"Bearer {secret}"}}


def test_somebody_is_invited_by_a_link_that_is_shown_once(house: House) -> None:
    key = house.key()
    body = {"email": f"{key}@main.example", "name": "Ann", "role": "editor"}
    first = house.call("POST", "/users", body, key=key)
    again = house.call("POST", "/users", body, key=key)
    assert (first.status_code, again.headers["idempotent-replayed"]) == (201, "true")
    told, repeated = first.json(), again.json()
    assert (told["user"]["state"], told["user"]["role"]) == ("invited", "editor")
    assert first.headers["location"] == told["user"]["url"]
    token = told["link"]["url"].removeprefix("/start/")
    with house.ground.app.engine.begin() as conn:
        assert links.look(conn, token).email == body["email"]
    assert repeated == {**told, "link": {**told["link"], "url": None}}
    kept = house.ground.one("SELECT string_agg(body, ' ') FROM idempotency_keys")
    assert token not in kept
    house.refused(409, "user-exists", "POST", "/users", body)
    listed = house.done("GET", "/users", role=Role.VIEWER)["users"]
    assert told["user"] in listed
    assert CANARY not in str(listed)
    assert not [one for one in listed if one["email"].endswith("@other.example")]


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"email": "nobody"}, "email"),
        ({"email": "a@b\nc"}, "email"),
        ({"name": " "}, "name"),
        ({"role": "owner"}, "role"),
        ({"workspace": "other"}, "workspace"),
    ],
)
def test_what_is_nobody_is_refused_at_its_field(
    house: House, parts: dict[str, str], field: str
) -> None:
    body = {"email": "x@main.example", "name": "X", "role": "viewer", **parts}
    answer = house.call("POST", "/users", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert house.ground.one("SELECT count(*) FROM users WHERE email = 'x@main.example'") == 0


def test_a_role_is_given_and_everything_changes_with_it(house: House) -> None:
    user = person(house)["user"]
    given = house.done("PUT", f"{user['url']}/role", {"role": "operator"})
    assert given["role"] == "operator"
    house.done("PUT", f"{user['url']}/role", {"role": "operator"})
    gone = house.done("POST", f"{user['url']}/remove")
    assert gone == {"id": user["id"], "email": user["email"]}
    house.refused(404, "not-found", "POST", f"{user['url']}/remove")


def test_the_last_admin_stays(house: House) -> None:
    me = next(one for one in house.done("GET", "/users")["users"] if one["role"] == "admin")
    for path, body in (("remove", None), ("disable", None)):
        house.refused(409, "last-admin", "POST", f"{me['url']}/{path}", body)
    house.refused(409, "last-admin", "PUT", f"{me['url']}/role", {"role": "viewer"})
    assert house.done("GET", me["url"])["role"] == "admin"


def test_who_is_disabled_is_out_at_once_and_may_come_back(house: House) -> None:
    user = person(house)["user"]
    things.signed_in(house, user["id"])
    at = user["url"]
    assert len(house.done("GET", f"{at}/sessions")["sessions"]) == 1
    assert house.done("POST", f"{at}/disable")["state"] == "disabled"
    assert house.done("POST", f"{at}/disable")["state"] == "disabled"
    assert house.done("GET", f"{at}/sessions")["sessions"] == []
    house.refused(409, "user-disabled", "POST", f"{at}/link")
    assert house.done("POST", f"{at}/enable")["state"] == "invited"
    made = house.done("POST", f"{at}/link")
    assert (made["purpose"], made["url"][:7]) == ("invite", "/start/")


@pytest.mark.parametrize("role", [*Role])
def test_a_token_gives_no_role_that_it_has_not_whole(house: House, role: Role) -> None:
    """Else whoever holds ``users.manage`` alone lets themselves in as an admin."""
    narrow = acting(house, "users.manage", "users.read")
    before = house.ground.one("SELECT count(*) FROM users")
    body = {"email": "friend@main.example", "name": "Friend", "role": role}
    problem = house.refused(403, "not-allowed", "POST", "/users", body, **narrow)
    assert "token" in problem["detail"]
    assert house.ground.one("SELECT count(*) FROM users") == before
    user = person(house, role)["user"]
    house.refused(403, "not-allowed", "POST", f"{user['url']}/link", **narrow)
    house.refused(403, "not-allowed", "PUT", f"{user['url']}/role", {"role": role}, **narrow)
    wide = acting(house, *PERMISSIONS[role], "users.manage", "users.read")
    house.done("POST", f"{user['url']}/link", **wide)
    house.done("PUT", f"{user['url']}/role", {"role": role}, **wide)


def test_a_token_is_shown_once_and_works_until_it_is_revoked(house: House) -> None:
    key = house.key()
    body = {"name": "cms", "scopes": ["posts.read"], "days": 30}
    first = house.call("POST", "/me/tokens", body, key=key, role=Role.EDITOR)
    again = house.call("POST", "/me/tokens", body, key=key, role=Role.EDITOR)
    told, secret = first.json(), first.json()["token"]
    assert first.status_code == 201
    assert again.json() == {**told, "token": None}
    kept = house.ground.one("SELECT string_agg(body, ' ') FROM idempotency_keys")
    assert secret not in kept
    assert secret.endswith(told["hint"])
    bearer = {"role": None, "headers": {"Authorization": f"Bearer {secret}"}}
    assert house.done("GET", "/me", **bearer)["permissions"] == ["posts.read"]
    mine = house.done("GET", "/me/tokens", role=Role.EDITOR)["tokens"]
    assert told["id"] == mine[0]["id"]
    assert secret not in str(mine)
    at = f"/me/tokens/{told['id']}/revoke"
    house.refused(404, "not-found", "POST", at, role=Role.APPROVER)
    assert house.done("POST", at, role=Role.EDITOR)["over"] is True
    house.refused(401, "unauthenticated", "GET", "/me", **bearer)
    assert house.done("POST", at, role=Role.EDITOR)["revoked_by"] == "editor of main"


def test_an_admin_sees_and_ends_everybodys_tokens_of_the_workspace(house: House) -> None:
    body = {"name": "theirs", "scopes": ["posts.read"]}
    made = house.done("POST", "/me/tokens", body, role=Role.OPERATOR)
    listed = house.done("GET", "/tokens")["tokens"]
    (one,) = [one for one in listed if one["id"] == made["id"]]
    assert (one["owner"], one["over"]) == ("operator of main", False)
    assert not [one for one in listed if one["owner"].endswith("of other")]
    assert house.done("POST", f"/tokens/{made['id']}/revoke")["over"] is True
    house.refused(403, "not-allowed", "GET", "/tokens", role=Role.APPROVER)


@pytest.mark.parametrize(
    "role", [role for role in Role if Permission.TOKENS_OWN in PERMISSIONS[role]]
)
def test_a_token_gives_no_more_than_its_owner_has(house: House, role: Role) -> None:
    for scope in Permission:
        body = {"name": "more", "scopes": [scope]}
        answer = house.call("POST", "/me/tokens", body, role=role)
        if scope in PERMISSIONS[role]:
            assert answer.json()["effective"] == [scope]
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed"), scope
    everything = {"name": "all", "scopes": list(Permission)}
    if role is not Role.ADMIN:
        house.refused(403, "not-allowed", "POST", "/me/tokens", everything, role=role)


def test_a_token_makes_none_that_has_more_or_lasts_longer_than_itself(house: House) -> None:
    own = {"name": "child", "days": 1}
    narrow = acting(house, "tokens.own", "posts.read")
    house.refused(
        403, "not-allowed", "POST", "/me/tokens", {**own, "scopes": ["users.manage"]}, **narrow
    )
    house.done("POST", "/me/tokens", {**own, "scopes": ["posts.read"]}, **narrow)
    body = {"name": "short", "scopes": ["tokens.own"], "days": 2}
    secret = house.done("POST", "/me/tokens", body)["token"]
    short = {"role": None, "headers": {"Authorization": f"Bearer {secret}"}}
    for days in (None, 3, 366):
        longer = {"name": "longer", "scopes": ["tokens.own"], "days": days}
        problem = house.refused(422, "lifetime-unusable", "POST", "/me/tokens", longer, **short)
        assert problem["field"] == "expires_at"
    house.done("POST", "/me/tokens", {**own, "scopes": ["tokens.own"]}, **short)


def test_a_role_that_is_taken_takes_it_from_the_token(house: House) -> None:
    user = person(house, "approver")["user"]
    house.ground.sql(
        "INSERT INTO api_tokens (workspace_id, user_id, name, token_sha256, hint, scopes,"
        " created_by) SELECT 1, %s, 'x', sha256('x'), 'x', ARRAY['posts.approve', 'posts.read'],"
        " 'test'",
        user["id"],
    )

    def effective() -> list[str]:
        listed = house.done("GET", "/tokens")["tokens"]
        (one,) = [one for one in listed if one["owner"] == user["name"]]
        return list(one["effective"])

    assert effective() == ["posts.approve", "posts.read"]
    house.done("PUT", f"{user['url']}/role", {"role": "viewer"})
    assert effective() == ["posts.read"]
    house.done("POST", f"{user['url']}/remove")
    assert effective() == []


def test_sessions_are_seen_and_ended_by_their_owner(house: House) -> None:
    editor = house.ground.one("SELECT id FROM users WHERE email = 'editor@main.example'")
    first, second = things.signed_in(house, editor), things.signed_in(house, editor)
    listed = house.done("GET", "/me/sessions", role=Role.EDITOR)["sessions"]
    assert {first, second} <= {one["id"] for one in listed}
    house.refused(404, "not-found", "POST", f"/me/sessions/{first}/end", role=Role.APPROVER)
    assert house.done("POST", f"/me/sessions/{first}/end", role=Role.EDITOR) == {"ended": 1}
    house.refused(404, "not-found", "POST", f"/me/sessions/{first}/end", role=Role.EDITOR)
    assert house.done("POST", "/me/sessions/end", role=Role.EDITOR)["ended"] >= 1
    assert house.done("GET", "/me/sessions", role=Role.EDITOR)["sessions"] == []
    assert house.done("POST", "/me/sessions/end", role=Role.EDITOR) == {"ended": 0}


def test_an_admin_ends_somebodys_sessions(house: House) -> None:
    user = person(house)["user"]
    one = things.signed_in(house, user["id"])
    things.signed_in(house, user["id"])
    at = f"{user['url']}/sessions"
    other = person(house)["user"]
    house.refused(404, "not-found", "POST", f"{other['url']}/sessions/{one}/end")
    assert house.done("POST", f"{at}/{one}/end") == {"ended": 1}
    assert house.done("POST", f"{at}/end") == {"ended": 1}


def test_the_journal_is_read_page_by_page_and_misses_nothing(house: House) -> None:
    user = person(house)["user"]
    house.done("PUT", f"{user['url']}/role", {"role": "approver"})
    seen: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = house.done("GET", f"/journal?limit=7{cursor}", role=Role.OPERATOR)
        assert len(page["lines"]) <= 7
        seen += page["lines"]
        # What is added meanwhile moves nothing.
        person(house)
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    ids = [line["id"] for line in seen]
    assert ids == sorted({*ids}, reverse=True)
    theirs = [line for line in seen if line["user"] == user["id"]]
    assert [line["event"] for line in reversed(theirs)] == [
        "user_added", "role_given", "link_made", "role_given",
    ]  # fmt: skip
    assert theirs[0]["detail"] == {"role": "approver", "before": "editor"}
    assert {line["who"] for line in theirs} == {"admin of main"}
    assert CANARY not in str(seen)
    assert not [line for line in seen if "@other.example" in line["subject"]]
    house.refused(403, "not-allowed", "GET", "/journal", role=Role.EDITOR)
    house.refused(422, "request-invalid", "GET", "/journal?cursor=x")
    others = house.done("GET", "/journal?limit=200", workspace=OTHERS)["lines"]
    assert not {line["id"] for line in others} & set(ids)
