"""API tokens: shown once, limited to scopes, and never more than their owner may do."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from publisher.editorial.people import opaque, tokens, users, workspaces
from publisher.editorial.people.person import Forbidden, Person
from publisher.editorial.people.roles import Permission, Role
from publisher.editorial.people.spelled import Unusable
from publisher.editorial.people.tokens import Made
from publisher.engine.errors import NotFound
from tests.editorial.people.conftest import Town

ANN = "ann@example.org"
READ, WRITE, APPROVE = Permission.POSTS_READ, Permission.POSTS_WRITE, Permission.POSTS_APPROVE


def make(town: Town, *scopes: str, lasts: timedelta | None = None, email: str = ANN) -> Made:
    with town.engine.begin() as conn:
        return tokens.make(
            conn, town.person(email), name="CI", scopes=scopes, lasts=lasts, who="Ann"
        )


def find(town: Town, secret: str) -> Person | None:
    with town.engine.begin() as conn:
        return tokens.find(conn, secret)


def may(town: Town, secret: str) -> set[str]:
    found = find(town, secret)
    return set() if found is None else {*found.permissions}


def test_a_program_acts_for_its_owner_within_its_scopes(town: Town) -> None:
    town.join(ANN, Role.APPROVER)
    made = make(town, READ, APPROVE)
    found = find(town, made.secret)
    assert found is not None
    assert (found.name, found.workspace, found.token_id) == ("Ann", "main", made.id)
    assert found.permissions == {READ, APPROVE}
    with pytest.raises(Forbidden, match=r"scope posts\.write"):
        found.require(WRITE)


def test_it_looks_like_one_and_says_where_it_belongs(town: Town) -> None:
    town.join(ANN)
    secret = make(town, READ).secret
    assert re.fullmatch(r"pbl_main_[0-9a-f]{64}", secret)
    assert opaque.SHAPE.fullmatch(secret)
    with town.engine.begin() as conn:
        (listed,) = tokens.listing(conn, workspace_id=1)
    assert secret.endswith(listed.hint)
    assert len(listed.hint) == 4


def test_what_is_no_token_is_nobody(town: Town) -> None:
    town.join(ANN)
    secret = make(town, READ).secret
    for wrong in ("", secret[:-1], secret + "0", secret.upper(), "\x00", "\ud800", "x" * 10**6):
        assert find(town, wrong) is None


def test_it_shrinks_with_its_owner_at_once(town: Town) -> None:
    town.join("root@example.org", Role.ADMIN)
    town.join(ANN, Role.APPROVER)
    secret = make(town, READ, WRITE, APPROVE).secret
    ann = town.user(ANN)
    with town.engine.begin() as conn:
        main = workspaces.find(conn, "main")
        users.give_role(conn, ann, main, Role.EDITOR, who="Root")
    assert may(town, secret) == {READ, WRITE}
    with town.engine.begin() as conn:
        users.give_role(conn, ann, main, Role.VIEWER, who="Root")
        (listed,) = tokens.listing(conn, workspace_id=1)
    assert may(town, secret) == {READ}
    assert listed.effective == (READ,)
    with town.engine.begin() as conn:
        users.take_role(conn, ann, main, who="Root")
        (listed,) = tokens.listing(conn, workspace_id=1)
    assert find(town, secret) is None
    assert listed.is_over


def test_it_ends_with_its_owners_account(town: Town) -> None:
    town.join(ANN)
    secret = make(town, READ).secret
    with town.engine.begin() as conn:
        users.disable(conn, town.user(ANN), who="root", last_admin_may_go=True)
    assert find(town, secret) is None


def test_nobody_gives_a_token_what_they_have_not(town: Town) -> None:
    town.join(ANN)
    with pytest.raises(Forbidden):
        make(town, READ, APPROVE)
    with town.engine.begin() as conn:
        narrow = tokens.find(conn, make(town, READ).secret)
        assert narrow is not None
        with pytest.raises(Forbidden):
            tokens.make(conn, narrow, name="wider", scopes=[WRITE], lasts=None, who="Ann")


@pytest.mark.parametrize(
    ("scopes", "lasts", "field"),
    [
        (["posts.raed"], None, "scopes"),
        ([], None, "scopes"),
        (["*"], None, "scopes"),
        (["posts.read"], timedelta(0), "expires_at"),
        (["posts.read"], timedelta(days=367), "expires_at"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    town: Town, scopes: list[str], lasts: timedelta | None, field: str
) -> None:
    town.join(ANN)
    with pytest.raises(Unusable) as refused:
        make(town, *scopes, lasts=lasts)
    assert refused.value.field == field
    assert not town.all("SELECT 1 FROM api_tokens")


def test_a_name_is_one_line(town: Town) -> None:
    town.join(ANN)
    with town.engine.begin() as conn:
        ann = town.person(ANN)
        for name in ("", " ", "two\nlines", "nul\x00", "x" * 201):
            with pytest.raises(Unusable):
                tokens.make(conn, ann, name=name, scopes=[READ], lasts=None, who="Ann")


def test_it_lasts_as_long_as_it_was_given(town: Town) -> None:
    town.join(ANN)
    made = make(town, READ, lasts=timedelta(days=1))
    assert find(town, made.secret) is not None
    town.do("UPDATE api_tokens SET created_at = created_at - interval '1 day', expires_at = now()")
    assert find(town, made.secret) is None
    with town.engine.begin() as conn:
        (listed,) = tokens.listing(conn, workspace_id=1)
    assert listed.is_over


def test_use_is_noted_to_the_minute(town: Town) -> None:
    town.join(ANN)
    secret = make(town, READ).secret

    def used() -> object:
        ((at,),) = town.all("SELECT last_used_at FROM api_tokens")
        return at

    assert used() is None
    find(town, secret)
    first = used()
    assert first is not None
    find(town, secret)
    assert used() == first
    town.do("UPDATE api_tokens SET last_used_at = last_used_at - interval '2 minutes'")
    find(town, secret)
    assert used() > first  # type: ignore[operator]


def test_once_revoked_it_stays_so(town: Town) -> None:
    town.join(ANN)
    made = make(town, READ)
    for _ in range(2):
        with town.engine.begin() as conn:
            assert tokens.revoke(conn, made.id, workspace_id=1, who="root").revoked_at
    assert find(town, made.secret) is None
    assert len(town.all("SELECT 1 FROM people_events WHERE event = 'token_revoked'")) == 1
    with pytest.raises(DBAPIError, match="stays so"):
        town.do("UPDATE api_tokens SET revoked_at = NULL, revoked_by = NULL")


def test_anothers_and_another_workspaces_are_not_there(town: Town) -> None:
    town.join(ANN)
    town.join("bob@example.org")
    made = make(town, READ)
    bob = town.user("bob@example.org")
    with town.engine.begin() as conn:
        with pytest.raises(NotFound):
            tokens.revoke(conn, made.id, workspace_id=1, user_id=bob.id, who="Bob")
        with pytest.raises(NotFound):
            tokens.revoke(conn, made.id, workspace_id=2, who="Bob")
        assert tokens.listing(conn, workspace_id=1, user_id=bob.id) == ()
        assert tokens.listing(conn, workspace_id=2) == ()
    assert find(town, made.secret) is not None
