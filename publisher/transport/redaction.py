"""Cutting secrets out of text that is kept: answers, errors and log lines."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

CUT = "…"
_SHORTEST_BEGINNING = 6


class Redaction:
    """Replaces each of ``secrets``, plain or escaped in a usual way, by ``…``."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first: one secret may hold another.
        self._forms = sorted(forms, key=len, reverse=True)
        self.longest = len(self._forms[0]) if self._forms else 0

    def __call__(self, text: str, limit: int) -> str:
        """Cut the secrets out of ``text``, and then the text to ``limit`` characters.

        A secret that the end of the text cuts in two goes as well, down to six characters.
        """
        text = text[: limit + self.longest + 1]
        for form in self._forms:
            text = text.replace(form, CUT)
        text = self._without_beginning(text)
        # PostgreSQL stores no NUL in text or JSON.
        text = text.replace("\x00", "\ufffd")
        return text if len(text) <= limit else text[:limit] + CUT

    def _without_beginning(self, text: str) -> str:
        for form in self._forms:
            for length in range(len(form) - 1, _SHORTEST_BEGINNING - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + CUT
        return text


def _forms(secret: str) -> Iterator[str]:
    """Spell a secret as URLs, JSON and HTML do."""
    yield secret
    for escaped in (quote(secret, errors="replace"), quote(secret, safe="", errors="replace")):
        yield escaped
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)
        yield quote(escaped, safe="")
    yield quote_plus(secret, errors="replace")
    for ascii_only in (True, False):
        spelled = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield spelled
        yield spelled.replace("/", "\\/")
    yield html.escape(secret)
