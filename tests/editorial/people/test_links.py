"""One-time links: for whom, how long, once."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from publisher.editorial.people import links, sign_in, users
from publisher.editorial.people.links import LinkUnusable, Purpose
from publisher.editorial.people.passwords import PasswordRefused
from publisher.editorial.people.sessions import Begun
from publisher.editorial.people.sign_in import SignInRefused
from publisher.engine.errors import Conflict
from tests.editorial.people.conftest import OTHER, PASSWORD, Town

ANN = "ann@example.org"


def look(town: Town, token: str) -> links.Invited:
    with town.engine.begin() as conn:
        return links.look(conn, token)


def start(town: Town, token: str, password: str = PASSWORD) -> Begun:
    return sign_in.by_link(town.engine, token=token, password=password)


def test_there_is_no_password_before_one_is_chosen(town: Town) -> None:
    town.invite(ANN)
    for password in ("", "password", "admin", ANN):
        with pytest.raises(SignInRefused):
            town.sign_in(ANN, password)


def test_an_invitation_lets_one_choose_a_password_and_come_in(town: Town) -> None:
    token = town.invite(ANN)
    assert look(town, token).purpose is Purpose.INVITE
    begun = start(town, token)
    assert begun.session.user_id == town.user(ANN).id
    assert town.sign_in(ANN)


def test_a_link_that_is_looked_at_is_not_used_up(town: Town) -> None:
    token = town.invite(ANN)
    assert [look(town, token).email for _ in range(3)] == [ANN] * 3
    assert start(town, token)


def test_twenty_at_once_and_one_comes_in(town: Town) -> None:
    token = town.invite(ANN)
    came = town.at_once(20, lambda number: start(town, token, f"sentence number {number}"))
    assert sum(isinstance(one, Begun) for one in came) == 1, came
    assert sum(isinstance(one, LinkUnusable) for one in came) == 19, came
    ((sessions,),) = town.all("SELECT count(*) FROM sessions")
    ((set_,),) = town.all("SELECT count(*) FROM people_events WHERE event = 'password_set'")
    assert (sessions, set_) == (1, 1)


def test_it_is_used_up_once_whatever_is_done_with_it(town: Town) -> None:
    """Also by a use case that holds nothing else: the row itself decides."""
    token = town.invite(ANN)

    def use(_: int) -> links.Invited:
        with town.engine.begin() as conn:
            return links.use(conn, token)

    came = town.at_once(8, use)
    assert sum(isinstance(one, links.Invited) for one in came) == 1, came

    reset = town.link(ANN)

    def first(conn: Connection) -> None:
        links.use(conn, reset)

    def second() -> links.Invited:
        with town.engine.begin() as conn:
            return links.use(conn, reset)

    assert isinstance(town.meanwhile(first, second), LinkUnusable)


def test_what_was_used_or_is_over_or_never_was_says_the_same(town: Town) -> None:
    used, over = town.invite(ANN), town.invite("bob@example.org")
    start(town, used)
    town.do(
        "UPDATE user_links SET created_at = created_at - interval '8 days',"
        " expires_at = clock_timestamp() WHERE used_at IS NULL"
    )
    said = set()
    for token in (used, over, "pbi_" + "0" * 64, "", "\x00", "\ud800", "x" * 1_000_000):
        with pytest.raises(LinkUnusable) as refused:
            look(town, token)
        with pytest.raises(LinkUnusable):
            start(town, token)
        said.add(str(refused.value))
    assert len(said) == 1


def test_a_reset_lasts_an_hour_and_an_invitation_days(town: Town) -> None:
    town.invite(ANN)
    town.join("bob@example.org")
    town.link("bob@example.org")
    rows = town.all(
        "SELECT purpose, extract(epoch FROM expires_at - created_at)::int AS seconds"
        " FROM user_links WHERE used_at IS NULL ORDER BY purpose"
    )
    assert [(row.purpose, row.seconds) for row in rows] == [("invite", 604_800), ("reset", 3_600)]


def test_a_newer_link_ends_the_earlier(town: Town) -> None:
    first = town.invite(ANN)
    second = town.link(ANN)
    with pytest.raises(LinkUnusable):
        start(town, first)
    assert start(town, second)


def test_a_password_that_is_refused_leaves_the_link(town: Town) -> None:
    token = town.invite(ANN)
    with pytest.raises(PasswordRefused):
        start(town, token, "password1234")
    assert start(town, token)


def test_a_reset_ends_every_session(town: Town) -> None:
    town.join(ANN)
    start(town, town.link(ANN), OTHER)
    rows = town.all("SELECT end_reason FROM sessions ORDER BY id")
    assert [row.end_reason for row in rows] == ["password_changed", None]
    with pytest.raises(SignInRefused):
        town.sign_in(ANN, PASSWORD)


def test_a_disabled_account_has_no_links(town: Town) -> None:
    token = town.invite(ANN)
    ann = town.user(ANN)
    with town.engine.begin() as conn:
        assert users.disable(conn, ann, who="root", last_admin_may_go=True)
    with pytest.raises(LinkUnusable):
        start(town, token)
    with town.engine.begin() as conn, pytest.raises(Conflict, match="Enable the account first"):
        links.make(conn, ann.id, who="root")
    with town.engine.begin() as conn:
        users.enable(conn, ann, who="root")
    with pytest.raises(LinkUnusable):
        start(town, token)


def test_the_database_gives_no_used_link_back(town: Town) -> None:
    start(town, town.invite(ANN))
    with pytest.raises(DBAPIError, match="a link works once"):
        town.do("UPDATE user_links SET used_at = NULL")


def test_the_address_is_where_the_pages_are() -> None:
    link = links.Link("pbi_1", Purpose.RESET, None)  # type: ignore[arg-type]
    assert link.address("https://desk.example.org/") == "https://desk.example.org/start/pbi_1"
    assert "pbi_1" not in repr(link)
