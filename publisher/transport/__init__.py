"""HTTP: one request over one connection, and proof of whether it was sent."""

from publisher.transport.connection import TrustRoots
from publisher.transport.reply import Failed, Reply
from publisher.transport.request import BadRequest, FilePart, Request
from publisher.transport.transport import Transport

__all__ = ["BadRequest", "Failed", "FilePart", "Reply", "Request", "Transport", "TrustRoots"]
