"""SMTP: one message to one recipient, and proof of whether it was sent."""

from publisher.mailer.mailer import Mailer, Taken
from publisher.mailer.relay import BadRelay, Envelope, Relay, Tls

__all__ = ["BadRelay", "Envelope", "Mailer", "Relay", "Taken", "Tls"]
