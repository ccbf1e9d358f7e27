"""What intake says no to, and what storage has to admit."""

from __future__ import annotations

from publisher.engine.errors import PublisherError
from publisher.words import _


class MediaRefused(PublisherError):
    """A file that cannot be used as a picture or video; the sentence says why and what to do.

    ``field``: which of the things that were given it is about, such as ``file`` or ``url``.
    Nothing was stored.
    """

    def __init__(self, what: str, fix: str, *, code: str, field: str = "media") -> None:
        super().__init__(f"{what} {fix}")
        self.code = code
        self.what = what
        self.fix = fix
        self.field = field


class MediaLost(PublisherError, KeyError):
    """Bytes that are not where they were put, or are others by now. They are not sent.

    A ``KeyError``, for to an adapter both are the same: there is nothing to send.
    """

    code = "media-lost"
    exit_code = 3

    def __init__(self, sha256: str, place: str, *, is_damaged: bool = False) -> None:
        said = (
            _("The file {sha256} in {place} is damaged: its bytes have another hash.")
            if is_damaged
            else _("The file {sha256} is not in {place}.")
        )
        fix = _("Bring it back from a backup, or add the same picture or video again.")
        super().__init__(f"{said.format(sha256=sha256[:12], place=place)} {fix}")
        self.sha256 = sha256
        self.is_damaged = is_damaged

    def __str__(self) -> str:
        return str(self.args[0])


class MediaUnreachable(PublisherError, OSError):
    """Storage that cannot be read or written just now; the sentence says what to see to.

    An ``OSError``, which adapters take for a failure of the moment.
    """

    code = "media-unreachable"
    exit_code = 3

    def __str__(self) -> str:
        return str(self.args[0])


class BytesChanged(Exception):
    """A file whose bytes are not those its hash was taken of. Nothing was kept."""
