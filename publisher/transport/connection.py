"""httpx's transport layer on a connection of its own.

httpx's *client* is left out: redirects, ``auth=`` flows and cookies live there, and the first two
send a request again by themselves. Each call makes a pool of one and throws it away, so that a
connection cannot be used twice; a pool kept for many threads was seen to reuse connections in
spite of ``max_keepalive_connections=0``. Nothing is kept between calls, so a fork is harmless.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import certifi
import httpcore
import httpx

from publisher.transport.wire import Wire


class TrustRoots(ssl.SSLContext):
    """One TLS context for every call of this process: a context costs about a megabyte."""

    def __new__(cls, authorities: Path | None = None) -> Self:
        """Verify names and certificates; HTTP/1.1 alone is offered.

        Against certifi's roots, or against those in the PEM file ``authorities`` alone. Raises
        ``OSError`` (``ssl.SSLError`` among it) where that cannot be read.
        """
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(authorities or certifi.where())
        ssl.SSLContext.set_alpn_protocols(context, ["http/1.1"])
        return context

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Do nothing; it was done once.

        httpcore sets the protocols before each handshake. OpenSSL frees the old list then, while
        another thread's handshake may be copying it without holding the interpreter's lock.
        """


class OneConnection(httpx.BaseTransport):
    """Sends one request over ``wire``. HTTP/1.1, no retry, no redirect."""

    def __init__(self, wire: Wire, tls: TrustRoots, proxy: httpcore.Proxy | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            proxy=proxy,
            max_connections=1,
            max_keepalive_connections=0,
            http1=True,
            http2=False,
            retries=0,
            network_backend=wire,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and return once the answer's headers are there; its body is read by the caller.

        Raises what httpcore raises, and what the trace extension does.
        """
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(response.status, headers=response.headers, stream=_Raw(response))

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._pool.close()


class Chunks(httpx.SyncByteStream):
    """A body that may be read once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks


class _Raw(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()
