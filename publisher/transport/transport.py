"""The kinds of call: ``publish``, which is made once; ``step``; ``read``; and ``download``.

Only ``publish`` may make something public. It needs a permit, is never repeated, and answers
*not sent* only where no byte of it can have left. Everything here is synchronous and keeps
nothing between calls, so a ``Transport`` may be shared by threads and survives a fork.
"""

from __future__ import annotations

import contextlib
import logging
import re
from http import HTTPStatus
from threading import Event
from typing import Final

import httpcore
import httpx
import structlog
import tenacity

from publisher.config import Settings
from publisher.engine.adapter import SendPermit, boottime
from publisher.engine.outcome import Deferred, Reason, Unknown
from publisher.transport.addresses import AddressRefused, checked
from publisher.transport.body import encode
from publisher.transport.connection import Chunks, OneConnection, TrustRoots
from publisher.transport.exchange import Download, Exchange, Sink
from publisher.transport.phases import End, Phase, Verdict, judge
from publisher.transport.redaction import Redaction
from publisher.transport.reply import Failed, Reply
from publisher.transport.request import BadRequest, Request
from publisher.transport.wire import Wire

CONNECT_SECONDS: Final = 15.0
"""For connecting, TLS and a proxy together."""
STEP_SECONDS: Final = 120.0
READ_SECONDS: Final = 30.0
READ_TRIES: Final = 3

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding"})

log = structlog.get_logger(__name__)

# Both write whole URLs, with the tokens in them, at INFO and DEBUG.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class Transport:
    """Makes HTTP calls. ``tls``: other trust roots than certifi's, for a platform of one's own.

    Raises ``ValueError`` when ``PUBLISHER_PROXY_URL`` is not an ``http://`` address.
    """

    def __init__(self, settings: Settings, *, tls: TrustRoots | None = None) -> None:
        self._settings = settings
        self._tls = tls or TrustRoots()
        self._proxy = _proxy(settings)
        self._closed = Event()

    def publish(self, request: Request, permit: SendPermit) -> Reply | Deferred | Unknown:
        """Send, once, under ``permit``; its budget runs from the first byte.

        ``Reply`` is a whole answer with a 2xx or 4xx status, for the platform's closed list.
        ``Deferred`` is proved not sent. Everything else is ``Unknown``. Raises nothing but what
        ends a process; whether ``permit`` was used is the truth then.
        """
        connect_by = min(boottime() + CONNECT_SECONDS, permit.deadline)
        exchange = self._make(request, permit=permit, connect_by=connect_by, ends_at=connect_by)
        end = exchange.end()
        late = exchange.phase is Phase.CONNECTING and boottime() >= permit.deadline
        if late and end is End.TIME_UP:
            end = End.PERMIT_LATE
        row = judge(exchange.phase, end, exchange.status)
        answer = exchange.answer()
        detail = f"{row.says} ({answer.error})" if answer.error else row.says
        if row.reason is Reason.ADAPTER_BROKE:
            # A log that cannot be written must not take the place of what is known by now.
            with contextlib.suppress(Exception):
                log.error("transport.broke", end=end.value, detail=detail)
        if row.verdict is Verdict.DEFERRED:
            return Deferred(row.reason, detail, answer=answer)
        if row.verdict is Verdict.REPLY and exchange.status is not None:
            return Reply(exchange.status, exchange.headers, exchange.body, answer)
        return Unknown(row.reason, detail, answer=answer)

    def step(self, request: Request, *, timeout: float | None = None) -> Reply | Failed:
        """Make a harmless call, once. ``timeout``: seconds for all of it.

        ``Reply`` is a whole answer with any status.
        """
        ends_at = boottime() + (timeout or STEP_SECONDS)
        result, _ = self._harmless(request, ends_at)
        return result

    def read(self, request: Request, *, timeout: float | None = None) -> Reply | Failed:
        """Make a GET, up to three times while it fails or the server says 5xx.

        ``timeout``: seconds for all of them. Raises ``ValueError`` for another method.
        """
        if request.method != "GET":
            message = f"only GET is repeated, not {request.method}"
            raise ValueError(message)
        seconds = timeout or READ_SECONDS
        ends_at = boottime() + seconds
        tries = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(READ_TRIES) | tenacity.stop_before_delay(seconds),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=2.0),
            retry=tenacity.retry_if_result(_is_worth_repeating),
            retry_error_callback=_last,
            sleep=tenacity.sleep_using_event(self._closed),
        )
        result, _ = tries(self._harmless, request, ends_at)
        return result

    def download(
        self, request: Request, into: Sink, *, most_bytes: int, timeout: float
    ) -> Reply | Failed:
        """Make a GET, once, and write the body of a 200 into ``into``, never holding all of it.

        ``timeout``: seconds for all of it. A ``Reply`` with another status has its body as ever;
        redirects are not followed. Part of a body may be in ``into`` when it is ``Failed``, whose
        ``end`` is ``TOO_LARGE`` past ``most_bytes``, and ``BROKE`` where ``into`` raised. Raises
        ``ValueError`` for another method.
        """
        if request.method != "GET":
            message = f"only GET is a download, not {request.method}"
            raise ValueError(message)
        result, _ = self._harmless(request, boottime() + timeout, Download(into, most_bytes))
        return result

    def close(self) -> None:
        """Make no further call. Calls under way are left to end by themselves."""
        self._closed.set()

    def _harmless(
        self, request: Request, ends_at: float, into: Download | None = None
    ) -> tuple[Reply | Failed, End]:
        connect_by = min(boottime() + CONNECT_SECONDS, ends_at)
        exchange = self._make(
            request, permit=None, connect_by=connect_by, ends_at=ends_at, into=into
        )
        end = exchange.end()
        answer = exchange.answer()
        if end is End.WHOLE and exchange.status is not None:
            return Reply(exchange.status, exchange.headers, exchange.body, answer), end
        row = judge(exchange.phase, end, exchange.status)
        detail = f"{row.says} ({answer.error})" if answer.error else row.says
        return Failed(row.reason, detail, exchange.started, answer, end), end

    def _make(
        self,
        request: Request,
        *,
        permit: SendPermit | None,
        connect_by: float,
        ends_at: float,
        into: Download | None = None,
    ) -> Exchange:
        """Make the call, and keep what it came to. Only what ends a process passes through."""
        wire = Wire(
            connect_by=connect_by,
            user_timeout=self._settings.tcp_user_timeout_seconds,
            proxied=self._proxy is not None,
        )
        exchange = Exchange(
            request.method,
            wire,
            Redaction(request.secrets),
            permit=permit,
            ends_at=ends_at,
            into=into,
        )
        try:
            self._send(request, exchange)
        except Exception as error:  # noqa: BLE001 - the table decides, and knows its default
            exchange.error = error
        return exchange

    def _send(self, request: Request, exchange: Exchange) -> None:
        if self._closed.is_set():
            message = "this process is closing down"
            raise BadRequest(message)
        url = _url(request)
        body = encode(request)
        headers = _headers(request, url, body.type, body.length)
        exchange.connects_from_now(CONNECT_SECONDS)
        if not request.trusted:
            url = self._checked(url, exchange.wire)
        with contextlib.closing(OneConnection(exchange.wire, self._tls, self._proxy)) as connection:
            response = connection.handle_request(
                httpx.Request(
                    request.method,
                    url,
                    headers=headers,
                    stream=Chunks(body),
                    extensions={"trace": exchange.trace},
                )
            )
            exchange.read(response)

    def _checked(self, url: httpx.URL, wire: Wire) -> httpx.URL:
        """See where an address that was given to us leads, and make the wire go just there.

        Raises ``AddressRefused``, ``OSError``.
        """
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = checked(url.host, port, self._settings.allowed_networks)
        if self._proxy is None:
            wire.addresses = addresses
            return url
        if url.scheme != "https":
            # A proxy would resolve the name again, or take its Host from the bare address.
            message = "through a proxy, an address that is given must begin with https://"
            raise AddressRefused(message)
        wire.server_name = url.host
        return url.copy_with(host=addresses[0])


def _is_worth_repeating(tried: tuple[Reply | Failed, End]) -> bool:
    result, end = tried
    if isinstance(result, Reply):
        return result.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return end is not End.REFUSED


def _last(state: tenacity.RetryCallState) -> tuple[Reply | Failed, End]:
    """Give back what the last try came to."""
    assert state.outcome is not None  # noqa: S101 - tenacity calls this after a try
    tried: tuple[Reply | Failed, End] = state.outcome.result()
    return tried


def _proxy(settings: Settings) -> httpcore.Proxy | None:
    if settings.proxy_url is None:
        return None
    url = httpx.URL(settings.proxy_url.get_secret_value())
    if url.scheme != "http" or not url.host:
        message = "PUBLISHER_PROXY_URL must be like http://proxy.example.org:3128"
        raise ValueError(message)
    return httpcore.Proxy(
        url=httpcore.URL(scheme=b"http", host=url.raw_host, port=url.port, target=b"/"),
        auth=(url.username, url.password) if url.username else None,
    )


def _url(request: Request) -> httpx.URL:
    url = httpx.URL(request.url)
    if url.scheme not in {"http", "https"} or not url.host:
        message = "the address does not begin with https:// or http:// and a host"
        raise BadRequest(message)
    if url.userinfo:
        message = "the address holds a user name or password"
        raise BadRequest(message)
    if request.method not in _METHODS:
        message = f"the method {request.method} is not used"
        raise BadRequest(message)
    return url.copy_merge_params(request.params) if request.params else url


def _headers(
    request: Request, url: httpx.URL, type_: str | None, length: int
) -> list[tuple[str, str]]:
    """Lay the headers out in one fixed order.

    Raises ``BadRequest`` for one that is not allowed. It is checked here because httpcore would
    find it only after the permit was used up.
    """
    headers = [
        ("Host", url.netloc.decode("ascii")),
        ("User-Agent", "Publisher"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    given = {name.lower() for name in request.headers}
    for name, value in request.headers.items():
        if name.lower() in _OURS or not _HEADER_NAME.fullmatch(name):
            message = f"the header {name!r} may not be set"
            raise BadRequest(message)
        if not _HEADER_VALUE.fullmatch(value):
            message = f"the value of the header {name} holds a character that no header may"
            raise BadRequest(message)
    headers = [(name, value) for name, value in headers if name.lower() not in given]
    headers += request.headers.items()
    if type_ is not None:
        headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
        headers.append(("Content-Type", type_))
    if request.method != "GET" or length:
        headers.append(("Content-Length", str(length)))
    return headers
