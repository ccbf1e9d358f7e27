"""Passwords: which may be chosen, how they are kept, and that a wrong one tells nothing.

The rules follow NIST SP 800-63B (revision 3, section 5.1.1.2): a length and no composition, NFKC
before anything else, the commonest refused. They are kept by Argon2id with the parameters of RFC
9106 for little memory (64 MiB, three passes, four lanes), and hashed anew when those change.
"""

from __future__ import annotations

import re
import unicodedata
from threading import BoundedSemaphore
from typing import Final

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from publisher.engine.errors import PublisherError
from publisher.words import _

SHORTEST: Final = 12
"""Characters, as Unicode counts code points after NFKC."""
LONGEST: Final = 1_000
"""Bytes of UTF-8; far more than any passphrase, and little to hash."""

_hasher = argon2.PasswordHasher.from_parameters(argon2.profiles.RFC_9106_LOW_MEMORY)
_hands = BoundedSemaphore(4)
"""Each hash takes 64 MiB: however many sign in at once, no more than these are computed."""

_NEVER_ASSIGNED: Final = frozenset({"Cn", "Cs", "Cc"})
_LOOKALIKES: Final = str.maketrans("013457@$!", "oieastasi")
_EDGES: Final = re.compile(r"^[^a-z]+|[^a-z]+$")
_SHORTEST_NAME: Final = 4
_LONGEST_PATTERN: Final = 4
_COMMON: Final = frozenset(
    """
    admin administrator abc access azerty baseball batman changeme charlie computer default donald
    dragon facebook flower football freedom google hello iloveyou instagram jordan letmein login
    lovely loveyou master matkhau michael monkey mustang mypassword ninja pass passw passwd
    passphrase password princess publisher qwerty qwertyuiop qazwsx root samsung secret shadow
    solo starwars sunshine superman telegram temporary test trustno user welcome whatever
    """.split()  # noqa: SIM905 - one long line each would be no list to read
)
"""What people choose most, without the digits and signs around it; kept short on purpose."""
_ROWS: Final = (
    "1234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
)


class PasswordRefused(PublisherError):
    """A password that may not be chosen; the message never holds it."""

    code = "password-unusable"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.field = "password"


def chosen(password: str, *, email: str = "", name: str = "") -> str:
    """The password as it is hashed, where it may be chosen by the person called so.

    Raises ``PasswordRefused``.
    """
    if len(password.encode(errors="surrogatepass")) > LONGEST:
        raise PasswordRefused(
            _("The password is longer than {n} bytes. Choose a shorter one.").format(n=LONGEST)
        )
    if any(unicodedata.category(c) in _NEVER_ASSIGNED for c in password):
        # Another system may write such a character otherwise, and the person could not get in.
        raise PasswordRefused(
            _("The password holds a control character or one that Unicode has not. Leave it out.")
        )
    password = _normal(password)
    if len(password) < SHORTEST:
        message = _(
            "The password has {n} characters; choose {shortest} or more. A few words in a row do"
            " well."
        )
        raise PasswordRefused(message.format(n=len(password), shortest=SHORTEST))
    if _is_common(password, email, name):
        message = _(
            "That password is among the first that somebody would try: a common word, a row of"
            " keys, something repeated, or your own name. Choose another; a few words in a row do"
            " well."
        )
        raise PasswordRefused(message)
    return password


def hashed(password: str) -> str:
    """What is kept of a password that ``chosen`` gave."""
    with _hands:
        return _hasher.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Whether ``password`` is the one that ``kept`` was made from.

    Nothing kept takes as long as something: the time does not tell which accounts there are.
    """
    if len(password.encode(errors="surrogatepass")) > LONGEST:
        password, kept = "", None
    text = _normal(password).encode(errors="surrogatepass")
    with _hands:
        if kept is None:
            _hasher.hash(text)
            return False
        try:
            return _hasher.verify(kept, text)
        except (VerificationError, InvalidHashError):
            return False


def is_dated(kept: str) -> bool:
    """Whether it was kept with other parameters than today's, and is to be hashed anew."""
    return _hasher.check_needs_rehash(kept)


def hashed_anew(password: str) -> str:
    """What to keep in place of a dated hash that ``password`` has just matched."""
    return hashed(_normal(password))


def _normal(password: str) -> str:
    return unicodedata.normalize("NFKC", password)


def _is_common(password: str, email: str, name: str) -> bool:
    plain = password.casefold()
    bare = _EDGES.sub("", plain)
    letters = _EDGES.sub("", bare.translate(_LOOKALIKES))
    parts = (*re.split(r"\W+", email.casefold()), *name.casefold().split())
    own = {part for part in parts if len(part) >= _SHORTEST_NAME}
    return (
        any(_word(text) in _COMMON | own for text in (letters, bare))
        or plain in {email.casefold(), name.casefold()}
        or len(_period(plain)) <= _LONGEST_PATTERN
        or any(_runs_along(plain, row) for row in _ROWS)
    )


def _word(text: str) -> str:
    """The word that ``text`` says once or several times."""
    period = _period(text)
    return period if text and len(text) % len(period) == 0 else text


def _period(text: str) -> str:
    """The shortest piece that ``text`` repeats, the last time perhaps not to its end."""
    for length in range(1, len(text)):
        if (text[:length] * (len(text) // length + 1))[: len(text)] == text:
            return text[:length]
    return text


def _runs_along(text: str, row: str) -> bool:
    """Whether it is only a row of keys, forwards or backwards, begun anew at its end."""
    round_and_round = row * (len(text) // len(row) + 2)
    return text in round_and_round or text in round_and_round[::-1]
