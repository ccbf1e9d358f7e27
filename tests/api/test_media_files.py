"""Signed addresses: what they open, for how long, and everything that they do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx
import pytest

from publisher.editorial.media import signing
from publisher.editorial.people.roles import Role
from publisher.vault import Vault
from tests.api import things
from tests.api.conftest import OTHERS, House


def fetch(house: House, path: str, method: str = "GET") -> httpx.Response:
    """As a platform does: without a token."""
    return house.client.request(method, house.url + path)


def minted(house: House, sha256: str, seconds: int = 60) -> str:
    made = house.done("POST", f"/media/{sha256}/address", {"seconds": seconds}, role=Role.VIEWER)
    return str(made["url"])


def signed(house: House, path: str, ago: timedelta = timedelta(0), method: str = "GET") -> str:
    """An address that this deployment signed at some time, for a minute."""
    desk = house.app.state.desk
    then = datetime.now(UTC) - ago
    key = desk.vault.key_for(signing.PURPOSE)
    until = then + timedelta(minutes=1)
    return f"{path}?{signing.sign(key, method=method, path=path, expires_at=until, now=then)}"


def is_refused(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert b"PNG" not in answer.content


def test_whoever_holds_the_address_is_sent_the_very_bytes(house: House) -> None:
    sha256 = things.kept(house)
    kept = house.done("GET", f"/media/{sha256}")
    path = minted(house, sha256)
    answer = fetch(house, path)
    assert answer.status_code == 200
    assert (answer.headers["content-type"], len(answer.content)) == ("image/png", kept["size"])
    assert answer.content.startswith(b"\x89PNG")
    assert answer.headers["content-length"] == str(kept["size"])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["content-disposition"] == f'inline; filename="{sha256[:16]}.png"'
    assert answer.headers["cache-control"] == "no-store"
    asked = fetch(house, path, "HEAD")
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-length"] == str(kept["size"])
    # A part is not sent; the whole is, which RFC 9110, section 14.2, allows.
    ranged = house.client.get(house.url + path, headers={"Range": "bytes=0-3"})
    assert (ranged.status_code, len(ranged.content)) == (200, kept["size"])


def test_it_works_for_as_long_as_it_says(house: House) -> None:
    sha256 = things.kept(house)
    made = house.done("POST", f"/media/{sha256}/address", {"seconds": 604_800})
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    for seconds in (0, -1, 604_801, 1.5, "60"):
        answer = house.call("POST", f"/media/{sha256}/address", {"seconds": seconds})
        assert (answer.status_code, answer.json()["field"]) == (422, "seconds")
    late = signed(house, f"/media/1/{sha256}", timedelta(minutes=2))
    is_refused(fetch(house, late), 410, "media-url-expired")
    assert fetch(house, signed(house, f"/media/1/{sha256}")).status_code == 200


def test_every_change_to_it_is_noticed(house: House) -> None:
    """Each character of path, time and signature; and what was left out, or is there twice."""
    first, second = things.kept(house), things.kept(house)
    path = minted(house, first)
    parts = urlsplit(path)
    for at in range(1, len(path)):
        other = "0" if path[at] != "0" else "1"
        answer = fetch(house, path[:at] + other + path[at + 1 :])
        assert answer.status_code in (401, 403, 404), path[:at] + other + path[at + 1 :]
    for wrong in (
        path.replace(first, second),
        path.replace("/media/1/", "/media/2/"),
        parts.path,
        f"{parts.path}?expires=&signature=",
        f"{path}&signature={'A' * 43}",
        f"{path}&expires=99999999999",
        path.replace("signature=", "signature=%C3%A9"),
        path.replace("expires=", "expires=-"),
    ):
        is_refused(fetch(house, wrong), 403, "media-url-forged")
    stranger = Vault(b"k" * 32, "elsewhere").key_for(signing.PURPOSE)
    now = datetime.now(UTC)
    query = signing.sign(
        stranger, method="GET", path=parts.path, expires_at=now + timedelta(hours=1), now=now
    )
    is_refused(fetch(house, f"{parts.path}?{query}"), 403, "media-url-forged")
    is_refused(fetch(house, signed(house, parts.path, method="POST")), 403, "media-url-forged")


@pytest.mark.parametrize(
    "path",
    [
        "/media/1/../../etc/passwd",
        "/media/1/..%2f..%2fetc%2fpasswd",
        "/media/../vault.key",
        "/media/1/%2e%2e/%2e%2e/vault.key",
        "/media//1/",
        "/media/1/",
        "/media/",
        "/media/1/" + "0" * 64,
        "/media/x/" + "0" * 64,
        "/media/99999999999999999999/" + "0" * 64,
        "/media/1/" + "A" * 64,
    ],
)
def test_nothing_but_a_file_that_is_kept_can_be_walked_to(house: House, path: str) -> None:
    assert fetch(house, path).status_code in (403, 404)
    if "%" not in path:
        answer = fetch(house, signed(house, path))
        assert answer.status_code in (403, 404), "also with a signature of our own"
        assert answer.headers["content-type"] == "application/problem+json"


def test_what_left_the_workspace_is_not_sent_any_more(house: House) -> None:
    """The signature says which workspace; whatever is kept in another is none of it."""
    sha256 = things.kept(house)
    theirs = house.ground.one("SELECT id FROM workspaces WHERE slug = %s", OTHERS)
    is_refused(fetch(house, signed(house, f"/media/{theirs}/{sha256}")), 404, "not-found")
    house.refused(404, "not-found", "POST", f"/media/{sha256}/address", {}, workspace=OTHERS)


def test_a_file_that_is_damaged_is_not_sent(house: House) -> None:
    sha256 = things.kept(house)
    path = minted(house, sha256)
    house.ground.sql(
        "UPDATE media_chunks SET bytes = decode(repeat('00', octet_length(bytes)), 'hex')"
        " WHERE sha256 = decode(%s, 'hex')",
        sha256,
    )
    answer = fetch(house, path)
    is_refused(answer, 409, "media-lost")


def test_only_reading_is_allowed(house: House) -> None:
    path = minted(house, things.kept(house))
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert fetch(house, path, method).status_code == 405
