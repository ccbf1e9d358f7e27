"""The one table of roles: whole, sensible, and the same in code, database and documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from publisher.editorial.people import roles, workspaces
from publisher.editorial.people.person import Forbidden, Person
from publisher.editorial.people.roles import MEANING, PERMISSIONS, Permission, Role
from publisher.engine.errors import NotFound
from tests.editorial.people.conftest import Town

DOCS = Path(__file__).parents[3] / "docs" / "people.md"


def test_the_documentation_holds_the_table_as_it_is() -> None:
    said = DOCS.read_text(encoding="utf-8")
    assert roles.as_table() in said
    assert ", ".join(f"`{one}`" for one in sorted(roles.REAUTHENTICATED)) in said


def test_the_database_knows_the_same_roles(town: Town) -> None:
    query = (
        "SELECT pg_get_constraintdef(oid) AS says FROM pg_constraint"
        " WHERE conname = 'memberships_role_check'"
    )
    ((says,),) = town.all(query)
    assert set(re.findall(r"'([a-z]+)'", says)) == {*Role}


def test_every_role_may_exactly_this() -> None:
    """Written out once more, so that a slip in the table shows."""
    sees = "channels.read jobs.read posts.read unknowns.read users.read"
    writes = "media.write posts.schedule posts.write tokens.own"
    wanted = {
        Role.VIEWER: sees,
        Role.EDITOR: f"{sees} {writes}",
        Role.APPROVER: f"{sees} {writes} posts.approve posts.delete_live journal.read",
        Role.OPERATOR: f"{sees} tokens.own jobs.manage unknowns.resolve unknowns.force"
        " channels.pause journal.read",
        Role.ADMIN: " ".join(Permission),
    }
    assert {role: {*may.split()} for role, may in wanted.items()} == PERMISSIONS


@pytest.mark.parametrize(
    ("role", "permissions", "fault"),
    [
        (Role.VIEWER, frozenset({Permission.POSTS_WRITE}), "viewer may posts.write"),
        (Role.EDITOR, frozenset({Permission.POSTS_WRITE}), "may posts.write and not see it"),
        (Role.EDITOR, frozenset(), "no permissions for editor"),
    ],
)
def test_a_senseless_table_is_refused_at_import(
    role: Role, permissions: frozenset[Permission], fault: str
) -> None:
    with pytest.raises(AssertionError, match=fault):
        roles._check({**PERMISSIONS, role: permissions}, MEANING)


def test_a_permission_that_nobody_has_or_explains_is_refused() -> None:
    without = {role: held - {Permission.USERS_MANAGE} for role, held in PERMISSIONS.items()}
    with pytest.raises(AssertionError, match=r"nobody has users\.manage"):
        roles._check(without, MEANING)
    unexplained = {one: said for one, said in MEANING.items() if one != "posts.read"}
    with pytest.raises(AssertionError, match=r"no meaning of posts\.read"):
        roles._check(PERMISSIONS, unexplained)


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize("role", Role)
def test_a_person_is_let_or_refused_by_the_table(role: Role, permission: Permission) -> None:
    someone = Person(1, "A", "a@x.org", role, 1, "main", PERMISSIONS[role])
    if roles.allows(role, permission):
        someone.require(permission)
    else:
        with pytest.raises(Forbidden, match=re.escape(permission)):
            someone.require(permission)


def test_a_person_is_their_name_in_the_journal(town: Town) -> None:
    town.join("ann@example.org", Role.APPROVER)
    ann = town.person("ann@example.org")
    assert (str(ann), ann.role, ann.workspace) == ("Ann", Role.APPROVER, "main")
    assert "example.org" not in repr(ann)


def test_another_workspace_is_not_there_for_who_is_not_in_it(town: Town) -> None:
    with town.engine.begin() as conn:
        workspaces.add(conn, slug="other", name="Other", zone="UTC", who="root")
    town.join("ann@example.org")
    said = set()
    for slug in ("other", "nowhere", "", "Main", "a" * 10_000, "\x00", "\ud800"):
        with pytest.raises(NotFound) as refused:
            town.person("ann@example.org", slug)
        said.add(str(refused.value))
    assert len(said) == 1
