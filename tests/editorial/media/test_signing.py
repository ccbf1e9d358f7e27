"""Signed addresses: what is signed holds, for its time, and nothing else does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.editorial.media.signing import LONGEST, PURPOSE, SignatureRefused, sign, verify
from publisher.vault import Vault

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEY = Vault(bytes(32), "one").key_for(PURPOSE)
PATH = "/media/0123abcd.jpg"
SOON = NOW + timedelta(minutes=10)


def signed(method: str = "GET", path: str = PATH, expires_at: datetime = SOON) -> dict[str, str]:
    query = parse_qs(sign(KEY, method=method, path=path, expires_at=expires_at, now=NOW))
    return {name: value for name, (value,) in query.items()}


def code(key: bytes = KEY, at: datetime = NOW, **request: str) -> str | None:
    asked = {"method": "GET", "path": PATH} | signed() | request
    try:
        verify(
            key,
            method=asked["method"],
            path=asked["path"],
            expires=asked["expires"],
            signature=asked["signature"],
            now=at,
        )
    except SignatureRefused as refused:
        return refused.code
    return None


def test_what_is_signed_holds_until_its_time() -> None:
    assert code() is None
    assert code(method="HEAD") is None
    assert code(at=SOON - timedelta(seconds=1)) is None
    assert code(at=SOON) == "media-url-expired"
    assert code(at=SOON + timedelta(days=900)) == "media-url-expired"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "get", ""])
def test_another_method_does_not_hold(method: str) -> None:
    assert code(method=method) == "media-url-forged"


def test_head_alone_does_not_open_a_get() -> None:
    assert code(**signed(method="HEAD")) == "media-url-forged"


@given(
    st.sampled_from(["path", "expires", "signature"]),
    st.text(max_size=60) | st.from_regex(r"/[a-z0-9./]{1,40}|[0-9]{1,11}", fullmatch=True),
)
def test_nothing_else_holds(field: str, text: str) -> None:
    right = ({"path": PATH} | signed())[field]
    assert (code(**{field: text}) is None) == (text == right)


@given(st.integers(0, 42), st.sampled_from("AQgw_-09"))
def test_no_character_of_a_signature_may_be_another(at: int, other: str) -> None:
    signature = signed()["signature"]
    changed = signature[:at] + other + signature[at + 1 :]
    assert (code(signature=changed) is None) == (changed == signature)


@pytest.mark.parametrize(
    "expires", ["", "-1", "+1", " 1", "1e9", "1_000", "٣", "9" * 12, "9999999999 ", "0x1"]
)
def test_a_time_is_digits(expires: str) -> None:
    assert code(expires=expires) == "media-url-forged"


def test_a_later_time_is_not_one_s_own_to_write() -> None:
    later = str(int((SOON + timedelta(days=1)).timestamp()))
    assert code(expires=later) == "media-url-forged"


def test_another_deployment_and_another_purpose_have_other_keys() -> None:
    vaults = (Vault(bytes(32), "one"), Vault(bytes(32), "two"), Vault(b"\1" * 32, "one"))
    keys = {vault.key_for(purpose) for vault in vaults for purpose in (PURPOSE, "another")}
    assert len(keys) == 6
    assert {len(key) for key in keys} == {32}
    assert not {bytes(32), b"\1" * 32} & keys
    assert code(key=vaults[1].key_for(PURPOSE)) == "media-url-forged"


@pytest.mark.parametrize(
    "path", ["", "media", "/a?b", "/a#b", "/a b", "/ä", "/a\n", "/%2e", "//h\0"]
)
def test_a_path_is_plain(path: str) -> None:
    with pytest.raises(ValueError, match="plain"):
        signed(path=path)


@pytest.mark.parametrize(
    "after", [timedelta(0), timedelta(seconds=-1), LONGEST + timedelta(seconds=1)]
)
def test_a_time_is_to_come_and_not_far(after: timedelta) -> None:
    with pytest.raises(ValueError, match="seven days"):
        signed(expires_at=NOW + after)


def test_the_query_needs_no_escaping() -> None:
    query = sign(KEY, method="GET", path=PATH, expires_at=NOW + LONGEST, now=NOW)
    assert re.fullmatch(r"expires=[0-9]{10}&signature=[A-Za-z0-9_-]{43}", query)


def test_a_refusal_tells_no_signature() -> None:
    with pytest.raises(SignatureRefused) as caught:
        verify(KEY, method="GET", path="/else", now=NOW, **signed())
    assert signed()["signature"] not in str(caught.value)
