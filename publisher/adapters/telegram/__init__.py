"""Telegram channels, through the Bot API."""

from publisher.adapters.telegram.adapter import Telegram

__all__ = ["Telegram"]
