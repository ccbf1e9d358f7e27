"""What every request passes first, and what every answer has."""

from __future__ import annotations

import ast
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from publisher.api import catalogue
from publisher.api.catalogue import ENTRIES
from publisher.api.doors import BODY_CAP
from publisher.editorial.people.roles import Role
from tests.api.conftest import House

NOT_ASKED = {"imports", "rehearsals.py", "quarantine.py", "deployment.py", "backup.py"}
"""Nothing of theirs is called by the API."""
NOT_TOLD = {
    # Audits, the witness and what is wrong with a deployment are for those who run it.
    "audit-impossible", "witness-conflict", "witness-taken", "witness-unreachable",
    "witness-unreadable", "wrong-witness", "media-extra-missing", "media-storage-unusable",
    "not-in-quarantine",
    # These are the last words of media-url-….
    "downgraded", "redirects", "status",
    # Why a link is not this post: told in detail, under that code.
    "another-page", "no-link", "not-ours", "text-differs", "too-early",
    # A job that is not there is told as not-found, whoever has it.
    "job-not-found",
    # Spans and rules are typed values here, and never read from a text.
    "rule-unknown", "span-unreadable",
    # Sign-in, the second factor and one-time links are the pages'.
    "code-wrong", "edit-rule-unknown", "link-unusable", "not-invited", "password-unusable",
    "provider-refused", "provider-unreachable", "reauthenticate", "role-unknown",
    "session-over", "sign-in-over", "sign-in-wrong", "slug-taken", "slug-unusable",
    "too-many-tries", "totp-not-offered", "totp-on",
}  # fmt: skip
_SPELLED = re.compile(r"[a-z]+(-[a-z]+)+")
AT = "/jobs/8f3a01bc24/cancel"
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=31536000",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/me", 200),
        ("GET", "/api/v1/openapi.json", 200),
        ("GET", "/errors", 200),
        ("GET", "/errors/taken", 200),
        ("GET", "/errors/none-such", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/api/nowhere", 404),
        ("DELETE", "/me", 405),
        ("POST", AT, 404),
        ("GET", "/jobs?limit=x", 422),
    ],
)
def test_every_answer_has_the_headers_and_no_cookie(
    house: House, method: str, path: str, status: int
) -> None:
    answer = house.call(method, path)
    assert answer.status_code == status, answer.text
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert len(answer.headers["request-id"]) == 16
    assert "set-cookie" not in answer.headers
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert {*problem} == {
            "type", "title", "status", "code", "detail", "field", "on_page", "safe_to_repeat",
            "next", "errors", "job", "current", "yours",
        }  # fmt: skip
        page = house.call("GET", problem["type"], role=None)
        assert page.status_code == 200, problem["type"]
        assert problem["code"] in page.text


def test_a_method_that_is_not_taken_names_those_that_are(house: House) -> None:
    for path, taken in (
        ("/me", "GET"),
        ("/posts", "GET, POST"),
        ("/posts/7", "GET, PUT"),
        ("/media", "POST"),
    ):
        answer = house.call("DELETE", path)
        assert (answer.json()["code"], answer.headers["allow"]) == ("method-not-allowed", taken)


@pytest.mark.parametrize(
    ("content", "status", "code", "words"),
    [
        (b"{", 400, "json-invalid", "no JSON"),
        (b"\xff\xfe{}", 400, "json-invalid", "not UTF-8"),
        (b'{"reason": NaN}', 400, "json-invalid", "NaN is no number"),
        (b'{"reason": "a", "reason": "b"}', 400, "json-invalid", "stands there twice"),
        (b"[" * 100_000, 400, "json-invalid", "deep"),
        (b"[" * 60 + b"]" * 60, 400, "json-invalid", "deeper than 50"),
        (b'{"reason": ' + b"1" * 5_000 + b"}", 400, "json-invalid", "digits"),
        (b'{"reason": "a\\u0000b"}', 422, "text-unstorable", "reason holds the character NUL"),
        (b'{"reason": "\\ud800"}', 422, "text-unstorable", "half of a surrogate pair"),
        (b'{"\\udfff": 1}', 422, "text-unstorable", "half of a surrogate pair"),
        (b'{"a": [{"b": "\\u0000"}]}', 422, "text-unstorable", "a.0.b holds"),
        (b'{"raeson": "x"}', 422, "request-invalid", "raeson"),
        (b'{"reason": 7}', 422, "request-invalid", "reason"),
        (b"7", 422, "request-invalid", ""),
        (b'{"reason": "' + b"x" * 3_000 + b'"}', 422, "request-invalid", "2000"),
    ],
)
def test_bodies_that_are_none_are_refused_by_name(
    house: House, content: bytes, status: int, code: str, words: str
) -> None:
    headers = {"Content-Type": "application/json"}
    problem = house.refused(status, code, "POST", AT, content=content, headers=headers)
    assert words in problem["detail"], problem
    assert (problem["on_page"], problem["safe_to_repeat"]) == ("no", True)


def test_every_fault_of_a_body_is_listed(house: House) -> None:
    body = {"decision": "maybe", "reason": 3, "more": 1}
    problem = house.refused(422, "request-invalid", "POST", "/unknowns/8f3a01bc24/resolve", body)
    assert {fault["field"] for fault in problem["errors"]} == {"decision", "reason", "more"}


def test_ten_megabytes_are_refused_before_they_are_read(house: House) -> None:
    content = json.dumps({"reason": "x" * 10_000_000}).encode()
    headers = {"Content-Type": "application/json"}
    house.refused(413, "body-too-large", "POST", AT, content=content, headers=headers)


def test_a_body_without_a_length_is_counted_as_it_comes(house: House) -> None:
    parts = urlsplit(house.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as wire:
        bearer = house.bearer(Role.ADMIN)["Authorization"]
        wire.sendall(
            f"POST /api/v1{AT} HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000)
        for _ in range(BODY_CAP // 100_000 + 1):
            wire.sendall(chunk)
        assert wire.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_of_another_type_is_refused(house: House, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    problem = house.refused(
        415, "content-type-unknown", "POST", AT, content=b'{"reason": "x"}', headers=headers
    )
    assert problem["field"] == "Content-Type"


@pytest.mark.parametrize("path", ["/jobs?queue=a%00b", "/jobs?%00=1", "/jobs/%00", "/jobs/%ff"])
def test_addresses_that_cannot_be_stored_are_refused(house: House, path: str) -> None:
    house.refused(422, "text-unstorable", "GET", path)


@pytest.mark.parametrize(
    "path",
    ["/jobs?" + "&".join(["state=failed"] * 101), "/posts?cursor=" + "9" * 19, "/posts?cursor=x"],
)
def test_queries_that_are_too_much_are_refused(house: House, path: str) -> None:
    assert house.refused(422, "request-invalid", "GET", path)["field"] in ("query", "cursor")


@pytest.mark.parametrize("given", ["", "Bearer", "Basic YTpi", "Bearer x y", "Bearer \xe9"])
def test_a_header_that_holds_no_token_is_nobody(house: House, given: str) -> None:
    headers = {"Authorization": given}
    answer = house.call("GET", "/nowhere", role=None, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 401


def test_the_table_of_the_documentation_is_this_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "api.md"
    assert catalogue.as_table() in page.read_text()


def _codes(tree: ast.AST, *, whole: bool) -> Iterator[str]:
    """Codes of checks, and with ``whole`` whatever is spelled like one, wherever it stands."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("Problem"), args=[_, ast.Constant(str(code)), *_]):
                yield code
            case ast.keyword(arg="code", value=ast.Constant(str(code))) if whole:
                yield code
            case ast.Constant(str(text)) if whole and _SPELLED.fullmatch(text):
                yield text


def test_every_code_of_the_use_cases_has_a_page() -> None:
    """What a refusal of editorial's or the engine's is called leads somewhere."""
    root = Path(__file__).parents[2] / "publisher"
    codes = {
        code
        for folder in ("engine", "editorial", "limits", "adapters")
        for path in (root / folder).rglob("*.py")
        if not NOT_ASKED & {*path.relative_to(root).parts}
        for code in _codes(ast.parse(path.read_text()), whole=folder != "adapters")
    }
    assert codes - {*ENTRIES} - NOT_TOLD == set()


def test_every_code_says_what_to_do() -> None:
    for code, entry in ENTRIES.items():
        assert 400 <= entry.status <= 503, code
        assert entry.title
        assert entry.next.endswith("."), code
        assert not any(word in entry.next for word in ("please", "retry", "try again")), code
