"""Sessions: found by their token, over by themselves, seen and ended by their owner."""

from __future__ import annotations

from datetime import timedelta

import argon2
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from publisher.editorial.people import passwords, sessions, sign_in, users
from publisher.editorial.people.passwords import PasswordRefused
from publisher.editorial.people.sessions import (
    Begun,
    End,
    Method,
    ReauthenticationNeeded,
    Session,
)
from publisher.editorial.people.sign_in import SessionOver, SignInRefused
from publisher.engine.errors import NotFound
from tests.editorial.people.conftest import OTHER, PASSWORD, Town

ANN = "ann@example.org"


def find(town: Town, begun: Begun) -> Session | None:
    with town.engine.begin() as conn:
        return sessions.find(conn, begun.token)


def test_one_is_found_by_its_token_alone(town: Town) -> None:
    begun = town.join(ANN)
    found = find(town, begun)
    assert found is not None
    assert (found.id, found.method) == (begun.session.id, Method.LINK)
    with town.engine.begin() as conn:
        for token in ("", "pbs_" + "0" * 64, begun.token.upper(), begun.token + " ", "\ud800"):
            assert sessions.find(conn, token) is None
    assert begun.token not in repr(begun)


def test_each_has_a_token_of_its_own(town: Town) -> None:
    first, second = town.join(ANN), town.sign_in(ANN)
    assert first.token != second.token
    assert find(town, first) is not None
    assert find(town, second) is not None


@pytest.mark.parametrize(
    ("change", "is_over"),
    [
        ("seen_at = seen_at - interval '11 hours'", False),
        ("seen_at = seen_at - interval '12 hours 1 second'", True),
        ("created_at = created_at - interval '14 days', expires_at = clock_timestamp()", True),
    ],
)
def test_it_ends_by_itself(town: Town, change: str, *, is_over: bool) -> None:
    begun = town.join(ANN)
    town.do(f"UPDATE sessions SET {change}")
    assert (find(town, begun) is None) is is_over


def test_use_keeps_it_alive_and_never_beyond_its_longest_time(town: Town) -> None:
    begun = town.join(ANN)
    before = begun.session
    assert before.expires_at - before.created_at == pytest.approx(
        sessions.LASTS, abs=timedelta(seconds=5)
    )
    town.do("UPDATE sessions SET seen_at = seen_at - interval '2 minutes'")
    find(town, begun)
    after = find(town, begun)
    assert after is not None
    assert after.now - after.seen_at < timedelta(minutes=1)
    assert after.expires_at == before.expires_at


def test_its_owner_sees_and_ends_one_or_all_others(town: Town) -> None:
    first = town.join(ANN)
    second = town.sign_in(ANN, address="192.0.2.1", agent="Browser 1")
    third = town.sign_in(ANN)
    ann = first.session.user_id
    with town.engine.begin() as conn:
        listed = sessions.of_user(conn, ann)
        assert {one.id for one in listed} == {one.session.id for one in (first, second, third)}
        assert ("192.0.2.1", "Browser 1") in {(one.address, one.agent) for one in listed}
        sessions.end(conn, ann, third.session.id, End.ENDED_ELSEWHERE, who="Ann", subject=ANN)
    assert find(town, third) is None
    with town.engine.begin() as conn:
        assert sessions.end_all(
            conn, ann, End.ENDED_ELSEWHERE, who="Ann", subject=ANN, but=first.session.id
        ) == 1  # fmt: skip
    assert find(town, second) is None
    assert find(town, first) is not None


def test_nobody_ends_anothers(town: Town) -> None:
    anns, bobs = town.join(ANN), town.join("bob@example.org")
    with town.engine.begin() as conn, pytest.raises(NotFound):
        sessions.end(
            conn, bobs.session.user_id, anns.session.id, End.SIGNED_OUT, who="Bob", subject="bob"
        )
    assert find(town, anns) is not None


def test_another_password_ends_every_session_but_this(town: Town) -> None:
    first, second = town.join(ANN), town.sign_in(ANN)
    sign_in.change_password(town.engine, second.session, current=PASSWORD, password=OTHER)
    assert find(town, first) is None
    assert find(town, second) is not None
    with pytest.raises(SignInRefused):
        town.sign_in(ANN, PASSWORD)
    assert town.sign_in(ANN, OTHER)


def test_the_password_is_not_changed_without_the_present_one(town: Town) -> None:
    begun = town.join(ANN)
    with pytest.raises(SignInRefused):
        sign_in.change_password(town.engine, begun.session, current="wrong", password=OTHER)
    with pytest.raises(PasswordRefused):
        sign_in.change_password(town.engine, begun.session, current=PASSWORD, password="short")
    assert town.sign_in(ANN, PASSWORD)


def test_who_is_disabled_is_out_and_comes_back_to_no_old_session(town: Town) -> None:
    begun, ann = town.join(ANN), town.user(ANN)
    with town.engine.begin() as conn:
        users.disable(conn, ann, who="root", last_admin_may_go=True)
    assert find(town, begun) is None
    with pytest.raises(SignInRefused):
        town.sign_in(ANN)
    with town.engine.begin() as conn:
        users.enable(conn, ann, who="root")
    assert find(town, begun) is None
    assert town.sign_in(ANN)


def test_signing_in_while_being_disabled_leaves_nobody_in(town: Town) -> None:
    town.join(ANN)
    ann = town.user(ANN)

    def act(number: int) -> object:
        if number != 2:
            return town.sign_in(ANN)
        with town.engine.begin() as conn:
            return users.disable(conn, ann, who="root", last_admin_may_go=True)

    came = town.at_once(5, act)
    assert True in came
    ((left,),) = town.all("SELECT count(*) FROM sessions WHERE ended_at IS NULL")
    assert left == 0


def test_whoever_another_party_vouches_for_waits_for_who_disables_them(town: Town) -> None:
    ann = town.join(ANN).session.user_id

    def first(conn: Connection) -> None:
        users.disable(conn, users.find(conn, ANN), who="root")

    def second() -> Begun:
        with town.engine.begin() as conn:
            return sign_in.begin_for(conn, ann, Method.OIDC, is_fresh=True)

    assert isinstance(town.meanwhile(first, second), SignInRefused)


def test_a_password_that_is_changed_while_it_is_checked_lets_nobody_in(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checking takes a while, and nothing is held meanwhile."""
    town.join(ANN)
    token = town.link(ANN)
    matches = passwords.matches

    def slowly(kept: str | None, password: str) -> bool:
        is_right = matches(kept, password)
        sign_in.by_link(town.engine, token=token, password=OTHER)
        return is_right

    monkeypatch.setattr(passwords, "matches", slowly)
    with pytest.raises(SignInRefused):
        town.sign_in(ANN, PASSWORD)


def test_what_could_do_most_harm_asks_for_the_password_once_more(town: Town) -> None:
    begun = town.join(ANN)
    begun.session.require_recent()
    town.do("UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '11 minutes'")
    found = find(town, begun)
    assert found is not None
    with pytest.raises(ReauthenticationNeeded):
        found.require_recent()
    with pytest.raises(SignInRefused):
        sign_in.again(town.engine, found, password="wrong")
    sign_in.again(town.engine, found, password=PASSWORD)
    found = find(town, begun)
    assert found is not None
    found.require_recent()
    with pytest.raises(ReauthenticationNeeded):
        found.require_recent(timedelta(0))


def test_a_session_that_ended_meanwhile_is_not_freshened(town: Town) -> None:
    begun = town.join(ANN)
    with town.engine.begin() as conn:
        users.end_sessions(conn, town.user(ANN), who="root")
    with pytest.raises(SessionOver):
        sign_in.again(town.engine, begun.session, password=PASSWORD)


def test_a_dated_hash_is_kept_anew_at_the_next_sign_in(town: Town) -> None:
    town.join(ANN)
    older = argon2.PasswordHasher(time_cost=2, memory_cost=64, parallelism=1).hash(PASSWORD)
    town.do("UPDATE users SET password_hash = :kept", kept=older)
    assert town.sign_in(ANN)
    ((kept,),) = town.all("SELECT password_hash FROM users")
    assert kept != older
    assert not passwords.is_dated(kept)
    assert town.sign_in(ANN)


def test_the_database_brings_no_ended_session_back(town: Town) -> None:
    town.join(ANN)
    with town.engine.begin() as conn:
        users.end_sessions(conn, town.user(ANN), who="root")
    with pytest.raises(DBAPIError, match="stays ended"):
        town.do("UPDATE sessions SET ended_at = NULL, end_reason = NULL")


@pytest.mark.parametrize("email", ["\x00", "\ud800", "", "a" * 1_000_000, "ann@example.org\x00"])
def test_whatever_is_typed_as_the_address_is_wrong_and_no_fault(town: Town, email: str) -> None:
    with pytest.raises(SignInRefused):
        town.sign_in(email)


def test_a_strange_browser_name_is_kept_short(town: Town) -> None:
    town.join(ANN)
    begun = town.sign_in(ANN, agent="x\x00\ud800" * 100_000, address="unix:\x00\ud800")
    assert begun.session.agent is not None
    assert len(begun.session.agent) <= 300
