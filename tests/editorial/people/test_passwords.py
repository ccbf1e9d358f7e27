"""Which passwords may be chosen, and how they are kept."""

from __future__ import annotations

import argon2
import pytest

from publisher.editorial.people import passwords
from publisher.editorial.people.passwords import PasswordRefused

CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_hasher", CHEAP)


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize(
    "password",
    [
        "horse battery staple",
        "mật khẩu của tôi là",
        "گذرواژه‌ی من اینجاست",
        "x7!kq9$mz2Lw",
        "🐎🔋📎🐎🔋📎🧭🧵🪡🧶🧷🧤",
        " leading and trailing ",
        "passwordless rooms smell of rain",
    ],
)
def test_a_long_one_of_any_script_may_be_chosen(password: str) -> None:
    kept = passwords.hashed(passwords.chosen(password, email="ann@example.org", name="Ann"))
    assert passwords.matches(kept, password)
    assert not passwords.matches(kept, password + "x")
    assert password not in kept


@pytest.mark.parametrize(
    "password",
    [
        "",
        "short one",
        "elevenchars",
        "password1234",
        "P@ssw0rd2024!!",
        "passwordpassword",
        "123456789012",
        "098765432109",
        "qwertyuiopqwerty",
        "abcdefghijklmno",
        "aaaaaaaaaaaaaa",
        "abcabcabcabcabc",
        "iloveyou2026!",
        "ann.nguyen@example.org",
        "Nguyen1234567",
        "ﬁﬁﬁﬁﬁﬁﬁ",
        "a" * 1001,
        "🐎" * 251,
        "nul\x00in the middle",
        "half a pair \ud800 here",
        "a tab\tin the middle",
        "never assigned \U000e0fff",
    ],
)
def test_what_is_too_short_too_long_or_first_to_be_guessed_is_refused(password: str) -> None:
    with pytest.raises(PasswordRefused) as refused:
        passwords.chosen(password, email="ann.nguyen@example.org", name="Ann Nguyen")
    assert refused.value.field == "password"
    assert not password or password not in str(refused.value)


@pytest.mark.usefixtures("cheap")
def test_the_same_text_typed_otherwise_is_the_same_password() -> None:
    kept = passwords.hashed(passwords.chosen("\uff46ull width caf\u00e9"))
    assert passwords.matches(kept, "full width cafe\u0301")


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("nonsense", ["\ud800" * 20, "\x00", "", "x" * 10_000_000])
def test_whatever_is_tried_is_wrong_and_no_fault(nonsense: str) -> None:
    assert not passwords.matches(passwords.hashed("horse battery staple"), nonsense)
    assert not passwords.matches(None, nonsense)
    assert not passwords.matches("no hash at all", nonsense)


def test_they_are_kept_as_rfc_9106_has_it_for_little_memory() -> None:
    hashed = passwords.hashed("horse battery staple")
    kept = argon2.extract_parameters(hashed)
    assert (kept.type, kept.time_cost, kept.memory_cost, kept.parallelism) == (
        argon2.Type.ID, 3, 64 * 1024, 4,
    )  # fmt: skip
    assert not passwords.is_dated(hashed)


def test_what_other_parameters_kept_is_dated_and_still_matches() -> None:
    kept = CHEAP.hash("horse battery staple")
    assert passwords.is_dated(kept)
    assert passwords.matches(kept, "horse battery staple")
    assert not passwords.is_dated(passwords.hashed_anew("horse battery staple"))
