"""What is typed of a channel, as it is kept: its name, its server's address, its token."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from publisher.editorial.spelling import is_one_line, quoted
from publisher.engine.errors import PublisherError

_NAME_LIMIT: Final = 200


class ChannelRefused(PublisherError):
    """A channel that cannot be connected like this; ``field`` names what is wrong."""

    def __init__(self, message: str, *, code: str, field: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


def named(name: str) -> str:
    """The name without what surrounds it. Raises ``ChannelRefused``, as the others here."""
    name = name.strip()
    if not name or not is_one_line(name) or len(name) > _NAME_LIMIT:
        message = (
            f"The name {quoted(name)} cannot be used. "
            f"Give 1 to {_NAME_LIMIT} characters on one line."
        )
        raise ChannelRefused(message, code="name-unusable", field="name")
    if name.isascii() and name.isdigit():
        # It would be taken for an id.
        message = f"The name {name!r} is only digits, as an id is. Give a name with a letter in it."
        raise ChannelRefused(message, code="name-unusable", field="name")
    return name


def address(base_url: str | None) -> str | None:
    """The one spelling of a server's address; none where the platform has its own."""
    if base_url is None or not base_url.strip():
        return None
    given = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(given)
        # Reading the port checks it.
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or any(c.isspace() or not c.isprintable() for c in given):
        message = f"The address {given!r} is not one. Give it as https://server.example."
        raise ChannelRefused(message, code="url-unusable", field="base_url")
    if parts.query or parts.fragment or parts.username is not None or parts.password is not None:
        message = "The address may hold no user, query or fragment. Give it as https://server."
        raise ChannelRefused(message, code="url-unusable", field="base_url")
    return _one_spelling(parts)


def _one_spelling(parts: SplitResult) -> str:
    """The address as it is kept: a server spelled in two ways must not be connected twice."""
    host = (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    is_usual = parts.port in (None, {"http": 80, "https": 443}[parts.scheme])
    port = "" if is_usual else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path}"


def token_of(token: str) -> str:
    """The token without the newline that a file or variable may bring; never in a message."""
    token = token.strip()
    if not token:
        message = "The token is empty. Name the variable that holds it with --token-env."
        raise ChannelRefused(message, code="token-empty", field="token")
    if not token.isascii() or not token.isprintable() or " " in token:
        message = "The token holds a space or a character no token has. Copy it again, whole."
        raise ChannelRefused(message, code="token-unusable", field="token")
    return token
