"""Webhooks: signed events to an address of the receiver's choice."""

from publisher.adapters.webhook.adapter import Webhook

__all__ = ["Webhook"]
