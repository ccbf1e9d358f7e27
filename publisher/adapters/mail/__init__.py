"""Mail, through a relay that speaks SMTP."""

from publisher.adapters.mail.adapter import Mail

__all__ = ["Mail"]
