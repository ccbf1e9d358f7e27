"""A status as HTML, the way Mastodon writes it, and its length, the way Mastodon counts it.

After ``app/lib/text_formatter.rb`` and ``StatusLengthValidator`` of mastodon/mastodon.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from publisher.sandbox import graphemes

if TYPE_CHECKING:
    from publisher.sandbox.pages import Pages

_URL = re.compile(r"https?://[^\s<>\"]+[^\s<>\".,:;!?'’)\]]")
_HASHTAG = r"(?<![\w/&])\#(?P<tag>\w*[^\W\d]\w*)"
_MENTION = r"(?<![\w/])@(?P<user>\w+)(?:@(?P<domain>[\w.-]+\w))?"
_ENTITY = re.compile(f"(?P<url>{_URL.pattern})|{_HASHTAG}|{_MENTION}")
_SHOWN = 30
"""Characters of a link that are shown."""


def length(text: str, per_url: int) -> int:
    """Return how long a text counts: graphemes, each address as ``per_url``, no domains."""
    shortened = _URL.sub("x" * per_url, text)
    return graphemes.count(re.sub(r"(?<![\w/])@(\w+)@[\w.-]+\w", r"@\1", shortened))


def html(text: str, base: str, state: Pages) -> str:
    """Return the content of a status; ``base`` is our address, for hashtags and mentions."""
    if not text:
        return ""
    shown, end = "", 0
    for found in _ENTITY.finditer(text):
        shown += _escape(text[end : found.start()]) + _entity(found, base, state)
        end = found.end()
    shown += _escape(text[end:])
    paragraphs = re.split(r"\n{2,}", shown.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(f"<p>{it.replace(chr(10), '<br />')}</p>" for it in paragraphs)


def tags(text: str) -> list[str]:
    """Return the hashtags in a text, without #."""
    return list(dict.fromkeys(found["tag"] for found in _ENTITY.finditer(text) if found["tag"]))


def _entity(found: re.Match[str], base: str, state: Pages) -> str:
    if found["url"]:
        return _link(found["url"])
    if tag := found["tag"]:
        address = f"{base}/tags/{tag}"
        return f'<a href="{address}" class="mention hashtag" rel="tag">#<span>{tag}</span></a>'
    user = found["user"]
    local = any(page.details["username"] == user for page in state.of("mastodon"))
    if not local or found["domain"]:
        return _escape(found[0])
    link = f'<a href="{base}/@{user}" class="u-url mention">@<span>{user}</span></a>'
    return f'<span class="h-card" translate="no">{link}</span>'


def _link(url: str) -> str:
    prefix = re.match(r"https?://(www\.)?", url)
    start = prefix.end() if prefix else 0
    shown, rest = url[start : start + _SHOWN], url[start + _SHOWN :]
    return (
        f'<a href="{_escape(url)}" target="_blank" rel="nofollow noopener noreferrer"'
        f' translate="no"><span class="invisible">{_escape(url[:start])}</span>'
        f'<span class="{"ellipsis" if rest else ""}">{_escape(shown)}</span>'
        f'<span class="invisible">{_escape(rest)}</span></a>'
    )


def _escape(text: str) -> str:
    for character, entity in (
        ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;"),
    ):  # fmt: skip
        text = text.replace(character, entity)
    return text
