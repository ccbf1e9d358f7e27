"""Fetches a picture or video from an address that a person gave, and from nowhere it must not.

Each step is checked by the transport: the name is resolved once, every address it leads to must be
public, and the call goes to the checked address (``transport.addresses``). A redirect is a new
step. What the answer says it is does not count; its bytes do.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import urljoin, urlsplit

import structlog

from publisher.editorial.media.refusal import MediaRefused
from publisher.engine.adapter import boottime
from publisher.transport import Failed, Reply, Request, Transport
from publisher.transport.phases import End
from publisher.words import N_, _

REDIRECTS: Final = 3
SECONDS: Final = 120.0
"""For all steps together."""
_LONGEST: Final = 2_048
_MOVED: Final = frozenset({301, 302, 303, 307, 308})

_log = structlog.get_logger(__name__)


class Sink(Protocol):
    """Where bytes go; it may raise ``MediaRefused`` for those it has seen enough of."""

    def write(self, chunk: bytes, /) -> object:
        """Take some."""
        ...


class Fetcher:
    """Fetches over one transport. ``seconds``: for one address, redirects and all."""

    def __init__(self, transport: Transport, *, seconds: float = SECONDS) -> None:
        self._transport = transport
        self._seconds = seconds

    def fetch(self, url: str, into: Sink, *, most_bytes: int, field: str = "url") -> None:
        """Write what lies at ``url`` into ``into``: at most ``most_bytes``.

        Raises ``MediaRefused``; something may be in ``into`` then.
        """
        ends_at = boottime() + self._seconds
        for _step in range(REDIRECTS + 1):
            _require_address(url, field)
            given = _Guarded(into)
            seconds = max(ends_at - boottime(), 0.001)
            result = self._transport.download(
                Request("GET", url, trusted=False), given, most_bytes=most_bytes, timeout=seconds
            )
            if given.refused is not None:
                raise given.refused
            if isinstance(result, Failed):
                raise _failed(result, url, most_bytes, field)
            if result.status == HTTPStatus.OK:
                return
            url = _next(result, url, field)
        what = _("This address leads on to another more than {n} times.").format(n=REDIRECTS)
        raise _refused(what, _("Give the address of the file itself."), field, code="redirects")


class _Guarded:
    """Remembers why a sink would take no more."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.refused: MediaRefused | None = None

    def write(self, chunk: bytes, /) -> None:
        try:
            self._sink.write(chunk)
        except MediaRefused as refused:
            self.refused = refused
            raise


def _require_address(url: str, field: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and parts.username is None and parts.password is None
    except ValueError:
        good = False
    plain = len(url) <= _LONGEST and url.isprintable() and not any(c.isspace() for c in url)
    if not (good and plain):
        what = _("This is no web address, or one with a password in it.")
        fix = _("It starts with https:// and names a site.")
        raise MediaRefused(what, fix, code="media-url", field=field)


def _next(result: Reply, url: str, field: str) -> str:
    """Where a redirect leads. Raises ``MediaRefused`` for any other answer."""
    to = result.headers.get("location")
    if result.status not in _MOVED or not to:
        what = _("The site answers {status} and not with a file.").format(status=result.status)
        fix = _("Open the address in a private window; give one that shows the file to everybody.")
        raise _refused(what, fix, field, code="status")
    try:
        target = urljoin(url, to)
    except ValueError:
        target = ""
    if url.startswith("https:") and target.startswith("http:"):
        what = _("This address leads on to one without encryption.")
        raise _refused(what, _("Give the address of the file itself."), field, code="downgraded")
    return target


_FAILURES: Final[dict[End, tuple[str, str, str]]] = {
    # Not where it leads: that would tell a stranger what lies in our network.
    End.REFUSED: (
        "refused",
        N_("This address leads to where we do not go, such as a private network."),
        N_("Give a public address, or upload the file. Whoever runs this can allow a network."),
    ),
    End.TIME_UP: (
        "slow",
        N_("The site did not send the file in time."),
        N_("Try again later, or upload the file."),
    ),
    End.UNDECODABLE: (
        "packed",
        N_("The site sends the file packed, which was not asked for."),
        N_("Give another address, or upload the file."),
    ),
}
_OTHERWISE: Final = (
    "unreachable",
    N_("The site cannot be reached, or broke off."),
    N_("Check the address, try again later, or upload the file."),
)


def _failed(result: Failed, url: str, most_bytes: int, field: str) -> MediaRefused:
    _log.info("media.not_fetched", host=urlsplit(url).hostname, detail=result.detail)
    if result.end is End.TOO_LARGE:
        what = _("This file is larger than {n:,.0f} MB.").format(n=most_bytes / 1e6)
        return MediaRefused(what, _("Give a smaller one."), code="media-too-large", field=field)
    code, what, fix = _FAILURES.get(result.end or End.BROKE, _OTHERWISE)
    return _refused(_(what), _(fix), field, code=code)


def _refused(what: str, fix: str, field: str, *, code: str) -> MediaRefused:
    return MediaRefused(what, fix, code=f"media-url-{code}", field=field)
