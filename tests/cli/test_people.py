"""Workspaces, people and tokens as the operator has them: what is said, what is done."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from publisher.cli.exits import Exit
from publisher.config import Settings
from publisher.db.connect import Database
from publisher.db.roles import Role as DatabaseRole
from publisher.db.walls import EVERY
from publisher.editorial.people import person, sign_in, tokens, users, workspaces
from publisher.editorial.people.roles import Role
from tests.cli.conftest import Terminal

ANN, BOB = "ann@example.org", "bob@example.org"
PASSWORD = "plover kettle ninety"
LINK = re.compile(r"http\S+/start/(pbi_[0-9a-f]{64})")


class Desk:
    """What others have done before the command, and what can be seen after it."""

    def __init__(self, database: Database) -> None:
        self.engine = database.engine

    def invite(self, email: str, role: Role) -> str:
        """Returns the token of the link."""
        with self.engine.begin() as conn:
            main = workspaces.find(conn, "main")
            added = users.add(conn, main, email=email, name="Ann", role=role, who="root")
        assert added.link is not None
        return added.link.token

    def come_in(self, token: str) -> None:
        sign_in.by_link(self.engine, token=token, password=PASSWORD)

    def user(self, email: str) -> users.User:
        with self.engine.begin() as conn:
            return users.find(conn, email)


@pytest.fixture
def desk(settings: Settings) -> Iterator[Desk]:
    with Database.open(
        settings, DatabaseRole.APP, application_name="test desk", workspace=EVERY
    ) as opened:
        yield Desk(opened)


def linked(said: str) -> str:
    found = LINK.search(said)
    assert found is not None, said
    return found[1]


def test_a_person_is_invited_and_comes_in_by_the_printed_link(
    terminal: Terminal, desk: Desk
) -> None:
    said = terminal.done("users", "add", ANN, "--name", "Ann", "--role", "admin")
    assert "Added Ann (ann@example.org) to main as admin." in said
    assert "works once and ends in 7 days" in said
    assert "http://127.0.0.1:8800/start/" in said
    assert said.splitlines()[-1] == "Next: publisher users list --workspace main"
    assert not desk.user(ANN).has_password
    desk.come_in(linked(said))
    (listed,) = terminal.listed("users", "list")
    assert (listed["has_password"], listed["roles"]) == (True, {"main": "admin"})
    assert listed["seen_at"] is not None


def test_a_reset_points_to_where_the_pages_are(terminal: Terminal, desk: Desk) -> None:
    desk.come_in(desk.invite(ANN, Role.EDITOR))
    said = terminal.done("users", "link", ANN, PUBLISHER_PUBLIC_URL="https://desk.example.org/")
    assert "https://desk.example.org/start/pbi_" in said
    assert "new password" in said
    assert "pbi_" not in terminal.done("users", "list")


def test_sessions_are_seen_and_ended(terminal: Terminal, desk: Desk) -> None:
    desk.come_in(desk.invite(ANN, Role.EDITOR))
    (one,) = terminal.listed("users", "sessions", ANN)
    assert one["method"] == "link"
    said = terminal.done("users", "sessions", ANN, "--end", str(one["id"]))
    assert "1 session ended." in said
    assert "signed in nowhere" in said
    assert terminal.run("users", "sessions", ANN, "--end", "1").returncode == Exit.USAGE


def test_the_last_admin_stays_unless_it_is_said(terminal: Terminal, desk: Desk) -> None:
    desk.invite(ANN, Role.ADMIN)
    for words in (("role", ANN, "editor"), ("disable", ANN)):
        refused = terminal.run("users", *words)
        assert refused.returncode == Exit.CONFLICT
        assert "without an admin" in refused.stderr
    assert "signed out everywhere" in terminal.done("users", "disable", ANN, "--last-admin")
    assert desk.user(ANN).disabled_at is not None


def test_a_disabled_account_gets_no_link_until_it_is_enabled(
    terminal: Terminal, desk: Desk
) -> None:
    desk.invite(BOB, Role.VIEWER)
    with desk.engine.begin() as conn:
        users.disable(conn, users.find(conn, BOB), who="root")
    assert terminal.run("users", "link", BOB).returncode == Exit.CONFLICT
    terminal.done("users", "enable", BOB)
    assert desk.user(BOB).disabled_at is None


def test_roles_are_given_and_taken(terminal: Terminal, desk: Desk) -> None:
    desk.invite(BOB, Role.VIEWER)
    assert "bob@example.org is approver in main" in terminal.done("users", "role", BOB, "approver")
    assert desk.user(BOB).roles == {"main": Role.APPROVER}
    assert "not in main any more" in terminal.done("users", "role", BOB, "none")
    assert desk.user(BOB).roles == {}
    assert "by the password alone" in terminal.done("users", "forget-totp", BOB)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("users", "add", "ann", "--name", "A", "--role", "admin"), 2, "no e-mail address"),
        (("users", "add", ANN, "--name", "A", "--role", "boss"), 2, "There is no role"),
        (("users", "role", "nobody@example.org", "admin"), 2, "There is no account"),
        (("users", "list", "--workspace", "mian"), 2, 'Did you mean "main"'),
        (("workspaces", "add", "A B", "--name", "A", "--zone", "UTC"), 2, "cannot name"),
        (("workspaces", "add", "main", "--name", "A", "--zone", "UTC"), 4, "already"),
        (("workspaces", "set", "main", "--zone", "Asia/Hanoi"), 2, "There is no zone"),
        (("workspaces", "set", "main", "--edits", "drop"), 2, "hold or keep"),
        (("tokens", "revoke", "7"), 2, "There is no token"),
    ],
)
def test_what_cannot_be_says_what_to_do(
    terminal: Terminal, words: tuple[str, ...], code: int, said: str
) -> None:
    result = terminal.run(*words)
    assert (result.returncode, result.stdout) == (code, "")
    assert said in result.stderr


def test_workspaces_are_opened_and_changed_and_the_journal_tells(terminal: Terminal) -> None:
    zone = ("--zone", "Asia/Ho_Chi_Minh")
    terminal.done("workspaces", "add", "news-desk", "--name", "Tin tức", *zone)
    changed = terminal.done("workspaces", "set", "news-desk", "--approval-by-other", "--edits=keep")
    assert "approved by another person; an edit afterwards keeps what was approved" in changed
    rows = {one["slug"]: one for one in terminal.listed("workspaces", "list")}
    assert rows["main"]["approval_by_other"] is False
    assert rows["news-desk"]["edit_rule"] == "keep"
    told = terminal.listed("workspaces", "journal", "news-desk")
    assert [line["event"] for line in told] == ["workspace_changed", "workspace_added"]


def test_where_there_are_several_one_is_named(terminal: Terminal, desk: Desk) -> None:
    with desk.engine.begin() as conn:
        workspaces.add(conn, slug="news-desk", name="News", zone="UTC", who="root")
    words = ("users", "add", ANN, "--name", "Ann", "--role", "admin")
    ambiguous = terminal.run(*words)
    assert ambiguous.returncode == Exit.USAGE
    assert "one of: main, news-desk" in ambiguous.stderr
    assert "to news-desk as admin" in terminal.done(*words, PUBLISHER_WORKSPACE="news-desk")


def test_a_token_is_shown_once_and_works_until_it_is_revoked(
    terminal: Terminal, desk: Desk
) -> None:
    desk.come_in(desk.invite(ANN, Role.EDITOR))
    made = terminal.done(
        *("tokens", "add", "CI", "--user", ANN, "--scope", "posts.read"),
        *("--scope", "posts.write", "--days", "30"),
    )
    found = re.search(r"pbl_main_[0-9a-f]{64}", made)
    assert found is not None
    with desk.engine.begin() as conn:
        acting = tokens.find(conn, found[0])
    assert acting is not None
    assert {*acting.permissions} == {"posts.read", "posts.write"}
    shown = terminal.done("tokens", "list")
    assert f"…{found[0][-4:]}" in shown
    assert found[0] not in shown
    assert "works no more" in terminal.done("tokens", "revoke", str(acting.token_id))
    with desk.engine.begin() as conn:
        assert tokens.find(conn, found[0]) is None


def test_a_token_is_given_no_more_than_its_owner_has(terminal: Terminal, desk: Desk) -> None:
    desk.invite(ANN, Role.EDITOR)
    with desk.engine.begin() as conn:
        assert not person.in_workspace(conn, users.find(conn, ANN).id, "main").token_id
    refused = terminal.run("tokens", "add", "x", "--user", ANN, "--scope", "posts.approve")
    assert refused.returncode == Exit.CONFLICT
    assert "posts.approve" in refused.stderr
    assert terminal.listed("tokens", "list") == []
