"""How often somebody may try, by the rows that count it: backdated, never waited for."""

from __future__ import annotations

import pytest

from publisher.editorial.people import sign_in, throttle
from publisher.editorial.people.sessions import Begun
from publisher.editorial.people.sign_in import SignInRefused
from publisher.editorial.people.throttle import Throttled
from tests.editorial.people.conftest import OTHER, PASSWORD, Town

ANN = "ann@example.org"
ELAPSED = (
    "UPDATE login_failures SET locked_until = clock_timestamp() WHERE locked_until IS NOT NULL"
)


def fail(town: Town, email: str = ANN, **more: str) -> None:
    with pytest.raises(SignInRefused):
        town.sign_in(email, "wrong", **more)


def wait_of(town: Town, email: str = ANN, **more: str) -> int:
    with pytest.raises(Throttled) as refused:
        town.sign_in(email, PASSWORD, **more)
    assert str(refused.value) == f"Too many tries. Wait {refused.value.seconds} s."
    return refused.value.seconds


def counts(town: Town, kind: str) -> list[int]:
    rows = town.all("SELECT count FROM login_failures WHERE key LIKE :kind", kind=f"{kind}:%")
    return [row.count for row in rows]


def test_after_five_wrong_ones_even_the_right_one_waits(town: Town) -> None:
    town.join(ANN)
    for _ in range(5):
        fail(town)
    assert 5 < wait_of(town) <= 10
    assert 5 < wait_of(town) <= 10  # knocking made it no longer
    town.do(ELAPSED)
    assert town.sign_in(ANN)


def test_each_further_one_doubles_the_wait_up_to_a_quarter_of_an_hour(town: Town) -> None:
    town.join(ANN)
    for _ in range(5):
        fail(town)
    waits = []
    for _ in range(9):
        waits.append(wait_of(town))
        town.do(ELAPSED)
        fail(town)
    longest = [10, 20, 40, 80, 160, 320, 640, 900, 900]
    assert all(most - 5 < wait <= most for wait, most in zip(waits, longest, strict=True)), waits


def test_an_account_that_is_none_is_counted_alike(town: Town) -> None:
    for _ in range(5):
        fail(town, "nobody@example.org")
    assert 5 < wait_of(town, "Nobody@Example.org ") <= 10


def test_a_right_one_forgets_the_accounts_failures_and_not_the_addresss(town: Town) -> None:
    town.join(ANN)
    for _ in range(4):
        fail(town, address="192.0.2.1")
    assert town.sign_in(ANN, address="192.0.2.1")
    assert (counts(town, "account"), counts(town, "address")) == ([], [4])


def test_one_password_of_ones_own_opens_no_way_to_guess_others(town: Town) -> None:
    town.join("mallory@example.org")
    guesses = 0
    try:
        for number in range(100):
            fail(town, f"victim{number}@example.org", address="192.0.2.1")
            guesses += 1
            town.sign_in("mallory@example.org", address="192.0.2.1")
    except Throttled:
        pass
    assert guesses == 20


def test_an_office_signs_in_from_one_address(town: Town) -> None:
    town.join(ANN)
    for _ in range(25):
        town.sign_in(ANN, address="192.0.2.1")
    assert counts(town, "address") == [0]


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, *, are_one: bool) -> None:
    assert (throttle.address(one) == throttle.address(other)) is are_one


def test_no_address_and_a_strange_one_are_no_fault() -> None:
    assert throttle.address(None) == ()
    ((door),) = throttle.address("unix socket \ud800")
    assert len(door.key) <= 100


def test_tries_at_the_same_moment_cannot_exceed_what_is_allowed(town: Town) -> None:
    """Twenty wrong ones at once: five are looked at, the others are told to wait."""
    town.join(ANN)
    came = town.at_once(20, lambda number: town.sign_in(ANN, f"wrong {number}"))
    kinds = [type(one) for one in came]
    assert (kinds.count(SignInRefused), kinds.count(Throttled)) == (5, 15), came
    assert counts(town, "account") == [5]


def test_right_ones_at_the_same_moment_all_come_in_where_the_free_tries_reach(town: Town) -> None:
    town.join(ANN)
    came = town.at_once(5, lambda _: town.sign_in(ANN))
    assert all(isinstance(one, Begun) for one in came), came


def test_what_is_a_day_old_counts_no_more_and_is_swept(town: Town) -> None:
    town.join(ANN)
    for _ in range(4):
        fail(town, address="192.0.2.1")
    fail(town, "nobody@example.org")
    town.do("UPDATE login_failures SET last_at = last_at - interval '25 hours'")
    fail(town)
    assert counts(town, "account") == [1]
    assert counts(town, "address") == []


def test_a_new_password_opens_the_account_that_was_shut(town: Town) -> None:
    """Whoever keeps an account shut from outside does not keep its owner out."""
    town.join(ANN)
    for _ in range(5):
        fail(town)
    sign_in.by_link(town.engine, token=town.link(ANN), password=OTHER)
    assert town.sign_in(ANN, OTHER)


def test_a_password_typed_as_the_address_is_not_kept(town: Town) -> None:
    fail(town, "plover kettle ninety")
    assert not town.all("SELECT 1 FROM login_failures WHERE key LIKE '%plover%'")


@pytest.mark.parametrize(
    "spelled", ["a\x00nn@example.org", "\x00ann@example.org ", "ANN@example.org"]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_one_account_is_one_door_however_its_address_is_spelled(
    town: Town, spelled: str, *, is_there: bool
) -> None:
    if is_there:
        town.join(ANN)
    for _ in range(5):
        fail(town, spelled)
    assert wait_of(town)
    assert len(counts(town, "account")) == 1


def test_letters_that_the_database_alone_takes_for_one_are_one_door(town: Town) -> None:
    town.join("iris@example.org")
    other = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}ris@example.org"
    (row,) = town.all("SELECT lower(:other) = 'iris@example.org' AS is_same", other=other)
    for _ in range(5):
        fail(town, other)
    if row.is_same:  # by the server's locale
        assert wait_of(town, "iris@example.org")
    else:
        assert town.sign_in("iris@example.org")
