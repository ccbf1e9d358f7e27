"""Every sentence a person reads passes through here, so that it can be said in their language.

Catalogues lie in ``publisher/locale`` as gettext has them; a sentence without one is said in
English. The language is the environment's (``LANGUAGE``, ``LC_ALL``, ``LC_MESSAGES``, ``LANG``).
"""

from __future__ import annotations

import gettext
from functools import cache
from pathlib import Path
from typing import Final

DOMAIN: Final = "publisher"
_FOLDER: Final = Path(__file__).parent / "locale"


@cache
def _catalogue() -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, _FOLDER, fallback=True)


def _(sentence: str) -> str:
    """Say ``sentence`` in the reader's language. Fill ``{names}`` in after, not before."""
    return _catalogue().gettext(sentence)


def N_(sentence: str) -> str:  # noqa: N802 - gettext's own name for it
    """Mark ``sentence`` for translation where it is written; ``_`` says it where it is read."""
    return sentence


def many(one: str, more: str, number: int, **fill: object) -> str:
    """Say what fits ``number``; ``{n}`` in either form becomes it, other names are ``fill``'s."""
    return _catalogue().ngettext(one, more, number).format(n=f"{number:,}", **fill)


def language() -> str:
    """The language in which sentences are said here, as HTML's ``lang`` has it."""
    return _catalogue().info().get("language", "en").replace("_", "-") or "en"
