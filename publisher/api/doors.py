"""What every request passes first: its size, its type, its text, and who sends it at all.

Below it nothing meets a body past the cap, NUL, half a surrogate pair, JSON with a name twice, or
a stranger. On the way out every answer gets its headers, and whatever broke becomes a problem.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from publisher.api import problems
from publisher.api.problems import Problem, Refusal
from publisher.db.outage import is_away
from publisher.editorial.people import opaque
from publisher.words import _

BODY_CAP: Final = 1_000_000
"""Bytes of a JSON body. The longest post any platform takes is a tenth of it."""
PREFIX: Final = "/api/v1"
OPEN: Final = re.compile(rf"{PREFIX}/(openapi\.json|errors(/[a-z-]{{1,60}})?)")
"""What anybody may read: it says nothing that the source does not."""
UPLOAD: Final = f"{PREFIX}/media"
CANONICAL: Final = "publisher.canonical"
"""Where a request's scope holds its body in one spelling."""
SECRET: Final = "publisher.secret"  # noqa: S105 - the name of a place
REQUEST: Final = "publisher.request"
_DEEPEST: Final = 50
_MOST_NAMED: Final = 100
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_BEARER: Final = re.compile(r"bearer +(\S+)", re.IGNORECASE)
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Doors:
    """ASGI middleware around the application."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope[REQUEST] = secrets.token_hex(8)
        answer = _Answer(send, scope[REQUEST])
        try:
            _check_address(scope)
            scope[SECRET] = _secret(scope)
            receive = await _checked_body(scope, receive)
            await self._inner(scope, receive, answer)
        except Refusal as refusal:
            await refusal.problem.response()(scope, receive, answer)
        except Exception as error:
            if answer.has_begun:
                raise
            await _broken(error, scope).response()(scope, receive, answer)


class _Answer:
    """``send`` with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id.encode()
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            own = {name.lower() for name, _value in message["headers"]}
            added = [pair for pair in _HEADERS if pair[0] not in own]
            message["headers"] = [
                *message["headers"],
                *added,
                (b"request-id", self._request_id),
            ]
        await self._send(message)


def _broken(error: Exception, scope: Scope) -> Problem:
    safe = scope["method"] in _READS or _header(scope, b"idempotency-key") is not None
    if is_away(error):
        return problems.away(safe=safe)
    return problems.unexpected(error, request_id=scope[REQUEST], path=scope["path"], safe=safe)


def _check_address(scope: Scope) -> None:
    query = scope["query_string"].decode("latin-1")
    parts = [("path", scope["path"])]
    try:
        named = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_NAMED)
    except ValueError:
        detail = _("The address names more than {n} things.").format(n=_MOST_NAMED)
        raise Refusal(Problem.of("request-invalid", detail, field="query")) from None
    for name, value in named:
        parts += [(name, name), (name, value)]
    for where, text in parts:
        _check_text(where if _storable(where) is None else "query", text)
    # What is no UTF-8 was replaced while it was read; two addresses must not look like one.
    raw = scope.get("raw_path") or b""
    for written in (raw.decode("latin-1"), query.replace("+", " ")):
        try:
            unquote(written, encoding="utf-8", errors="strict")
        except UnicodeDecodeError:
            detail = _("The address is not UTF-8.")
            raise Refusal(Problem.of("text-unstorable", detail, field="path")) from None


def _secret(scope: Scope) -> str | None:
    """The API token that was sent, by its looks; None where anybody may read."""
    if not scope["path"].startswith(f"{PREFIX}/") or OPEN.fullmatch(scope["path"]):
        return None
    given = _header(scope, b"authorization")
    if given is None:
        raise Refusal(unauthenticated(given=False))
    match = _BEARER.fullmatch(given.strip())
    if match is None or opaque.SHAPE.fullmatch(match[1]) is None:
        raise Refusal(unauthenticated(given=True))
    return match[1]


def unauthenticated(*, given: bool) -> Problem:
    """Nobody we know. RFC 6750, section 3: it is not said what is wrong with a token."""
    if given:
        detail = _("This API token does not work: it is none, it ended, or its owner did.")
        challenge = 'Bearer realm="publisher", error="invalid_token"'
    else:
        detail = _("This needs an API token, and none was sent.")
        challenge = 'Bearer realm="publisher"'
    return Problem.of(
        "unauthenticated",
        detail,
        field="Authorization",
        headers=(("WWW-Authenticate", challenge),),
    )


async def _checked_body(scope: Scope, receive: Receive) -> Receive:
    """Read the body, and give it once more to whoever comes after."""
    if scope["path"] == UPLOAD:
        # Bytes of a file: whoever takes them counts them as they come.
        return receive
    length = _header(scope, b"content-length") or ""
    if length.isascii() and length.isdigit() and int(length[:20]) > BODY_CAP:
        raise Refusal(_too_large())
    body = await _read(receive)
    if body and scope["method"] in _WITH_BODY:
        if not _is_json(_header(scope, b"content-type")):
            detail = _("The body's Content-Type is not application/json.")
            raise Refusal(Problem.of("content-type-unknown", detail, field="Content-Type"))
        scope[CANONICAL] = _canonical(body)
    return _Again(body, receive)


class _Again:
    """A body that was read, as one message."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> MutableMapping[str, Any]:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _read(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_CAP:
            raise Refusal(_too_large())
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large() -> Problem:
    detail = _("The body is larger than {n:,} bytes. Nothing was stored.").format(n=BODY_CAP)
    return Problem.of("body-too-large", detail)


def _is_json(content_type: str | None) -> bool:
    return (content_type or "").partition(";")[0].strip().casefold() == "application/json"


def _canonical(body: bytes) -> bytes:
    """The body in one spelling. Refuses what other readers would each read in their own way."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_once_each, parse_constant=_no_such_number
        )
    except UnicodeDecodeError:
        detail = _("The body is not UTF-8.")
        raise Refusal(Problem.of("json-invalid", detail, field="body")) from None
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ValueError) else _("it is nested too deep")
        detail = _("The body is no JSON that we can read: {said}.").format(said=said[:200])
        raise Refusal(Problem.of("json-invalid", _shown(detail), field="body")) from None
    _check_values(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _once_each(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in pairs:
        if name in named:
            message = _("the name {name} stands there twice").format(name=json.dumps(name))
            raise ValueError(message)
        named[name] = value
    return named


def _no_such_number(name: str) -> Any:  # noqa: ANN401 - it never returns
    message = _("{name} is no number in JSON").format(name=name)
    raise ValueError(message)


def _check_values(value: Any) -> None:  # noqa: ANN401 - whatever JSON may hold
    """Raise for a text in it that cannot be stored, and for one that is nested past reason."""
    left: list[tuple[str, Any, int]] = [("", value, 0)]
    while left:
        where, part, depth = left.pop()
        if depth > _DEEPEST:
            detail = _("The body is nested deeper than {n} levels.").format(n=_DEEPEST)
            raise Refusal(Problem.of("json-invalid", detail, field=where[:100] or "body"))
        if isinstance(part, str):
            _check_text(where or "body", part)
        elif isinstance(part, dict):
            for name, item in part.items():
                _check_text(where or "body", name)
                left.append((f"{where}.{name}".lstrip("."), item, depth + 1))
        elif isinstance(part, list):
            left += [(f"{where}.{at}".lstrip("."), item, depth + 1) for at, item in enumerate(part)]


def _check_text(where: str, text: str) -> None:
    what = _storable(text)
    if what is not None:
        detail = _("{field} holds {what}, which cannot be stored. Nothing was stored.")
        field = _shown(where)[:100]
        raise Refusal(
            Problem.of("text-unstorable", detail.format(field=field, what=what), field=field)
        )


def _storable(text: str) -> str | None:
    """What is in the way, in words; None for a text that PostgreSQL takes."""
    if "\0" in text:
        return _("the character NUL")
    if _SURROGATE.search(text):
        return _("half of a surrogate pair")
    return None


def _shown(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")


def _header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key.lower() == name:
            return str(value.decode("latin-1"))
    return None
