"""From what a call broke with to how it ended: both lists, in the order they are asked."""

from __future__ import annotations

import socket

import httpcore
import httpx
import pytest

from publisher.engine.errors import PermitLate, PermitUsed
from publisher.mailer import mailer
from publisher.mailer import phases as of_mail
from publisher.mailer.line import Closed, Garbled
from publisher.transport.addresses import AddressRefused
from publisher.transport.exchange import Exchange, TooLarge, Undecodable
from publisher.transport.phases import End
from publisher.transport.redaction import Redaction
from publisher.transport.request import BadRequest
from publisher.transport.wire import Wire


def end_of(error: Exception | None, *, started: bool = True, connected: bool = True) -> End:
    wire = Wire(connect_by=0.0, user_timeout=1.0)
    exchange = Exchange("POST", wire, Redaction(()), permit=None, ends_at=0.0)
    exchange.error, exchange.started, exchange.connected = error, started, connected
    return exchange.end()


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (PermitLate(), End.PERMIT_LATE),
        (PermitUsed(), End.PERMIT_USED),
        (AddressRefused("no"), End.REFUSED),
        (BadRequest("no"), End.REFUSED),
        (httpx.InvalidURL("no"), End.REFUSED),
        (httpcore.UnsupportedProtocol(), End.REFUSED),
        (httpcore.ConnectTimeout(), End.TIME_UP),
        (httpcore.ReadTimeout(), End.TIME_UP),
        (httpcore.WriteTimeout(), End.TIME_UP),
        (httpcore.PoolTimeout(), End.TIME_UP),
        (httpcore.ConnectError(), End.NOT_CONNECTED),
        (socket.gaierror(), End.NOT_CONNECTED),
        (httpcore.ProxyError(), End.NOT_CONNECTED),
        (httpcore.ReadError(), End.RESET),
        (httpcore.WriteError(), End.RESET),
        (httpcore.RemoteProtocolError(), End.GARBLED),
        (TooLarge(), End.TOO_LARGE),
        (Undecodable(), End.UNDECODABLE),
        # Whatever else it is, nobody has said how the call ended.
        (httpcore.LocalProtocolError(), End.BROKE),
        (OSError(), End.BROKE),
        (MemoryError(), End.BROKE),
        (ValueError(), End.BROKE),
        (None, End.WHOLE),
    ],
    ids=str,
)
def test_how_a_call_ended(error: Exception | None, end: End) -> None:
    assert end_of(error) is end
    assert end_of(error, started=True, connected=False) is End.REUSED
    assert end_of(error, started=False, connected=False) is end


def test_an_answer_that_stops_is_closed_and_one_that_goes_on_is_garbled() -> None:
    wire = Wire(connect_by=0.0, user_timeout=1.0)
    exchange = Exchange("POST", wire, Redaction(()), permit=None, ends_at=0.0)
    exchange.error, exchange.connected = httpcore.RemoteProtocolError(), True
    assert exchange.end() is End.GARBLED
    wire.ended = True
    assert exchange.end() is End.CLOSED
    exchange.error = httpcore.ReadError()
    assert exchange.end() is End.RESET


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (PermitLate(), of_mail.End.PERMIT_LATE),
        (PermitUsed(), of_mail.End.PERMIT_USED),
        (AddressRefused("no"), of_mail.End.REFUSED),
        (TimeoutError(), of_mail.End.TIME_UP),
        (Closed(), of_mail.End.CLOSED),
        (Garbled(), of_mail.End.GARBLED),
        (ConnectionResetError(), of_mail.End.BROKEN),
        (OSError(), of_mail.End.BROKEN),
        (ValueError(), of_mail.End.BROKE),
        (MemoryError(), of_mail.End.BROKE),
    ],
    ids=str,
)
def test_how_a_mail_ended(error: Exception, end: of_mail.End) -> None:
    assert mailer._end_of(error) is end
