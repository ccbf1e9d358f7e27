"""People and workspaces: added, given roles, disabled; and what the journal keeps of it."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from publisher.db import walls
from publisher.db.connect import Database
from publisher.editorial.people import (
    journal,
    links,
    person,
    reach,
    sign_in,
    users,
    workspaces,
)
from publisher.editorial.people.reach import Elsewhere
from publisher.editorial.people.roles import Role
from publisher.editorial.people.spelled import Unusable
from publisher.editorial.people.users import LastAdmin
from publisher.editorial.people.workspaces import Workspace
from publisher.engine.errors import Conflict, NotFound
from tests.editorial.people.conftest import PASSWORD, Town

ANN, BOB = "ann@example.org", "bob@example.org"


def main(town: Town) -> Workspace:
    with town.engine.begin() as conn:
        return workspaces.find(conn, "main")


def other(town: Town) -> Workspace:
    with town.engine.begin() as conn:
        return workspaces.add(
            conn, slug="news-desk", name="Tin tức", zone="Asia/Ho_Chi_Minh", who="root"
        )


def add(town: Town, email: str, workspace: Workspace, role: Role = Role.EDITOR) -> users.Added:
    with town.engine.begin() as conn:
        return users.add(conn, workspace, email=email, name="Somebody", role=role, who="root")


def events(town: Town, workspace: Workspace) -> list[tuple[str, str, str]]:
    with town.engine.begin() as conn:
        lines = journal.of_workspace(conn, workspace.id)
    return [(line.who, line.event, line.subject) for line in reversed(lines)]


def test_an_address_is_one_account_whatever_its_case(town: Town) -> None:
    added = add(town, " Ann@Example.org ", main(town))
    assert added.user.email == "Ann@Example.org"
    assert town.user("ann@EXAMPLE.ORG").id == added.user.id
    with pytest.raises(Conflict, match="already"):
        add(town, ANN, main(town))


def test_ten_at_once_and_there_is_one(town: Town) -> None:
    workspace = main(town)
    came = town.at_once(10, lambda _: add(town, ANN, workspace))
    assert sum(isinstance(one, users.Added) for one in came) == 1, came
    assert sum(isinstance(one, Conflict) for one in came) == 9, came
    assert len(town.all("SELECT 1 FROM users")) == 1


def test_who_has_an_account_is_brought_into_another_workspace_with_it(town: Town) -> None:
    town.join(ANN)
    added = add(town, ANN, other(town), Role.VIEWER)
    assert added.link is None
    assert added.user.name == "Ann"
    assert added.user.roles == {"main": Role.EDITOR, "news-desk": Role.VIEWER}
    with town.engine.begin() as conn:
        assert [(one.slug, one.role) for one in person.workplaces(conn, added.user.id)] == [
            ("main", Role.EDITOR),
            ("news-desk", Role.VIEWER),
        ]


@pytest.mark.parametrize(
    "email",
    ["", "ann", "@x", "ann@", "a b@x.org", "a@b@c", "a\n@x.org", "\x00@x", "x" * 250 + "@x.org"],
)
def test_what_is_no_address_is_refused(town: Town, email: str) -> None:
    with pytest.raises(Unusable) as refused:
        add(town, email, main(town))
    assert refused.value.field == "email"


def test_a_near_address_is_offered(town: Town) -> None:
    town.join(ANN)
    with pytest.raises(NotFound, match=r'Did you mean "ann@example\.org"'):
        town.user("anne@example.org")


def test_the_last_admin_stays(town: Town) -> None:
    town.join(ANN, Role.ADMIN)
    town.join(BOB)
    ann, workspace = town.user(ANN), main(town)
    with town.engine.begin() as conn:
        with pytest.raises(LastAdmin):
            users.give_role(conn, ann, workspace, Role.EDITOR, who="Ann")
        with pytest.raises(LastAdmin):
            users.take_role(conn, ann, workspace, who="Ann")
        with pytest.raises(LastAdmin):
            users.disable(conn, ann, who="Ann")
        users.give_role(conn, ann, workspace, Role.ADMIN, who="Ann")
        users.give_role(conn, town.user(BOB), workspace, Role.ADMIN, who="Ann")
        users.disable(conn, ann, who="Bob")
        with pytest.raises(LastAdmin):
            users.take_role(conn, town.user(BOB), workspace, who="Bob")
        users.take_role(conn, town.user(BOB), workspace, who="root", last_admin_may_go=True)


@pytest.mark.parametrize("by_disabling", [True, False])
def test_two_admins_who_drop_each_other_leave_one(town: Town, *, by_disabling: bool) -> None:
    for email in (ANN, BOB):
        town.join(email, Role.ADMIN)
    workspace, ann, bob = main(town), town.user(ANN), town.user(BOB)

    def first(conn: Connection) -> None:
        if by_disabling:
            users.disable(conn, ann, who="Bob")
        else:
            users.give_role(conn, ann, workspace, Role.VIEWER, who="Bob")

    def second() -> None:
        with town.engine.begin() as conn:
            users.take_role(conn, bob, workspace, who="Ann")

    assert isinstance(town.meanwhile(first, second), LastAdmin)


def test_an_admin_reaches_no_account_that_has_a_say_elsewhere(town: Town) -> None:
    """Whoever hands out a password is let in everywhere: bringing somebody in is no way to that."""
    desk = other(town)
    town.join(ANN, Role.ADMIN)
    town.join(BOB, Role.ADMIN, "news-desk")
    town.join("eve@example.org")
    ann = town.person(ANN)
    bob, eve = town.user(BOB), town.user("eve@example.org")
    with town.engine.begin() as conn:
        assert reach.require(conn, ann, eve.id).email == "eve@example.org"
        with pytest.raises(NotFound):
            reach.require(conn, ann, bob.id)
        with pytest.raises(NotFound):
            reach.require(conn, ann, 4711)
    add(town, BOB, main(town), Role.VIEWER)
    with town.engine.begin() as conn, pytest.raises(Elsewhere, match="other workspaces"):
        reach.require(conn, ann, bob.id)
    add(town, ANN, desk, Role.EDITOR)
    with town.engine.begin() as conn, pytest.raises(Elsewhere):
        reach.require(conn, ann, bob.id)
    with town.engine.begin() as conn:
        users.give_role(conn, town.user(ANN), desk, Role.ADMIN, who="Bob")
        assert reach.require(conn, ann, bob.id).id == bob.id


def test_a_link_from_one_workspace_opens_no_other(town: Town) -> None:
    """Its admin may still hold it, and has no say where the person was brought in since."""
    token = town.invite(ANN)
    added = add(town, ANN, other(town), Role.ADMIN)
    with pytest.raises(links.LinkUnusable):
        sign_in.by_link(town.engine, token=token, password=PASSWORD)
    assert added.link is not None
    assert sign_in.by_link(town.engine, token=added.link.token, password=PASSWORD)
    reset = town.link(ANN)
    with town.engine.begin() as conn:
        third = workspaces.add(conn, slug="third", name="Third", zone="UTC", who="root")
    add(town, ANN, third)
    with pytest.raises(links.LinkUnusable):
        sign_in.by_link(town.engine, token=reset, password=PASSWORD)


def test_disabling_twice_is_told_once(town: Town) -> None:
    town.join(ANN)
    with town.engine.begin() as conn:
        assert users.disable(conn, town.user(ANN), who="root")
        assert not users.disable(conn, town.user(ANN), who="root")
        assert users.enable(conn, town.user(ANN), who="root")
        assert not users.enable(conn, town.user(ANN), who="root")
    kinds = [event for _, event, _ in events(town, main(town))]
    assert (kinds.count("user_disabled"), kinds.count("user_enabled")) == (1, 1)


def test_the_journal_says_who_did_what_to_whom(town: Town) -> None:
    workspace = main(town)
    town.join(ANN)
    with town.engine.begin() as conn:
        users.give_role(conn, town.user(ANN), workspace, Role.APPROVER, who="root")
        workspaces.change(conn, workspace, approval_by_other=True, who="root")
        workspaces.change(conn, workspace, approval_by_other=True, who="root")
    assert events(town, workspace) == [
        ("root", "user_added", ANN),
        ("root", "role_given", ANN),
        ("root", "link_made", ANN),
        ("Ann", "link_used", ANN),
        ("Ann", "password_set", ANN),
        ("Ann", "signed_in", ANN),
        ("root", "role_given", ANN),
        ("root", "workspace_changed", "main"),
    ]


def test_a_workspace_reads_its_own_journal(town: Town) -> None:
    desk = other(town)
    town.join(ANN)
    add(town, BOB, desk)
    assert {subject for _, _, subject in events(town, desk)} == {BOB, "news-desk"}
    assert BOB not in {subject for _, _, subject in events(town, main(town))}


def test_the_journal_is_read_in_pages(town: Town) -> None:
    town.join(ANN)
    with town.engine.begin() as conn:
        newest = journal.of_workspace(conn, 1, limit=2)
        rest = journal.of_workspace(conn, 1, before=newest[-1].id)
        whole = journal.of_workspace(conn, 1)
    assert newest + rest == whole


def test_the_database_takes_no_line_back(town: Town) -> None:
    town.join(ANN)
    for statement in ("DELETE FROM people_events", "UPDATE people_events SET who = 'nobody'"):
        with pytest.raises(DBAPIError, match="only added to"):
            town.do(statement)


def test_workspaces_are_called_by_a_slug_of_their_own(town: Town) -> None:
    desk = other(town)
    assert (desk.slug, desk.zone, desk.edit_rule) == ("news-desk", "Asia/Ho_Chi_Minh", "hold")
    with pytest.raises(Conflict):
        other(town)
    with town.engine.begin() as conn:
        listed = {one.slug: one.people for one in workspaces.listing(conn)}
        assert listed == {"main": 0, "news-desk": 0}
        with pytest.raises(NotFound, match=r'Did you mean "news-desk"'):
            workspaces.find(conn, "newsdesk")
        for slug in ("\x00", "\ud800", "", "x" * 1_000_000):
            with pytest.raises(NotFound):
                workspaces.find(conn, slug)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"slug": "Main"}, "slug"),
        ({"slug": "-x"}, "slug"),
        ({"slug": "a" * 41}, "slug"),
        ({"slug": "x\n"}, None),
        ({"name": ""}, "name"),
        ({"zone": "Asia/Hanoi"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
    ],
)
def test_what_cannot_be_a_workspace_is_refused(
    town: Town, change: dict[str, str], field: str | None
) -> None:
    values = {"slug": "x", "name": "X", "zone": "UTC", **change}
    with town.engine.begin() as conn:
        if field is None:
            assert workspaces.add(conn, **values, who="root").slug == "x"
            return
        with pytest.raises(Unusable) as refused:
            workspaces.add(conn, **values, who="root")
    assert refused.value.field == field


def test_its_rules_are_changed_and_told(town: Town) -> None:
    with town.engine.begin() as conn:
        changed = workspaces.change(
            conn,
            workspaces.find(conn, "main"),
            name="Desk",
            zone="Asia/Kathmandu",
            edit_rule="keep",
            who="root",
        )
        with pytest.raises(Unusable):
            workspaces.change(conn, changed, edit_rule="drop", who="root")
        (line,) = journal.of_workspace(conn, changed.id)
    assert (changed.name, changed.zone, changed.edit_rule) == ("Desk", "Asia/Kathmandu", "keep")
    assert line.detail["before"] == {"name": "Main", "zone": "UTC", "edit_rule": "hold"}


def test_inside_one_workspace_an_admin_sees_its_people_alone(town: Town) -> None:
    """As pages and API have it: the database shows what belongs to the workspace that is set."""
    desk = other(town)
    town.join(ANN, Role.ADMIN)
    add(town, BOB, desk)
    with walls.within(town.engine, "news-desk").begin() as conn:
        assert [one.email for one in users.listing(conn, workspace_id=desk.id)] == [BOB]
        assert users.listing(conn, workspace_id=1) == ()
        with pytest.raises(NotFound):
            workspaces.find(conn, "main")
        users.give_role(conn, town.user(BOB), desk, Role.APPROVER, who="Ann")
    assert town.user(BOB).roles == {"news-desk": Role.APPROVER}


@pytest.mark.parametrize(
    "table",
    ["users", "memberships", "user_links", "recovery_codes", "sessions", "api_tokens",
     "identities", "oidc_departures", "login_failures", "people_events"],
)  # fmt: skip
def test_workers_know_nobody(town: Town, database: Database, table: str) -> None:
    with database.engine.begin() as conn, pytest.raises(DBAPIError, match="permission denied"):
        conn.execute(text(f"SELECT 1 FROM {table}"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM people_events",
        "UPDATE people_events SET who = 'nobody'",
        "DELETE FROM users",
        "DELETE FROM api_tokens",
        "UPDATE api_tokens SET scopes = '{users.manage}'",
        "UPDATE sessions SET user_id = 1",
        "UPDATE sessions SET expires_at = 'infinity'",
        "UPDATE user_links SET expires_at = 'infinity'",
        "UPDATE workspaces SET slug = 'x'",
    ],
)
def test_pages_cannot_rewrite_what_was(town: Town, statement: str) -> None:
    with town.engine.begin() as conn, pytest.raises(DBAPIError, match="permission denied"):
        conn.execute(text(statement))
